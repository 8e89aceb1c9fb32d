"""A recording: a session's entries, cut into turns, and what each turn's entries tell.

Pure. What the runtime was told from outside (the model's replies, what tools and hooks
gave, what people said, when it was interrupted) is read here out of what it recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Literal

import msgspec

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
    ParameterRefused,
    ProtocolViolation,
    RequestRejected,
)
from claw.types.entries import (
    Checkpointed,
    Compacted,
    DecisionMade,
    Entry,
    HookFinished,
    Interrupted,
    KnownEntry,
    ModeChanged,
    ModelChanged,
    PromptInstalled,
    RecoveryFailed,
    ReplyReceived,
    Retried,
    Rewound,
    RuleAdded,
    SessionStarted,
    Steered,
    StepRequested,
    Titled,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UnknownEntry,
    UserMessaged,
)
from claw.types.events import (
    AssistantEvent,
    MessageStart,
    MessageStop,
    PromptCache,
    TextDelta,
)
from claw.types.hooks import HookOutcome, HookRun
from claw.types.messages import Document, Image, Text, ToolUse, UserBlock
from claw.types.permissions import Rule
from claw.types.results import Failure

__all__ = [
    "Call",
    "Exchange",
    "Halt",
    "RecordedFault",
    "Take",
    "fault_of",
    "fired",
    "takes_of",
    "with_the_rest",
]

UNTOLD = "(the prompt was not on record yet)"
_SETTLED = ("interrupted", "not_run", "outcome_unknown")
_OVERFLOWS = ("context_overflow", "output_limit_too_high", "parameter_refused")
_BETWEEN = (
    SessionStarted,
    PromptInstalled,
    Compacted,
    ModeChanged,
    ModelChanged,
    RuleAdded,
    Rewound,
    Titled,
)
_KINDS: dict[str, type[ModelError]] = {
    kind.kind: kind
    for kind in (ModelError, AuthenticationFailed, RequestRejected, ProtocolViolation)
}


class RecordedFault(Exception):
    """The model's client broke in the recording: a fault, which no port raises."""


def fault_of(take: Take) -> RecordedFault | None:
    """The fault that the turn ended with, if it did."""
    error = None if take.end is None else take.end.error
    return RecordedFault(error.message) if error is not None and error.kind == "internal" else None


class Take(msgspec.Struct, frozen=True):
    """``before`` is what stands between the turns, then ``entries`` are those of one turn.

    They begin with ``TurnStarted``, but for a last take that has none. ``whole`` claims
    that they end with ``TurnEnded``: else the process ended, or the rest is lost.
    ``asides`` are not among them: what people changed while the turn ran, by the number of
    the entries that stand before it; nor is ``title``, which the turn repeated right before
    its end.
    """

    before: tuple[KnownEntry, ...]
    entries: tuple[KnownEntry, ...]
    whole: bool = True
    asides: dict[int, tuple[KnownEntry, ...]] = {}
    title: Titled | None = None

    @property
    def told(self) -> tuple[KnownEntry, ...]:
        """All entries of the turn, as they stand in the journal."""
        told: list[KnownEntry] = []
        for number, entry in enumerate(self.entries):
            told += self.asides.get(number, ())
            if self.title is not None and entry is self.end:
                told.append(self.title)
            told.append(entry)
        return (*told, *self.asides.get(len(self.entries), ()))

    @property
    def start(self) -> TurnStarted:
        started = self.entries[0]
        assert isinstance(started, TurnStarted)
        return started

    @property
    def end(self) -> TurnEnded | None:
        last = self.entries[-1]
        return last if isinstance(last, TurnEnded) else None

    @property
    def astray(self) -> KnownEntry | None:
        """The first entry between the turns that only a turn makes."""
        return next((entry for entry in self.before if not stands_between(entry)), None)

    @property
    def goes_on_after_kill(self) -> bool:
        """Claims that another process ended the turn before: else some of it is lost."""
        return any(isinstance(entry, TurnEnded) for entry in self.before)

    @property
    def lost_at(self) -> int | None:
        """The place of an entry that the journal could not take, after which the turn ended."""
        end = self.end
        if end is None or end.error is None or not end.error.kind.startswith("session"):
            return None
        at = len(self.entries) - 1
        while isinstance(last := self.entries[at - 1], ToolFinished) and last.status in _SETTLED:
            at -= 1
        return at

    @property
    def asks(self) -> bool:
        """Claims that there is a prompt, as every turn has one."""
        return any(not isinstance(block, Text) or block.text.strip() for block in self.prompt)

    @property
    def pictures(self) -> set[str]:
        """The digests of pictures and documents in what was said and what tools gave."""
        said = (e for e in self.entries if isinstance(e, UserMessaged | Steered | ToolFinished))
        blocks = (block for entry in said for block in entry.content)
        return {block.blob for block in blocks if isinstance(block, Image | Document)}

    @property
    def prompt(self) -> tuple[UserBlock, ...]:
        """What the user said: without what hooks added to it."""
        added = 0
        for entry in self.entries:
            if isinstance(entry, HookFinished) and entry.event == "UserPromptSubmit":
                context = entry.merged.context if entry.merged else ()
                added += sum(1 for text in context if text.strip())
            elif isinstance(entry, UserMessaged):
                return entry.content[: len(entry.content) - added]
        if self.end is not None and self.end.unheard:
            return self.end.unheard
        return (Text(UNTOLD),)


