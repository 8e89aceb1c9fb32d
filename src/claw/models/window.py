"""What a server does not say about its window: replies that look like successes; pure.

Sources: z.ai accepts more input than its window holds and reports it, or stops with
``model_context_window_exceeded``; MiMo fills the window and ends with ``length`` and no
output; Ollama cuts the beginning of a prompt to ``num_ctx`` without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from claw.errors import ContextOverflow
from claw.types.events import AssistantEvent, MessageStop, TextDelta
from claw.types.messages import Opaque, Text, Thinking, ToolResult, ToolUse
from claw.types.request import Request
from claw.types.usage import Usage

__all__ = ["WindowWatch", "believable", "is_overflow", "was_truncated"]

FULL = 0.99
"""Of a window; a server that counts its own tokens on top never reports all of it."""

TRUNCATED = 0.5
"""Of our estimate, which is good to about 30 %."""

BYTES_A_TOKEN = 3

SMALLEST_LOSS = 1_000
"""Tokens; below it an estimate's error is all that there is to see."""


def is_overflow(
    usage: Usage, stop_reason: str, *, said: bool, window: int | None, estimate: Callable[[], int]
) -> bool:
    """Whether a reply that ended is an overflow in truth.

    ``said`` is whether the model wrote anything. More input than the window holds counts
    only where our own ``estimate`` (tokens) does not contradict it: some servers count
    what came from the cache twice.
    """
    if stop_reason == "model_context_window_exceeded" and not said:
        return True
    if window is None or usage.estimated:
        return False
    sent = _sent(usage)
    if stop_reason == "max_tokens" and not said and not usage.output_tokens:
        return sent >= FULL * window
    return sent > window and estimate() > TRUNCATED * window


def believable(usage: Usage, *, window: int | None, estimate: Callable[[], int]) -> Usage:
    """The same figures, or an estimate instead of what no window can hold."""
    if window is None or usage.estimated or usage.context_tokens <= window:
        return usage
    sent = min(estimate(), window)
    return Usage(sent, min(usage.output_tokens, window - sent), estimated=True)


def was_truncated(usage: Usage, estimate: int) -> bool:
    """Whether a server read so little of a request that it must have cut it."""
    sent = _sent(usage)
    if usage.estimated or not sent:
        return False
    return sent < TRUNCATED * estimate and estimate - sent >= SMALLEST_LOSS


def _sent(usage: Usage) -> int:
    return usage.context_tokens - usage.output_tokens


class WindowWatch:
    """Sees the events of one reply, and has the last word. Sizes are in tokens.

    ``estimate`` of the request is asked only where there is a doubt.
    """

    def __init__(self, window: int | None, estimate: Callable[[], int]) -> None:
        self._window = window
        self._estimate = estimate
        self._usage = Usage()
        self._stop: str | None = None
        self._said = False

    def see(self, event: AssistantEvent) -> None:
        match event:
            case Usage():
                self._usage = event
            case MessageStop():
                self._stop = event.stop_reason
            case TextDelta():
                self._said = self._said or bool(event.text.strip())
            case ToolUse() | Opaque():
                self._said = True
            case _:
                pass

    def end(self) -> Iterator[AssistantEvent]:
        """What is left to say of the reply. Raises ``ContextOverflow`` for one in disguise."""
        window, usage = self._window, self._usage
        if self._stop is None:
            return
        if is_overflow(usage, self._stop, said=self._said, window=window, estimate=self._estimate):
            raise ContextOverflow(
                "the conversation no longer fits the model's context window "
                f"(the server stopped with `{self._stop}` at {_sent(usage):,} tokens of input)",
                limit_tokens=window,
            )
        believed = believable(usage, window=window, estimate=self._estimate)
        if believed is not usage:
            yield believed

    def cut_in_silence(self, request: Request, size: int) -> str:
        """What to tell of a request that the server cut; blank where it read all of it.

        ``size`` is in bytes, as sent: no text comes to more than a token for three of
        them, and what an estimate counts is not always sent.
        """
        sent, most = _sent(self._usage), size // BYTES_A_TOKEN
        if self._stop is None or not was_truncated(self._usage, most) or not _is_text(request):
            return ""
        estimate = min(most, self._estimate())
        if not was_truncated(self._usage, estimate):
            return ""
        return (
            f"The server reports {sent:,} tokens of about {estimate:,} that were sent: it seems "
            "to cut what does not fit its context, and the model does not see the rest. Give the "
            "server a larger context (in Ollama `num_ctx` or OLLAMA_CONTEXT_LENGTH), and set "
            "`contextWindow` of the provider to it."
        )


def _is_text(request: Request) -> bool:
    """What else there may be is not counted by its size."""
    blocks = (block for message in request.messages for block in message.content)
    return all(
        all(isinstance(inner, Text) for inner in block.content)
        if isinstance(block, ToolResult)
        else isinstance(block, Text | Thinking | ToolUse)
        for block in blocks
    )
