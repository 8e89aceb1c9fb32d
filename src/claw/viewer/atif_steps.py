"""Entries to the steps of a trajectory: what the model was told, said and did, as it stands."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import msgspec

from claw.types.entries import (
    Compacted,
    DecisionMade,
    HookFinished,
    Interrupted,
    PromptInstalled,
    RecoveryFailed,
    ReplyReceived,
    Retried,
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
    AssistantMessage,
    Message,
    Text,
    ToolResult,
    ToolUse,
    UserBlock,
)
from claw.types.session import SessionState
from claw.types.usage import Usage
from claw.viewer.fold import Placed, commands

__all__ = ["Call", "Price", "Step", "Steps", "total_cost"]

Price = Callable[[Usage, str], float | None]


class Call(msgspec.Struct, eq=False):
    """``input`` is what it ran with, where another than the model's own."""

    use: ToolUse
    begun: bool = False
    input: dict[str, Any] | None = None
    decisions: list[dict[str, Any]] = []
    hooks: list[dict[str, Any]] = []
    finished: ToolFinished | None = None


class Step(msgspec.Struct, eq=False):
    """``number`` counts the replies of a turn; ``observed`` is what a step without calls saw.

    ``copied``: it stands again what stood before, or in another session. ``by_rules``: what
    replied is no language model. Only a reply of this session has ``usage``.
    """

    source: Literal["system", "user", "agent"]
    blocks: tuple[UserBlock | AssistantBlock, ...]
    at: str = ""
    copied: bool = False
    extra: dict[str, Any] = {}
    number: int = 0
    model: str = ""
    effort: str = ""
    usage: Usage | None = None
    cost: float | None = None
    by_rules: bool = False
    calls: list[Call] = []
    observed: tuple[UserBlock, ...] = ()


