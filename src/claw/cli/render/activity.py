"""What the agent does, for the eye: a line per call, its result in short, what went wrong."""

from __future__ import annotations

from typing import Any, Literal

from claw.cli.render.calls import Calls
from claw.cli.screen import Screen
from claw.cli.style import Paint, clip, harmless, human_seconds, one_line
from claw.types.entries import Event, ReplyReceived, ToolFinished, TurnStarted
from claw.types.events import Notice, RetryWait
from claw.types.messages import ToolUse, text_of
from claw.types.results import Failure

__all__ = ["Activity", "Warnings", "headline", "show_failure", "show_labelled", "show_notice"]

RESULT_LINES = 3
DISPLAY_LINES = 40
_TELLING = ("command", "file_path", "path", "pattern", "query", "url", "description", "prompt")


class Activity:
    """For a terminal (or ``--verbose``): everything."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._calls = Calls()
        self._trouble = _Trouble(screen, also_info=True)

    def emit(self, event: Event) -> None:
        self._calls.emit(event)
        self._trouble.emit(event)
        if isinstance(event, ToolFinished):
            self._finished(event)

    def _finished(self, event: ToolFinished) -> None:
        call = self._calls.get(event.call_id)
        if call is None:
            return
        paint, width = self._screen.paint, self._screen.terminal.width
        name, about = headline(call, width - len(call.name) - 3)
        mark = paint(_bullet(self._screen), "green" if event.status == "ok" else "red")
        self._screen.line(f"{mark} {paint(name, 'bold')} {about}".rstrip())
        for line in _result_lines(event, paint, width):
            self._screen.line(line)


class Warnings:
    """For a log: what went wrong or was not allowed, one line each."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._calls = Calls()
        self._trouble = _Trouble(screen, also_info=False)

    def emit(self, event: Event) -> None:
        self._calls.emit(event)
        self._trouble.emit(event)
        if isinstance(event, ToolFinished) and event.status == "denied":
            call = self._calls.get(event.call_id)
            if call is not None:
                name, about = headline(call, 60)
                why = one_line(text_of(event.content), 300)
                self._screen.line(f"warning: {name} {about}: {why}")


class _Trouble:
    """Notices, and waits before a request is tried again; why, only where that is news."""

    def __init__(self, screen: Screen, *, also_info: bool) -> None:
        self._screen = screen
        self._also_info = also_info
        self._said = ""

    def emit(self, event: Event) -> None:
        match event:
            case RetryWait() if event.delay:
                why = "" if event.error == self._said else f"{event.error}; "
                self._said = event.error
                text = f"{why}trying again in {_delay(event.delay)} (attempt {event.attempt + 1})"
                show_notice(self._screen, Notice("retry", "warning", text))
            case ReplyReceived() | TurnStarted():
                self._said = ""
            case Notice() if self._also_info or event.level != "info":
                show_notice(self._screen, event)


def headline(call: ToolUse, width: int) -> tuple[str, str]:
    """A call in short: its name and the part of its input that tells most."""
    return one_line(call.name, 60), one_line(_about(call.input), max(20, width))


def show_notice(screen: Screen, notice: Notice) -> None:
    """``warning: ...``, ``error: ...``, or the bare text."""
    text = harmless(notice.text)
    if notice.level == "info":
        screen.say(text, "dim")
    else:
        show_labelled(screen, notice.level, text)


def show_failure(screen: Screen, failure: Failure) -> None:
    """The message, and what to do about it on a line of its own."""
    show_labelled(screen, "error", harmless(failure.message))
    if failure.hint:
        show_labelled(screen, "hint", harmless(failure.hint))


def show_labelled(screen: Screen, label: Literal["error", "warning", "hint"], text: str) -> None:
    """``warning: ...``"""
    color = {"error": "red", "warning": "yellow", "hint": "cyan"}[label]
    first, *more = screen.wrapped(f"{label}: {text}")
    screen.line(screen.paint(f"{label}:", color) + first.removeprefix(f"{label}:"))
    for line in more:
        screen.line(line)


def _delay(seconds: float) -> str:
    return f"{max(0.1, seconds):.1f}s" if seconds < 60 else human_seconds(seconds)


def _about(input: dict[str, Any]) -> str:
    for key in _TELLING:
        if isinstance(value := input.get(key), str) and value.strip():
            if key == "pattern" and isinstance(where := input.get("path"), str):
                return f"{value} in {where}"
            return value
    return ", ".join(f"{key}={value!r}" for key, value in input.items() if value is not None)


def _bullet(screen: Screen) -> str:
    return "●" if screen.terminal.pictures else "*"


def _result_lines(event: ToolFinished, paint: Paint, width: int) -> list[str]:
    """The first lines of what a person is to see, each after a gutter."""
    text = event.display or text_of(event.content)
    lines = [line for line in harmless(text).expandtabs(4).split("\n") if line.strip()]
    most = DISPLAY_LINES if event.display else RESULT_LINES
    shown = [_colored(clip(line, width - 4), event, paint) for line in lines[:most]]
    if len(lines) > most:
        more = len(lines) - most
        shown.append(paint(f"... {more} more line{'' if more == 1 else 's'}", "dim"))
    return [("  | " if at == 0 else "    ") + line for at, line in enumerate(shown)]


def _colored(line: str, event: ToolFinished, paint: Paint) -> str:
    if event.status in ("error", "denied", "interrupted"):
        return paint(line, "red" if event.status != "interrupted" else "yellow")
    if not event.display:
        return paint(line, "dim")
    if line.startswith("+") and not line.startswith("+++"):
        return paint(line, "green")
    if line.startswith("-") and not line.startswith("---"):
        return paint(line, "red")
    return paint(line, "cyan") if line.startswith("@@") else line
