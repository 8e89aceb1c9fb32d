"""`claw view`: a session as a page in the browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from claw.cli.export_command import STDOUT, cleaner, page_of, write_whole
from claw.cli.render.activity import show_labelled
from claw.cli.render.envelope import dumps
from claw.cli.screen import Screen
from claw.cli.sessions_command import home_and_project, screen_here
from claw.errors import ConfigError, WrongUse
from claw.sessions.index import find_anywhere
from claw.sessions.load import refuse_foreign
from claw.sessions.writing import reason

__all__ = ["open_page", "put_page", "view_session"]

PATIENCE = 3.0
"""Seconds in which an opener tells that it cannot; one that opened may stay for long."""


def view_session(given: Mapping[str, Any]) -> int:
    """Write the page, tell where it is, and open it. Raises ``ClawError``."""
    path = find_anywhere(*home_and_project(given), given["ref"])
    refuse_foreign(path)
    page = page_of(path, cleaner(given))
    target = put_page(page, given["output"], path)
    screen = screen_here()
    if given["output_format"] == "json":
        screen.product(dumps({"path": target, "bytes": len(page)}) + "\n")
    elif screen.terminal.stdout:
        screen.say(f"The page is {target}", "dim")
    else:
        screen.product(f"{target}\n")
    if not given["no_open"]:
        open_page(screen, target)
    return screen.exit_code(0)


def put_page(page: bytes, target: str | None, session: str) -> str:
    """The absolute path where the page of a session's file is now. Raises ``ClawError``."""
    if target == STDOUT:
        raise WrongUse(
            "a page that is opened needs a file",
            hint="`claw export REF --format html` writes a session's page to stdout.",
        )
    if target:
        target = os.path.abspath(os.path.expanduser(target))
        write_whole(target, session, [page])
        return target
    return _temporary(page)


def _temporary(page: bytes) -> str:
    """The path of a new file that only this user can read. It stays: a browser reads it later."""
    try:
        descriptor, path = tempfile.mkstemp(prefix="claw-", suffix=".html")
        with open(descriptor, "wb") as file:
            file.write(page)
    except OSError as error:
        hint = "Name a file with `--output`."
        raise ConfigError(f"cannot write a temporary file: {reason(error)}", hint=hint) from error
    return path


def open_page(screen: Screen, path: str) -> None:
    """With the system's opener; where there is none, or it cannot, the path has been told."""
    name = "open" if sys.platform == "darwin" else "xdg-open"
    opener = shutil.which(name)
    if opener is None:
        show_labelled(screen, "hint", f"There is no `{name}` here: open the page yourself.")
        return
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            [opener, path], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
        failed = process.wait(PATIENCE) != 0
    except subprocess.TimeoutExpired:
        return
    except OSError:
        failed = True
    if failed:
        show_labelled(screen, "hint", f"`{name}` could not open it: open the page yourself.")
