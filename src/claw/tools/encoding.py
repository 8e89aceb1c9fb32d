"""Text files: which encoding their bytes are in, without ever guessing for a write."""

from __future__ import annotations

import codecs

import msgspec

__all__ = ["DecodedText", "decode_text", "kind_of_binary"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"%PDF-", "PDF document"),
)


class DecodedText(msgspec.Struct, frozen=True):
    """``text`` without its byte order mark. ``exact``: it encodes back to the same bytes."""

    text: str
    encoding: str
    mark: bytes
    exact: bool

    def with_mark_as_text(self) -> DecodedText:
        """The same bytes with the byte order mark as a character, for an edit of the mark."""
        return DecodedText("\ufeff" + self.text, self.encoding, b"", self.exact)

    def encoded(self, text: str) -> bytes:
        """The bytes of another text in this file's encoding; raises ``UnicodeError``."""
        return self.mark + text.encode(self.encoding)


def decode_text(data: bytes) -> DecodedText | None:
    """UTF-8, or UTF-16 with a byte order mark; else Latin-1, inexact; None for binary data."""
    mark, encoding = next(
        ((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "utf-8")
    )
    body = data[len(mark) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        text = ""
    else:
        if "\0" not in text:
            return DecodedText(text, encoding, mark, exact=True)
    if b"\0" in data:
        return None
    return DecodedText(data.decode("latin-1"), "latin-1", b"", exact=False)


def kind_of_binary(data: bytes) -> str:
    """What binary data is by its first bytes (file(1) knows the same signatures)."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WebP image"
    return next((kind for start, kind in _BINARY if data.startswith(start)), "")
