"""``HistoryLog``: what was done on the way, for people."""

from __future__ import annotations

import msgspec

__all__ = ["HistoryEvent", "HistoryLog"]


class HistoryEvent(msgspec.Struct, frozen=True):
    title: str
    detail: str


class HistoryLog(msgspec.Struct):
    """Notes in the order in which they were made; nothing is decided by them."""

    events: list[HistoryEvent] = []

    def add(self, title: str, detail: str) -> None:
        self.events.append(HistoryEvent(title, detail))

    def as_markdown(self) -> str:
        lines = [f"- {event.title}: {' '.join(event.detail.split())}" for event in self.events]
        return "\n".join(["# Session History", "", *lines])
