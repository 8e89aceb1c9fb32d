"""Foreign texts and pictures as a page may hold them: redacted, and within its bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from claw.types.messages import Document, Image, ResultBlock, UserBlock
from claw.viewer.story import Clip, Picture

__all__ = ["LONGEST", "MOST", "SHORT", "Texts"]

LONGEST = 50_000
"""Characters of one text on the page."""
SHORT = 2_000
"""Characters of each that is left once the page holds ``MOST``."""
MOST = 8_000_000
LARGEST_PICTURE = 2_000_000  # bytes
MOST_PICTURES = 10_000_000
DEEPEST = 100  # levels of a JSON value
SHOWN_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class Texts:
    """Counts what the page holds. ``clean`` and ``blob`` as in ``fold``."""

    def __init__(self, clean: Callable[[str], str], blob: Callable[[str], bytes | None]) -> None:
        self.clean = clean
        self._blob = blob
        self._room = MOST
        self._pictures = MOST_PICTURES

    def clip(self, text: str, longest: int = LONGEST) -> Clip:
        text = self.clean(text)
        kept = text[: min(longest, max(SHORT, self._room))]
        self._room -= len(kept)
        return Clip(kept, len(text) - len(kept))

    def line(self, text: str, longest: int = 300) -> str:
        """The beginning of a text on one line."""
        line = " ".join(self.clean(text).split())
        return line if len(line) <= longest else line[: longest - 1] + "…"

    def json(self, value: object) -> Clip:
        return self.clip(json.dumps(self.values(value), ensure_ascii=False, indent=2))

    def values(self, value: Any) -> Any:
        """JSON with every text in it redacted: where it is written, escapes may hide a secret."""
        return _strings(value, self.clean)

    def document(self, text: str) -> Clip:
        """JSON in lines; anything else as it is."""
        try:
            return self.json(json.loads(text))
        except (ValueError, RecursionError):
            return self.clip(text)

    def stored(self, digest: str) -> str | None:
        data = self._blob(digest)
        return None if data is None else data.decode("utf-8", "replace")

    def pictures(self, blocks: Iterable[UserBlock | ResultBlock]) -> tuple[Picture, ...]:
        wanted = [block for block in blocks if isinstance(block, Image | Document)]
        return tuple(self._picture(block.media_type, block.blob) for block in wanted)

    def _picture(self, media_type: str, digest: str) -> Picture:
        data = self._blob(digest) if media_type in SHOWN_PICTURES else None
        if data is None or len(data) > min(LARGEST_PICTURE, self._pictures):
            return Picture(self.line(media_type))
        self._pictures -= len(data)
        return Picture(media_type, data)


def _strings(value: Any, clean: Callable[[str], str], depth: int = 0) -> Any:
    if depth > DEEPEST:
        return "…"
    match value:
        case str():
            return clean(value)
        case list():
            return [_strings(item, clean, depth + 1) for item in value]
        case dict():
            return {clean(str(k)): _strings(v, clean, depth + 1) for k, v in value.items()}
        case _:
            return value