def takes_of(entries: Iterable[Entry]) -> list[Take]:
    """The turns in order, and at last what follows them, if anything does."""
    takes: list[Take] = []
    before: list[KnownEntry] = []
    turn: list[KnownEntry] = []

    def close(*, whole: bool, settled: Sequence[KnownEntry] = ()) -> None:
        takes.append(_take(before, turn, whole=whole))
        before[:] = settled
        turn.clear()

    for entry in entries:
        if isinstance(entry, UnknownEntry):
            continue
        if turn and _begins_anew(entry):
            close(whole=False)
        if turn and isinstance(entry, TurnEnded) and _was_killed(entry):
            settled = _settled_later(turn)
            close(whole=False, settled=[*settled, entry])
        elif turn or isinstance(entry, TurnStarted):
            turn.append(entry)
            if isinstance(entry, TurnEnded):
                close(whole=True)
        else:
            before.append(entry)
    if turn:
        close(whole=False)
    if before:
        takes.append(Take(tuple(before), ()))
    return takes


def _take(before: Sequence[KnownEntry], turn: Sequence[KnownEntry], *, whole: bool) -> Take:
    made: list[KnownEntry] = []
    asides: dict[int, tuple[KnownEntry, ...]] = {}
    title: Titled | None = None
    for entry, following in zip_longest(turn, turn[1:]):
        if _is_aside(entry, following):
            asides[len(made)] = (*asides.get(len(made), ()), entry)
        elif isinstance(entry, Titled):
            title = entry
        else:
            made.append(entry)
    return Take(tuple(before), tuple(made), whole, asides, title)


def _is_aside(entry: KnownEntry, following: KnownEntry | None) -> bool:
    """A turn ends with the title itself, and a rule comes with the decision it was made for."""
    match entry:
        case ModeChanged():
            return True
        case Titled():
            return not isinstance(following, TurnEnded)
        case RuleAdded():
            if not isinstance(following, DecisionMade):
                return True
            return (following.judged, following.decision) != ("ask", "allow")
    return False


def stands_between(entry: KnownEntry) -> bool:
    match entry:
        case TurnEnded():
            return _was_killed(entry)
        case ToolFinished(status=status):
            return status in _SETTLED
        case HookFinished(event=event):
            return event == "PreCompact"
        case Checkpointed(call_id=call_id):
            return not call_id
    return isinstance(entry, _BETWEEN)


