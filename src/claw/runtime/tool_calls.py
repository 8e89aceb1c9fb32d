"""Run the calls of one reply: prepare, perform, settle.

* **prepare**, one by one in call order: find the tool, parse the input, fire the
  PreToolUse hook, judge, ask the human. Out come ``Ready`` calls and ``Withheld``
  ones. Then every call that will run is journalled as intended.
* **perform**: neighbouring read-only calls together, the others one at a time.
  Nothing is journalled here, so the order in which tools finish shows nowhere.
* **settle**, in call order: the PostToolUse (or PostToolUseFailure) hook, redact,
  clip, record. One result per call.

Whatever breaks off in between (Ctrl-C, a limit, a failing journal), ``settle_open``
gives every call that has no result yet an honest one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from claw.errors import ToolFailed
from claw.ports import Ports, Tool, ToolCall
from claw.runtime.checkpoint import checkpoint
from claw.runtime.clip import clip
from claw.runtime.file_checkpoints import keep_files
from claw.runtime.firing import fire
from claw.runtime.pictures import checked
from claw.runtime.recorder import Recorder
from claw.types.effects import Facts
from claw.types.entries import DecisionMade, Judged, RuleAdded, ToolFinished, ToolIntended
from claw.types.events import Status, ToolProgress
from claw.types.hooks import HookEvent, HookOutcome, HookPayload
from claw.types.messages import ResultBlock, Text, ToolUse, text_of
from claw.types.permissions import Answer, Decision, PermissionMode, Question
from claw.types.reply import CUT_BY_LIMIT, REFUSED, UNFINISHED, Reply
from claw.types.surrogates import whole
from claw.types.tools import CallStatus, ToolOutput
from claw.types.transcript import INTERRUPTED, OUTCOME_UNKNOWN

__all__ = ["ToolPhase", "ToolRunner", "calls_not_to_run", "merge_hook_feedback", "settle_open"]

CUT_BY_OUTPUT_LIMIT = (
    "Not run: the call was cut off by the output limit{}. Make it smaller, in several steps."
)
CUT_WITH_STREAM = "Not run: the reply that made this call was cut off. Make the call again."
NOT_RUN = "Not run: the turn ended before this call."


class Ready(msgspec.Struct, frozen=True):
    """A call that may run, with the input that hooks and the human left it.

    ``feedback`` is what its PreToolUse hooks want the model to know.
    """

    use: ToolUse
    tool: Tool
    args: Any
    input: dict[str, Any]
    facts: Facts
    feedback: tuple[str, ...] = ()


class Withheld(msgspec.Struct, frozen=True):
    """A call that will not run (unknown, unparsable, denied, cut), and what the model is told."""

    use: ToolUse
    status: CallStatus
    text: str


class Performed(msgspec.Struct, frozen=True):
    """What came of a run; never an exception."""

    output: ToolOutput
    failed: bool
    ms: int


class ToolPhase(msgspec.Struct, frozen=True):
    """``stopped`` is a hook's reason to end the turn, ``denied`` that of a denial that
    no human made."""

    stopped: str | None = None
    denied: str | None = None


def calls_not_to_run(reply: Reply) -> dict[str, str]:
    """Call id -> why, for calls that must not run because their reply was cut or refused.

    At the output limit only the last block is cut: complete calls before it run.
    When the stream died, none does.
    """
    calls = reply.tool_calls
    if not reply.complete:
        return {call.id: CUT_WITH_STREAM for call in calls}
    if reply.stop_reason in REFUSED:
        return {call.id: "Not run: the model refused to go on." for call in calls}
    if reply.stop_reason.lower() in UNFINISHED:
        why = f"Not run: the reply ended with `{reply.stop_reason}`. Make the call again."
        return {call.id: why for call in calls}
    if reply.stop_reason in CUT_BY_LIMIT and calls and reply.blocks[-1] is calls[-1]:
        made = f" ({reply.usage.output_tokens:,} tokens)" if reply.usage.output_tokens else ""
        return {calls[-1].id: CUT_BY_OUTPUT_LIMIT.format(made)}
    return {}


class ToolRunner(msgspec.Struct, eq=False):
    """Runs calls for one conversation. ``mode`` is read anew for each call.

    ``started`` are the calls of the last reply that began to run.
    """

    ports: Ports
    log: Recorder
    default_mode: PermissionMode
    started: set[str] = set()

    @property
    def mode(self) -> PermissionMode:
        return self.log.state.mode or self.default_mode

    async def run(self, reply: Reply) -> ToolPhase:
        """One result for each call of the reply, in call order."""
        self.started = set()
        self.log.tell(Status("tools"))
        cut = calls_not_to_run(reply)
        prepared: list[Ready | Withheld] = []
        stopped: str | None = None
        denied: str | None = None
        for use in reply.tool_calls:
            if stopped is not None:
                prepared.append(Withheld(use, "not_run", NOT_RUN))
                continue
            if use.id in cut:
                prepared.append(Withheld(use, "not_run", cut[use.id]))
                continue
            await checkpoint()
            call, stopped, unasked = await self._prepare(use)
            prepared.append(call)
            denied = unasked if denied is None else denied
        if stopped is not None:
            prepared = [_unstarted(call) for call in prepared]
        self._record_intents([call for call in prepared if isinstance(call, Ready)])
        self.log.tell(Status("tools"))
        for group in _groups(prepared):
            await checkpoint()
            calls = [_unstarted(call) for call in group] if stopped is not None else group
            ready = [call for call in calls if isinstance(call, Ready)]
            for call in ready:
                keep_files(self.ports, self.log, call.use.id, call.facts)
            performed = await self._perform(ready)
            for call in calls:
                if isinstance(call, Withheld):
                    self._settle_withheld(call)
                    continue
                stop = await self._settle(call, performed[call.use.id])
                stopped = stop if stopped is None else stopped
        return ToolPhase(stopped, denied)

    # -- prepare ---------------------------------------------------------------

    async def _prepare(self, use: ToolUse) -> tuple[Ready | Withheld, str | None, str | None]:
        """The call as it may run, or why not; then a hook's wish to end the turn, if any;
        then the reason of a denial that no human made."""
        parsed = self._parse(use, use.input)
        if isinstance(parsed, Withheld):
            return parsed, None, None
        hook = await self._fire("PreToolUse", parsed, {})
        if hook.verdict != "passed":
            reason = hook.reason or f"{hook.verdict} by a hook"
            return self._deny(use, Decision("deny", reason, hook.by)), hook.stop, reason
        if hook.updated_input is not None:
            parsed = self._parse(use, hook.updated_input)
            if isinstance(parsed, Withheld):
                return parsed, hook.stop, None
        if hook.stop is not None:
            return Withheld(use, "not_run", NOT_RUN), hook.stop, None
        call, unasked = await self._permit(parsed, hook)
        if isinstance(call, Ready):
            call = replace(call, feedback=(*hook.messages, *hook.context, *call.feedback))
        return call, None, unasked

    def _parse(self, use: ToolUse, input: dict[str, Any]) -> Ready | Withheld:
        name = use.name
        tool = self.ports.tools.get(name)
        if tool is None:
            offered = ", ".join(spec.name for spec in self.ports.tools.specs()) or "none"
            return Withheld(use, "error", f"Unknown tool `{name}`. Available tools: {offered}.")
        if use.raw_input is not None:
            return Withheld(
                use,
                "error",
                f"Not run: the input of `{name}` is not a JSON object: {use.raw_input[:200]!r}",
            )
        try:
            args = tool.parse(input)
            facts = self.ports.workspace.observe(tool.effects(args))
        except ToolFailed as error:
            return Withheld(use, "error", error.message)
        except Exception as error:  # a tool is anybody's code: its crash is its result
            return Withheld(use, "error", _crash(name, error))
        return Ready(use, tool, args, input, facts)

    async def _permit(self, call: Ready, hook: HookOutcome) -> tuple[Ready | Withheld, str | None]:
        """Judge, and ask the human where policy says so.

        What the human rewrote is judged like any other input; their yes then answers
        an ask, but no deny. The second value is the reason of a no that no human said.
        """
        decision, answer = self._judge(call, hook), None
        judged = decision.behavior
        if decision.behavior == "ask":
            answer = await self._ask(call, decision)
            if not answer.allow:
                reason = answer.reason or "the user said no"
                denied = replace(decision, reason=reason)
                withheld = self._deny(call.use, denied, answer, judged)
                return withheld, None if answer.asked else reason
            if answer.input is not None:
                edited = self._parse(call.use, answer.input)
                if isinstance(edited, Withheld):
                    return edited, None
                told = f"The user changed this call before it ran, to: {_shown(edited.input)}"
                call = replace(edited, feedback=(told,))
                decision = self._judge(call, HookOutcome())
            if decision.behavior == "ask":
                decision = replace(decision, behavior="allow")
        if decision.behavior == "deny":
            return self._deny(call.use, decision, answer, judged), decision.reason
        if answer is not None and answer.rule is not None:
            self.log.record(RuleAdded(answer.rule))
        self._decided(call.use, decision, answer, judged)
        return call, None

    def _judge(self, call: Ready, hook: HookOutcome) -> Decision:
        rules = self.log.state.rules
        decision = self.ports.policy.judge(call.tool.spec, call.facts, self.mode, rules)
        may_ask = decision.behavior == "allow" or (
            decision.behavior == "ask" and decision.by_default
        )
        if hook.permission == "ask" and may_ask:
            return Decision("ask", hook.reason or "a hook asks", hook.by)
        if hook.permission == "allow" and decision.behavior == "ask" and decision.by_default:
            return Decision("allow", hook.reason, hook.by)
        return decision

    async def _ask(self, call: Ready, decision: Decision) -> Answer:
        try:
            detail = call.tool.preview(call.args)
        except ToolFailed as error:  # what cannot be shown will fail as well; say so first
            detail = error.message
        except Exception as error:
            detail = _crash(call.tool.spec.name, error)
        question = Question(
            call_id=call.use.id,
            tool=call.tool.spec.name,
            detail=detail,
            reason=decision.reason,
            offered=self.ports.policy.offer(call.tool.spec, call.facts),
        )
        self.log.tell(Status("waiting"))
        return whole(await self.ports.approver.ask(question), Answer)

    def _deny(
        self,
        use: ToolUse,
        decision: Decision,
        answer: Answer | None = None,
        judged: Judged = "",
    ) -> Withheld:
        self._decided(use, replace(decision, behavior="deny"), answer, judged)
        return Withheld(use, "denied", f"Permission denied: {decision.reason}")

    def _decided(
        self,
        use: ToolUse,
        decision: Decision,
        answer: Answer | None,
        judged: Judged,
    ) -> None:
        clean = self.ports.redactor.clean  # a key may stand in a rule
        said = "" if answer is None or not answer.asked else "yes" if answer.allow else "no"
        self.log.record(
            DecisionMade(
                use.id,
                decision.behavior,
                clean(decision.reason),
                clean(decision.source),
                asked=bool(said),
                answer=said,
                input=None if answer is None else answer.input,
                judged=judged,
            )
        )

    def _record_intents(self, calls: Sequence[Ready]) -> None:
        """Before the first call starts, all are on record.

        Where the turn is about to change something for the first time, they survive
        even power loss: one sync, with the last of them.
        """
        untouched = not self.log.state.touched
        intents = [
            ToolIntended(
                call.use.id,
                call.tool.spec.name,
                effects=tuple(seen.effect for seen in call.facts.observed),
                input=None if call.input == call.use.input else call.input,
            )
            for call in calls
        ]
        sync = untouched and any(intent.changes for intent in intents)
        for intent in intents:
            self.log.record(intent, sync=sync and intent is intents[-1])

    # -- perform ---------------------------------------------------------------

    async def _perform(self, calls: Sequence[Ready]) -> dict[str, Performed]:
        """Run calls beside each other. When cancelled, waits until all have let go."""
        self.started.update(call.use.id for call in calls)
        if len(calls) == 1:
            return {calls[0].use.id: await self._run(calls[0])}
        # With return_exceptions, gather passes a cancellation on and still waits for all.
        outcomes = await asyncio.gather(*map(self._run, calls), return_exceptions=True)
        return {
            call.use.id: done
            for call, done in zip(calls, outcomes, strict=True)
            if isinstance(done, Performed)
        }

    async def _run(self, call: Ready) -> Performed:
        clock = self.ports.clock
        began = clock.monotonic()

        def progress(text: str) -> None:
            self.log.tell(ToolProgress(call.use.id, text))

        try:
            made = await call.tool.run(call.args, ToolCall(call.use.id, progress))
            output = whole(made, ToolOutput)
            failed = output.is_error
        except ToolFailed as error:
            text = f"{error.kept}\n\n{error.message}" if error.kept.strip() else error.message
            output, failed = ToolOutput.of(text), True
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            output, failed = ToolOutput.of(_crash(call.tool.spec.name, error)), True
        except Exception as error:
            output, failed = ToolOutput.of(_crash(call.tool.spec.name, error)), True
        return Performed(output, failed, round((clock.monotonic() - began) * 1000))

    # -- settle ----------------------------------------------------------------

    def _settle_withheld(self, call: Withheld) -> None:
        text = self.ports.redactor.clean(call.text)
        self.log.record(ToolFinished(call.use.id, (Text(text),), call.status))

    async def _settle(self, call: Ready, performed: Performed) -> str | None:
        """Give the call its result; returns a hook's reason to end the turn."""
        output, failed = performed.output, performed.failed
        text = self.ports.redactor.clean(text_of(output.content))
        event: HookEvent = "PostToolUseFailure" if failed else "PostToolUse"
        hook = await self._fire(event, call, {"tool_response": text})
        objected = hook.verdict != "passed"
        objection = (hook.reason,) if objected else ()
        messages = (*call.feedback, *objection, *hook.messages, *hook.context)
        merged = self.ports.redactor.clean(merge_hook_feedback(text, messages, objected))
        added = len(merged) - (len(text) if merged.startswith(text) else 0)
        clipped, spilled = clip(merged, self.ports.blobs, output.omitted)
        rest = (block for block in output.content if not isinstance(block, Text))
        others = checked(rest, self.ports.blobs)
        content: tuple[ResultBlock, ...] = (
            others if others and not clipped else (Text(clipped), *others)
        )
        self.log.record(
            ToolFinished(
                call.use.id,
                content,
                "error" if failed or objected else "ok",
                ms=performed.ms,
                spilled=spilled,
                display=self.ports.redactor.clean(output.display),
                added=added,
                omitted=output.omitted if spilled else 0,
            )
        )
        return hook.stop

    async def _fire(self, event: HookEvent, call: Ready, more: dict[str, Any]) -> HookOutcome:
        payload = HookPayload(
            event,
            permission_mode=self.mode,
            subject=call.tool.spec.name,
            call_id=call.use.id,
            fields={"tool_name": call.tool.spec.name, "tool_input": call.input, **more},
        )
        return await fire(self.ports.hooks, self.ports.redactor, self.log, payload)


