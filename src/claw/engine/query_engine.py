"""``QueryEngine``: turn after turn over one session, with limits for all of them.

It drives the same ``ConversationRuntime`` as every front end. By default the offline
model answers, so that nothing needs a network, a key or a random number.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from claw.app.furnish import House, furnish, refuse_loops
from claw.app.wishes import Lent, Wishes
from claw.config.paths import home_directory
from claw.engine.commands import execute
from claw.engine.lent import FixedIds, PortableModel, StillClock
from claw.engine.store import SESSION_TOKENS, SESSION_USD, TranscriptStore, fold, journal_of
from claw.engine.structured import Checked, envelope, failed, schema_problem, with_schema
from claw.errors import SessionError
from claw.models.offline.client import OfflineModel
from claw.ports import Approver, ModelClient
from claw.routing import explicit_command
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.limits import MaxCost, MaxTokens
from claw.runtime.turn import TurnOptions
from claw.sessions.record import Record
from claw.types.entries import Compacted, DecisionMade, Event, KnownEntry, ReplyReceived, Rewound
from claw.types.events import TextDelta
from claw.types.messages import Message
from claw.types.permissions import PermissionDenial
from claw.types.results import (
    Failure,
    StopReason,
    TurnResult,
    TurnSummary,
    final_assistant_text,
)
from claw.types.surrogates import whole
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk

__all__ = ["QueryEngine", "QueryEngineConfig", "names_of"]

T = TypeVar("T")


class QueryEngineConfig(msgspec.Struct, frozen=True):
    """``max_turns`` limits the turns that a session has accepted since it began, compacted
    or not. The budgets are for the whole session. ``structured_output``: True for claw's own
    envelope, a JSON Schema for final texts that must fit it."""

    max_turns: int = 8
    max_budget_tokens: int | None = None
    max_budget_usd: float | None = None
    compact_after_turns: int = 12
    structured_output: bool | dict[str, Any] = False
    structured_retry_limit: int = 2


def names_of(wishes: Wishes) -> dict[str, str]:
    """What stands for the paths of this machine where runs are compared."""
    home = home_directory(wishes.env)
    cwd = os.path.realpath(wishes.cwd)
    return {os.path.realpath(home): "${HOME}", home: "${HOME}", cwd: "${CWD}"}


class _Asked(msgspec.Struct, frozen=True):
    prompt: str
    commands: tuple[str, ...]
    tools: tuple[str, ...]
    denied: tuple[PermissionDenial, ...]


def _sound(config: QueryEngineConfig) -> QueryEngineConfig:
    usd = config.max_budget_usd
    if isinstance(usd, float) and not math.isfinite(usd):
        raise ValueError(f"max_budget_usd is {usd}: None is for no limit")
    return whole(config, QueryEngineConfig)


def _asked(
    prompt: str,
    commands: Sequence[str],
    tools: Sequence[str],
    denied: Sequence[PermissionDenial],
) -> _Asked:
    """What is no text (half of a surrogate pair) no journal keeps: it goes at once."""
    if isinstance(commands, str) or isinstance(tools, str):
        raise TypeError("matched commands and tools are lists of names")
    return whole(_Asked(prompt, tuple(commands), tuple(tools), tuple(denied)), _Asked)


class QueryEngine:
    """A session and its limits. Use it in a ``with`` block, or ``close`` it.

    Not inside a running event loop: there, ``claw.open`` gives the conversation itself.
    """

    def __init__(
        self,
        wishes: Wishes,
        config: QueryEngineConfig | None = None,
        *,
        lent: Lent | None = None,
        approver: Approver | None = None,
    ) -> None:
        """Raises ``ConfigError`` and ``SessionError``; ``TypeError`` and ``ValueError`` for a
        ``config`` that makes no sense."""
        self.config = _sound(config or QueryEngineConfig())
        self.names = names_of(wishes)
        schema = self.config.structured_output
        if isinstance(schema, dict):
            schema_problem(schema)
        refuse_loops()
        self._runner = asyncio.Runner()
        try:
            self.house: House = self._runner.run(furnish(wishes, approver=approver, lent=lent))
        except BaseException:
            self._runner.close()
            raise
        self._checked: Checked | None = None
        if isinstance(schema, dict):
            retries = self.config.structured_retry_limit
            self._checked = Checked(schema, retries, self.runtime.steer)
            self.runtime.listen(self._checked.emit)
        self._closed = False
        self._seen = 0
        self.tools_used: tuple[str, ...] = ()  # in the last turn
        self._view = TranscriptStore(self._sync)
        self._refold()
        self._inferred: list[PermissionDenial] = []
        self.runtime.listen(self._fold)

    @classmethod
    def from_workspace(
        cls,
        cwd: str = ".",
        config: QueryEngineConfig | None = None,
        *,
        model: str | ModelClient | None = None,
        permission_mode: str | None = None,
        settings: str | None = None,
        persist: bool = True,
        approver: Approver | None = None,
        env: Mapping[str, str] | None = None,
    ) -> QueryEngine:
        """A new session in a directory.

        ``model`` is a name or a client, None the offline model. With ``persist=False`` it is
        kept in memory, its clock stands still and its id is always the same.
        """
        wishes = Wishes(
            cwd=cwd,
            mode=permission_mode,
            settings_file=settings,
            ephemeral=not persist,
            origin="sdk",
            env=dict(os.environ if env is None else env),
        )
        return cls.from_wishes(wishes, config, model=model, approver=approver)

    @classmethod
    def from_saved_session(
        cls,
        session_id: str,
        cwd: str = ".",
        config: QueryEngineConfig | None = None,
        *,
        model: str | ModelClient | None = None,
        permission_mode: str | None = None,
        settings: str | None = None,
        approver: Approver | None = None,
        env: Mapping[str, str] | None = None,
    ) -> QueryEngine:
        """Go on with a session from disk: messages, usage, outputs, stop reasons, denials.

        Raises as ``load_session``, and ``SessionLocked`` while another process has it.
        """
        environ = dict(os.environ if env is None else env)
        wishes = Wishes(
            cwd=cwd,
            mode=permission_mode,
            settings_file=settings,
            session=journal_of(session_id, cwd, environ),
            origin="sdk",
            env=environ,
        )
        return cls.from_wishes(wishes, config, model=model, approver=approver)

    @classmethod
    def from_wishes(
        cls,
        wishes: Wishes,
        config: QueryEngineConfig | None = None,
        *,
        model: str | ModelClient | None = None,
        approver: Approver | None = None,
    ) -> QueryEngine:
        """As ``from_workspace``, with all that a front end can wish for."""
        still = wishes.ephemeral
        lent = Lent(clock=StillClock(), ids=FixedIds()) if still else Lent()
        if isinstance(model, str) and model != "offline":
            return cls(replace(wishes, model=model), config, lent=lent, approver=approver)
        if model is None or isinstance(model, str):
            lent = replace(lent, name="offline", alone=True)
            model = PortableModel(OfflineModel(), names_of(wishes))
        return cls(wishes, config, lent=replace(lent, model=model), approver=approver)

    # -- what it knows -----------------------------------------------------------------

    @property
    def runtime(self) -> ConversationRuntime:
        return self.house.runtime

    @property
    def session_id(self) -> str:
        return self.house.session_id

    @property
    def is_kept(self) -> bool:
        """Whether there is a file of this session yet."""
        path = self.house.journal_path
        return path is not None and os.path.exists(path)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the model sees it."""
        return self.runtime.state.transcript.messages

    @property
    def turns(self) -> int:
        """Accepted since the session began."""
        return self.runtime.state.turns

    @property
    def total_usage(self) -> Usage:
        return self.runtime.state.usage

    @property
    def transcript_store(self) -> TranscriptStore:
        return self._view

    @property
    def outputs(self) -> tuple[str, ...]:
        """The final text of every turn."""
        return tuple(turn.output for turn in self._view.turns)

    @property
    def stop_reasons(self) -> tuple[StopReason, ...]:
        return tuple(turn.stop_reason for turn in self._view.turns)

    @property
    def permission_denials(self) -> tuple[PermissionDenial, ...]:
        """Of every turn, those that were known before it and those that policy gave in it; and
        those of commands, which no journal keeps."""
        given = (denial for turn in self._view.turns for denial in turn.denials)
        return (*given, *self._inferred)

    def replay_user_messages(self) -> tuple[str, ...]:
        """The prompts in view."""
        return self._view.replay()

    # -- what it does ------------------------------------------------------------------

    def submit_message(
        self,
        prompt: str,
        matched_commands: Sequence[str] = (),
        matched_tools: Sequence[str] = (),
        denied_tools: Sequence[PermissionDenial] = (),
    ) -> TurnResult:
        """One turn, or why there was none. Raises ``ValueError`` for a blank prompt,
        ``TypeError`` for what is none, and ``SessionError`` where it cannot be begun on record.
        """
        asked = _asked(prompt, matched_commands, matched_tools, denied_tools)
        return self._run(self._submit(asked))

    def stream_submit_message(
        self,
        prompt: str,
        matched_commands: Sequence[str] = (),
        matched_tools: Sequence[str] = (),
        denied_tools: Sequence[PermissionDenial] = (),
    ) -> Iterator[dict[str, Any]]:
        """The same turn as events; leaving early interrupts it.

        ``message_start``, ``command_match`` and ``tool_match``, ``permission_denial`` as soon
        as it is known, ``message_delta``, ``compaction``, and ``message_stop`` with usage,
        stop reason and the number of prompts in the transcript. With structured output the
        document is one delta.
        """
        asked = _asked(prompt, matched_commands, matched_tools, denied_tools)
        events = self._stream(asked)
        try:
            while (event := self._run(_next(events))) is not None:
                yield event
        finally:
            if not self._closed:  # that has ended the turn, too
                self._run(_end(events))

    def compact_messages_if_needed(self) -> Compacted | None:
        """Compact when more turns than ``compact_after_turns`` came since the last time."""
        return self._run(self._compact())

    def persist_session(self) -> str:
        """Make the session durable and return its file.

        Raises ``SessionError`` for one that is kept in memory, or was never begun.
        """
        path = self.house.journal_path
        if path is None:
            raise SessionError(
                "this session is kept in memory only", hint="Make the engine with `persist=True`."
            )
        if not self.is_kept:
            raise SessionError("nothing was said yet, so there is no session to keep")
        self._view.flush()
        return path

    def close(self) -> None:
        """End what runs and release the session. Idempotent."""
        if not self._closed:
            self._closed = True
            try:
                self._runner.run(self.house.close())
            finally:
                self._runner.close()

    def __enter__(self) -> QueryEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- a turn ------------------------------------------------------------------------

    async def _submit(self, asked: _Asked) -> TurnResult:
        if not asked.prompt.strip():
            raise ValueError("the prompt is empty")
        denials = (*asked.denied, *self._would_deny(asked.tools))
        if (refused := self._refusal()) is not None:
            reason, why = refused
            return self._result(asked, reason, failure=Failure(reason, why), denials=denials)
        if (command := explicit_command(asked.prompt)) is not None:
            return await self._command(asked, *command, denials)
        content = asked.prompt if self._checked is None else self._content(asked.prompt)
        summary = await self.runtime.run_turn(content, options=self._options(denials))
        reason, failure = self._judged(summary)
        calls = [call for message in summary.assistant_messages for call in message.tool_calls]
        self.tools_used = tuple(dict.fromkeys(call.name for call in calls))
        result = self._result(
            asked,
            reason,
            text=final_assistant_text(summary),
            failure=failure,
            denials=(*denials, *summary.permission_denials),
            usage=summary.usage,
        )
        await self._compact()
        return replace(result, usage=self.total_usage)

    def _content(self, prompt: str) -> Any:
        assert self._checked is not None
        return with_schema(prompt, self._checked.schema)

    def _refusal(self) -> tuple[StopReason, str] | None:
        """Why a turn is not even begun."""
        if self.turns >= self.config.max_turns:
            what = f"the session has had its {self.config.max_turns} turns: nothing was sent"
            return "max_turns_reached", what
        if self._over_budget():
            return "max_budget_reached", "the session's budget is spent: nothing was sent"
        return None

    async def _command(
        self, asked: _Asked, name: str, rest: str, denials: tuple[PermissionDenial, ...]
    ) -> TurnResult:
        """An explicit command: no turn, nothing is sent."""
        self._inferred += denials
        if self._checked is not None:
            failure = Failure("structured_output", "the answer of a command has no schema")
            return self._result(asked, "error", failure=failure, denials=denials)
        answer = await execute(self.house, name, rest)
        if answer is None:
            failure = Failure("unknown_command", f"there is no command /{name}", "Try /help.")
            return self._result(asked, "error", failure=failure, denials=denials)
        return self._result(asked, "completed", text=answer, denials=denials)

    def _judged(self, summary: TurnSummary) -> tuple[StopReason, Failure | None]:
        """How the turn ended for the session."""
        if summary.stop_reason != "completed":
            reason = summary.stop_reason
            return reason, summary.error or Failure(reason, _WHY.get(reason, reason))
        if self._over_budget():
            return "max_budget_reached", None
        return "completed", None

    def _result(
        self,
        asked: _Asked,
        reason: StopReason,
        *,
        text: str = "",
        failure: Failure | None = None,
        denials: tuple[PermissionDenial, ...],
        usage: Usage | None = None,
    ) -> TurnResult:
        said = [text] if text else []
        if failure is not None:
            said.append(f"{failure.message}\n{failure.hint}".strip())
        output = "\n\n".join(said)
        if self._checked is not None:
            id = self.session_id
            output = self._checked.text if failure is None else failed(failure, id)
        elif self.config.structured_output:
            output = envelope(
                asked.prompt,
                output,
                commands=asked.commands,
                tools=asked.tools,
                denials=denials,
                stop_reason=reason,
                session_id=self.session_id,
            )
        return TurnResult(
            prompt=asked.prompt,
            output=output,
            matched_commands=asked.commands,
            matched_tools=asked.tools,
            permission_denials=denials,
            usage=self.total_usage,
            turn_usage=usage or Usage(),
            stop_reason=reason,
            session_id=self.session_id,
        )

    def _would_deny(self, names: Sequence[str]) -> tuple[PermissionDenial, ...]:
        """Routed tools that mode and rules forbid, whatever they would be called with."""
        specs = {spec.name: spec for spec in self.house.tools}
        judged = [(name, self.runtime.judge(specs[name])) for name in names if name in specs]
        return tuple(
            PermissionDenial(name, "", decision.reason, decision.source, "would-deny")
            for name, decision in judged
            if decision.behavior == "deny"
        )

    # -- budgets and compaction --------------------------------------------------------

    def _over_budget(self) -> bool:
        tokens, usd = self._left()
        return (tokens is not None and tokens <= 0) or (usd is not None and usd <= 0)

    def _left(self) -> tuple[int | None, float | None]:
        """Tokens and US dollars that are left; None without a budget. An unknown price
        spends it: nobody could tell any more."""
        tokens, usd = self.config.max_budget_tokens, self.config.max_budget_usd
        if tokens is not None:
            tokens -= self.total_usage.context_tokens
        if usd is not None:
            for turn in self._view.turns:
                usd -= usd if turn.cost is None else turn.cost
        return tokens, usd

    def _options(self, denials: tuple[PermissionDenial, ...]) -> TurnOptions:
        """With what is left of the session's budgets, so that a turn stops between steps."""
        options, (tokens, usd) = self.runtime.options, self._left()
        limits = options.limits
        if tokens is not None:
            limits += (MaxTokens(tokens, SESSION_TOKENS),)
        if usd is not None:
            limits += (MaxCost(usd, SESSION_USD),)
        if self._checked is not None:
            options = replace(options, verdict=self._checked.failure)
        return replace(options, limits=limits, denials=denials)

    async def _compact(self) -> Compacted | None:
        if self._view.since_compaction <= self.config.compact_after_turns:
            return None
        return await self.runtime.compact()

    # -- the view ----------------------------------------------------------------------

    def _fold(self, event: Event) -> None:
        if not isinstance(event, KnownEntry):
            return
        self._seen += 1
        if isinstance(event, Rewound):
            self._refold()
        else:
            self._view.append(Record(self._seen, "", "", "", event))

    def _refold(self) -> None:
        records = [*self.house.records()]
        self._seen = records[-1].seq if records else 0
        self._view = fold(records, self._sync)

    def _sync(self) -> None:
        path = self.house.journal_path
        if path is None:
            return
        disk = SystemDisk()
        try:
            fd = disk.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                disk.fsync(fd)
            finally:
                disk.close(fd)
        except OSError as error:
            raise SessionError(f"cannot write {path}: {error.strerror}") from error

    # -- events ------------------------------------------------------------------------

    async def _stream(self, asked: _Asked) -> AsyncGenerator[dict[str, Any], None]:
        yield {
            "type": "message_start",
            "session_id": self.session_id,
            "prompt": asked.prompt,
        }
        if asked.commands:
            yield {"type": "command_match", "commands": [*asked.commands]}
        if asked.tools:
            yield {"type": "tool_match", "tools": [*asked.tools]}
        early = (*asked.denied, *self._would_deny(asked.tools))
        for denial in early:
            yield {"type": "permission_denial", **msgspec.to_builtins(denial)}
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        told = _Told(queue.put_nowait, deltas=not self.config.structured_output)
        forget = self.runtime.listen(told.emit)
        task = asyncio.ensure_future(self._submit(asked))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            result = await task
        finally:
            forget()
            if not task.done():
                self.runtime.interrupt()
                await asyncio.wait([task])
        if not told.spoke and result.output:
            yield {"type": "message_delta", "text": result.output}
        yield {
            "type": "message_stop",
            "usage": msgspec.to_builtins(result.usage),
            "stop_reason": result.stop_reason,
            "transcript_size": len(self._view.replay()),
            "result": msgspec.to_builtins(result),
        }

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            if self._closed:
                raise RuntimeError("the engine is closed")
            refuse_loops()
        except RuntimeError:
            work.close()
            raise
        return self._runner.run(work)


