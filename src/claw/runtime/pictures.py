"""Pictures are looked at before they enter the conversation.

What a provider would refuse would be refused again with every later request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from claw.errors import SessionError
from claw.ports import Blobs
from claw.types.images import check_image
from claw.types.messages import Document, Image, Text, ToolResult

__all__ = ["checked"]

Block = TypeVar("Block", Text | Image | Document, Text | Image | Document | ToolResult)


def checked(blocks: Iterable[Block], blobs: Blobs) -> tuple[Block | Text, ...]:
    """The blocks, a picture under its true type, or a text in its place that says what is wrong."""
    return tuple(_checked(b, blobs) if isinstance(b, Image) else b for b in blocks)


def _checked(image: Image, blobs: Blobs) -> Image | Text:
    try:
        found = check_image(blobs.get(image.blob))
    except (ValueError, SessionError) as error:
        return Text(f"[a picture was left out: {error}]")
    return replace(image, media_type=found.media_type)
