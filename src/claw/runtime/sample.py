"""Ask the model for one response: streamed, retried, journalled before anything acts on it.

Only this file retries. ``ModelError.advice`` says what a retry is worth; waits
are bounded, shown, and end at once when the turn is interrupted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import aclosing
from itertools import count, islice

import msgspec
from msgspec.structs import replace

from claw.errors import (
    ContextOverflow,
    ModelError,
    OutputLimitTooHigh,
    ParameterRefused,
    ProtocolViolation,
)
from claw.ports import Blobs, Clock, ModelClient, Redactor
from claw.runtime.recorder import Recorder
from claw.runtime.request import Digester, Prompt, build_request
from claw.types.entries import ModelChanged, ReplyReceived, Retried, StepRequested
from claw.types.events import (
    AssistantEvent,
    MessageStop,
    Notice,
    PromptCache,
    RetryWait,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    WireChunk,
)
from claw.types.messages import AssistantMessage, Opaque, ToolResult, ToolUse, UserMessage
from claw.types.reply import ENDED_WELL, FINAL, Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.session import SessionState
from claw.types.surrogates import mend, whole
from claw.types.texts import each_text
from claw.types.wire import sizes_of

__all__ = ["MAX_ATTEMPTS", "Sampler", "output_limit"]

MAX_ATTEMPTS = 6
FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
LONGEST_SERVER_DELAY = 120.0  # a rate limit of hours is reported, not waited for
KNOWN_WITH_CALLS = ENDED_WELL | FINAL | {"tool_use", "pause_turn"}
"""Any other stop reason of a reply with calls is shown by its name."""


class _Kept(msgspec.Struct, frozen=True):
    """Of a reply's bytes: where they are, for whom, and how they came."""

    blob: str = ""
    dialect: str = ""
    sizes: str = ""


_NOTHING_KEPT = _Kept()