class Steps:
    """Folds the records that stand, one by one; ``end`` when there are no more.

    ``stored`` gives the text of a blob, ``rules`` are the names of models that are none. The
    records up to ``inherited`` are those of the session that this one is a copy of. ``turns``,
    ``hooks`` and ``undone`` are what the steps do not tell: how turns went, hooks outside of
    them, and how often something was taken back, by its name.
    """

    def __init__(
        self,
        *,
        stored: Callable[[str], str | None],
        price: Price,
        rules: Collection[str],
        inherited: int,
    ) -> None:
        self.steps: list[Step] = []
        self.turns: list[dict[str, Any]] = []
        self.hooks: list[dict[str, Any]] = []
        self.undone: dict[str, int] = {}
        self.session = SessionStarted("", "", "", "")
        self.title = ""
        self.tools = ""  # a digest
        self._stored = stored
        self._price = price
        self._rules = rules
        self._inherited = inherited
        self._state = SessionState()
        self._at = ""
        self._copied = False
        self._turn: dict[str, Any] | None = None
        self._turn_from = 0  # its place in the steps
        self._effort = ""
        self._reply = -1  # the place of the last one, while it may be taken back
        self._calls: dict[str, Call] = {}
        self._system: tuple[str, str] = ("", "")  # digest and text
        self._provisional: set[int] = set()  # the ids of steps that nothing has confirmed yet
        self._commands: dict[str, str] = {}

    def add(self, record: Placed) -> None:
        self._at = record.at
        self._copied = record.seq <= self._inherited
        # Of a damaged journal: what does not follow from the rest is told all the same.
        with contextlib.suppress(ValueError, LookupError, TypeError):
            self._state = self._state.fold(record.entry)
        match record.entry:
            case SessionStarted() as entry:
                self.session = entry
            case PromptInstalled() as entry:
                self._prompt(entry)
            case TurnStarted() as entry:
                self._begin_turn(entry)
            case UserMessaged(content=content):
                self._add("user", content)
            case Steered(content=content, source=source):
                by: Literal["user", "system"] = "user" if source == "user" else "system"
                self._add(by, content, steered_by=source)
            case StepRequested(effort=effort):
                self._effort = effort
            case Retried() as entry:
                self._retried(entry)
            case ReplyReceived() as entry:
                self._replied(entry)
            case HookFinished() as entry:
                self._hook(entry)
            case DecisionMade() as entry:
                self._decision(entry)
            case ToolIntended(call_id=id, input=input) if id in self._calls:
                self._calls[id].begun = True
                self._calls[id].input = input
            case ToolFinished(call_id=id) as entry if id in self._calls:
                self._calls[id].finished = entry
            case Compacted() as entry:
                self._compacted(entry)
            case RecoveryFailed() as entry:
                self._tell("recoveries_failed", {"rounds": entry.rounds, "error": entry.error})
                self._unconfirmed()
            case Interrupted(stage=stage) if self._turn is not None:
                self._turn["interrupted"] = stage
            case Titled(title=title):
                self.title = title
            case TurnEnded() as entry:
                self._end_turn(entry)
            case UnknownEntry():
                self._undone("unknown_entries")

    def end(self) -> None:
        self._unconfirmed()

    # -- what is said ------------------------------------------------------------------------

    def _add(
        self, source: Literal["user", "system"], blocks: tuple[UserBlock, ...], **extra: Any
    ) -> Step:
        step = Step(source, blocks, self._at, self._copied, {**self._place(), **extra})
        self.steps.append(step)
        return step

    def _place(self) -> dict[str, Any]:
        return {} if self._turn is None else {"turn": self._turn["turn"]}

    def _prompt(self, entry: PromptInstalled) -> None:
        self.tools = entry.tools
        self._commands.update(commands(self._stored(entry.hooks) or ""))
        text = self._stored(entry.system)
        if text is not None and entry.system != self._system[0]:
            self._system = (entry.system, text)
            self._add("system", (Text(text),), prompt_installed=entry.reason)

    def _replied(self, entry: ReplyReceived) -> None:
        if entry.complete:
            self._provisional.clear()
        self._calls = {}
        if not entry.blocks and not entry.complete:
            return
        calls = _calls_of(entry.message)
        self._calls = {call.use.id: call for call in calls}
        extra = {**self._place(), "step": entry.step, "stop_reason": entry.stop_reason}
        if not entry.complete:
            extra = {**self._place(), "step": entry.step, "complete": False}
        step = Step(
            "agent",
            entry.blocks,
            self._at,
            self._copied,
            extra,
            number=entry.step,
            model=entry.served_by or entry.model,
            effort=self._effort,
            by_rules=entry.model in self._rules,
            calls=calls,
        )
        if not self._copied and not step.by_rules:
            step.usage = entry.usage
            step.cost = _price_of(entry, self._price)
        self._reply = len(self.steps)
        self.steps.append(step)

    def _retried(self, entry: Retried) -> None:
        fields = ("step", "attempt", "error", "delay")
        self._tell("retries", {name: getattr(entry, name) for name in fields})
        if 0 <= self._reply < len(self.steps) and self.steps[self._reply].number == entry.step:
            del self.steps[self._reply]
            self._undone("replies_asked_for_again")
        self._reply = -1

    # -- turns and calls ---------------------------------------------------------------------

    def _begin_turn(self, entry: TurnStarted) -> None:
        turn = {"turn": entry.turn, "origin": entry.origin, "mode": entry.mode}
        self._turn = {**turn, "limits": entry.limits} if entry.limits else turn
        if self._copied:
            self._turn["is_copied_context"] = True
        self.turns.append(self._turn)
        self._turn_from = len(self.steps)
        self._reply, self._calls = -1, {}

    def _end_turn(self, entry: TurnEnded) -> None:
        self._unconfirmed()
        turn, self._turn = self._turn, None
        if entry.cost is None:  # the turn knows better than a list of prices
            for step in self.steps[self._turn_from :]:
                step.cost = None
        if turn is None:
            return
        turn.update(stop_reason=entry.stop_reason, iterations=entry.iterations, ms=entry.ms)
        if entry.cost is not None:
            turn["cost_usd"] = entry.cost
        if entry.error is not None:
            turn["error"] = msgspec.to_builtins(entry.error)

    def _decision(self, entry: DecisionMade) -> None:
        if (call := self._calls.get(entry.call_id)) is not None:
            told = msgspec.to_builtins(entry)
            del told["kind"], told["call_id"]
            call.decisions.append(told)

    def _hook(self, entry: HookFinished) -> None:
        merged = entry.merged
        said = list(entry.messages)
        if merged is not None:
            said += (text for text in (merged.reason, *merged.context, *merged.notices) if text)
        hook = self._commands.get(entry.hook, entry.hook[:12])
        told: dict[str, Any] = {"event": entry.event, "hook": hook, "outcome": entry.outcome}
        if said:
            told["messages"] = list(dict.fromkeys(said))
        if entry.exit_code is not None:
            told["exit_code"] = entry.exit_code
        told["ms"] = entry.ms
        if (call := self._calls.get(entry.call_id)) is not None:
            call.hooks.append(told)
        elif self._turn is not None:
            self._tell("hooks", told)
        else:
            self.hooks.append(told)

    def _tell(self, name: str, what: dict[str, Any]) -> None:
        if self._turn is not None:
            self._turn.setdefault(name, []).append(what)

    def _undone(self, name: str) -> None:
        self.undone[name] = self.undone.get(name, 0) + 1

    # -- compactions -------------------------------------------------------------------------

    def _compacted(self, entry: Compacted) -> None:
        """What the model is shown from here on: the summary, then what was kept, once more."""
        first = len(self.steps)
        replaces = bool(entry.summary) or entry.kept_from > 0
        kinds = ("compaction", "replace") if replaces else ("pruning", "truncate")
        removed = entry.removed_messages
        what = f"{removed:,} message{'s' * (removed != 1)} removed" if replaces else "old results"
        step = self._add(
            "system",
            (
                Text(
                    f"Context compacted ({entry.trigger}): {what}, "
                    f"{entry.tokens_before:,} to {entry.tokens_after:,} tokens"
                ),
            ),
            context_management=dict(zip(("type", "boundary"), kinds, strict=True)),
        )
        for name in ("trigger", "removed_messages", "tokens_before", "tokens_after"):
            step.extra[name] = getattr(entry, name)
        if entry.dropped:
            step.extra["dropped"] = list(entry.dropped)
        if entry.pruned:
            step.extra["pruned_results"] = entry.pruned
        transcript = self._state.transcript
        if replaces and transcript.closed:
            head, *kept = transcript.closed
            said = head.content if not isinstance(head, AssistantMessage) else ()
            step.observed = said[: transcript.notes]
            if self._system[0]:
                self.steps.append(Step("system", (Text(self._system[1]),), copied=True))
            if said[transcript.notes :]:
                self.steps.append(Step("user", said[transcript.notes :], copied=True))
            self.steps += _again(kept)
        if entry.provisional:
            self._provisional.update(id(made) for made in self.steps[first:])

    def _unconfirmed(self) -> None:
        """The compactions that no reply has confirmed were none."""
        if self._provisional:
            gone, self._provisional = self._provisional, set()
            self.steps = [step for step in self.steps if id(step) not in gone]
            self._reply = -1
            self._undone("compactions_without_effect")


