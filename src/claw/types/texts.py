"""The texts in a JSON value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["each_text"]


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every string changed, keys too."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [each_text(item, change) for item in value]
        case dict():
            return {change(str(key)): each_text(item, change) for key, item in value.items()}
        case _:
            return value
