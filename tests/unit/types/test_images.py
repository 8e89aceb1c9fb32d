"""Images are told by their bytes, and refused before they are in a session."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.types.images import LARGEST_FILE, LONGEST_SIDE_OF_MANY, ImageInfo, check_image


def png(width: int, height: int, body: bytes = b"") -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    return b"\x89PNG\r\n\x1a\n" + chunk + body


def jpeg(width: int, height: int, before: bytes = b"") -> bytes:
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + before + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def webp(kind: bytes, body: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


LOSSLESS = b"\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(8)
LOSSY = bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480) + bytes(8)
EXTENDED = bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
APP = b"\xff\xe0\x00\x10" + bytes(14)
THUMBNAIL = b"\xff\xff\xe1\x00\x15" + jpeg(9, 9)[:19]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(640, 480), "png"),
        (gif(640, 480), "gif"),
        (jpeg(640, 480), "jpeg"),
        (jpeg(640, 480, APP), "jpeg"),
        (jpeg(640, 480, APP + THUMBNAIL), "jpeg"),
        (webp(b"VP8 ", LOSSY), "webp"),
        (webp(b"VP8L", LOSSLESS), "webp"),
        (webp(b"VP8X", EXTENDED), "webp"),
    ],
)
def test_the_bytes_tell_what_it_is(data, kind):
    assert check_image(data) == ImageInfo(f"image/{kind}", 640, 480)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain text",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"BM" + bytes(60),
        png(1, 1)[:20],
        jpeg(1, 1)[:6],
        jpeg(1, 1, b"\xff\xe0\xff\xff"),
        gif(1, 1)[:8],
        webp(b"VP8?", bytes(20)),
        png(0, 5),
    ],
)
def test_what_is_no_image_of_these_is_refused(data):
    with pytest.raises(ValueError, match=r"PNG|no pixels"):
        check_image(data)


def test_too_large_ones_are_refused():
    with pytest.raises(ValueError, match="smaller"):
        check_image(png(5, 5, bytes(LARGEST_FILE)))
    with pytest.raises(ValueError, match="9000 x 5"):
        check_image(png(9000, 5))
    assert check_image(png(8000, 5)).width == 8000
    with pytest.raises(ValueError, match="scale it down"):
        check_image(png(5, 2001), longest_side=LONGEST_SIDE_OF_MANY)


@given(st.sampled_from([png(9, 9), gif(9, 9), jpeg(9, 9, APP), webp(b"VP8L", LOSSLESS)]), st.data())
def test_damaged_images_are_only_refused(data, draw):
    at = draw.draw(st.integers(0, len(data) - 1))
    damaged = (
        data[:at] + draw.draw(st.binary(max_size=4)) + data[at + draw.draw(st.integers(0, 3)) :]
    )
    with suppress(ValueError):
        assert check_image(damaged).width > 0
