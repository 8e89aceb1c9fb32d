"""A copy of a session that goes its own way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from claw.errors import SessionError
from claw.ports import Disk
from claw.sessions.blobs import blobs_dir
from claw.sessions.directories import NO_PERSISTENCE_HINT, make_private
from claw.sessions.load import good_lines, open_journal, refuse_foreign
from claw.sessions.record import encode_record, utc
from claw.sessions.writing import put_file, reason
from claw.types.entries import SCHEMA, SessionStarted

__all__ = ["fork"]


def fork(
    path: str,
    new_path: str,
    *,
    at_seq: int | None = None,
    now: Callable[[], float],
    disk: Disk,
    claw_version: str = "",
) -> None:
    """Copy a session, up to entry ``at_seq`` or whole, under the name of ``new_path``.

    Records are copied as they are, blobs are shared by hard links where that can be, and
    one ``SessionStarted`` follows that gives the copy its own id. The original may be in
    use. ``now`` gives seconds since the epoch. Raises ``SessionNotFound``,
    ``SessionCorrupt``, ``SessionTooNew``, ``SessionError``; then there is no copy.
    """
    refuse_foreign(path)
    temporary = f"{new_path}.{os.getpid()}.tmp"
    make_private(os.path.dirname(os.path.abspath(new_path)), disk)
    try:
        put_file(disk, temporary, _copied(path, new_path, at_seq, utc(now()), claw_version))
        try:
            # After the records: whatever blob one of them names is there by now.
            _share_blobs(blobs_dir(path), blobs_dir(new_path), disk)
            _give_name(temporary, new_path, disk)
        except BaseException:
            with contextlib.suppress(OSError):
                disk.unlink(temporary)
            raise
    except OSError as error:
        raise SessionError(
            f"cannot copy {path} to {new_path}: {reason(error)}", hint=NO_PERSISTENCE_HINT
        ) from error


def _copied(
    path: str, new_path: str, at_seq: int | None, at: str, claw_version: str
) -> Iterator[bytes]:
    """The lines of the copy."""
    seq, parent = 0, ""
    started = SessionStarted("", claw_version, "", at, schema=SCHEMA)
    with open_journal(path) as file:
        for line in good_lines(path, file):
            if line.record is None:
                continue
            if at_seq is not None and line.record.seq > at_seq:
                break
            seq, parent = line.record.seq, line.record.id
            if isinstance(line.record.entry, SessionStarted):
                started = line.record.entry
            yield line.raw + b"\n"
    id = os.path.basename(new_path).removesuffix(".jsonl")
    own = replace(
        started,
        session_id=id,
        claw_version=claw_version or started.claw_version,
        created=at,
        forked_from=started.session_id,
    )
    yield encode_record(own, seq=seq + 1, id=f"e{seq + 1}", parent=parent, at=at)


def _share_blobs(source: str, target: str, disk: Disk) -> None:
    try:
        names = sorted(os.listdir(source))
    except FileNotFoundError:
        return
    make_private(target, disk)
    for name in names:
        if not name.endswith(".tmp"):
            _share(os.path.join(source, name), os.path.join(target, name), disk)


def _share(source: str, target: str, disk: Disk) -> None:
    try:
        disk.link(source, target)
    except FileExistsError:  # of an attempt before this one
        return
    except OSError:  # a file system without hard links, or another one
        temporary = f"{target}.{os.getpid()}.tmp"
        with open(source, "rb") as file:
            put_file(disk, temporary, iter(lambda: file.read(1024 * 1024), b""))
        disk.rename(temporary, target)


def _give_name(temporary: str, path: str, disk: Disk) -> None:
    """Raises ``SessionError`` where there is a session already."""
    try:
        disk.link(temporary, path)
    except FileExistsError as error:
        raise SessionError(f"there is already a session in {path}") from error
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise SessionError(f"there is already a session in {path}") from None
        disk.rename(temporary, path)
    else:
        with contextlib.suppress(OSError):  # it is whole, whatever else it is called
            disk.unlink(temporary)