def _begins_anew(entry: KnownEntry) -> bool:
    """Entries that a turn never makes: another process went on with the session."""
    if isinstance(entry, PromptInstalled):
        return entry.reason != "compaction"
    return isinstance(entry, SessionStarted | TurnStarted)


def _was_killed(entry: TurnEnded) -> bool:
    return entry.error is not None and entry.error.kind == "killed"


def _settled_later(turn: list[KnownEntry]) -> list[KnownEntry]:
    """Takes off the results that the next process gave to open calls."""
    settled: list[KnownEntry] = []
    while isinstance(last := turn[-1], ToolFinished) and last.status in _SETTLED:
        settled.insert(0, turn.pop())
    return settled


# -- what ends a turn from outside ---------------------------------------------------


class Halt(msgspec.Struct, frozen=True):
    """Before which entry the turn was ended from outside, and what it did then.

    ``how``: it was interrupted, its time was up, or the recording goes no further.
    """

    at: int
    how: Literal["interrupt", "time", "end"]
    during: Literal["model", "tools", "compacting", "anything"]


def halt_of(take: Take) -> Halt | None:
    entries = take.entries
    for at, entry in enumerate(entries):
        if isinstance(entry, Interrupted):
            return Halt(at, "interrupt", _during(entries, at, entry.stage))
    if not take.whole:
        return Halt(len(entries), "end", "anything")
    if take.end is None or take.end.stop_reason != "max_time_reached":
        return None
    at = len(entries) - 1
    while isinstance(last := entries[at - 1], ToolFinished) and last.status in _SETTLED:
        at -= 1
    return Halt(at, "time", _during(entries, at, ""))


def _during(
    entries: Sequence[KnownEntry], at: int, stage: str
) -> Literal["model", "tools", "compacting", "anything"]:
    if stage == "compacting":
        return "compacting"
    if any(isinstance(e, ToolFinished) and e.status == "interrupted" for e in entries[at:]):
        return "tools"
    last = entries[at - 1]
    heard = isinstance(last, ReplyReceived) and not last.complete
    return "model" if heard and stage in ("sampling", "") else "anything"


# -- the model -----------------------------------------------------------------------


class Exchange(msgspec.Struct, frozen=True):
    """What the model gave to one request: events, then perhaps an error, or no end.

    ``reply`` is what the events were made of, where it is complete.
    """

    events: tuple[AssistantEvent, ...] = ()
    reply: ReplyReceived | None = None
    error: Exception | None = None
    endless: bool = False


def exchange_at(take: Take, at: int, halt: Halt | None) -> Exchange:
    """The answer to the request ``take.entries[at]``."""
    entries, reply = take.entries, None
    following = at + 1
    while following < len(entries):
        entry = entries[following]
        if isinstance(entry, ReplyReceived) and reply is None:
            reply = entry
        elif not isinstance(entry, ModelChanged):
            break
        following += 1
    complete = reply is not None and reply.complete
    events = () if reply is None else _events(reply)
    if halt is not None and halt.at == following and not complete:
        if halt.during == "compacting":
            return Exchange(events, error=_overflow(take, following))
        return Exchange(events, endless=True)
    if complete or following >= len(entries):
        return Exchange(events, reply if complete else None)
    return Exchange(events, error=_error(take, following, heard=reply is not None))


def _events(reply: ReplyReceived) -> tuple[AssistantEvent, ...]:
    events: list[AssistantEvent] = [
        MessageStart(reply.served_by or reply.model, reply.request_id, asked=reply.model)
    ]
    events += [TextDelta(b.text) if isinstance(b, Text) else b for b in reply.blocks]
    events.append(reply.usage)
    if reply.prompt_cache is not None:
        events.append(PromptCache(reply.prompt_cache))
    if reply.complete:
        events.append(MessageStop(reply.stop_reason, reply.provider_metadata))
    return tuple(events)