def merge_hook_feedback(output: str, messages: Sequence[str], is_error: bool) -> str:
    """The output if it is not blank, a blank line, then the messages under their heading."""
    said = [message for message in messages if message.strip()]
    if not said:
        return output
    heading = "Hook feedback (error):" if is_error else "Hook feedback:"
    feedback = "\n".join([heading, *said])
    return f"{output}\n\n{feedback}" if output.strip() else feedback


def settle_open(log: Recorder, started: Collection[str] | None) -> None:
    """Give every call without a result an honest one.

    ``started`` are the calls that began to run, None where the process died since and
    nobody knows: then a call may have run if it is on record as intended.
    """
    for call in log.state.transcript.open_calls:
        if started is None and call.id in log.state.intended:
            entry = ToolFinished(call.id, (Text(OUTCOME_UNKNOWN),), "outcome_unknown")
        elif started is not None and call.id in started:
            entry = ToolFinished(call.id, (Text(INTERRUPTED),), "interrupted")
        else:
            entry = ToolFinished(call.id, (Text(NOT_RUN),), "not_run")
        log.conclude(entry)


def _unstarted(call: Ready | Withheld) -> Withheld:
    """The turn ends before this call; one that was withheld anyway keeps its own reason."""
    return call if isinstance(call, Withheld) else Withheld(call.use, "not_run", NOT_RUN)


def _shown(input: dict[str, Any]) -> str:
    return msgspec.json.encode(input).decode()


def _crash(name: str, error: BaseException) -> str:
    return f"`{name}` crashed: {type(error).__name__}: {error}"


def _is_cancelled() -> bool:
    """Whether the running task was cancelled, rather than something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _groups(calls: Sequence[Ready | Withheld]) -> Iterator[list[Ready | Withheld]]:
    """Neighbours that may run beside each other: read-only ones and those that do not run."""
    group: list[Ready | Withheld] = []
    for call in calls:
        if isinstance(call, Ready) and not call.tool.spec.read_only:
            if group:
                yield group
            yield [call]
            group = []
        else:
            group.append(call)
    if group:
        yield group