class Sampler(msgspec.Struct, eq=False):
    """Samples for one conversation. ``api_seconds`` adds up what was spent waiting.

    ``cost`` is what the turn's requests cost so far in US dollars, None as soon as one
    has no known price.
    """

    model: ModelClient
    log: Recorder
    clock: Clock
    redactor: Redactor
    blobs: Blobs
    prompt: Prompt
    sampling: Sampling
    digester: Digester
    api_seconds: float = 0.0
    cost: float | None = 0.0

    def request(self) -> Request:
        """What would be sent now."""
        return build_request(self.prompt, self.log.state.transcript, self.sampling)

    def charge(self, cost: float | None) -> None:
        """Add what a request cost in US dollars, None where its price is unknown."""
        self.cost = None if self.cost is None or cost is None else self.cost + cost

    async def sample(self, step: int) -> Reply:
        """One reply, in the journal and in the transcript.

        A stream that was cut, or a reply that says nothing, is sampled once more; if the
        second stream is cut too, the incomplete reply stands. Raises ``ModelError`` when
        the model gives none.
        """
        sampling = self._sampling()
        cut_before = empty_before = lowered = False
        after_result = self._follows_a_result()
        for attempt in count(1):
            request = build_request(self.prompt, self.log.state.transcript, sampling)
            digests = self.digester.digests(request)
            self.log.record(
                StepRequested(
                    step,
                    sampling.model,
                    attempt,
                    digests,
                    max_tokens=sampling.max_tokens,
                    effort=sampling.effort,
                )
            )
            try:
                reply = await self._ask(request, step)
            except OutputLimitTooHigh as error:
                if lowered:
                    raise ContextOverflow(error.message, hint=error.hint) from error
                lowered = True
                fits = max(1, error.max_tokens)
                self.log.record(Retried(step, attempt, error.kind, 0.0, fits))
                sampling = self._sampling()
            except ParameterRefused as error:  # each parameter once: the client remembers
                self.log.record(Retried(step, attempt, error.kind, 0.0))
            except ModelError as error:
                delay = self._delay(error, attempt)
                if delay is None:
                    raise
                await self._wait(step, attempt, error.kind, error.message, delay)
            else:
                if not reply.complete:
                    if cut_before:
                        return reply
                    cut_before = True
                    text = "The reply was cut off; asking again."
                    self.log.tell(Notice("stream_cut", "warning", text))
                    await self._wait(step, attempt, "stream_cut", "the reply was cut off", 0.0)
                elif after_result or not _is_empty(reply):
                    if reply.tool_calls and reply.stop_reason not in KNOWN_WITH_CALLS:
                        text = f"The model stopped with `{reply.stop_reason}`."
                        self.log.tell(Notice("stop_reason", "warning", text))
                    return reply
                elif empty_before:
                    raise ProtocolViolation(
                        "the model sent an empty reply, twice",
                        hint="Try again, or another model.",
                        model=sampling.model,
                        request_id=reply.request_id,
                    )
                else:
                    empty_before = True
                    await self._wait(step, attempt, "empty_reply", "the reply was empty", 0.0)
        raise AssertionError("unreachable: count() does not end")

    def _sampling(self) -> Sampling:
        limit = output_limit(self.sampling.max_tokens, self.log.state)
        return replace(self.sampling, max_tokens=limit)

    async def _ask(self, request: Request, step: int) -> Reply:
        """Stream one exchange and journal what came of it, also when it broke off."""
        events: list[AssistantEvent] = []
        wire: list[WireChunk] = []
        began = self.clock.monotonic()
        self.log.tell(Status("thinking"))
        try:
            async with aclosing(self.model.stream(request)) as stream:
                async for event in stream:
                    if isinstance(event, WireChunk):
                        wire.append(event)
                        continue
                    events.append(event)
                    if isinstance(event, TextDelta | ThinkingDelta | ToolInputDelta | Notice):
                        self.log.tell(event)
        except (ModelError, asyncio.CancelledError):
            # What was heard stays in the journal; it is in the transcript unless
            # a retry takes it out.
            heard: list[AssistantEvent] = [
                event for event in events if not isinstance(event, MessageStop)
            ]
            if heard:
                self._record(step, self._assembled(heard), events, wire)
            raise
        finally:
            self.api_seconds += self.clock.monotonic() - began
        # Not one event: an empty reply, which is worth a second try like any other.
        reply = self._assembled(events) if events else Reply()
        self._record(step, reply, events, wire)
        return reply

    def _assembled(self, events: Sequence[AssistantEvent]) -> Reply:
        return whole(assemble(events, self.log.state.transcript.call_ids), Reply)

    def _record(
        self, step: int, reply: Reply, events: list[AssistantEvent], wire: list[WireChunk]
    ) -> None:
        # Requests are encoded for the name that was asked for, and so is what comes back
        # with them: a gateway's name for the same model must not cost it its thinking.
        asked = reply.asked or self.sampling.model
        served_by = reply.model or asked
        price = self.model.cost(reply.usage, served_by)
        if price is None:
            price = self.model.cost(reply.usage, asked)
        self.charge(price)
        cache = [event.event for event in events if isinstance(event, PromptCache)]
        kept = self._kept(wire, reply)
        if asked != (self.log.state.model or self.sampling.model):
            self.log.record(ModelChanged(asked))
        self.log.record(
            ReplyReceived(
                step=step,
                blocks=reply.blocks,
                stop_reason=reply.stop_reason,
                usage=reply.usage,
                complete=reply.complete,
                model=asked,
                served_by=served_by if served_by != asked else "",
                request_id=reply.request_id,
                provider_metadata=reply.provider_metadata,
                prompt_cache=cache[-1] if cache else None,
                wire=kept.blob,
                wire_dialect=kept.dialect,
                wire_sizes=kept.sizes,
            )
        )

    def _kept(self, wire: list[WireChunk], reply: Reply) -> _Kept:
        """The bytes of the last body, in a blob. Those that hold a secret are not kept: a
        server may have quoted the key, also in pieces that only the reply puts together."""
        begins = [at for at, chunk in enumerate(wire) if chunk.dialect]
        if not begins:
            return _NOTHING_KEPT
        chunks = [chunk.data for chunk in wire[begins[-1] + 1 :] if chunk.data]
        body = b"".join(chunks)
        text = body.decode("utf-8", "replace")
        spelt = [text, _unescaped(text), msgspec.to_builtins(reply.blocks)]
        if any(each_text(each, self.redactor.clean) != each_text(each, str) for each in spelt):
            said = "The raw bytes of this reply hold a secret: they are not kept."
            self.log.tell(Notice("record_wire", "warning", said))
            return _NOTHING_KEPT
        dialect = wire[begins[-1]].dialect
        return _Kept(self.blobs.put(body), dialect, sizes_of(chunks)) if body else _NOTHING_KEPT

    def _follows_a_result(self) -> bool:
        """After a tool result an empty end is normal; anywhere else it is no reply."""
        messages = self.log.state.transcript.messages
        last = messages[-1] if messages else None
        return isinstance(last, UserMessage) and isinstance(last.content[0], ToolResult)

    def _delay(self, error: ModelError, attempt: int) -> float | None:
        """Seconds to wait before the next attempt, None where it is not worth one."""
        if error.advice != "retry" or attempt == MAX_ATTEMPTS:
            return None
        if error.retry_after:  # 0, or a date that is past, says only that it is worth a retry
            return error.retry_after if error.retry_after <= LONGEST_SERVER_DELAY else None
        grown = min(FIRST_DELAY * 2 ** (attempt - 1), LONGEST_DELAY)
        return float(grown * (0.5 + self.clock.jitter() / 2))

    async def _wait(self, step: int, attempt: int, kind: str, message: str, delay: float) -> None:
        self.log.record(Retried(step, attempt, kind, delay))
        self.log.tell(RetryWait(attempt, delay, self.redactor.clean(message)))
        if delay:
            await self.clock.sleep(delay)


def _unescaped(text: str) -> str:
    """What JSON escapes spelt out, well enough to look for something in it."""

    def spelt(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else escape[2]

    return mend(re.sub(r'\\(?:u([0-9a-fA-F]{4})|(["\\/]))', spelt, text))


def output_limit(chosen: int | None, state: SessionState) -> int | None:
    """As chosen, with no more output than fitted the last time. Where nobody chose, and the
    output limit cut off a call: twice the room, once."""
    most = state.most_output
    if most is not None:
        return min(most, chosen or most)
    if chosen is not None:
        return chosen
    messages = reversed(state.transcript.messages)
    said = [*islice((m for m in messages if isinstance(m, AssistantMessage)), 2)]
    cut = [bool(m.tool_calls) and m.stop_reason == "max_tokens" for m in said]
    made = said[0].usage.output_tokens if said else 0
    return 2 * made if made and cut in ([True], [True, False]) else None


def _is_empty(reply: Reply) -> bool:
    """Silence where an answer is due, unless the stop reason explains it."""
    says = reply.text.strip() or any(isinstance(b, ToolUse | Opaque) for b in reply.blocks)
    return not says and (reply.stop_reason in ENDED_WELL or not reply.stop_reason)
