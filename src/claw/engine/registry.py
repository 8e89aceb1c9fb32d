"""What prompts are routed to: claw's own commands and tools, or those of a session."""

from __future__ import annotations

import os
from collections.abc import Mapping

from claw.app.furnish import House
from claw.config.paths import home_directory
from claw.engine.commands import COMMANDS
from claw.errors import ConfigError, ToolFailed
from claw.routing import Registry
from claw.tools.catalog import builtin_tools
from claw.workspace.disk import SystemDisk
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

__all__ = ["builtin_registry", "live_registry"]

WORDS: dict[str, tuple[str, ...]] = {
    "Bash": ("execute", "shell", "terminal", "test", "build", "install", "运行", "执行", "测试"),
    "Edit": ("change", "fix", "rename", "refactor", "修改", "替换", "编辑"),
    "Glob": ("list", "where", "filename", "列出", "文件"),
    "Grep": ("find", "look", "locate", "defined", "definition", "usage", "查找", "搜索", "定义"),
    "Read": ("show", "open", "view", "explain", "查看", "打开", "读取", "看看"),
    "TodoWrite": ("plan", "step", "计划", "步骤"),
    "Write": ("create", "new", "创建", "新建", "写入"),
}
"""What people say for claw's own tools, besides the words that models read."""


def builtin_registry(cwd: str = ".", env: Mapping[str, str] | None = None) -> Registry:
    """Claw's own, the same on every machine: goldens hold. Raises ``ConfigError``."""
    environ = os.environ if env is None else env
    try:
        workspace = LocalWorkspace(
            os.path.realpath(cwd), home=home_directory(environ), disk=SystemDisk()
        )
    except ToolFailed as error:
        raise ConfigError(error.message) from error
    tools = builtin_tools(workspace, LocalProcesses(workspace.root, environ, Guard()))
    return Registry("builtin", COMMANDS, tuple(tool.spec for tool in tools), WORDS)


def live_registry(house: House) -> Registry:
    """What a session offers now."""
    return Registry("live", COMMANDS, house.tools, WORDS)