class _Told(msgspec.Struct, eq=False):
    """From what a turn emits to what the engine's stream tells."""

    put: Callable[[dict[str, Any]], None]
    deltas: bool
    spoke: bool = False
    names: dict[str, str] = {}

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta(text=text) if self.deltas:
                self.spoke = True
                self.put({"type": "message_delta", "text": text})
            case ReplyReceived():
                self.names |= {call.id: call.name for call in event.message.tool_calls}
            case DecisionMade(decision="deny"):
                name = self.names.get(event.call_id, "")
                denial = PermissionDenial(name, event.call_id, event.reason, event.source)
                self.put({"type": "permission_denial", **msgspec.to_builtins(denial)})
            case Compacted():
                self.put(
                    {
                        "type": "compaction",
                        "removed_messages": event.removed_messages,
                        "tokens_before": event.tokens_before,
                        "tokens_after": event.tokens_after,
                        "dropped": [*event.dropped],
                    }
                )


_WHY: dict[StopReason, str] = {
    "output_limit": "the answer was cut off by the output limit",
    "max_turns_reached": "the limit of steps was reached",
    "max_budget_reached": "the budget is spent",
    "max_time_reached": "the time is up",
    "interrupted": "interrupted",
}


async def _next(events: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any] | None:
    return await anext(events, None)


async def _end(events: AsyncGenerator[dict[str, Any], None]) -> None:
    await events.aclose()
