"""The commands that make sense without a person at a terminal, and what they do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from claw.app.furnish import House
from claw.types.commands import CommandSpec
from claw.types.permissions import MODE_ALIASES, MODES

__all__ = ["COMMANDS", "execute"]

COMMANDS = (
    CommandSpec(
        "compact",
        "Put a summary in place of what came before.",
        words=("compress", "shorten", "summarise", "summarize", "压缩", "总结"),
    ),
    CommandSpec("help", "Show the commands.", words=("帮助",)),
    CommandSpec("mode", "Show or change the permission mode.", words=("权限模式",)),
    CommandSpec("model", "Show the model that answers.", words=("模型",)),
    CommandSpec(
        "permissions",
        "Show the permission mode and the rules that were added in this session.",
        words=("权限", "规则"),
    ),
    CommandSpec("rename", "Give this session a title.", words=("重命名", "标题")),
    CommandSpec("session", "Show the id of this session and what it took.", words=("会话",)),
    CommandSpec("todos", "Show the list of what is to do.", words=("tasks", "待办", "任务")),
)


async def execute(house: House, name: str, rest: str) -> str | None:
    """What the command answers; None where there is no such command. Raises ``SessionError``."""
    commands: dict[str, Callable[[House, str], Awaitable[str]]] = {
        "compact": _compact,
        "help": _help,
        "mode": _mode,
        "model": _model,
        "permissions": _permissions,
        "rename": _rename,
        "session": _session,
        "todos": _todos,
    }
    command = commands.get(name)
    return None if command is None else await command(house, rest)


async def _compact(house: House, focus: str) -> str:
    done = await house.runtime.compact(focus)
    if done is None:
        return "Nothing was compacted."
    return f"Compacted {done.removed_messages} messages."


async def _help(house: House, rest: str) -> str:
    width = max(len(spec.name) for spec in COMMANDS)
    return "\n".join(f"/{spec.name.ljust(width)}  {spec.description}" for spec in COMMANDS)


async def _mode(house: House, name: str) -> str:
    if not name:
        return f"The mode is {house.runtime.mode}; there are {', '.join(MODES)}."
    known = {mode.lower(): mode for mode in MODES} | MODE_ALIASES
    mode = known.get(name.lower())
    if mode is None:
        return f"There is no mode {name}; there are {', '.join(MODES)}."
    house.runtime.set_mode(mode)
    return f"The mode is {mode}."


async def _model(house: House, rest: str) -> str:
    return house.runtime.model


async def _permissions(house: House, rest: str) -> str:
    rules = [f"  {rule.behavior} {rule}" for rule in house.runtime.state.rules]
    said = "\n".join(["Added in this session:", *rules]) if rules else "No rule was added."
    return f"The mode is {house.runtime.mode}.\n{said}"


async def _rename(house: House, title: str) -> str:
    if not title:
        return "It is /rename TITLE."
    house.runtime.rename(" ".join(title.split()))
    return f"This session is called: {house.runtime.state.title}"


async def _session(house: House, rest: str) -> str:
    state = house.runtime.state
    return f"{house.session_id}, turns: {state.turns}"


async def _todos(house: House, rest: str) -> str:
    lines = [f"{todo.status}: {todo.content}" for todo in house.runtime.state.todos]
    return "\n".join(lines) or "Nothing is on the list."