def with_the_rest(
    reply: ReplyReceived, decoded: Iterable[AssistantEvent]
) -> Iterator[AssistantEvent]:
    """What the bytes of a reply are decoded to now, and what does not come from them.

    That is who was asked, the id in the headers, the prompt cache, and usage that claw
    estimated. A body without an event stays one: an empty reply.
    """
    begun = False
    for event in decoded:
        if not begun:
            begun = True
            yield MessageStart(request_id=reply.request_id, asked=reply.model)
        yield event
    if begun and reply.usage.estimated:
        yield reply.usage
    if begun and reply.prompt_cache is not None:
        yield PromptCache(reply.prompt_cache)


def _error(take: Take, at: int, *, heard: bool) -> Exception | None:
    """Why a request that got no whole reply got none; ``at`` is the entry after it."""
    entry = take.entries[at]
    if isinstance(entry, Retried):
        return _retried(take, at, entry)
    if isinstance(entry, HookFinished | Compacted):
        return _overflow(take, at)
    # Calls of a reply that broke off did not run.
    rest = [e for e in take.entries[at:] if not (heard and isinstance(e, ToolFinished))]
    match rest:
        case [TurnEnded(error=Failure() as failure)]:
            return _fatal(take, at, failure)
        case [RecoveryFailed(), TurnEnded(error=Failure() as failure)]:
            return _fatal(take, at, failure)
        case [RecoveryFailed(), *_]:
            return _overflow(take, at)
    return None


def _retried(take: Take, at: int, entry: Retried) -> Exception | None:
    match entry.error:
        case "stream_cut" | "empty_reply":
            return None
        case "context_overflow":
            return _overflow(take, at)
        case "output_limit_too_high":
            return OutputLimitTooHigh("recorded", max_tokens=entry.fits or 1)
        case "parameter_refused":
            return ParameterRefused("recorded", parameter="")
        case _:
            return ModelUnavailable("recorded", retry_after=entry.delay)


def _fatal(take: Take, at: int, failure: Failure) -> Exception | None:
    match failure.kind:
        case kind if kind in _OVERFLOWS:
            return _overflow(take, at)
        case "model_unavailable":
            never = float("inf")
            return ModelUnavailable(failure.message, hint=failure.hint, retry_after=never)
        case "internal":
            return RecordedFault(failure.message)
        case kind if kind in _KINDS:
            return _KINDS[kind](failure.message, hint=failure.hint)
        case _:
            return None


def _overflow(take: Take, at: int) -> ContextOverflow:
    """The words are those with which it was given up, if it was."""
    words = "recorded"
    for entry in take.entries[at:]:
        match entry:
            case ReplyReceived(complete=True):
                break
            case RecoveryFailed(error=error):
                words = error
            case TurnEnded(error=Failure(kind=kind) as failure) if kind in _OVERFLOWS:
                return ContextOverflow(failure.message, hint=failure.hint)
    return ContextOverflow(words)


def costs_of(take: Take) -> dict[int, float | None]:
    """By the place of a reply: what is to be charged with it, so that the sum is the turn's.

    The last reply gets it all. That is when a limit on costs can have been spent, for no
    reply followed it.
    """
    replies = [at for at, entry in enumerate(take.entries) if isinstance(entry, ReplyReceived)]
    if take.end is None:
        return {}
    lost = take.lost_at
    if lost is not None and isinstance(take.entries[lost - 1], StepRequested | ModelChanged):
        replies.append(lost)
    if not replies:
        return {}
    spent = [entry.cost for entry in take.entries if isinstance(entry, Compacted)]
    cost = take.end.cost
    if cost is not None:
        cost -= sum(part for part in spent if part is not None)
    return {replies[-1]: cost}


# -- hooks ---------------------------------------------------------------------------


