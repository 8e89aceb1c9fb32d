"""Where a project's sessions lie, and how to find one.

``<home>/sessions/<project>/<id>.jsonl``, where the project's name is a readable
slug with a hash of its directory: two directories never share one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from claw.errors import SessionError, SessionNotFound
from claw.sessions.record import Record, decode_record
from claw.types.entries import SessionStarted, Titled, TurnEnded, TurnStarted, UserMessaged
from claw.types.messages import text_of

__all__ = ["SessionSummary", "find", "list_sessions", "session_path", "sessions_dir"]

_SUFFIX = ".jsonl"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LISTED = re.compile(rb'"kind":"(titled|turn_started|turn_ended)"')
_WINDOW = 64 * 1024
_TITLE_LENGTH = 80


class SessionSummary(msgspec.Struct, frozen=True):
    """One line of a list of sessions.

    ``title`` is the first prompt where none was given; ``created`` and ``updated``
    are UTC, ISO 8601, empty where unknown; ``size`` is in bytes. ``problem`` says
    what could not be read, and is empty otherwise.
    """

    id: str
    path: str
    cwd: str
    title: str
    created: str
    updated: str
    turns: int
    size: int
    problem: str


def sessions_dir(home: str, cwd: str) -> str:
    """The directory of the sessions of the project in ``cwd``; it may not exist yet."""
    real = os.path.realpath(cwd)
    slug = re.sub(r"[^A-Za-z0-9]+", "-", real).strip("-")[-40:].strip("-") or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return os.path.join(home, "sessions", f"{slug}-{digest}")


def session_path(home: str, cwd: str, session_id: str) -> str:
    """Where a session with this id lies. Raises ``SessionError`` for what is no id."""
    if not _ID.fullmatch(session_id):
        raise SessionError(
            f"`{session_id}` is no session id",
            hint="An id has letters, digits, `.`, `_` and `-`, and begins with a letter or digit.",
        )
    return os.path.join(sessions_dir(home, cwd), session_id + _SUFFIX)


def find(home: str, cwd: str, ref: str) -> str:
    """The journal that ``ref`` means: an id, a unique prefix of one, ``latest``, or a path.

    Paths contain a ``/`` or end in ``.jsonl``; relative ones start at ``cwd``.
    Raises ``SessionNotFound``, with the candidates where there are several.
    """
    if "/" in ref or ref.endswith(_SUFFIX):
        path = os.path.join(cwd, os.path.expanduser(ref))
        if not os.path.isfile(path):
            raise SessionNotFound(f"there is no session file {path}")
        return path
    ids = [id for id, _ in _newest_first(sessions_dir(home, cwd))]
    if not ids:
        raise SessionNotFound(
            f"there are no sessions of {cwd} yet", hint="Start one without `--continue`/`--resume`."
        )
    if ref == "latest":
        return session_path(home, cwd, ids[0])
    fitting = [ref] if ref in ids else [id for id in ids if ref and id.startswith(ref)]
    if not fitting:
        raise SessionNotFound(
            f"no session of {cwd} is called `{ref}`",
            hint=f"The newest one is `{ids[0]}`; `latest` takes it.",
        )
    if len(fitting) > 1:
        some = ", ".join(f"`{id}`" for id in fitting[:5]) + (", ..." if len(fitting) > 5 else "")
        raise SessionNotFound(
            f"`{ref}` fits {len(fitting)} sessions", hint=f"Give more of the id: {some}"
        )
    return session_path(home, cwd, fitting[0])


def list_sessions(home: str, cwd: str) -> tuple[SessionSummary, ...]:
    """The project's sessions, newest first, from the head and the last 64 KiB of each."""
    directory = sessions_dir(home, cwd)
    return tuple(
        _summary(id, os.path.join(directory, id + _SUFFIX)) for id, _ in _newest_first(directory)
    )


def _newest_first(directory: str) -> list[tuple[str, int]]:
    """Ids with the time of the last change; files in which nothing was written are none."""
    found = []
    try:
        with os.scandir(directory) as files:
            for file in files:
                id = file.name.removesuffix(_SUFFIX)
                if id == file.name or not _ID.fullmatch(id) or not file.is_file():
                    continue
                status = file.stat()
                if status.st_size:
                    found.append((id, status.st_mtime_ns))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SessionError(f"cannot list {directory}: {error.strerror}") from error
    return sorted(found, key=lambda item: (item[1], item[0]), reverse=True)


def _summary(id: str, path: str) -> SessionSummary:
    cwd = created = updated = title = prompt = problem = ""
    turns = size = 0
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            for record in _head(file):
                match record.entry:
                    case SessionStarted() as started:
                        cwd, created = started.cwd, started.created
                    case UserMessaged() as said:
                        prompt = _one_line(text_of(said.content))
                        break
            for record in _tail(file, size):
                updated = updated or record.at
                match record.entry:
                    case Titled() if not title:
                        title = _one_line(record.entry.title)
                    case TurnStarted() | TurnEnded() if not turns:
                        turns = record.entry.turn
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except (ValueError, SessionError) as error:
        problem = str(error)
    return SessionSummary(
        id=id,
        path=path,
        cwd=cwd,
        title=title or prompt,
        created=created,
        updated=updated,
        turns=turns,
        size=size,
        problem=problem,
    )


def _head(file: BinaryIO) -> Iterator[Record]:
    """Records from the beginning, as far as the window reaches."""
    for line in file.read(_WINDOW).split(b"\n")[:-1]:
        if content := line.strip(b"\0 \t\r"):
            yield decode_record(content)


def _tail(file: BinaryIO, size: int) -> Iterator[Record]:
    """The last record, and before it those that a list needs, backwards."""
    file.seek(max(0, size - _WINDOW))
    lines = file.read(_WINDOW).split(b"\n")[:-1]
    if size > _WINDOW:
        del lines[:1]  # begins in the middle of a record
    is_first = True
    for line in reversed(lines):
        content = line.strip(b"\0 \t\r")
        if content and (is_first or _LISTED.search(content[:256])):
            is_first = False
            yield decode_record(content)


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * _TITLE_LENGTH].split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"
