"""Conversations to compact, and a compactor that keeps what it tells."""

from __future__ import annotations

from typing import Any

from claw.compaction.compactor import PruningCompactor
from claw.compaction.plan import Estimates
from claw.compaction.trigger import Policy
from claw.models.estimate import estimate_request, estimate_tokens
from claw.types.events import Notice
from claw.types.messages import (
    AssistantMessage,
    ResultBlock,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.transcript import Transcript

ESTIMATES = Estimates(estimate_request, estimate_tokens)


def asks(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def step(
    transcript: Transcript, call: ToolUse, result: str | ResultBlock, **is_error: bool
) -> Transcript:
    """The transcript after a reply with one call, and its result."""
    content = (Text(result),) if isinstance(result, str) else (result,)
    reply = AssistantMessage((Text(f"doing {call.id}"), call))
    return transcript.assistant(reply).settle(ToolResult(call.id, content, **is_error))


def read(number: int, path: str = "a.py", **more: Any) -> ToolUse:
    return ToolUse(f"c{number}", "Read", {"file_path": path, **more})


def a_turn(steps: int, *, size: int = 2_000) -> Transcript:
    """A request and steps with results of ``size`` characters, all different."""
    transcript = Transcript().user(asks("the request"))
    for n in range(steps):
        transcript = step(transcript, read(n, f"file{n}.py"), f"{n} " + "x" * size)
    return transcript


def compactor(
    policy: Policy | None = None, **options: Any
) -> tuple[PruningCompactor, list[Notice]]:
    told: list[Notice] = []
    return PruningCompactor(policy or Policy(), ESTIMATES, told.append, **options), told
