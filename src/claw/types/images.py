"""Images that every provider takes: told by their bytes, checked before they enter history.

One refused image would make every later request of the session fail as well.
"""

from __future__ import annotations

import msgspec

__all__ = ["LARGEST_FILE", "LONGEST_SIDE", "LONGEST_SIDE_OF_MANY", "ImageInfo", "check_image"]

LARGEST_FILE = 3_932_160
"""Bytes: 5 MiB as base64, Anthropic's limit for one image and the lowest of all."""

LONGEST_SIDE = 8_000
LONGEST_SIDE_OF_MANY = 2_000
"""Pixels; the lower limit is for requests with more than 20 images (Anthropic's vision guide)."""


class ImageInfo(msgspec.Struct, frozen=True):
    """``width`` and ``height`` in pixels."""

    media_type: str
    width: int
    height: int


def check_image(data: bytes, *, longest_side: int = LONGEST_SIDE) -> ImageInfo:
    """What an image is, by its bytes: names and declared types are often wrong.

    Raises ``ValueError``, with a text that says what to do, for one that a provider would
    refuse: no PNG, JPEG, GIF or WebP, cut off in its head, or too large.
    """
    found = _png(data) or _gif(data) or _webp(data) or _jpeg(data)
    if found is None:
        raise ValueError("it is no whole PNG, JPEG, GIF or WebP image; convert it to PNG")
    if not (found.width and found.height):
        raise ValueError("the image has no pixels")
    if len(data) > LARGEST_FILE:
        raise ValueError(
            f"the image has {len(data):,} bytes, at most {LARGEST_FILE:,} can be sent; "
            "make it smaller, or save it as JPEG"
        )
    if max(found.width, found.height) > longest_side:
        raise ValueError(
            f"the image is {found.width} x {found.height} pixels, at most {longest_side} a side "
            "can be sent; scale it down"
        )
    return found


def _png(data: bytes) -> ImageInfo | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR" or len(data) < 33:
        return None
    return ImageInfo("image/png", _big(data[16:20]), _big(data[20:24]))


def _gif(data: bytes) -> ImageInfo | None:
    if not data.startswith((b"GIF87a", b"GIF89a")) or len(data) < 13:
        return None
    return ImageInfo("image/gif", _little(data[6:8]), _little(data[8:10]))


def _webp(data: bytes) -> ImageInfo | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8X":
            width, height = _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case b"VP8L" if data[20] == 0x2F:
            bits = _little(data[21:25])
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case _:
            return None
    return ImageInfo("image/webp", width, height)


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})


def _jpeg(data: bytes) -> ImageInfo | None:
    """Goes from marker to marker until the one that begins the picture."""
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a byte that only fills
            at += 1
        elif marker in _FRAMES:
            return ImageInfo("image/jpeg", _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7]))
        elif marker in _WITHOUT_LENGTH:
            at += 2
        else:
            at += 2 + max(2, _big(data[at + 2 : at + 4]))
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
