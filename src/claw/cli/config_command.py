"""`claw config`: each value and where it is from."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from claw.cli.place import working_directory
from claw.cli.render.envelope import dumps
from claw.cli.screen import Screen
from claw.cli.style import Paint
from claw.cli.terminal import Terminal
from claw.config.load import Loaded, load_settings
from claw.policy.display import visible

__all__ = ["load_as_given", "show_config"]


def show_config(given: Mapping[str, Any]) -> int:
    """Print the settings; 0, whatever is wrong in them. Raises ``ConfigError``."""
    loaded = load_as_given(given)
    screen = Screen(Terminal.look(os.environ), sys.stdout, sys.stderr)
    if given["output_format"] == "json":
        screen.product(dumps(_as_object(loaded)) + "\n")
        return screen.exit_code(0)
    paint = Paint(screen.terminal.color_stdout)
    screen.product(_as_text(loaded, paint))
    for problem in loaded.problems:
        screen.line(f"{screen.paint('warning:', 'yellow')} {visible(str(problem))}")
        if problem.hint:
            screen.line(f"{screen.paint('hint:', 'cyan')} {problem.hint}")
    return screen.exit_code(0)


def load_as_given(given: Mapping[str, Any]) -> Loaded:
    """The settings as a turn with these flags would have them. Raises ``ConfigError``."""
    return load_settings(
        cwd=working_directory(given["cwd"]),
        env=os.environ,
        flags={"model": given["model"]},
        settings_file=given["settings"],
    )


def _as_object(loaded: Loaded) -> dict[str, Any]:
    return {
        "config_home": loaded.homes.config,
        "project": loaded.homes.project,
        "settings": {
            key: {"value": msgspec.to_builtins(origin.value), "source": origin.source}
            for key, origin in loaded.provenance.items()
        },
        "problems": [msgspec.to_builtins(problem) for problem in loaded.problems],
    }


def _as_text(loaded: Loaded, paint: Paint) -> str:
    rows = [(key, _value(origin.value), origin.source) for key, origin in loaded.provenance.items()]
    name_width = max((len(key) for key, _, _ in rows), default=0)
    value_width = min(40, max((len(value) for _, value, _ in rows), default=0))
    lines = [
        f"{paint(key.ljust(name_width), 'bold')}  {value.ljust(value_width)}  "
        f"{paint(visible(source, multiline=False), 'dim')}"
        for key, value, source in rows
    ]
    lines += ["", f"user settings: {loaded.homes.settings}", f"project: {loaded.homes.project}"]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    return "-" if value is None else visible(dumps(msgspec.to_builtins(value)), multiline=False)
