"""What the page tells of a session: turns, steps, calls, and what happened between them.

All texts are foreign: redacted and clipped by the fold, not escaped. Times are UTC, ISO
8601; durations are in milliseconds, costs in US dollars, None where unknown. ``seq`` is the
place of the entry that tells of it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from claw.types.tools import CallStatus
from claw.types.usage import Usage

__all__ = ["Call", "Clip", "Note", "Point", "Said", "Session", "Step", "Trace", "Turn"]


class Clip(msgspec.Struct, frozen=True):
    """A text, and how many characters of it were left out at its end."""

    text: str
    left_out: int = 0


class Picture(msgspec.Struct, frozen=True):
    """``data`` is None where the bytes are not on the page."""

    media_type: str
    data: bytes | None = None


class Said(msgspec.Struct, frozen=True):
    """``by`` whom; ``taken_back`` marks a reply that was sampled again."""

    by: Literal["user", "assistant", "thinking", "hook", "runtime"]
    body: Clip
    pictures: tuple[Picture, ...] = ()
    taken_back: bool = False
    seq: int = 0


NoteKind = Literal[
    "retry",
    "compaction",
    "interrupt",
    "rewind",
    "hook",
    "change",
    "fork",
    "prompt",
    "failure",
    "unknown",
]


class Note(msgspec.Struct, frozen=True):
    """Something that nobody said. ``details`` are texts by name, collapsed."""

    kind: NoteKind
    title: str
    at: str = ""
    details: tuple[tuple[str, Clip], ...] = ()
    seq: int = 0


class Trace(msgspec.Struct, frozen=True):
    """A line about a call: a decision, a hook, a file that was kept. ``tone`` colours it."""

    kind: Literal["decision", "hook", "change"]
    title: str
    tone: Literal["", "good", "bad"] = ""
    detail: str = ""


class Call(msgspec.Struct):
    """``input`` is what it ran with, as JSON; ``asked`` what the model wanted, where another.

    ``change`` is a diff in unified form. ``status`` is None while it has not ended. ``seqs``
    are the places of all that was told of it.
    """

    id: str
    name: str
    about: str
    input: Clip
    asked: Clip | None = None
    change: Clip | None = None
    begun: bool = False
    status: CallStatus | None = None
    ms: int = 0
    result: Clip = Clip("")
    pictures: tuple[Picture, ...] = ()
    traces: list[Trace] = []
    seqs: list[int] = []


class Step(msgspec.Struct):
    """One request, with its retries, the reply and its calls. ``number`` counts in its turn."""

    number: int
    anchor: str
    at: str
    model: str
    usage: Usage = Usage()
    cost: float | None = None
    stop_reason: str = ""
    items: list[Said | Note | Call] = []


class Turn(msgspec.Struct):
    """``stop_reason`` is blank where the session ended in the turn. ``left_out``: by a rewind."""

    number: int
    anchor: str
    at: str
    origin: str
    mode: str
    items: list[Said | Note | Step] = []
    prompt: str = ""
    stop_reason: str = ""
    usage: Usage = Usage()
    cost: float | None = None
    ms: int = 0
    left_out: bool = False

    @property
    def steps(self) -> list[Step]:
        return [item for item in self.items if isinstance(item, Step)]


class Point(msgspec.Struct):
    """One reply, for the pictures. ``seconds`` count from the session's first entry."""

    anchor: str
    label: str
    seconds: float
    usage: Usage
    cost: float | None


class Session(msgspec.Struct):
    """``compactions`` are places in ``points``: how many came before each."""

    id: str = ""
    title: str = ""
    cwd: str = ""
    created: str = ""
    version: str = ""
    models: list[str] = []
    items: list[Turn | Note] = []
    points: list[Point] = []
    compactions: list[int] = []

    @property
    def turns(self) -> list[Turn]:
        return [item for item in self.items if isinstance(item, Turn)]

    @property
    def steps(self) -> list[Step]:
        return [step for turn in self.turns for step in turn.steps]

    @property
    def told(self) -> list[Said | Note | Call]:
        """All that stands in it, in order."""
        found: list[Said | Note | Call] = []
        for item in self.items:
            for part in item.items if isinstance(item, Turn) else [item]:
                found += part.items if isinstance(part, Step) else [part]
        return found

    @property
    def calls(self) -> list[Call]:
        return [item for step in self.steps for item in step.items if isinstance(item, Call)]
