"""Entries to what the page tells: pure, total, and redacted on the way."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Protocol

from msgspec.structs import replace

from claw.types.entries import (
    Checkpointed,
    Compacted,
    DecisionMade,
    Digests,
    Entry,
    HookFinished,
    Interrupted,
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
from claw.types.messages import (
    AssistantBlock,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserBlock,
    text_of,
)
from claw.types.usage import Usage
from claw.types.wire import total
from claw.viewer.story import Call, Clip, Note, Point, Said, Session, Step, Trace, Turn
from claw.viewer.texts import SHORT, Texts

__all__ = ["Placed", "commands", "fold"]

_DIFFED = 2_000  # lines; difflib's cost grows with the square
_NO_DIGESTS = Digests("", "", "", "")
_IN_CHANGE = ("old_string", "new_string", "content")
_TELLING = ("command", "file_path", "pattern", "path", "query", "url", "description", "prompt")


class Placed(Protocol):
    """An entry with its place in the journal, from 1, and its time (UTC, ISO 8601)."""

    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> str: ...
    @property
    def entry(self) -> Entry: ...


def fold(
    records: Iterable[Placed],
    *,
    clean: Callable[[str], str],
    blob: Callable[[str], bytes | None],
    price: Callable[[Usage, str], float | None],
) -> Session:
    """The whole session, also what a rewind left out. Raises what ``records`` raises.

    ``clean`` takes the secrets out of a text; ``blob`` gives the bytes of a digest, None
    where they are lost; ``price`` is what one request to a model costs.
    """
    telling = _Telling(clean, blob, price)
    for record in records:
        telling.add(record)
    return telling.session


class _Telling:
    """Where the fold stands: the session so far, and the turn, step and calls that are open."""

    def __init__(
        self,
        clean: Callable[[str], str],
        blob: Callable[[str], bytes | None],
        price: Callable[[Usage, str], float | None],
    ) -> None:
        self.session = Session()
        self._texts = Texts(clean, blob)
        self._price = price
        self._turn: Turn | None = None
        self._step: Step | None = None
        self._calls: dict[str, Call] = {}
        self._anchors: set[str] = set()
        self._hooks: dict[str, str] = {}  # what each runs, by its digest
        self._first = ""  # time of the first entry
        self._at = ""
        self._seq = 0
        self._turn_from = 0  # the turn's place in the points
        self._live: list[tuple[int, tuple[Turn, ...]]] = [(0, ())]  # turns that count, by place

    def add(self, record: Placed) -> None:
        self._at, self._seq = record.at, record.seq
        self._first = self._first or record.at
        match record.entry:
            case SessionStarted() as entry:
                self._started(entry)
            case PromptInstalled() as entry:
                self._note(self._prompt(entry))
            case TurnStarted() as entry:
                self._begin_turn(record.seq, entry)
            case UserMessaged(content=content):
                self._said("user", content)
            case Steered(content=content, source=source):
                self._said(source, content)
            case StepRequested() as entry:
                self._request(entry)
            case Retried() as entry:
                self._retry(entry)
            case ReplyReceived() as entry:
                self._reply(entry)
            case HookFinished() as entry:
                self._hook(entry)
            case DecisionMade() as entry:
                self._decision(entry)
            case ToolIntended() as entry:
                self._intended(entry)
            case ToolFinished() as entry:
                self._finished(entry)
            case Checkpointed() as entry:
                self._checkpoint(entry)
            case Compacted() as entry:
                self._compaction(entry)
            case Titled() as entry:
                self.session.title = self._texts.line(entry.title, 120)
            case Rewound() as entry:
                self._rewind(record.seq, entry)
            case TurnEnded() as entry:
                self._end_turn(entry)
            case entry:
                self._aside(entry)

    def _aside(self, entry: Entry) -> None:
        """What is told in one line."""
        match entry:
            case RecoveryFailed():
                text = f"making room failed after {_count(entry.rounds, 'round')}"
                self._tell("failure", text, ("error", entry.error))
            case Interrupted():
                self._tell("interrupt", f"interrupted ({entry.stage})")
            case ModeChanged():
                self._tell("change", f"permission mode: {entry.mode}")
            case ModelChanged():
                self._tell("change", f"model: {entry.model}")
            case RuleAdded(rule=rule):
                text = f"rule for this session: {rule.behavior} {rule}"
                self._tell("change", text)
            case UnknownEntry():
                raw = entry.raw.decode("utf-8", "replace")
                title = self._texts.line(f"an entry of a later claw: {entry.kind}")
                details = (("entry", self._texts.document(raw)),)
                self._note(Note("unknown", title, self._at, details))

    # -- the session and its turns ---------------------------------------------------------

    def _started(self, entry: SessionStarted) -> None:
        session, line = self.session, self._texts.line
        if entry.forked_from:
            self._tell("fork", f"session {entry.session_id}: a copy of {entry.forked_from}")
        elif session.id:
            self._tell("change", f"works in {entry.cwd}")
        session.id = line(entry.session_id)
        session.cwd = line(entry.cwd)
        session.version = line(entry.claw_version)
        session.created = session.created or line(entry.created)

    def _prompt(self, entry: PromptInstalled) -> Note:
        parts = ("system", entry.system), ("tools", entry.tools), ("rules", entry.rules)
        found = [(name, self._texts.stored(d)) for name, d in (*parts, ("hooks", entry.hooks))]
        details = [(name, self._texts.document(text)) for name, text in found if text]
        self._hooks.update(commands(dict(found)["hooks"] or ""))
        return Note("prompt", f"prompt installed ({entry.reason})", self._at, tuple(details))

    def _begin_turn(self, seq: int, entry: TurnStarted) -> None:
        anchor = self._anchor(f"turn-{entry.turn}")
        turn = Turn(entry.turn, anchor, self._at, entry.origin, entry.mode)
        self._turn, self._step, self._calls = turn, None, {}
        self._turn_from = len(self.session.points)
        self.session.items.append(turn)
        self._live.append((seq, (*self._live[-1][1], turn)))

    def _end_turn(self, entry: TurnEnded) -> None:
        if entry.unheard:
            self._tell(
                "failure", "this did not enter the conversation", ("prompt", text_of(entry.unheard))
            )
        turn, self._turn, self._step = self._turn, None, None
        if turn is None:
            return
        turn.stop_reason, turn.usage, turn.ms = entry.stop_reason, entry.usage, entry.ms
        turn.cost = entry.cost
        if entry.error is not None:
            failure = entry.error
            text = "\n".join(filter(None, (failure.message, failure.hint)))
            details = (("error", self._texts.clip(text)),)
            title = self._texts.line(failure.kind)
            turn.items.append(Note("failure", title, self._at, details, self._seq))
        self._settle_cost(turn, entry)

    def _settle_cost(self, turn: Turn, entry: TurnEnded) -> None:
        """The turn knows better than the list: what it cost besides is its last point's."""
        points = self.session.points[self._turn_from :]
        if entry.cost is None:
            for point in points:
                point.cost = None
            for step in turn.steps:
                step.cost = None
        if entry.cost is None or not points:
            return
        rest = entry.cost - sum(point.cost or 0.0 for point in points)
        points[-1].cost = max(0.0, (points[-1].cost or 0.0) + rest)

    def _rewind(self, seq: int, entry: Rewound) -> None:
        live = next((turns for place, turns in reversed(self._live) if place <= entry.to), ())
        before = self._live[-1][1]
        self._live.append((seq, live))
        for turn in self.session.turns:
            turn.left_out = not any(turn is each for each in live)
        what = "conversation and files" if entry.files else "conversation"
        gone = [turn for turn in before if not any(turn is each for each in live)]
        if gone:
            self._tell("rewind", f"went back to before turn {gone[0].number} ({what})")
        else:
            self._tell("rewind", f"a rewind was undone ({what})")

    # -- steps -----------------------------------------------------------------------------

    def _request(self, entry: StepRequested) -> None:
        if self._turn is None or (self._step is not None and self._step.number == entry.step):
            return
        anchor = self._anchor(f"{self._turn.anchor}-step-{entry.step}")
        self._step = Step(entry.step, anchor, self._at, self._texts.line(entry.model))
        self._calls = {}
        self._turn.items.append(self._step)

    def _retry(self, entry: Retried) -> None:
        if self._step is not None:
            self._step.items[:] = [_taken_back(item) for item in self._step.items]
            for call in self._calls.values():
                call.status = call.status or "not_run"
        wait = f", waited {entry.delay:.1f} s" if entry.delay else ""
        self._tell("retry", f"attempt {entry.attempt} failed: {entry.error}{wait}")

    def _reply(self, entry: ReplyReceived) -> None:
        step = self._step
        if step is None:  # its request was lost
            self._request(StepRequested(entry.step, entry.model, 1, _NO_DIGESTS))
            step = self._step
        if step is None:
            return
        step.model = self._texts.line(entry.served_by or entry.model)
        if step.model not in self.session.models:
            self.session.models.append(step.model)
        step.usage += entry.usage
        step.stop_reason = self._texts.line(entry.stop_reason) if entry.complete else "cut off"
        cost = self._price(entry.usage, entry.model)
        if cost is not None:
            step.cost = (step.cost or 0.0) + cost
        if entry.usage.context_tokens:
            self._point(step, entry.usage, cost)
        for block in entry.blocks:
            self._block(step, block)
        if (cache := entry.prompt_cache) is not None and cache.unexpected:
            self._tell("change", f"the prompt cache lost {cache.token_drop:,} tokens")
        if entry.wire:
            self._tell("change", f"the reply's raw bytes were kept ({total(entry.wire_sizes):,})")

    def _point(self, step: Step, usage: Usage, cost: float | None) -> None:
        assert self._turn is not None
        label = f"turn {self._turn.number}, step {step.number}"
        before = self.session.points[-1].seconds if self.session.points else 0.0
        seconds = max(before, _seconds(self._first, self._at))  # clocks are set back at times
        self.session.points.append(Point(step.anchor, label, seconds, usage, cost))

    def _block(self, step: Step, block: AssistantBlock) -> None:
        match block:
            case Text():
                step.items.append(Said("assistant", self._texts.clip(block.text), seq=self._seq))
            case Thinking(text=text) if text.strip():
                step.items.append(Said("thinking", self._texts.clip(text), seq=self._seq))
            case RedactedThinking() | Thinking():
                hidden = Clip("(the provider keeps it to itself)")
                step.items.append(Said("thinking", hidden, seq=self._seq))
            case Opaque():
                details = (("block", self._texts.json(block.raw)),)
                title = f"a block of {self._texts.line(block.provider)}"
                step.items.append(Note("unknown", title, self._at, details, self._seq))
            case ToolUse():
                call = self._call(block)
                self._calls[block.id] = call
                step.items.append(call)

    # -- calls -----------------------------------------------------------------------------

    def _call(self, use: ToolUse) -> Call:
        call = Call(self._texts.line(use.id), self._texts.line(use.name), "", Clip(""))
        call.seqs.append(self._seq)
        self._fill(call, use.input)
        if use.raw_input is not None:
            call.input = self._texts.clip(use.raw_input)
        return call

    def _fill(self, call: Call, input: dict[str, Any]) -> None:
        call.about = self._texts.line(_about(self._texts.values(input)))
        change = _change(call.name, input)
        shown = input
        if change is not None:
            call.change = self._texts.clip(change)
            shown = {key: value for key, value in input.items() if key not in _IN_CHANGE}
        call.input = self._texts.json(shown)

    def _called(self, id: str) -> Call | None:
        """The call that the entry at hand tells of."""
        call = self._calls.get(id)
        if call is not None:
            call.seqs.append(self._seq)
        return call

    def _intended(self, entry: ToolIntended) -> None:
        call = self._called(entry.call_id)
        if call is None:
            return
        call.begun = True
        if entry.input is not None:
            call.asked = call.input
            self._fill(call, entry.input)
            call.traces.append(Trace("change", "the input was changed before it ran"))

    def _decision(self, entry: DecisionMade) -> None:
        call = self._called(entry.call_id)
        if call is None:
            return
        line = self._texts.line
        who = f"by {line(entry.source)}" if entry.source else ""
        verdict = {"allow": "allowed", "deny": "denied", "ask": "a question"}[entry.decision]
        asked = ""
        if entry.asked:
            asked = f"; a person was asked and said: {line(entry.answer) or 'nothing'}"
        tone: dict[str, Any] = {"allow": "good", "deny": "bad"}
        title = " ".join(filter(None, (verdict, who))) + asked
        call.traces.append(
            Trace("decision", title, tone.get(entry.decision, ""), line(entry.reason))
        )

    def _hook(self, entry: HookFinished) -> None:
        line = self._texts.line
        code = "" if entry.exit_code is None else f", exit code {entry.exit_code}"
        hook = f"{line(entry.event)} hook {line(self._hooks.get(entry.hook, entry.hook[:12]))}"
        title = f"{hook}: {line(entry.outcome)}{code}, {entry.ms} ms"
        merged = entry.merged
        said = [*entry.messages]
        if merged is not None:
            said += [t for t in (merged.reason, *merged.context, *merged.notices) if t]
        detail = self._texts.clip("\n".join(dict.fromkeys(said)), SHORT)
        bad = entry.outcome not in ("passed", "ok")
        if (call := self._called(entry.call_id)) is not None:
            call.traces.append(Trace("hook", title, "bad" if bad else "", detail.text))
        else:
            self._note(Note("hook", title, self._at, (("said", detail),) if detail.text else ()))

    def _checkpoint(self, entry: Checkpointed) -> None:
        if (call := self._called(entry.call_id)) is not None:
            how = "there was none" if entry.before is None else "kept as it was"
            how = "not kept: a secret stands in it" if entry.secret else how
            call.traces.append(Trace("change", f"{self._texts.line(entry.path)}: {how}"))

    def _finished(self, entry: ToolFinished) -> None:
        call = self._called(entry.call_id)
        if call is None:
            return
        whole = self._texts.stored(entry.spilled) if entry.spilled else None
        call.status, call.ms = entry.status, entry.ms
        text = text_of(entry.content) if whole is None else whole
        if entry.display and call.change is not None:
            call.change = self._texts.clip(entry.display)
            text = text.replace(entry.display, "").rstrip()  # once is enough
        call.result = self._texts.clip(text)
        if entry.omitted:
            left_out = call.result.left_out + entry.omitted
            call.result = replace(call.result, left_out=left_out)
        call.pictures = self._texts.pictures(entry.content)

    # -- what nobody asked for -------------------------------------------------------------

    def _compaction(self, entry: Compacted) -> None:
        self.session.compactions.append(len(self.session.points))
        title = (
            f"compacted ({entry.trigger}): {_count(entry.removed_messages, 'message')} removed, "
            f"{entry.tokens_before:,} to {entry.tokens_after:,} tokens"
        )
        pruned = "\n".join(f"{id}: {stub}" for id, stub in entry.pruned.items())
        texts = (
            ("summary", text_of(entry.summary)),
            ("dropped", "\n".join(entry.dropped)),
            ("results that became stubs", pruned),
        )
        self._tell("compaction", title, *((name, text) for name, text in texts if text.strip()))

    def _said(self, by: Any, content: tuple[UserBlock, ...]) -> None:
        results = "".join(text_of(b.content) for b in content if isinstance(b, ToolResult))
        body = self._texts.clip(text_of(content) + results)
        said = Said(by, body, self._texts.pictures(content), seq=self._seq)
        if self._turn is None:
            self._note(Note("unknown", f"{by}, outside of a turn", self._at, (("text", body),)))
            return
        if by == "user" and not self._turn.prompt:
            self._turn.prompt = self._texts.line(body.text, 120)
            self.session.title = self.session.title or self._turn.prompt
        if self._step is None:
            self._turn.items.append(said)
        else:
            self._step.items.append(said)

    def _tell(self, kind: Any, title: str, *details: tuple[str, str]) -> None:
        clipped = tuple((name, self._texts.clip(text)) for name, text in details)
        self._note(Note(kind, self._texts.line(title), self._at, clipped))

    def _note(self, note: Note) -> None:
        note = replace(note, seq=self._seq)
        if self._step is not None:
            self._step.items.append(note)
        elif self._turn is not None:
            self._turn.items.append(note)
        else:
            self.session.items.append(note)

    def _anchor(self, wanted: str) -> str:
        """A name that no other part of the page has: numbers may occur twice after damage."""
        anchor, n = wanted, 1
        while anchor in self._anchors:
            n += 1
            anchor = f"{wanted}-again-{n}"
        self._anchors.add(anchor)
        return anchor


