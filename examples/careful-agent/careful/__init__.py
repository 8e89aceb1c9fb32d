"""What makes an agent careful: settings with a hook and a rule, and instructions."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

HOOK = str(files(__name__) / "no_todo.py")


def settings() -> dict[str, Any]:
    """The settings that a user of this package adds to theirs."""
    text = (files(__name__) / "settings.json").read_text()
    found: dict[str, Any] = json.loads(text.replace("${HOOK}", HOOK))
    return found


def instructions() -> str:
    """What goes into the project's AGENTS.md."""
    return (files(__name__) / "AGENTS.md").read_text()
