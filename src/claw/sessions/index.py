"""Where a project's sessions lie, and how to find one.

``<home>/sessions/<project>/<id>.jsonl``, where the project's name is a readable
slug with a hash of its directory: two directories never share one.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

import msgspec

from claw.errors import SessionError, SessionNotFound
from claw.sessions.blobs import blobs_dir, read_blob
from claw.sessions.lines import scan
from claw.sessions.record import Record, decode_record, whole_records
from claw.types.entries import SessionStarted, Titled, TurnEnded, TurnStarted, UserMessaged
from claw.types.messages import text_of

__all__ = [
    "SessionSummary",
    "find",
    "find_anywhere",
    "list_all_sessions",
    "list_sessions",
    "session_path",
    "sessions_dir",
    "summary_of",
]

_SUFFIX = ".jsonl"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_COMMON_FIELDS = 256  # bytes that may stand before an entry's own
_STARTED = b'"kind":"session_started"'
_ENDED = b'"kind":"turn_ended"'
_PADDING = b"\0 \t\r\n"
_WINDOW = 64 * 1024
_LARGEST_WINDOW = 4 * 1024 * 1024
_LISTED = (b'"kind":"titled"', b'"kind":"turn_started"', _ENDED)
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
            hint = "`claw sessions list --all` names those that there are."
            raise SessionNotFound(f"there is no session file {path}", hint=hint)
        return os.path.realpath(path)  # what belongs to it lies beside it, not beside a link
    directory = sessions_dir(home, cwd)
    ids = [id for id, _ in _newest_first(directory)]
    if not ids:
        hint = _found_elsewhere(home, ref) or "`claw` begins one."
        raise SessionNotFound(f"there are no sessions of {cwd} yet", hint=hint)
    if ref == "latest":
        begun = (id for id in ids if _is_begun(os.path.join(directory, id + _SUFFIX)))
        return session_path(home, cwd, next(begun, ids[0]))
    fitting = [ref] if ref in ids else [id for id in ids if ref and id.startswith(ref)]
    if not fitting:
        newest = f"The newest one is `{ids[0]}`; `latest` takes it."
        raise SessionNotFound(
            f"no session of {cwd} is called `{ref}`", hint=_found_elsewhere(home, ref) or newest
        )
    if len(fitting) > 1:
        some = ", ".join(f"`{id}`" for id in fitting[:5]) + (", ..." if len(fitting) > 5 else "")
        raise SessionNotFound(
            f"`{ref}` fits {len(fitting)} sessions", hint=f"Give more of the id: {some}"
        )
    return session_path(home, cwd, fitting[0])


def list_sessions(home: str, cwd: str) -> tuple[SessionSummary, ...]:
    """The project's sessions, newest first, from the head and the tail of each."""
    return tuple(summary_of(path) for _, path, _ in _begun(sessions_dir(home, cwd)))


def list_all_sessions(home: str) -> tuple[SessionSummary, ...]:
    """As ``list_sessions``, of all projects."""
    found = [item for directory in _projects(home) for item in _begun(directory)]
    found.sort(key=lambda item: (item[2], item[0]), reverse=True)
    return tuple(summary_of(path) for _, path, _ in found)


def find_anywhere(home: str, cwd: str, ref: str) -> str:
    """As ``find``; where this project has no such session, the whole id of any other's will do."""
    try:
        return find(home, cwd, ref)
    except SessionNotFound:
        if (path := _elsewhere(home, ref)) is None:
            raise
        return path


def _elsewhere(home: str, ref: str) -> str | None:
    """The journal of any project that has this whole id."""
    if not _ID.fullmatch(ref):
        return None
    paths = (os.path.join(directory, ref + _SUFFIX) for directory in _projects(home))
    return next(filter(os.path.isfile, paths), None)


def _found_elsewhere(home: str, ref: str) -> str:
    """The hint for a session of another directory, blank where there is none."""
    path = _elsewhere(home, ref)
    return "" if path is None else f"It is one of another directory: --resume {shlex.quote(path)}"


