"""The input of a tool call: the text that a model wrote, parsed whole or not at all."""

from __future__ import annotations

from math import isfinite
from typing import Any

from claw.types.surrogates import mend

__all__ = ["parse_input"]

MAX_DEPTH = 200
"""As in jiter; what is nested deeper cannot be written down safely again."""


def parse_input(text: str) -> tuple[dict[str, Any], str | None]:
    """An object and None, or ``{}`` and the text where it is not one.

    No text at all is an empty object. Numbers that JSON does not know (NaN,
    infinities) become null; lone surrogates are replaced.
    """
    if not text.strip():
        return {}, None
    try:
        value = _load(text)
        if isinstance(value, dict):
            return _clean(value, 0), None
    except (ValueError, RecursionError):
        pass
    return {}, mend(text)


def _load(text: str) -> Any:
    import jiter  # loaded by the first call of a tool

    try:
        return jiter.from_json(text.encode())
    except ValueError:  # of which UnicodeEncodeError is one
        if "\\ud" not in text and "\\uD" not in text and text == mend(text):
            raise
        import json  # knows lone surrogates, which jiter refuses; hardly ever needed

        return json.loads(mend(text))


def _clean(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    match value:
        case str():
            return mend(value)
        case float():
            return value if isfinite(value) else None
        case dict():
            return {mend(k): _clean(v, depth + 1) for k, v in value.items()}
        case list():
            return [_clean(item, depth + 1) for item in value]
        case _:
            return value
