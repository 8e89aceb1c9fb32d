"""Lone surrogates: half characters that JSON can spell and UTF-8 cannot."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from claw.types.texts import each_text

__all__ = ["Rejoin", "mend", "mend_all", "whole"]

T = TypeVar("T")


def mend(text: str) -> str:
    """Join surrogate pairs and replace lone halves by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mend_all(value: Any) -> Any:
    """``mend`` every string in a JSON value, keys too."""
    return each_text(value, mend)


def whole(value: T, kind: Any) -> T:
    """The value itself where UTF-8 can spell it, else one with mended texts.

    It comes from a program of somebody else's: raises ``TypeError`` where it is none of this
    kind, so that nothing is put on record that could not be read again.
    """
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        value = msgspec.convert(mend_all(msgspec.to_builtins(value)), kind)
        data = msgspec.json.encode(value)
    except (RecursionError, OverflowError):  # what no journal takes: it says so itself
        return value
    try:
        msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise TypeError(f"not what was expected: {error}") from error
    return value


class Rejoin:
    """``mend`` for text in pieces: some servers split a pair over two of them."""

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        elif text.isascii():
            return text
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return mend(text)

    def end(self) -> str:
        held, self._held = self._held, ""
        return mend(held)