def _projects(home: str) -> list[str]:
    top = os.path.join(home, "sessions")
    try:
        with os.scandir(top) as found:
            return sorted(entry.path for entry in found if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SessionError(f"cannot list {top}: {error.strerror}") from error


def _begun(directory: str) -> Iterator[tuple[str, str, int]]:
    """Id, path and time of the last change, newest first."""
    for id, changed in _newest_first(directory):
        path = os.path.join(directory, id + _SUFFIX)
        if _is_begun(path):
            yield id, path, changed


def _newest_first(directory: str) -> list[tuple[str, int]]:
    """Ids with the time of the last change; files in which nothing was written are none."""
    found = []
    try:
        with os.scandir(directory) as files:
            for file in files:
                id = file.name.removesuffix(_SUFFIX)
                if id == file.name or not _ID.fullmatch(id):
                    continue
                with contextlib.suppress(OSError):  # gone meanwhile, a link to itself
                    status = file.stat()
                    if stat.S_ISREG(status.st_mode) and status.st_size:
                        found.append((id, status.st_mtime_ns))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SessionError(f"cannot list {directory}: {error.strerror}") from error
    return sorted(found, key=lambda item: (item[1], item[0]), reverse=True)


def _is_begun(path: str) -> bool:
    """Whether anything was ever acknowledged: not where the first record was broken off."""
    try:
        with open(path, "rb") as file:
            head = file.readline(_WINDOW)
            if not head.strip(_PADDING):  # a power loss leaves zeros
                head = file.read(_WINDOW).lstrip(_PADDING)
    except OSError:
        return True  # whoever opens it will say why it cannot be
    return b"\n" in head or len(head) == _WINDOW or any(whole_records(head))


def summary_of(path: str) -> SessionSummary:
    """What a list says of one session. Never raises: ``problem`` says what is wrong."""
    id = os.path.basename(path).removesuffix(_SUFFIX)
    cwd = created = updated = title = prompt = problem = ""
    turns = size = 0
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            for record in _head(file, partial(read_blob, blobs_dir(path))):
                match record.entry:
                    case SessionStarted() as started:
                        if started.session_id != id:  # a fork begins with the original's
                            started = _own_start(file)
                        cwd, created = started.cwd, started.created
                    case UserMessaged() as said:
                        prompt = _one_line(text_of(said.content))
                        break
            for record in _tail(file, size):
                updated = updated or record.at
                match record.entry:
                    case Titled() if not title:
                        title = _one_line(record.entry.title)
                    case TurnStarted() | TurnEnded():
                        turns = max(turns, record.entry.turn)
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


def _own_start(file: BinaryIO) -> SessionStarted:
    """The entry that gave a fork its id: the last of its kind, wherever it stands."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.rfind(_STARTED)
        end = content.find(b"\n", at)
        line = content[content.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(content)]
    entry = decode_record(line).entry
    if not isinstance(entry, SessionStarted):
        raise ValueError("its own first record cannot be found")
    return entry


def _head(file: BinaryIO, get: Callable[[str], bytes]) -> Iterator[Record]:
    """Records from the beginning, as far as the window reaches."""
    for line in scan(file, get):
        if line.error is not None:
            raise line.error
        if line.record is not None:
            yield line.record
        if line.end > _WINDOW:
            return


def _tail(file: BinaryIO, size: int) -> Iterator[Record]:
    """The last record, and of the kinds that a list needs the last one in the window.

    The window reaches back to the end of a turn, unless that is very far away.
    """
    window = _WINDOW
    chunk = _last_bytes(file, size, window)
    while window < min(size, _LARGEST_WINDOW) and not _last_line(chunk, _ENDED):
        window *= 4
        chunk = _last_bytes(file, size, window)
    end = chunk.rfind(b"\n")
    if line := chunk[chunk.rfind(b"\n", 0, max(end, 0)) + 1 : end].strip(b"\0 \t\r"):
        yield decode_record(line)
    for kind in _LISTED:
        if line := _last_line(chunk[: end + 1], kind):
            yield decode_record(line)


def _last_bytes(file: BinaryIO, size: int, window: int) -> bytes:
    file.seek(max(0, size - window))
    chunk = file.read(window)
    if size > window:
        chunk = chunk[chunk.find(b"\n") + 1 :]  # it begins in the middle of a record
    return chunk


def _last_line(chunk: bytes, kind: bytes) -> bytes:
    at = chunk.rfind(kind)
    while at >= 0:
        begin = chunk.rfind(b"\n", 0, at) + 1
        if at - begin < _COMMON_FIELDS:  # and not something in the entry that looks like it
            return chunk[begin : chunk.find(b"\n", at)].strip(b"\0 \t\r")
        at = chunk.rfind(kind, 0, begin)
    return b""


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * _TITLE_LENGTH].split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"