def _taken_back(item: Said | Note | Call) -> Said | Note | Call:
    if isinstance(item, Said) and item.by in ("assistant", "thinking"):
        return replace(item, taken_back=True)
    return item


def commands(declared: str) -> dict[str, str]:
    """What each hook runs, by its digest."""
    try:
        hooks = json.loads(declared)
        return {hook["digest"]: f"`{hook['command']}`" for hook in hooks}
    except (ValueError, TypeError, KeyError, RecursionError):  # of another version, or lost
        return {}


def _about(input: dict[str, Any]) -> str:
    for key in _TELLING:
        if isinstance(value := input.get(key), str) and value.strip():
            where = input.get("path") if key == "pattern" else None
            return f"{value} in {where}" if isinstance(where, str) else value
    return ", ".join(f"{key}={value!r}" for key, value in input.items() if value is not None)


def _change(name: str, input: dict[str, Any]) -> str | None:
    """What an Edit or a Write asks for, as a diff, until the tool has shown a better one."""
    match name, input:
        case "Edit", {"old_string": str() as old, "new_string": str() as new}:
            return _diff(old, new)
        case "Write", {"content": str() as content}:
            return "\n".join("+" + line for line in content.removesuffix("\n").split("\n"))
        case _:
            return None


def _diff(old: str, new: str) -> str:
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > _DIFFED:
        return "\n".join([*("-" + line for line in before), *("+" + line for line in after)])
    lines = list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]
    return "\n".join(line for line in lines if not line.startswith("@@"))  # numbers of no file


def _seconds(first: str, then: str) -> float:
    try:
        passed = datetime.fromisoformat(then) - datetime.fromisoformat(first)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return max(0.0, passed.total_seconds())


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)
