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
    from claw.app.furnish import open_conversation as open
    from claw.app.furnish import run
    from claw.engine.bootstrap import RuntimeSession, bootstrap_session
    from claw.engine.query_engine import QueryEngine, QueryEngineConfig
    from claw.engine.replaying import replay
    from claw.engine.store import TranscriptStore, load_session
    from claw.engine.turn_loop import run_turn_loop
    from claw.routing import RoutedMatch, route_prompt
    from claw.runtime.conversation import ConversationRuntime
    from claw.tools.function import tool
    from claw.types.permissions import PermissionDenial
    from claw.types.results import StoredSession, TurnResult, TurnSummary, final_assistant_text
    from claw.version import __version__

__all__ = [
    "ConversationRuntime",
    "PermissionDenial",
    "QueryEngine",
    "QueryEngineConfig",
    "RoutedMatch",
    "RuntimeSession",
    "StoredSession",
    "TranscriptStore",
    "TurnResult",
    "TurnSummary",
    "__version__",
    "bootstrap_session",
    "final_assistant_text",
    "load_session",
    "open",
    "replay",
    "route_prompt",
    "run",
    "run_turn_loop",
    "tool",
]

_HOMES = {
    "ConversationRuntime": ("claw.runtime.conversation", "ConversationRuntime"),
    "PermissionDenial": ("claw.types.permissions", "PermissionDenial"),
    "QueryEngine": ("claw.engine.query_engine", "QueryEngine"),
    "QueryEngineConfig": ("claw.engine.query_engine", "QueryEngineConfig"),
    "RoutedMatch": ("claw.routing", "RoutedMatch"),
    "RuntimeSession": ("claw.engine.bootstrap", "RuntimeSession"),
    "StoredSession": ("claw.types.results", "StoredSession"),
    "TranscriptStore": ("claw.engine.store", "TranscriptStore"),
    "TurnResult": ("claw.types.results", "TurnResult"),
    "TurnSummary": ("claw.types.results", "TurnSummary"),
    "__version__": ("claw.version", "__version__"),
    "bootstrap_session": ("claw.engine.bootstrap", "bootstrap_session"),
    "final_assistant_text": ("claw.types.results", "final_assistant_text"),
    "load_session": ("claw.engine.store", "load_session"),
    "open": ("claw.app.furnish", "open_conversation"),
    "replay": ("claw.engine.replaying", "replay"),
    "route_prompt": ("claw.routing", "route_prompt"),
    "run": ("claw.app.furnish", "run"),
    "run_turn_loop": ("claw.engine.turn_loop", "run_turn_loop"),
    "tool": ("claw.tools.function", "tool"),
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
