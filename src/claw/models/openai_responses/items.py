"""The output items of a response while they arrive, in the order in which they began.

Servers may finish items in another order than they began them, send an item's text
in pieces, whole at its end, only with the whole response, or in all three ways, and
give one item another id in every event. So an item is told by its place, then its
id, then its type; and what it adds to the reply waits until all before it is there.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from claw.types.events import AssistantEvent
from claw.types.surrogates import Rejoin, mend

__all__ = ["Item", "Items", "Part", "kind_of"]


def kind_of(raw: dict[str, Any]) -> str:
    """An item's type, empty where it has none."""
    kind = raw.get("type")
    return kind if isinstance(kind, str) else ""


class Part:
    """A text in pieces: of a message, of reasoning, or the arguments of a call."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._rejoin = Rejoin()

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, piece: str) -> str:
        """What can be shown of it."""
        if piece := self._rejoin.add(piece):
            self._pieces.append(piece)
        return piece

    def complete(self, whole: str) -> str:
        """The rest of the text, now that it is there as a whole. Empty where it differs."""
        self._rejoin.end()  # half a character that ``whole`` has in full
        whole, said = mend(whole), self.text
        rest = whole[len(said) :] if whole.startswith(said) else ""
        if rest:
            self._pieces.append(rest)
        return rest

    def end(self) -> str:
        """No more will come: what was held back."""
        if rest := self._rejoin.end():
            self._pieces.append(rest)
        return rest


class Item:
    """``call`` is the item's number among the calls of the reply, for those that are one.

    ``whole`` says that ``raw`` is the finished item, not its beginning.
    """

    def __init__(self, raw: dict[str, Any], kind: str, index: object, call: int | None) -> None:
        self.raw = raw
        self.kind = kind
        self.index = index
        self.call = call
        self.whole = False
        self.closed = False
        self.parts: dict[tuple[str, int], Part] = {}
        self.waiting: list[AssistantEvent] = []

    @property
    def id(self) -> object:
        return self.raw.get("id")

    def part(self, field: str, at: object) -> tuple[Part, bool]:
        """A part of ``field``, and whether it begins after another one."""
        key = (field, at if isinstance(at, int) else 0)
        part = self.parts.get(key)
        if part is not None:
            return part, False
        is_another = any(of == field for of, _ in self.parts)
        part = self.parts[key] = Part()
        return part, is_another

    def texts(self, field: str) -> list[str]:
        return [self.parts[key].text for key in sorted(self.parts) if key[0] == field]


class Items:
    """All items so far, and the queue of those that are not in the reply yet."""

    def __init__(self) -> None:
        self._all: list[Item] = []
        self._queue: deque[Item] = deque()

    def __len__(self) -> int:
        return len(self._all)

    @property
    def calls(self) -> int:
        return sum(item.call is not None for item in self._all)

    def begin(self, raw: dict[str, Any], kind: str, index: object, *, is_call: bool) -> Item:
        item = Item(raw, kind, index, self.calls if is_call else None)
        self._all.append(item)
        self._queue.append(item)
        return item

    def find(self, kind: str, index: object, id: object) -> Item | None:
        """The item of this kind that an event is about: by place, by id, or the open one."""
        by_id = still_open = None
        for item in reversed(self._all):
            if item.kind != kind:
                continue
            if index is not None and item.index == index:
                return item
            if by_id is None and id and item.id == id:
                by_id = item
            if still_open is None and not item.closed and (index is None or item.index is None):
                still_open = item
        return by_id or still_open

    def of_response(self, output: list[dict[str, Any]]) -> list[Item | None]:
        """The item that each of the whole response is: by id, or else the next of its kind."""
        left = list(self._all)

        def take(raw: dict[str, Any], by_id: bool) -> Item | None:
            kind, id = kind_of(raw), raw.get("id")
            for item in left:
                if item.kind == kind and (not by_id or (id and item.id == id)):
                    left.remove(item)
                    return item
            return None

        named = [take(raw, True) for raw in output]
        return [item or take(raw, False) for item, raw in zip(named, output, strict=True)]

    def put(self, item: Item, event: AssistantEvent, out: list[AssistantEvent]) -> None:
        """Into ``out`` in the item's turn."""
        is_next = bool(self._queue) and self._queue[0] is item
        (out if is_next else item.waiting).append(event)

    def close(self, item: Item, out: list[AssistantEvent]) -> None:
        """The item is complete: let those behind it go on."""
        item.closed = True
        while self._queue and self._queue[0].closed:
            self._queue.popleft()
            if self._queue:
                out.extend(self._queue[0].waiting)
                self._queue[0].waiting.clear()

    def open_items(self) -> list[Item]:
        return [item for item in self._all if not item.closed]
