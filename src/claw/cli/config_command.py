"""`claw config`: each value and where it is from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from claw.cli.hiding import hide_in_setting, hider
from claw.cli.place import working_directory
from claw.cli.render.activity import show_labelled
from claw.cli.render.envelope import dumps
from claw.cli.screen import Screen
from claw.cli.style import Paint
from claw.cli.terminal import Terminal
from claw.config.check import Problem
from claw.config.load import Loaded, Origin, load_settings
from claw.policy.display import visible

__all__ = ["load_as_given", "show_config"]


def show_config(given: Mapping[str, Any]) -> int:
    """Print the settings; 0, whatever is wrong in them. Raises ``ConfigError``."""
    loaded = load_as_given(given)
    hide = hider(loaded)
    screen = Screen(Terminal.look(os.environ), sys.stdout, sys.stderr)
    if given["output_format"] == "json":
        screen.product(dumps(_as_object(loaded, hide)) + "\n")
        return screen.exit_code(0)
    paint = Paint(screen.terminal.color_stdout)
    screen.product(_as_text(loaded, paint, hide))
    for problem in loaded.problems:
        show_labelled(screen, "warning", visible(hide(str(problem))))
        if problem.hint:
            show_labelled(screen, "hint", problem.hint)
    return screen.exit_code(0)


def load_as_given(given: Mapping[str, Any]) -> Loaded:
    """The settings as a turn with these flags would have them. Raises ``ConfigError``."""
    return load_settings(
        cwd=working_directory(given["cwd"]),
        env=os.environ,
        flags={"model": given["model"]},
        settings_file=given["settings"],
    )


def _as_object(loaded: Loaded, hide: Callable[[str], str]) -> dict[str, Any]:
    return {
        "config_home": loaded.homes.config,
        "project": loaded.homes.project,
        "settings": {
            key: {"value": _shown(key, origin, hide), "source": origin.source}
            for key, origin in loaded.provenance.items()
        },
        "problems": [_problem(problem, hide) for problem in loaded.problems],
    }


def _problem(problem: Problem, hide: Callable[[str], str]) -> dict[str, Any]:
    return {**msgspec.to_builtins(problem), "message": hide(problem.message)}


def _as_text(loaded: Loaded, paint: Paint, hide: Callable[[str], str]) -> str:
    rows = [
        (key, _value(_shown(key, origin, hide)), origin.source)
        for key, origin in loaded.provenance.items()
    ]
    name_width = max((len(key) for key, _, _ in rows), default=0)
    value_width = min(40, max((len(value) for _, value, _ in rows), default=0))
    lines = [
        f"{paint(key.ljust(name_width), 'bold')}  {value.ljust(value_width)}  "
        f"{paint(visible(source, multiline=False), 'dim')}"
        for key, value, source in rows
    ]
    lines += ["", f"user settings: {loaded.homes.settings}", f"project: {loaded.homes.project}"]
    return "\n".join(lines) + "\n"


def _shown(key: str, origin: Origin, hide: Callable[[str], str]) -> Any:
    return hide_in_setting(key, msgspec.to_builtins(origin.value), hide)


def _value(value: object) -> str:
    return "-" if value is None else visible(dumps(value), multiline=False)
