"""Tool calls out of Chat Completions fragments.

Servers disagree about how fragments belong together: the index may be missing,
always 0, or another one for the arguments than for the name; ids may be missing,
blank, repeated for two calls or new for every fragment; names come in pieces or
again and again; arguments as text, as an object, as null, or whole at the end.
"""

from __future__ import annotations

from typing import Any

from claw.models.tool_input import parse_input
from claw.models.wire_text import to_bytes
from claw.types.messages import ToolUse
from claw.types.surrogates import mend

__all__ = ["Calls"]


class _Call:
    def __init__(self, index: int | None, id: str) -> None:
        self.index = index
        self.id = id
        self.name = ""
        self.arguments = ""
        self.extra: Any = None

    @property
    def is_whole(self) -> bool:
        """The arguments are an object already: what follows belongs to another call."""
        text = self.arguments.strip()
        return text.endswith("}") and text.startswith("{") and parse_input(text)[1] is None


class Calls:
    """Collects fragments; ``uses`` are the calls in the order of their beginnings."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, fragment: Any) -> tuple[int, str] | None:
        """The number of the call that grew, and the piece of arguments it got."""
        if not isinstance(fragment, dict):
            return None
        function = _function(fragment)
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        arguments = _as_text(function.get("arguments", function.get("input")))
        index = fragment.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        id = fragment.get("id")
        id = str(id) if isinstance(id, str | int) else ""
        if not (name or arguments or id or self._calls):
            return None
        call = self._find(index, id.strip(), name, arguments)
        if call is None:
            call = _Call(index, id.strip())
            self._calls.append(call)
        if fragment.get("extra_content"):
            call.extra = fragment["extra_content"]
        _rename(call, name)
        piece = _new_piece(call, arguments)
        call.arguments += piece
        return (self._calls.index(call), piece) if piece else None

    def uses(self) -> list[ToolUse]:
        return [
            ToolUse(mend(call.id), mend(call.name), *parse_input(call.arguments))
            for call in self._calls
        ]

    def texts(self) -> list[str]:
        return [call.name + call.arguments for call in self._calls]

    def extras(self) -> dict[str, Any]:
        """What providers want back with a call, by its number: thought signatures."""
        return {str(n): call.extra for n, call in enumerate(self._calls) if call.extra}

    def _find(self, index: int | None, id: str, name: str, arguments: str) -> _Call | None:
        """The call that a fragment continues; None where it begins one."""
        if not self._calls:
            return None
        same_id = next((c for c in reversed(self._calls) if id and c.id == id), None)
        at_index = next(
            (c for c in reversed(self._calls) if index is not None and c.index == index), None
        )
        if same_id is not None and (at_index is same_id or index is None or not name):
            # One id for two calls: the second comes with a name after a whole first.
            return None if name and arguments and same_id.is_whole else same_id
        if at_index is not None:
            if id and id != at_index.id and name and at_index.id:
                return None  # the index is always 0, the id tells them apart
            if name and at_index.name and name != at_index.name and at_index.arguments:
                return None
            if name and arguments and not id and at_index.is_whole:
                return None
            return at_index
        if not name and not (id and index is None and not arguments):
            return self._calls[-1]  # arguments under another index or id than their name
        if index is None and not id and not self._calls[-1].arguments and not arguments:
            return self._calls[-1]  # a name in pieces, or an empty repetition
        return None


def _function(fragment: dict[str, Any]) -> dict[str, Any]:
    """Where name and arguments stand; a custom tool's are ``name`` and ``input``."""
    for kind in ("function", "custom"):
        function = fragment.get(kind)
        if isinstance(function, dict):
            return function
    return fragment


def _as_text(arguments: Any) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else to_bytes(arguments).decode()


def _rename(call: _Call, name: str) -> None:
    if not name or name == call.name:
        return
    if name.startswith(call.name):
        call.name = name
    elif not call.arguments:
        call.name += name


def _new_piece(call: _Call, arguments: str) -> str:
    """Drop arguments that come once more, whole, after they had come in pieces."""
    if arguments.lstrip().startswith("{") and call.is_whole:
        return ""
    return arguments
