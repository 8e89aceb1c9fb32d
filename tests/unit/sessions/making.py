"""Journals to try things on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from claw.models.encode import encode_request
from claw.sessions.journal import FileJournal
from claw.testing import validate_anthropic, validate_chat, validate_responses
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
    UserMessaged,
)
from claw.types.messages import Image, RedactedThinking, Text, Thinking, ToolUse, UserMessage
from claw.types.permissions import Rule
from claw.types.session import SessionState
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk

AT = "2026-11-30T14:20:00.000Z"
SPENT = Usage(30, 7, cache_read_input_tokens=4)
DIGESTS = Digests("a" * 64, "b" * 64, "c" * 64, "d" * 64)
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
_CHECKS = {
    "anthropic": validate_anthropic,
    "openai-chat": validate_chat,
    "openai-responses": validate_responses,
}


def now() -> float:
    return 1_796_048_400.25


def start(id: str = "s1") -> SessionStarted:
    return SessionStarted(id, "0", "/w", AT, schema=1)


def said(text: str) -> UserMessaged:
    return UserMessaged((Text(text),))


def write(path: Path, entries: Sequence[Entry]) -> Path:
    journal = FileJournal(str(path), now=now, disk=SystemDisk())
    for entry in entries:
        journal.append(entry)
    journal.close()
    return path


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def reply(step: int, *blocks: object, complete: bool = True) -> ReplyReceived:
    called = any(isinstance(block, ToolUse) for block in blocks)
    reason = ("tool_use" if called else "end_turn") if complete else ""
    return ReplyReceived(step, blocks, reason, SPENT, complete, "m")  # type: ignore[arg-type]


def every_kind(texts: str = "text") -> list[Entry]:
    """A session with each kind of entry at least once, in an order that may happen."""
    calls = [ToolUse(f"c{n}", "Bash", {"n": n, "why": texts}) for n in range(4)]
    return [
        start(),
        PromptInstalled("a" * 64, "b" * 64, "c" * 64, "d" * 64, "start"),
        TurnStarted(1, limits={"max_turns": 5.0}),
        said(f"please {texts}"),
        StepRequested(1, "m", 1, DIGESTS),
        reply(1, Text("half"), complete=False),
        Retried(1, 1, "stream_cut", 0.5),
        StepRequested(1, "m", 2, DIGESTS),
        reply(1, Thinking(texts, "c2ln"), Text("I look."), calls[0], calls[1]),
        HookFinished("PreToolUse", "a" * 64, "passed", "c0", ("fine",), 0, 3),
        DecisionMade("c0", "allow", "a rule", "settings"),
        RuleAdded(Rule("allow", "Bash", "ls*", "session")),
        ToolIntended("c0", "Bash"),
        ToolIntended("c1", "Bash", input={"n": 9}),
        Checkpointed("c0", "/w/a.txt", None),
        ToolFinished("c0", (Text(texts), Image("image/png", "e" * 64)), "ok", 5),
        ToolFinished("c1", (Text(""),), "error"),
        Steered((Text("also that"),)),
        reply(2, Text("Done."), RedactedThinking("x")),
        TurnEnded(1, "completed", 2, SPENT, 0.01),
        Titled("A title"),
        ModeChanged("acceptEdits"),
        ModelChanged("n"),
        TurnStarted(2),
        said("more"),
        reply(1, calls[2]),
        ToolIntended("c2", "Bash"),
        Interrupted("tools"),
        ToolFinished("c2", (Text("cut"),), "interrupted"),
        TurnEnded(2, "interrupted", 1, SPENT),
        Compacted("manual", 3, 4, (Text("So far: " + texts),), 900, 90),
        TurnStarted(3),
        said("again"),
        Compacted("overflow", 1, 2, (Text("Less."),), 90, 50, provisional=True),
        RecoveryFailed(1, "context_overflow"),
        TurnEnded(3, "context_overflow", 0, Usage()),
        Rewound(20),
        TurnStarted(4),
        said("another way"),
        reply(1, Text("Right."), calls[3]),
        ToolFinished("c3", (Text("Permission denied: no"),), "denied"),
        reply(2, Text("Well then.")),
        TurnEnded(4, "completed", 2, SPENT),
    ]


def complaints(state: SessionState) -> list[str]:
    """What providers would have against going on with a state."""
    messages = (*state.transcript.messages, UserMessage((Text("go on"),)))
    found: list[str] = []
    for dialect, check in _CHECKS.items():
        body = encode_request(
            dialect, messages, (), "", model="m", max_tokens=100, blobs_get=lambda digest: PNG
        )
        found += [f"{dialect}: {complaint}" for complaint in check(body)]
    return found
