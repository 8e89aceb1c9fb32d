"""`claw export`: a session as a document, or its records, for somewhere else."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from claw.app.configured import secrets_of
from claw.cli.config_command import load_as_given
from claw.cli.render.activity import show_labelled
from claw.cli.render.story import as_markdown, story
from claw.cli.sessions_command import home_and_project, screen_here
from claw.cli.style import harmless
from claw.cli.times import world_time
from claw.errors import ConfigError, SessionError
from claw.models.offline.client import MODEL as OFFLINE
from claw.models.prices import cost
from claw.policy.redact import KnownSecrets
from claw.sessions.blobs import blobs_dir, read_blob
from claw.sessions.index import SessionSummary, find_anywhere, summary_of
from claw.sessions.load import good_lines, open_journal, read_entries, refuse_foreign
from claw.sessions.naming import blobs_named
from claw.sessions.record import OPENING, head_of
from claw.sessions.writing import put_file, reason
from claw.types.texts import each_text
from claw.viewer.atif import atif
from claw.viewer.fold import fold
from claw.viewer.page import page
from claw.workspace.disk import SystemDisk

__all__ = ["STDOUT", "cleaner", "export_session", "page_of", "write_whole"]

Clean = Callable[[str], str]
SYSTEM = ("/dev/", "/proc/")
STDOUT = "-"


def export_session(given: Mapping[str, Any]) -> int:
    """Write it to stdout or a file, without secrets. Raises ``ClawError``."""
    path = find_anywhere(*home_and_project(given), given["ref"])
    clean = cleaner(given)
    refuse_foreign(path)
    elsewhere: list[int] = []
    pictures: set[str] = set()
    if given["output_format"] == "jsonl":
        pieces = _lines(path, clean, elsewhere)
    elif given["output_format"] == "html":
        pieces = iter((page_of(path, clean),))
    elif given["output_format"] == "atif":
        pieces = _trajectory(path, clean, pictures)
    else:
        pieces = _document(path, clean)
    screen = screen_here()
    if given["output"] not in (None, STDOUT):
        write_whole(given["output"], path, pieces)
    else:
        for piece in pieces:
            screen.product(piece.decode("utf-8", "replace"))
    if elsewhere:
        count = len(elsewhere)
        what = "1 record has" if count == 1 else f"{count} records have"
        what += " prompts, long texts or files beside the session"
        text = f"{what}, which are not in the export: it cannot be replayed"
        show_labelled(screen, "warning", text)
    if pictures:
        what = "1 picture is" if len(pictures) == 1 else f"{len(pictures)} pictures are"
        text = f"{what} in files beside the session, which the export names but does not hold"
        show_labelled(screen, "warning", text)
    return screen.exit_code(0)


def cleaner(given: Mapping[str, Any]) -> Clean:
    """Takes the secrets of the environment and the settings of today out of a text."""
    return KnownSecrets(secrets_of(load_as_given(given), os.environ)).clean


def page_of(path: str, clean: Clean) -> bytes:
    """A session as one HTML page. Raises ``SessionError`` where it is damaged."""
    told = fold(read_entries(path), clean=clean, blob=_blobs_of(path), price=cost)
    return page(told).encode()


def _blobs_of(path: str) -> Callable[[str], bytes | None]:
    folder = blobs_dir(path)

    def blob(digest: str) -> bytes | None:
        try:
            return read_blob(folder, digest)
        except SessionError:
            return None

    return blob


def _trajectory(path: str, clean: Clean, pictures: set[str]) -> Iterator[bytes]:
    """``pictures`` gets the paths of those that it names. Raises ``SessionError`` at once."""
    folder, blob = os.path.abspath(blobs_dir(path)), _blobs_of(path)

    def file(digest: str) -> str | None:
        if blob(digest) is None:
            return None
        pictures.add(os.path.join(folder, digest))
        return os.path.join(folder, digest)

    pieces = atif(
        read_entries(path), clean=clean, blob=blob, file=file, price=cost, rules={OFFLINE}
    )
    return (piece.encode("utf-8", "replace") for piece in pieces)


def _document(path: str, clean: Clean) -> Iterator[bytes]:
    yield clean(_head(summary_of(path))).encode("utf-8", "replace")
    for paragraph in as_markdown(story(read_entries(path))):
        yield f"\n{clean(paragraph)}\n".encode("utf-8", "replace")


def _head(session: SessionSummary) -> str:
    title = " ".join(harmless(session.title).split()) or "A session"
    when = world_time(session.created)
    return f"# {title}\n\n- session: {session.id}\n- directory: {session.cwd}\n- begun: {when}\n"


def _lines(path: str, clean: Clean, elsewhere: list[int]) -> Iterator[bytes]:
    """The records as they stand, but for secrets; ``elsewhere`` gets those that name files."""
    with open_journal(path) as file:
        for line in good_lines(path, file):
            if line.record is not None:
                if head_of(line.raw).blobs or any(blobs_named(line.record.entry)):
                    elsewhere.append(line.record.seq)
                yield _cleaned(line.raw, clean) + b"\n"


def _cleaned(raw: bytes, clean: Clean) -> bytes:
    """The same bytes where there is no secret in them, else a record with its own checksum."""
    fields = msgspec.json.decode(raw, type=dict[str, Any])
    try:
        without = each_text(fields, clean)
    except RecursionError as error:
        raise SessionError(
            f"record {fields.get('seq')} is nested too deeply to be looked through for secrets",
            hint="`--format markdown` and `--format html` leave out what is nested so deeply.",
        ) from error
    if without == fields:
        return raw
    del without["crc"]
    rest = msgspec.json.encode(without)[1:]
    return b'%b%08x",%b' % (OPENING, zlib.crc32(rest), rest)


def write_whole(target: str, source: str, pieces: Iterable[bytes]) -> None:
    """A new private file, or one in the place of a regular file; whole, or not at all.

    A link stays, and what it leads to is written. Raises ``ConfigError``.
    """
    named = os.path.abspath(os.path.expanduser(target))
    target = os.path.realpath(named)
    if target == os.path.realpath(source):
        raise ConfigError("the export would replace the session itself", hint="Name another file.")
    another = "Name a file in a directory that you may write to."
    try:
        regular = stat.S_ISREG(os.stat(target).st_mode)
    except FileNotFoundError:
        regular = True  # it will be one
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {reason(error)}", hint=another) from error
    # `/dev/stdout` may lead to a regular file: one that somebody else has open.
    if not regular or named.startswith(SYSTEM):
        raise ConfigError(f"{named} is no regular file", hint="Name another one.")
    disk = SystemDisk()
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        put_file(disk, temporary, pieces)
        disk.rename(temporary, target)
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {reason(error)}", hint=another) from error
