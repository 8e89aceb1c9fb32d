"""THE CORE LOOP: one user prompt until the agent rests.

Read ``run`` and ``_loop``; everything else here is a named stage of them. ``_loop``
returns the endings that come from within; ``run`` adds those that reach a turn from
outside: the time limit, Ctrl-C (the cancellation of the task that runs this, at
whatever ``await`` it stands) and errors. All of them are values; only a fault of claw
itself is raised, after it was put on record.

``log.record`` makes an entry durable and lets it count, ``log.conclude`` does so even
where the journal fails, for how things ended; ``log.tell`` only shows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from claw.errors import ClawError, ContextOverflow
from claw.ports import Ports
from claw.runtime.checkpoint import checkpoint
from claw.runtime.firing import fire
from claw.runtime.limits import Limit, Progress, first_spent
from claw.runtime.loop_guard import NUDGE, LoopGuard, Repetition, verdict
from claw.runtime.pictures import checked
from claw.runtime.recorder import Recorder
from claw.runtime.recovery import Recovery
from claw.runtime.room import RoomMaker
from claw.runtime.sample import Sampler
from claw.runtime.tool_calls import ToolRunner, calls_not_to_run, settle_open
from claw.runtime.unparsed import unparsed_call
from claw.types.entries import (
    Interrupted,
    Origin,
    Stage,
    Steered,
    Titled,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.events import Notice, Status
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.messages import Text, UserBlock
from claw.types.permissions import PermissionDenial, Question
from claw.types.reply import CUT_BY_LIMIT, ENDED_WELL, REFUSED, Reply
from claw.types.results import Failure, StopReason
from claw.types.surrogates import whole

__all__ = ["Ending", "Turn", "TurnOptions"]

UNPARSED = "the server handed out the model's call of `{}` as text: nothing ran"
UNPARSED_HINT = (
    "Give the server its model's tool parser, or set `tools: json_schema` in its profile."
)

MOST_CUT_REPLIES = 3
"""Replies in a row whose calls were cut off before the turn gives up."""
MOST_OBJECTIONS = 3
"""The objection of Stop hooks that ends a turn; the same one twice running does so too."""
MOST_KEPT = 8
"""Rounds that stay whole when the conversation has grown too large, if they fit."""


def _accepted() -> Failure | None:
    """Whatever the model answers is good."""
    return None


class TurnOptions(msgspec.Struct, frozen=True):
    """``max_seconds`` limits the turn's time; ``fail_on_denied`` ends it at a denial
    that no human made. ``verdict`` is asked when the turn would be complete, and says what
    is wrong with the answer; ``denials`` are on record with the turn."""

    limits: tuple[Limit, ...] = ()
    max_seconds: float | None = None
    fail_on_denied: bool = False
    origin: Origin = "user"
    verdict: Callable[[], Failure | None] = _accepted
    denials: tuple[PermissionDenial, ...] = ()


class Ending(msgspec.Struct, frozen=True):
    reason: StopReason
    error: Failure | None = None


class Turn(msgspec.Struct, eq=False):
    """Runs one turn. ``inbox`` is where steering input arrives while it runs.

    ``window`` is what an overflow has told of the model's window, None before there was one.
    ``stopped_early`` asks it to end before its task has had a first chance to run.
    """

    ports: Ports
    log: Recorder
    sampler: Sampler
    runner: ToolRunner
    room: RoomMaker
    recovery: Recovery
    options: TurnOptions
    inbox: deque[str]
    window: int | None
    guard: LoopGuard = msgspec.field(default_factory=LoopGuard)
    stage: Stage = "start"
    begun: bool = False
    stopped_early: bool = False
    unheard: tuple[UserBlock, ...] = ()

    async def run(self, content: tuple[UserBlock, ...]) -> Ending:
        """Whatever happens: every call has its result, and there is one ``turn_ended``."""
        began = self.ports.clock.monotonic()
        self.unheard = content
        self._start()
        ending = Ending("error", Failure("internal", "the turn broke off: a fault in claw"))
        try:
            if self.stopped_early:
                raise asyncio.CancelledError
            async with self.ports.clock.timeout(self.options.max_seconds):
                ending = await self._loop(content)
        except TimeoutError:
            if self.options.max_seconds is None:
                raise
            ending = Ending("max_time_reached")
        except asyncio.CancelledError:
            ending = Ending("interrupted")
            self.log.conclude(Interrupted(self.stage))
        except ContextOverflow as error:
            ending = Ending("context_overflow", self._failure(error))
        except ClawError as error:
            ending = Ending("error", self._failure(error))
        finally:
            self._end(ending, began)
        return ending

    async def _loop(self, content: tuple[UserBlock, ...]) -> Ending:
        if (blocked := await self._take_prompt(content)) is not None:
            return blocked
        cut_replies = objections = 0
        last_objection = ""
        while True:
            await checkpoint()
            self._take_steering()
            if spent := first_spent(self.options.limits, self._progress()):
                return Ending(spent)
            if await self._make_room():
                continue
            reply = await self._sample()
            if reply is None:
                continue

            cut_replies = cut_replies + 1 if calls_not_to_run(reply) else 0
            if reply.tool_calls:
                self.stage = "tools"
                phase = await self.runner.run(reply)
                if phase.stopped is not None:
                    return Ending("blocked", Failure("blocked", phase.stopped))
                if phase.denied is not None and self.options.fail_on_denied:
                    return Ending("permission_denied", Failure("permission_denied", phase.denied))
                if reply.stop_reason in REFUSED or cut_replies == MOST_CUT_REPLIES:
                    return self._judge_end(reply)
                if (stuck := await self._guard(reply)) is not None:
                    return stuck
                continue
            if reply.stop_reason == "pause_turn" or (self.inbox and reply.complete):
                continue

            ending = self._judge_end(reply)
            if ending.reason != "completed":
                return ending
            if (failure := self.options.verdict()) is not None:
                return Ending("error", failure)
            objection, by = await self._objection(active=objections > 0)
            if self.inbox:
                continue
            if not objection:
                return ending
            objections += 1
            if objection == last_objection or objections == MOST_OBJECTIONS:
                return Ending("blocked", Failure("stop_hook", f"{by} keeps objecting: {objection}"))
            last_objection = objection
            self.log.record(Steered((Text(objection),), source="hook"))
            self.guard.spoken()

    # -- stages ----------------------------------------------------------------

    def _progress(self) -> Progress:
        return Progress(self.log.state.steps, self.log.state.turn_usage, self.sampler.cost)

    def _start(self) -> None:
        limits = {limit.name: float(limit.value) for limit in self.options.limits}
        if self.options.max_seconds is not None:
            limits["max_time"] = self.options.max_seconds
        self.begun = True
        self.room.refused = False
        self.runner.started = set()
        self.sampler.cost = 0.0
        started = TurnStarted(
            self.log.state.turns + 1,
            self.options.origin,
            limits,
            mode=self.runner.mode,
            denials=self.options.denials,
        )
        self.log.record(whole(started, TurnStarted))

    async def _take_prompt(self, content: tuple[UserBlock, ...]) -> Ending | None:
        """UserPromptSubmit hooks may block the prompt or add to it; then it is durable."""
        prompt = "\n".join(block.text for block in content if isinstance(block, Text))
        payload = HookPayload("UserPromptSubmit", self.runner.mode, fields={"prompt": prompt})
        outcome = await self._fire(payload)
        if outcome.verdict != "passed" or outcome.stop is not None:
            reason = outcome.stop or outcome.reason or "a hook blocked the prompt"
            return Ending("blocked", Failure("blocked", reason))
        added = tuple(Text(text) for text in outcome.context if text.strip())
        self.log.record(UserMessaged((*checked(content, self.ports.blobs), *added)), sync=True)
        self.unheard = ()
        return None

    def _take_steering(self) -> None:
        while self.inbox:
            self.log.record(Steered((Text(self.inbox[0]),)))
            self.inbox.popleft()
            self.guard.spoken()

    async def _make_room(self) -> bool:
        """Where compaction is decided: before every request (an overflow has its own ladder)."""
        known = [w for w in (self.window, self.ports.model.window) if w is not None]
        target = self.room.due(min(known, default=None))
        if target is None or self.recovery.overflow is not None:
            return False
        self.stage = "compacting"
        return await self.room.make("auto", MOST_KEPT, target) is not None

    async def _sample(self) -> Reply | None:
        """The next reply; None where the request did not fit and room was made for another."""
        self.stage = "sampling"
        step = self.log.state.steps + 1
        try:
            reply = await self.sampler.sample(step)
        except ContextOverflow as overflow:
            self.window = overflow.limit_tokens or self.window
            self.stage = "compacting"
            await self.recovery.step_down(overflow, step)
            return None
        if reply.complete:
            self.recovery.reached()
        return reply

    async def _guard(self, reply: Reply) -> Ending | None:
        """Whether the model goes round in circles, and what is done about it."""
        seen = self.guard.saw(reply.tool_calls, self.log.state.transcript.closed[-1])
        match verdict(seen.times):
            case "nudge":
                self.log.record(Steered((Text(NUDGE.format(seen.times)),), source="runtime"))
            case "ask" if not await self._goes_on(seen):
                return _no_progress(seen)
            case "end":
                return _no_progress(seen)
        return None

    async def _goes_on(self, seen: Repetition) -> bool:
        """Ask the human, whose no ends the turn; with nobody there it is a no."""
        self.stage = "waiting"
        self.log.tell(Status("waiting"))
        answer = await self.ports.approver.ask(
            Question(
                call_id=seen.call.id,
                tool=seen.call.name,
                detail=msgspec.json.encode(seen.call.input).decode(),
                reason=f"the same calls gave the same results {seen.times} times; go on?",
            )
        )
        return answer.allow

    async def _objection(self, *, active: bool) -> tuple[str, str]:
        """What Stop hooks hold against resting, and who says so; blank for nothing."""
        self.stage = "waiting"
        await checkpoint()
        payload = HookPayload("Stop", self.runner.mode, fields={"stop_hook_active": active})
        outcome = await self._fire(payload)
        if outcome.verdict == "passed" or outcome.stop is not None:
            return "", ""
        return outcome.reason or "A Stop hook objects; go on.", outcome.by

    async def _fire(self, payload: HookPayload) -> HookOutcome:
        return await fire(self.ports.hooks, self.ports.redactor, self.log, payload)

    def _failure(self, error: ClawError) -> Failure:
        """An error as data. A server's words may quote what was sent to it: no secrets."""
        clean = self.ports.redactor.clean
        return Failure(error.kind, clean(error.message), clean(error.hint))

    def _judge_end(self, reply: Reply) -> Ending:
        """How a reply without calls (or with calls that could not run) ends the turn."""
        reason = reply.stop_reason
        if not reply.complete:
            return Ending(
                "error",
                Failure("stream_cut", "the model's replies were cut off", "Try again."),
            )
        if reason in CUT_BY_LIMIT:
            return Ending("output_limit")
        if reason in REFUSED:
            return Ending("refused", Failure("refused", "the model refused to answer"))
        offered = [name for spec in self.ports.tools.specs() for name in (spec.name, *spec.aliases)]
        if name := unparsed_call(reply.text, offered):
            return Ending("error", Failure("unparsed_call", UNPARSED.format(name), UNPARSED_HINT))
        if reason in ENDED_WELL:
            return Ending("completed")
        if not reply.text.strip():
            message = f"the model stopped with `{reason}` and said nothing"
            return Ending("error", Failure("stopped_oddly", message))
        self.log.tell(Notice("stop_reason", "warning", f"The model stopped with `{reason}`."))
        return Ending("completed")

    def _end(self, ending: Ending, began: float) -> None:
        settle_open(self.log, self.runner.started)
        self.recovery.broken_off()
        if title := self.log.state.title:
            self.log.conclude(Titled(title))  # again: lists read only the end of a journal
        progress = self._progress()
        ended = TurnEnded(
            turn=self.log.state.turns,
            stop_reason=ending.reason,
            iterations=progress.steps,
            usage=progress.usage,
            cost=self.sampler.cost,
            ms=round((self.ports.clock.monotonic() - began) * 1000),
            error=ending.error,
            unheard=tuple(self._cleaned(block) for block in self.unheard),
        )
        self.log.conclude(self.log.sealed(ended), sync=True)

    def _cleaned(self, block: UserBlock) -> UserBlock:
        if not isinstance(block, Text):
            return block
        return replace(block, text=self.ports.redactor.clean(block.text))


def _no_progress(seen: Repetition) -> Ending:
    message = f"`{seen.call.name}` gave the same result to the same input {seen.times} times"
    return Ending("no_progress", Failure("no_progress", message))
