"""Which blobs an entry names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from claw.types.entries import (
    Checkpointed,
    Entry,
    PromptInstalled,
    ReplyReceived,
    Steered,
    ToolFinished,
    TurnEnded,
    UserMessaged,
)
from claw.types.messages import Document, Image, UserBlock

__all__ = ["blobs_named"]


def blobs_named(entry: Entry) -> Iterator[str]:
    """Digests, in the order in which they stand in the entry."""
    match entry:
        case PromptInstalled():
            yield from (entry.system, entry.tools, entry.rules, entry.hooks)
            if entry.instructions:
                yield entry.instructions
        case ReplyReceived(wire=digest) | ToolFinished(spilled=digest) if digest:
            yield digest
        case Checkpointed(before=str(digest)):
            yield digest
    for block in _said(entry):
        if isinstance(block, Image | Document):
            yield block.blob


def _said(entry: Entry) -> Sequence[UserBlock]:
    match entry:
        case UserMessaged() | Steered() | ToolFinished():
            return entry.content
        case TurnEnded():
            return entry.unheard
    return ()
