"""What a model reads of a tool: a text and a JSON Schema, in files beside it."""

from __future__ import annotations

import os
from typing import Any

import msgspec

__all__ = ["description", "schema"]


def description(name: str) -> str:
    """The text of ``name.md`` in this folder, without surrounding blank space."""
    return _read(f"{name}.md").decode().strip()


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema in ``name.json``: generated from the tool's arguments.

    Deriving it anew would cost more than everything else at the start of a session.
    """
    decoded: dict[str, Any] = msgspec.json.decode(_read(f"{name}.json"))
    return decoded


def _read(name: str) -> bytes:
    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return file.read()
