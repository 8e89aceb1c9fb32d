"""claw: a terminal coding agent and a library whose every turn can be tested and replayed.

::

    import claw

    summary = claw.run("where is run_turn defined?")

    async with claw.open(".", model="offline") as conversation:
        summary = await conversation.run_turn("show the first lines of README.md")

Names load when they are first used; importing ``claw`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from claw.app import open_conversation as open
    from claw.app import run
    from claw.runtime.conversation import ConversationRuntime
    from claw.types.results import TurnSummary, final_assistant_text
    from claw.version import __version__

__all__ = [
    "ConversationRuntime",
    "TurnSummary",
    "__version__",
    "final_assistant_text",
    "open",
    "run",
]

_HOMES = {
    "ConversationRuntime": ("claw.runtime.conversation", "ConversationRuntime"),
    "TurnSummary": ("claw.types.results", "TurnSummary"),
    "__version__": ("claw.version", "__version__"),
    "final_assistant_text": ("claw.types.results", "final_assistant_text"),
    "open": ("claw.app", "open_conversation"),
    "run": ("claw.app", "run"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
