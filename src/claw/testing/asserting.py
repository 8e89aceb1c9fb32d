"""What the model was sent, asserted: on a ``Harness``, a ``claw_session`` or a model double."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from claw.testing.tool_names import ToolNames
from claw.types.messages import Message
from claw.types.request import Request

__all__ = ["assert_extends", "assert_not_offered", "assert_offered", "assert_system_contains"]

MOST = 4_000
"""Characters of a system prompt that are shown."""


class HasRequests(Protocol):
    @property
    def requests(self) -> list[Request]:
        """What was sent to the model, in order."""


def assert_offered(run: HasRequests, *tools: str) -> None:
    """Every request offers tools of these names. Raises ``ConfigError`` for a name of none."""
    __tracebackhide__ = True
    for number, request in _sent(run):
        offered = [spec.name for spec in request.tools]
        if missing := [name for name in _meant(tools, request) if name not in offered]:
            raise AssertionError(
                f"request {number} does not offer {_ticked(missing)}; {_has(offered)}"
            )


def assert_not_offered(run: HasRequests, *tools: str) -> None:
    """No request offers a tool of one of these names. Raises ``ConfigError`` for one of none."""
    __tracebackhide__ = True
    for number, request in _sent(run):
        offered = [spec.name for spec in request.tools]
        if found := [name for name in _meant(tools, request) if name in offered]:
            raise AssertionError(f"request {number} offers {_ticked(found)}; {_has(offered)}")


def assert_system_contains(run: HasRequests, text: str) -> None:
    """The system prompt of every request has this text in it."""
    __tracebackhide__ = True
    for number, request in _sent(run):
        if text not in request.system:
            raise AssertionError(
                f"the system prompt of request {number} does not contain {text!r}\n"
                f"{_nearest(text, request.system)}"
            )


def assert_extends(run: HasRequests) -> None:
    """Every request begins with the one before it, so that a prompt cache can help."""
    __tracebackhide__ = True
    for (before, earlier), (number, later) in pairwise(_sent(run)):
        for name in ("tools", "system"):
            if getattr(earlier, name) != getattr(later, name):
                raise AssertionError(f"request {number} has another `{name}` than request {before}")
        for at, message in enumerate(earlier.messages):
            now = later.messages[at] if at < len(later.messages) else None
            if message != now:
                raise AssertionError(
                    f"request {number} does not extend request {before}: message {at + 1} was\n"
                    f"  {_short(message)}\nand is\n  {_short(now)}"
                )


def _meant(tools: Sequence[str], request: Request) -> list[str]:
    names = ToolNames(request.tools)
    return [names.meant(name) for name in tools]


def _sent(run: HasRequests) -> Iterator[tuple[int, Request]]:
    if not run.requests:
        raise AssertionError("no request was sent to the model")
    return enumerate(run.requests, 1)


def _ticked(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _has(offered: Sequence[str]) -> str:
    return f"it offers {_ticked(offered)}" if offered else "it offers no tools"


def _nearest(text: str, system: str) -> str:
    near = difflib.get_close_matches(text, system.splitlines(), n=1, cutoff=0.5)
    line = f"the nearest line is {near[0]!r}\n" if near else ""
    rest = f"\n[... {len(system) - MOST} characters ...]" if len(system) > MOST else ""
    return f"{line}it is:\n{system[:MOST]}{rest}"


def _short(message: Message | None) -> str:
    text = "not there" if message is None else repr(message)
    return text if len(text) <= 400 else f"{text[:400]}…"