def _again(messages: Sequence[Message]) -> list[Step]:
    """Messages that stay in view, as steps; results belong to the step with their calls."""
    steps: list[Step] = []
    waiting: dict[str, Call] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = _calls_of(message)
            waiting = {call.use.id: call for call in calls}
            step = Step("agent", message.content, copied=True, model=message.model, calls=calls)
            steps.append(step)
            continue
        for block in message.content:
            if isinstance(block, ToolResult) and (call := waiting.get(block.tool_use_id)):
                status: Literal["ok", "error"] = "error" if block.is_error else "ok"
                call.finished = ToolFinished(block.tool_use_id, block.content, status)
        said = tuple(block for block in message.content if not isinstance(block, ToolResult))
        if said:
            steps.append(Step("user", said, copied=True))
    return steps


def _calls_of(message: AssistantMessage) -> list[Call]:
    return [Call(use) for use in message.tool_calls]


def _price_of(entry: ReplyReceived, price: Price) -> float | None:
    """What a reply cost: by the name of who served it, or else of who was asked."""
    served = price(entry.usage, entry.served_by) if entry.served_by else None
    return price(entry.usage, entry.model) if served is None else served


def total_cost(records: Sequence[Placed], price: Price) -> float | None:
    """US dollars for all that happened, also what was taken back; None where not known."""
    total: float | None = 0.0
    turn: float | None = None  # of one that has not ended
    running = False
    for record in records:
        match record.entry:
            case TurnStarted():
                total = _sum(total, turn) if running else total
                turn, running = 0.0, True
            case ReplyReceived() as entry if running:
                turn = _sum(turn, _price_of(entry, price))
            case Compacted(cost=cost):
                turn, total = (_sum(turn, cost), total) if running else (turn, _sum(total, cost))
            case TurnEnded(cost=cost):
                total, running = _sum(total, cost), False
    return _sum(total, turn) if running else total


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
