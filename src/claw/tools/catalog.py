"""The tools that come with claw, in their order, and how they are found by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from claw.errors import WrongUse
from claw.ports import Processes, Tool, Workspace
from claw.tools.bash import Bash
from claw.tools.edit import Edit
from claw.tools.glob import Glob
from claw.tools.grep import Grep
from claw.tools.ledger import ReadLedger
from claw.tools.plain_search import PlainSearch
from claw.tools.query import Searcher
from claw.tools.read import Read
from claw.tools.ripgrep import Ripgrep, find_ripgrep
from claw.tools.todo_write import TodoWrite
from claw.tools.write import Write
from claw.types.tools import ToolSpec

__all__ = ["ToolList", "builtin_tools"]


class ToolList:
    """``ports.ToolSet`` over a fixed list.

    ``only`` names the tools on offer, by name or alias; None offers all. Raises
    ``WrongUse`` for a name that no tool has.
    """

    def __init__(self, tools: Sequence[Tool], only: Sequence[str] | None = None) -> None:
        by_name = {
            name.casefold(): tool for tool in tools for name in (tool.spec.name, *tool.spec.aliases)
        }
        if only is not None:
            unknown = [name for name in only if name.casefold() not in by_name]
            if unknown:
                raise WrongUse(
                    f"no tool is called {', '.join(unknown)}",
                    hint=f"the tools are {', '.join(tool.spec.name for tool in tools)}",
                )
            wanted = {by_name[name.casefold()].spec.name for name in only}
            tools = [tool for tool in tools if tool.spec.name in wanted]
        self._specs = tuple(tool.spec for tool in tools)
        kept = {spec.name for spec in self._specs}
        self._by_name = {key: tool for key, tool in by_name.items() if tool.spec.name in kept}

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    def get(self, name: str) -> Tool | None:
        return self._by_name.get(name.casefold())


def builtin_tools(
    workspace: Workspace,
    processes: Processes,
    *,
    hidden: Callable[[str], bool] = lambda path: False,
) -> list[Tool]:
    """The tools for one session: they remember what it has read and where its shell is.

    ``hidden`` claims of a path (relative to the workspace, or absolute) that searches
    must leave it out.
    """
    ledger = ReadLedger()
    program = find_ripgrep(workspace.root)
    searcher: Searcher = (
        PlainSearch(workspace, hidden)
        if program is None
        else Ripgrep(program, workspace.root, processes, hidden)
    )
    return [
        Read(workspace, ledger),
        Write(workspace, ledger),
        Edit(workspace, ledger),
        Glob(workspace, searcher),
        Grep(workspace, searcher),
        Bash(workspace, processes),
        TodoWrite(),
    ]
