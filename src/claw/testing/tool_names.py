"""Tools as tests name them: a name that means none would make a test that cannot fail."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from claw.engine.registry import builtin_registry
from claw.errors import ConfigError
from claw.types.tools import ToolSpec

__all__ = ["ToolNames"]


class ToolNames:
    """Those that a run offered, and claw's own; by name or alias, whatever the case."""

    def __init__(self, offered: Iterable[ToolSpec] = ()) -> None:
        self._known = {
            name.casefold(): spec.name
            for spec in (*_own(), *offered)
            for name in (spec.name, *spec.aliases)
        }

    def meant(self, name: str) -> str:
        """The tool's own name. Raises ``ConfigError`` where there is no such tool."""
        found = self.called(name)
        if name.casefold() not in self._known:
            rule = (
                "This looks like a rule, and the name of a tool is wanted. " if "(" in name else ""
            )
            tools = ", ".join(dict.fromkeys(self._known.values()))
            raise ConfigError(f"no tool is called `{name}`", hint=f"{rule}The tools are {tools}.")
        return found

    def called(self, name: str) -> str:
        """The tool's own name for what a model called; what nobody offers stays as it is."""
        return self._known.get(name.casefold(), name)


@cache
def _own() -> tuple[ToolSpec, ...]:
    return builtin_registry().tools
