"""The process `claw`: errors and exit codes."""

from __future__ import annotations

import gc
import io
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from claw.cli.commands import claw
from claw.errors import ClawError

__all__ = ["entry", "run"]

LONGEST_MESSAGE, LONGEST_HINT = 800, 2400  # characters; a hint may be a command


def run(args: Sequence[str]) -> int:
    """Run the command and return its exit code; every error has been reported."""
    try:
        return int(claw.main(list(args), prog_name="claw", standalone_mode=False) or 0)
    except click.UsageError as error:
        hint = f"See `{error.ctx.command_path if error.ctx else 'claw'} --help`."
        return _report(args, "usage", error.format_message(), hint, 2)
    except click.ClickException as error:
        return _report(args, "usage", error.format_message(), "", error.exit_code)
    except ClawError as error:
        code = 2 if error.kind == "usage" else 1
        return _report(args, error.kind, error.message, error.hint, code)
    except (click.Abort, KeyboardInterrupt):
        return _report(args, "interrupted", "interrupted", "", 130)
    except Exception as error:
        if "--debug" in args:
            import traceback

            traceback.print_exc()
        message = f"this is a fault in claw: {type(error).__name__}: {error}"
        return _report(args, "internal", message, "Run it again with `--debug` to see where.", 1)


def _report(args: Sequence[str], kind: str, message: str, hint: str, code: int) -> int:
    """On stderr, and in the JSON forms as the result on stdout."""
    message, hint = _bounded(message, LONGEST_MESSAGE), _bounded(hint, LONGEST_HINT)
    if sys.stderr is not None and sys.stderr.isatty():
        _show(message, hint)
    else:
        _write(sys.stderr, f"error: {message}\n" + (f"hint: {hint}\n" if hint else ""))
    if _wants_json(args):
        from claw.cli.render.envelope import dumps, error_before_turn

        _write(sys.stdout, dumps(error_before_turn(kind, message, hint)) + "\n")
    return code


def _show(message: str, hint: str) -> None:
    from claw.cli.render.activity import show_labelled
    from claw.cli.screen import Screen
    from claw.cli.style import harmless
    from claw.cli.terminal import Terminal

    screen = Screen(Terminal.look(os.environ), None, sys.stderr)
    show_labelled(screen, "error", harmless(message))
    if hint:
        show_labelled(screen, "hint", harmless(hint))


def _bounded(text: str, most: int) -> str:
    """What somebody gave may be quoted in it, whatever its length."""
    if len(text) <= most:
        return text
    head, tail = most * 3 // 4, most // 4
    return f"{text[:head]}[... {len(text) - head - tail} characters ...]{text[-tail:]}"


def _wants_json(args: Sequence[str]) -> bool:
    """Of arguments that may not even parse."""
    formats = ("json", "stream-json")
    pairs = itertools.pairwise(args)
    return any(name == "--output-format" and value in formats for name, value in pairs) or any(
        arg == f"--output-format={value}" for arg in args for value in formats
    )


def _write(stream: TextIO | None, text: str) -> None:
    try:
        if stream is not None:
            stream.write(text)
            stream.flush()
    except (OSError, ValueError):
        pass


def _occupy_closed_streams() -> None:
    """Else a file that is opened later becomes one of them, and gets what is meant for it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def entry() -> None:
    """The console script. Ends the process at once: all is written and closed by then."""
    gc.disable()  # while importing; the dispatchers turn it on again
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until a turn listens: no traceback of imports
    _occupy_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # lone surrogates as escapes, in JSON too
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = run(sys.argv[1:])
    except SystemExit as end:  # click's, at a broken pipe
        code = end.code if isinstance(end.code, int) else 1
    for stream in (sys.stdout, sys.stderr):
        _write(stream, "")
    os._exit(code)
