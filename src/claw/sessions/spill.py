"""Taking long texts out of an entry's JSON, and putting them back; pure.

A text's place is a JSON pointer (https://www.rfc-editor.org/rfc/rfc6901).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

__all__ = ["fill", "spill"]

_MOST_TEXTS = 64  # that go because the rest is too long; then all goes as one
_REFERENCE = 80  # bytes of a digest and what stands around it


class _Found(msgspec.Struct, frozen=True):
    """``holder[key]`` is a text of ``size`` bytes."""

    size: int
    pointer: str
    holder: Any
    key: Any


def spill(body: bytes, *, longest: int, room: int) -> tuple[bytes, dict[str, bytes]]:
    """An entry's JSON in at most ``room`` bytes, and what was taken out, by JSON pointer.

    Texts of more than ``longest`` bytes go in any case, then the longest others; where
    they are not what is large, the whole entry goes, and only its kind stays.
    """
    fields = msgspec.json.decode(body)
    texts: dict[str, bytes] = {}
    rest = len(body)
    for found in sorted(_texts(fields), key=lambda found: -found.size):
        if found.size <= longest and (rest <= room or len(texts) >= _MOST_TEXTS):
            break
        text = found.holder[found.key]
        found.holder[found.key] = ""
        texts[found.pointer] = text.encode()
        rest -= len(msgspec.json.encode(text)) - len(found.pointer.encode()) - _REFERENCE
    if rest > room:
        return msgspec.json.encode({"kind": fields["kind"]}), {"": body}
    return msgspec.json.encode(fields), texts


def fill(body: bytes, texts: Mapping[str, bytes]) -> bytes:
    """The entry's JSON as it was. Raises ``LookupError``, ``TypeError``, ``ValueError``."""
    if "" in texts:
        return texts[""]
    fields = msgspec.json.decode(body)
    for pointer, text in texts.items():
        *way, last = (_unescaped(part) for part in pointer.split("/")[1:])
        holder = fields
        for part in way:
            holder = holder[_key(holder, part)]
        holder[_key(holder, last)] = text.decode()
    return msgspec.json.encode(fields)


def _texts(value: Any, pointer: str = "") -> Iterator[_Found]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        place = f"{pointer}/{_escaped(str(key))}"
        if isinstance(item, str):
            if place != "/kind":
                yield _Found(len(item.encode()), place, value, key)
        elif isinstance(item, dict | list):
            yield from _texts(item, place)


def _key(holder: Any, part: str) -> Any:
    return int(part) if isinstance(holder, list) else part


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
