"""Commands of claw itself, as routing sees them: ``/compact`` and its kin."""

from __future__ import annotations

import msgspec

__all__ = ["CommandSpec"]


class CommandSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """``name`` without its slash. ``words`` are others that people use for it."""

    name: str
    description: str
    source: str = "builtin"
    words: tuple[str, ...] = ()
