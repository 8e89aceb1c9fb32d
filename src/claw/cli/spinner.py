"""The line that moves while the agent works."""

from __future__ import annotations

import asyncio
import time
from math import ceil

from claw.cli.render.activity import headline
from claw.cli.render.calls import Calls
from claw.cli.screen import Screen
from claw.cli.style import clip, human_seconds, human_tokens, one_line
from claw.types.entries import DecisionMade, Event, ReplyReceived, ToolFinished, ToolIntended
from claw.types.events import (
    RetryWait,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolProgress,
)

__all__ = ["Spinner"]

THINKING = "Thinking..."
_TICK = 0.12  # seconds
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "|/-\\"
_CHARACTERS_PER_TOKEN = 4


class Spinner:
    """An event listener, and a context manager in whose block the line moves.

    Tokens are output tokens: reported for finished replies, estimated for the one
    that comes.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._frames = _FRAMES if screen.terminal.pictures else _PLAIN_FRAMES
        self._label = THINKING
        self._calls = Calls()
        self._running: dict[str, str] = {}  # call id -> the last line it printed
        self._characters = 0
        self._reported = 0
        self._began = 0.0
        self._again_at = 0.0  # when a request is tried again
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Spinner:
        self._began = time.monotonic()
        self._label, self._reported, self._characters = THINKING, 0, 0
        self._running.clear()
        self._again_at = 0.0
        if self._screen.terminal.animated:
            self._task = asyncio.ensure_future(self._turn())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        self._screen.status("")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def tokens(self) -> int:
        return self._reported + self._characters // _CHARACTERS_PER_TOKEN

    def emit(self, event: Event) -> None:
        self._calls.emit(event)
        match event:
            case TextDelta() | ThinkingDelta():
                self._characters += len(event.text)
            case ToolInputDelta():
                self._characters += len(event.partial_json)
            case ReplyReceived():
                self._reported += event.usage.output_tokens
                self._characters = 0
            case ToolIntended():
                self._running[event.call_id] = ""
            case ToolFinished():
                self._running.pop(event.call_id, None)
            case ToolProgress() if event.call_id in self._running:
                if lines := event.text.strip().splitlines():
                    self._running[event.call_id] = lines[-1]
            case RetryWait():
                self._again_at = time.monotonic() + event.delay
            case Status(phase="compacting"):
                self._label = "Compacting..."
            case Status(phase="waiting"):
                self._label = ""  # a person is asked: nothing moves
            case Status() | DecisionMade():
                self._label = THINKING

    async def _turn(self) -> None:
        at = 0
        while True:
            self._screen.status(self._line(self._frames[at % len(self._frames)]))
            at += 1
            await asyncio.sleep(_TICK)

    def _line(self, frame: str) -> str:
        paint, width = self._screen.paint, self._screen.terminal.width
        if not self._label:
            return ""
        counts = human_seconds(self.seconds)
        if self.tokens:
            counts += f", {human_tokens(self.tokens)}"
        label = clip(self._doing(width) or self._label, max(10, width - len(counts) - 6))
        return f"{paint(frame, 'cyan')} {label} {paint(f'({counts})', 'dim')}"

    def _doing(self, width: int) -> str:
        """The wait before another try, or the running call with the last line that it printed."""
        if (left := self._again_at - time.monotonic()) > 0:
            return f"Trying again in {ceil(left)} s"
        if not self._running:
            return ""
        call_id, said = next(reversed(self._running.items()))
        call = self._calls.get(call_id)
        if call is None:
            return ""
        name, about = headline(call, width // 3)
        more = f" +{len(self._running) - 1}" if len(self._running) > 1 else ""
        return f"{name} {about}{more}" + (f": {one_line(said, width)}" if said else "")
