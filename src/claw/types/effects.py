"""Effects: what a call would touch, said before it runs."""

from __future__ import annotations

import msgspec

__all__ = ["Effect", "Execute", "Facts", "Observed", "ReadPath", "Remember", "WritePath"]


class ReadPath(msgspec.Struct, frozen=True, tag_field="type", tag="read"):
    """``path`` as the model gave it; ``.`` for the workspace."""

    path: str


class WritePath(msgspec.Struct, frozen=True, tag_field="type", tag="write"):
    path: str


class Execute(msgspec.Struct, frozen=True, tag_field="type", tag="execute"):
    """A shell command, run in the workspace."""

    command: str


class Remember(msgspec.Struct, frozen=True, tag_field="type", tag="remember"):
    """Changes only the session itself (a todo list)."""


Effect = ReadPath | WritePath | Execute | Remember


class Observed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the machine says of one effect.

    ``real`` is the absolute path with every link resolved (of a file that does
    not exist: its would-be path); ``inside`` says that it lies beneath the
    workspace or an added directory; ``protected`` names why file tools must
    not write there, and is empty otherwise; ``private`` marks files that hold
    secrets by convention; ``obeyed`` says why writing there deserves a question (a
    tool obeys the file later), and is empty otherwise.
    """

    effect: Effect
    real: str = ""
    relative: str = ""
    inside: bool = True
    protected: str = ""
    private: bool = False
    obeyed: str = ""


class Facts(msgspec.Struct, frozen=True):
    """An effect list with the machine's answers, in the same order."""

    observed: tuple[Observed, ...] = ()
