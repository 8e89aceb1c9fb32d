"""Where the recorded bytes of a reply were cut when they came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

__all__ = ["cut", "sizes_of", "total"]

_RUN = r"(?:([0-9]{1,12})\*)?([0-9]{1,12})"


def sizes_of(chunks: Iterable[bytes]) -> str:
    """The sizes of chunks in bytes, equal ones in a row counted: ``120 3*1 98``."""
    runs = ((size, sum(1 for _ in run)) for size, run in groupby(map(len, chunks)))
    return " ".join(f"{count}*{size}" if count > 1 else f"{size}" for size, count in runs)


def cut(data: bytes, sizes: str) -> Iterator[bytes]:
    """The chunks again. Where ``sizes`` end before the data does, the rest is one more."""
    at = 0
    for count, size in _runs(sizes):
        for _ in range(count if size else 0):
            if at >= len(data):
                return
            yield data[at : at + size]
            at += size
    if at < len(data):
        yield data[at:]


def total(sizes: str) -> int:
    """Of all chunks together, in bytes."""
    return sum(count * size for count, size in _runs(sizes))


def _runs(sizes: str) -> Iterator[tuple[int, int]]:
    for count, size in re.findall(_RUN, sizes):
        yield int(count or 1), int(size)
