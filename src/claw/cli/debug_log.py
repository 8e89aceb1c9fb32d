"""``--debug``: request ids, timings and decisions as JSON lines, nothing of what was said."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

from claw.app.furnish import House
from claw.cli.render.envelope import dumps
from claw.cli.screen import Screen
from claw.config.paths import make_private
from claw.errors import ConfigError
from claw.runtime.tracing import trace_event
from claw.types.entries import DecisionMade, Event, Retried

__all__ = ["DebugLog", "start_debug_log"]


def start_debug_log(house: House, screen: Screen) -> None:
    """Say where the log is, or why there is none: that is no reason not to work."""
    try:
        screen.line(f"debug log: {DebugLog(house).path}")
    except ConfigError as error:
        screen.line(f"warning: there is no debug log: {error.message}")


class DebugLog:
    """An event listener that writes ``<config home>/logs/<session id>.jsonl``, for the user only.

    Raises ``ConfigError`` where that file cannot be written.
    """

    def __init__(self, house: House) -> None:
        directory = make_private(house.loaded.homes.logs)
        self.path = os.path.join(directory, f"{house.session_id}.jsonl")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise ConfigError(f"cannot write {self.path}: {error.strerror}") from error
        house.runtime.listen(self.emit)

    def emit(self, event: Event) -> None:
        name, fields = trace_event(event) or _more(event)
        if not name:
            return
        line = dumps({"at": round(time.time(), 3), "event": name, **fields}) + "\n"
        with suppress(OSError):  # a full disk is no reason to end a turn
            os.write(self._file, line.encode("utf-8", "backslashreplace"))


def _more(event: Event) -> tuple[str, dict[str, Any]]:
    """What tracers are not told of; blank for what stays out of the log."""
    match event:
        case DecisionMade():
            return "decision", {
                "call_id": event.call_id,
                "decision": event.decision,
                "source": event.source,
                "asked": event.asked,
            }
        case Retried():
            fields = {"step": event.step, "attempt": event.attempt, "error": event.error}
            return "retry", {**fields, "delay": event.delay}
        case _:
            return "", {}