def fired(entries: Sequence[KnownEntry], at: int, event: str, call_id: str) -> HookOutcome:
    """What the hooks that ran from place ``at`` on came to, if they are of this event."""
    runs: list[HookFinished] = []
    for entry in entries[at:]:
        if not isinstance(entry, HookFinished) or (entry.event, entry.call_id) != (event, call_id):
            break
        runs.append(entry)
        if entry.merged is not None:
            break
    if not runs:
        return HookOutcome()
    merged = runs[-1].merged or HookOutcome()
    done = tuple(
        HookRun(run.hook, "", run.outcome, run.messages, run.exit_code, run.ms) for run in runs
    )
    return msgspec.structs.replace(merged, runs=done)


# -- calls ---------------------------------------------------------------------------


class Call(msgspec.Struct):
    """All that is on record of one call. ``edited`` is its input as a person changed it.

    ``failed`` claims that hooks were told of a failure; ``broken`` says at which input it could
    not be read: the model's own (0), a hook's (1) or a person's (2); None where it could.
    ``passed`` claims that something is on record that comes after it was looked at.
    """

    use: ToolUse
    intended: ToolIntended | None = None
    finished: ToolFinished | None = None
    decision: DecisionMade | None = None
    rule: Rule | None = None
    hook: HookOutcome | None = None
    objected: bool = False
    failed: bool = False
    kept: tuple[Checkpointed, ...] = ()
    edited: dict[str, object] | None = None
    broken: int | None = None
    passed: bool = False


def calls_of(take: Take) -> dict[str, Call]:
    """By id. A call that was made again after a retry is the last one of its id."""
    calls: dict[str, Call] = {}
    latest: list[str] = []  # of the last reply
    rule: Rule | None = None
    for entry in take.entries:
        for id in _passed_at(entry, latest):
            calls[id].passed = True
        match entry:
            case ReplyReceived():
                uses = [block for block in entry.blocks if isinstance(block, ToolUse)]
                calls.update((use.id, Call(use)) for use in uses)
                latest = [use.id for use in uses]
            case RuleAdded():
                rule = entry.rule
            case DecisionMade() if entry.call_id in calls:
                calls[entry.call_id].decision = entry
                calls[entry.call_id].rule, rule = rule, None
            case ToolIntended() if entry.call_id in calls:
                calls[entry.call_id].intended = entry
            case Checkpointed() if entry.call_id in calls:
                calls[entry.call_id].kept += (entry,)
            case HookFinished(event="PreToolUse") if entry.call_id in calls:
                calls[entry.call_id].hook = entry.merged or HookOutcome()
            case HookFinished(event="PostToolUse") if entry.call_id in calls:
                outcome = entry.merged
                calls[entry.call_id].objected = outcome is not None and outcome.verdict != "passed"
            case HookFinished(event="PostToolUseFailure") if entry.call_id in calls:
                calls[entry.call_id].failed = True
            case ToolFinished() if entry.call_id in calls:
                calls[entry.call_id].finished = entry
    for call in calls.values():
        call.edited = call.decision.input if call.decision is not None else None
        call.broken = _broken(call)
        if call.broken == 2:
            call.edited = {}
    return calls


def _passed_at(entry: KnownEntry, latest: list[str]) -> list[str]:
    """The calls that were looked at before the runtime could record this."""
    match entry:
        case ToolIntended():
            return latest
        case ToolFinished(status="ok" | "error" | "denied"):  # then all were
            return latest
        case DecisionMade() | HookFinished(event="PreToolUse") if entry.call_id in latest:
            return latest[: latest.index(entry.call_id)]
    return []


def _broken(call: Call) -> int | None:
    if call.intended is not None or call.decision is not None:
        return None
    failed = call.finished is not None and call.finished.status == "error"
    stopped = call.hook is not None and call.hook.stop is not None
    if not failed and (stopped or not call.passed):  # else it failed, and was not told any more
        return None
    if call.hook is None:
        return 0
    return 1 if call.hook.updated_input is not None else 2
