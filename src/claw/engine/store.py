"""Views of a session's turns, folded from its journal: ``TranscriptStore``, ``StoredSession``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

import msgspec

from claw.config.paths import find_homes
from claw.errors import SessionNotFound
from claw.runtime.summary import summarize
from claw.sessions.index import find_anywhere, session_path
from claw.sessions.load import read_entries, refuse_foreign
from claw.sessions.record import Record
from claw.types.entries import (
    Compacted,
    KnownEntry,
    ReplyReceived,
    Rewound,
    SessionStarted,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import Text
from claw.types.permissions import PermissionDenial
from claw.types.results import StopReason, StoredSession, final_assistant_text
from claw.types.usage import Usage

__all__ = [
    "SESSION_TOKENS",
    "SESSION_USD",
    "StoredTurn",
    "TranscriptStore",
    "fold",
    "journal_of",
    "load_session",
]

SESSION_TOKENS, SESSION_USD = "session_budget_tokens", "session_budget_usd"
"""Limits of a turn that say what was left of a session's budget."""
KEPT = 1
"""Prompts that stay in the view when the conversation is compacted between turns."""


class StoredTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """``prompt`` is None where a hook blocked it. ``cost`` is in US dollars, None if unknown."""

    prompt: str | None
    output: str = ""
    stop_reason: StopReason = "interrupted"
    denials: tuple[PermissionDenial, ...] = ()
    cost: float | None = None


class TranscriptStore:
    """The prompts of a session and what came of them.

    Nothing is kept here that the journal does not have: ``append`` folds one more record.
    ``sync`` makes the journal durable.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._turns: tuple[StoredTurn, ...] = ()
        self._open: list[KnownEntry] | None = None
        self._past: list[tuple[int, tuple[StoredTurn, ...]]] = [(0, ())]
        self._shown_from = 0
        self._usage = Usage()
        self._session_id = ""
        self.since_compaction = 0
        self.flushed = True

    @property
    def turns(self) -> tuple[StoredTurn, ...]:
        """All, also the one that runs or was broken off: as interrupted."""
        if self._open is None:
            return self._turns
        return (*self._turns, StoredTurn(_prompt_in(self._open)))

    def append(self, record: Record) -> None:
        """Fold one more record. What a ``Rewound`` takes away is gone from the view."""
        self.flushed = False
        match record.entry:
            case SessionStarted():
                self._session_id = record.entry.session_id
            case TurnStarted():
                self._turns = self.turns  # with one that nobody ended
                self._open = [record.entry]
                self.since_compaction += 1
            case Rewound(to=to):
                self._turns = [turns for seq, turns in self._past if seq <= to][-1]
                self._shown_from = min(self._shown_from, len(self._turns))
            case Compacted():
                self._usage += record.entry.usage
                if not record.entry.provisional:
                    self.since_compaction = 0
                if record.entry.trigger == "manual":
                    self.compact(KEPT)
            case ReplyReceived():
                self._usage += record.entry.usage
        if self._open is not None and isinstance(record.entry, KnownEntry):
            self._open.append(record.entry)
            if isinstance(record.entry, TurnEnded):
                self._turns = (*self._turns, _turn(self._open))
                self._open = None
                self._past.append((record.seq, self._turns))

    def compact(self, keep_last: int) -> None:
        """Narrow the view to the last prompts; the journal keeps all."""
        said = [at for at, turn in enumerate(self.turns) if turn.prompt is not None]
        hidden = said[: max(0, len(said) - max(0, keep_last))]
        self._shown_from = max(self._shown_from, hidden[-1] + 1 if hidden else 0)

    def replay(self) -> tuple[str, ...]:
        """The prompts in view, oldest first."""
        return tuple(t.prompt for t in self.turns[self._shown_from :] if t.prompt is not None)

    def flush(self) -> None:
        """Make what was said durable. Raises ``SessionError``."""
        self._sync()
        self.flushed = True

    def stored(self) -> StoredSession:
        """The whole session, whatever is in view."""
        turns, usage = self.turns, self._usage
        return StoredSession(
            session_id=self._session_id,
            messages=tuple(turn.prompt for turn in turns if turn.prompt is not None),
            outputs=tuple(turn.output for turn in turns),
            stop_reasons=tuple(turn.stop_reason for turn in turns),
            permission_denials=tuple(denial for turn in turns for denial in turn.denials),
            input_tokens=usage.context_tokens - usage.output_tokens,
            output_tokens=usage.output_tokens,
        )


def fold(records: Iterable[Record], sync: Callable[[], None]) -> TranscriptStore:
    """The view of a whole journal. Raises what reading the records does."""
    store = TranscriptStore(sync)
    for record in records:
        store.append(record)
    return store


def journal_of(session_id: str, cwd: str, env: Mapping[str, str]) -> str:
    """The file of a session; its id, the beginning of one, or ``latest``, but no path.

    Raises ``SessionError``, ``SessionNotFound``, ``ConfigError``.
    """
    real = os.path.realpath(cwd)
    home = find_homes(real, env).config
    session_path(home, real, session_id)  # refuses what is no id
    path = find_anywhere(home, real, session_id)
    refuse_foreign(path)
    return path


def load_session(
    session_id: str, *, cwd: str = ".", env: Mapping[str, str] | None = None
) -> StoredSession:
    """A session from disk: its id, the beginning of one, or ``latest``.

    One of another directory is found by its whole id. Takes no lock and changes nothing.
    Raises ``SessionNotFound`` for an unknown id, ``SessionError`` for what is no id (a path),
    ``SessionCorrupt`` and ``SessionTooNew`` for files that cannot be read.
    """
    path = journal_of(session_id, cwd, os.environ if env is None else env)
    stored = fold(read_entries(path), _nothing).stored()
    if stored.session_id:
        return stored
    hint = "`claw sessions` lists those there are."
    raise SessionNotFound(f"{path} holds no session", hint=hint)


def _nothing() -> None:
    """Only looked at: there is nothing to make durable."""


def _prompt_in(entries: Iterable[KnownEntry]) -> str | None:
    """What the user said; blocks after the first text are context that something added."""
    for entry in entries:
        if isinstance(entry, UserMessaged):
            return next((b.text for b in entry.content if isinstance(b, Text)), "")
    return None


def _turn(entries: list[KnownEntry]) -> StoredTurn:
    started, ended = entries[0], entries[-1]
    assert isinstance(started, TurnStarted)
    assert isinstance(ended, TurnEnded)
    summary = summarize(entries, Usage(), 0.0)
    return StoredTurn(
        prompt=_prompt_in(entries),
        output=final_assistant_text(summary),
        stop_reason=_with_budget(started, ended),
        denials=(*started.denials, *summary.permission_denials),
        cost=ended.cost,
    )


def _with_budget(started: TurnStarted, ended: TurnEnded) -> StopReason:
    """A turn that completed may have spent what was left for the whole session."""
    if ended.stop_reason != "completed":
        return ended.stop_reason
    tokens, usd = started.limits.get(SESSION_TOKENS), started.limits.get(SESSION_USD)
    spent = tokens is not None and ended.usage.context_tokens >= tokens
    paid = usd is not None and (ended.cost is None or ended.cost >= usd)
    return "max_budget_reached" if spent or paid else "completed"
