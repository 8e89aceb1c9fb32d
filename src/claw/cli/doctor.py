"""`claw doctor`: is everything there that claw needs?"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from claw.app.connecting import choose_model
from claw.cli.config_command import load_as_given
from claw.cli.hiding import hide_login, hider
from claw.cli.models_command import HOW_TO_USE_ONE, described
from claw.cli.place import working_directory
from claw.cli.render.envelope import dumps
from claw.cli.screen import Screen
from claw.cli.style import Paint
from claw.cli.terminal import Terminal
from claw.config.load import Loaded
from claw.errors import ConfigError
from claw.models.discovery import find_local_servers
from claw.models.offline.client import CONNECT_HINT
from claw.models.registry import ModelChoice
from claw.policy.display import visible
from claw.sessions.directories import may_create, memory_only
from claw.version import __version__
from claw.workspace.programs import find_program

__all__ = ["Finding", "examine"]

Verdict = Literal["ok", "warning", "broken"]
_MARKS = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "broken": ("broken", "red")}


class Finding(msgspec.Struct, frozen=True):
    name: str
    verdict: Verdict
    text: str
    hint: str = ""


def examine(given: Mapping[str, Any]) -> int:
    """Print the findings; 1 when something is broken, else 0.

    Raises ``ConfigError`` where there is no directory to look at, or stdout takes nothing.
    """
    working_directory(given["cwd"])
    terminal = Terminal.look(os.environ)
    screen = Screen(terminal, sys.stdout, sys.stderr)
    findings = list(_findings(given, terminal))
    broken = any(finding.verdict == "broken" for finding in findings)
    if given["output_format"] == "json":
        found = [msgspec.structs.asdict(finding) for finding in findings]
        screen.product(dumps({"ok": not broken, "version": __version__, "findings": found}) + "\n")
    else:
        screen.product(_as_text(findings, Paint(terminal.color_stdout)))
    return screen.exit_code(1 if broken else 0)


def _as_text(findings: list[Finding], paint: Paint) -> str:
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        word, color = _MARKS[finding.verdict]
        mark = paint(word.ljust(7), color)
        lines.append(f"{mark}  {finding.name.ljust(width)}  {visible(finding.text)}")
        if finding.hint:
            lines.append(f"{'':9}{'':{width}}  {paint('hint:', 'cyan')} {visible(finding.hint)}")
    return "\n".join(lines) + "\n"


def _findings(given: Mapping[str, Any], terminal: Terminal) -> Iterator[Finding]:
    yield Finding("claw", "ok", __version__)
    yield _python()
    yield _program("ripgrep", "rg", "broken", "Glob and Grep need it: install `ripgrep`.")
    yield _program("git", "git", "warning", "Without git, claw cannot tell the project's state.")
    yield _program("bash", "bash", "broken", "The Bash tool needs it: install `bash`.")
    yield _terminal(terminal)
    try:
        loaded = load_as_given(given)
    except ConfigError as error:
        yield Finding("settings", "broken", error.message, error.hint)
        return
    yield _home(loaded)
    yield from _settings(loaded)
    yield _model(loaded)
    yield from _local_servers()
    yield Finding("sandbox", "warning", "not built yet: commands run with your own rights")


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{version} ({sys.executable})")


def _program(name: str, program: str, without: Verdict, hint: str) -> Finding:
    beside = os.path.join(os.path.dirname(sys.executable), program)
    path: str | None = beside
    if not os.access(beside, os.X_OK):
        path = find_program(program, os.environ.get("PATH", ""), os.getcwd())
    if path is None:
        return Finding(name, without, "not found", hint)
    try:
        asked = subprocess.run(
            [path, "--version"],
            capture_output=True,
            timeout=5,
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(name, without, f"{path} does not run: {error}", hint)
    version = asked.stdout.decode(errors="replace").splitlines()[:1]
    return Finding(name, "ok", f"{version[0] if version else '?'} ({path})")


def _terminal(terminal: Terminal) -> Finding:
    if not (terminal.stdin and terminal.stdout):
        return Finding("terminal", "ok", "none here: one-shot forms only")
    features = [
        os.environ.get("TERM", "?"),
        "colours" if terminal.color_stdout else "no colours",
        "UTF-8" if terminal.pictures else "no UTF-8",
    ]
    return Finding("terminal", "ok", ", ".join(features))


def _home(loaded: Loaded) -> Finding:
    home = loaded.homes.config
    if not may_create(loaded.homes.sessions):
        return Finding(
            "config home",
            "broken",
            memory_only(home),
            "Set CLAW_CONFIG_HOME to a directory that you can write to.",
        )
    exists = os.path.isdir(home)
    return Finding("config home", "ok", home if exists else f"{home} (will be made)")


def _settings(loaded: Loaded) -> Iterator[Finding]:
    hide = hider(loaded)
    for problem in loaded.problems:
        verdict: Verdict = "broken" if problem.code in ("syntax", "unreadable") else "warning"
        yield Finding("settings", verdict, hide(str(problem)), problem.hint)
    if not loaded.problems:
        yield Finding("settings", "ok", "no problem found")


def _model(loaded: Loaded) -> Finding:
    try:
        choice = choose_model(loaded, os.environ)
    except ConfigError as error:
        return Finding("model", "broken", error.message, error.hint)
    return _choice(choice)


def _local_servers() -> Iterator[Finding]:
    for server in asyncio.run(find_local_servers()):
        yield Finding("local server", "ok", described(server), HOW_TO_USE_ONE)


def _choice(choice: ModelChoice) -> Finding:
    if choice.kind == "offline" and not choice.named:
        return Finding(
            "model",
            "warning",
            "none is configured: the offline model answers",
            CONNECT_HINT,
        )
    where = f" at {hide_login(choice.base_url)}" if choice.base_url else ""
    key = ""
    if choice.base_url:
        key = ", credentials found" if choice.key else ", no credentials"
    return Finding("model", "ok", f"{choice.model} ({choice.provider}{where}{key})")
