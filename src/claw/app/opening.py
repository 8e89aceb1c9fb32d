"""The session that a conversation goes on in: a new one, an old one, a copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import msgspec

from claw.app.wishes import Wishes
from claw.config.load import Loaded
from claw.config.paths import home_directory
from claw.errors import ConfigError, SessionError, SessionNotFound, ToolFailed
from claw.ports import (
    Blobs,
    Clock,
    Disk,
    Ids,
    Journal,
)
from claw.sessions.blobs import MemoryBlobs, blobs_dir
from claw.sessions.directories import may_create, memory_only
from claw.sessions.fork import fork
from claw.sessions.index import find, session_path
from claw.sessions.journal import FileJournal, MemoryJournal
from claw.sessions.load import read_entries
from claw.sessions.record import Record, utc
from claw.types.entries import (
    SCHEMA,
    KnownEntry,
    SessionStarted,
)
from claw.types.session import SessionState
from claw.version import __version__
from claw.workspace.files import LocalWorkspace

__all__ = ["Opened", "open_session", "places_of", "workspace_of"]


class Opened(msgspec.Struct, frozen=True):
    """``told`` and ``notes`` are for the person: what is good to know, and what is not well."""

    session_id: str
    cwd: str
    path: str | None
    journal: Journal
    blobs: Blobs
    records: Callable[[], Iterable[Record]]
    close: Callable[[], None]
    state: SessionState = SessionState()
    opening: tuple[KnownEntry, ...] = ()
    told: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def open_session(
    wishes: Wishes, home: str, cwd: str, *, clock: Clock, ids: Ids, disk: Disk
) -> Opened:
    """The session that is wished for. Only a fork is written at once. Raises ``SessionError``."""
    found = None if wishes.session is None else find(home, cwd, wishes.session)
    if found is not None and not wishes.fork:
        return _resume(found, cwd, clock, disk)
    session_id = wishes.session_id or ids.session()
    path = session_path(home, cwd, session_id)
    if os.path.lexists(path):
        raise SessionError(
            f"there is a session `{session_id}` already",
            hint=f"Go on with it: `--resume {session_id}`.",
        )
    if found is not None:
        fork(found, path, now=clock.now, disk=disk, claw_version=__version__)
        return _resume(path, cwd, clock, disk, told=_forked(found, session_id))
    started = SessionStarted(session_id, __version__, cwd, utc(clock.now()), schema=SCHEMA)
    notes: tuple[str, ...] = ()
    if not wishes.ephemeral and not may_create(os.path.dirname(path)):
        notes = (memory_only(home),)
    journal: MemoryJournal | FileJournal
    blobs: Blobs
    if wishes.ephemeral or notes:
        journal, blobs = MemoryJournal(now=clock.now), MemoryBlobs()
    else:
        journal = FileJournal(path, now=clock.now, disk=disk)
        blobs = journal.blobs
    return Opened(
        session_id=session_id,
        cwd=cwd,
        path=path if isinstance(journal, FileJournal) else None,
        journal=journal,
        blobs=blobs,
        records=_records(journal),
        close=journal.close,
        opening=(started,),
        notes=notes,
    )


def _forked(original: str, session_id: str) -> str:
    name = os.path.basename(original).removesuffix(".jsonl")
    return f"This is session {session_id}, a copy of {name}."


def _records(journal: FileJournal | MemoryJournal) -> Callable[[], Iterable[Record]]:
    if isinstance(journal, MemoryJournal):
        return lambda: journal.records
    return lambda: read_entries(journal.path) if os.path.exists(journal.path) else ()


def _resume(path: str, cwd: str, clock: Clock, disk: Disk, *, told: str = "") -> Opened:
    journal, loaded = FileJournal.continue_from(path, now=clock.now, disk=disk)
    state, notes = loaded.state, loaded.notes
    if not state.session_id:
        journal.close()
        raise SessionNotFound(f"{path} holds no session", hint="Start a new one.")
    opening: tuple[KnownEntry, ...] = ()
    if state.cwd not in ("", cwd):
        notes = (*notes, f"this session began in {state.cwd}; it goes on in {cwd}")
        at = utc(clock.now())
        opening = (SessionStarted(state.session_id, __version__, cwd, at, schema=SCHEMA),)
    return Opened(
        session_id=state.session_id,
        cwd=cwd,
        path=path,
        journal=journal,
        blobs=journal.blobs,
        records=_records(journal),
        close=journal.close,
        state=state,
        opening=opening,
        told=(told,) if told else (),
        notes=notes,
    )


def workspace_of(
    cwd: str, wishes: Wishes, loaded: Loaded, opened: Opened, disk: Disk
) -> LocalWorkspace:
    """Results that were clipped name their blob: Read and Grep must reach it."""
    own = (blobs_dir(opened.path),) if opened.path else ()
    try:
        return LocalWorkspace(
            cwd,
            loaded.settings.permissions.additional_directories,
            own_dirs=own,
            home=home_directory(wishes.env),
            disk=disk,
        )
    except ToolFailed as error:
        raise ConfigError(error.message) from error


def places_of(wishes: Wishes, cwd: str, journal: str | None) -> dict[str, str]:
    """What the names in a recording stand for."""
    own = {"BLOBS": blobs_dir(journal)} if journal else {}
    return {"CWD": cwd, "HOME": home_directory(wishes.env), **own}
