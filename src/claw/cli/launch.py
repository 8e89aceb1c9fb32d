"""From flags and words to a conversation or a single turn."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import re
import select
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import click

from claw.app.connecting import split_names
from claw.app.wishes import Wishes
from claw.cli.asking import confirmed
from claw.cli.oneshot import AnswerCheck, Form, run_one_shot
from claw.cli.place import working_directory
from claw.cli.repl import run_repl
from claw.cli.screen import Screen
from claw.cli.slash import mode_named
from claw.cli.terminal import Terminal
from claw.config.paths import home_directory
from claw.errors import ConfigError
from claw.policy.rules import split_rules
from claw.types.permissions import MODES

__all__ = ["launch", "refuse_broad", "wishes_of"]

MOST_PIPED = 10 * 1024 * 1024  # bytes of stdin
PIPE_PATIENCE = 3.0  # seconds for a pipe that only adds to a prompt to say something


def launch(
    words: Sequence[str],
    given: Mapping[str, Any],
    *,
    near: Callable[[str], list[str]],
    check: AnswerCheck | None = None,
) -> int:
    """Do what the command line asks for; the exit code.

    Raises ``UsageError`` and ``ClawError``. ``near`` gives commands whose names resemble
    a word; ``check`` is for the last answer of a single turn.
    """
    _refuse_contradictions(words, given, near)
    wishes = wishes_of(given)
    terminal = Terminal.look(os.environ)
    screen = Screen(terminal, sys.stdout, sys.stderr)
    _refuse_deaf_stdout(screen)
    prompt = _prompt(words, screen)
    talk = not prompt and not given["print_mode"] and terminal.stdin and terminal.stdout
    if not prompt and not talk:
        raise click.UsageError('there is no prompt: give one, as in `claw -p "..."`, or pipe it in')
    if talk and (given["output_format"] != "text" or given["compact"]):
        raise click.UsageError("a conversation has no `--output-format` and no `--compact`")
    if talk and check is not None:
        raise click.UsageError("a conversation has no `--json-schema`: use it with a prompt")
    refuse_broad(wishes.cwd, screen, allowed=given["allow_broad_cwd"])
    debug = given["debug"] or bool(os.environ.get("CLAW_LOG"))
    if talk:
        return _drive(run_repl(wishes, screen, debug=debug))
    form = Form(
        given["output_format"],
        compact=given["compact"],
        partial=given["include_partial_messages"],
        verbose=given["verbose"],
        debug=debug,
        check=check,
    )
    return _drive(run_one_shot(prompt, wishes, form, screen))


def wishes_of(given: Mapping[str, Any]) -> Wishes:
    """The flags as ``Wishes``. Raises ``UsageError``."""
    mode = given["permission_mode"]
    if mode is not None:
        if mode_named(mode) is None:
            raise click.UsageError(f"there is no permission mode `{mode}`: {', '.join(MODES)}")
        mode = mode_named(mode)
    if given["dangerously_skip_permissions"]:
        if mode not in (None, "bypassPermissions"):
            raise click.UsageError(
                "`--dangerously-skip-permissions` contradicts `--permission-mode`"
            )
        mode = "bypassPermissions"
    system = given["system_prompt"]
    return Wishes(
        cwd=working_directory(given["cwd"]),
        model=given["model"],
        fallback=tuple(name for value in given["fallback_model"] for name in split_names(value)),
        mode=mode,
        session="latest" if given["continue_"] else given["resume"],
        fork=given["fork_session"],
        session_id=given["session_id"],
        ephemeral=given["no_session_persistence"],
        record_wire=given["record_wire"],
        system_prompt=None if system is None else _clean(system),
        append_system_prompt=_clean(given["append_system_prompt"] or ""),
        tools=_listed(given["tools"]) if given["tools"] else None,
        allow=_listed(given["allowed_tools"]),
        deny=_listed(given["disallowed_tools"]),
        add_dirs=tuple(given["add_dir"]),
        settings_file=given["settings"],
        max_steps=given["max_turns"],
        max_seconds=given["max_time"],
        max_tokens=given["max_budget_tokens"],
        max_usd=given["max_budget_usd"],
        auto_compact=given["auto_compact"],
        fail_on_denied=given["on_denied"] == "fail",
        effort=given["effort"] or "",
        env=dict(os.environ),
    )


def _refuse_contradictions(
    words: Sequence[str], given: Mapping[str, Any], near: Callable[[str], list[str]]
) -> None:
    if given["continue_"] and given["resume"]:
        raise click.UsageError("`--continue` and `--resume` contradict each other")
    goes_on = given["continue_"] or given["resume"]
    if given["fork_session"] and not goes_on:
        raise click.UsageError("`--fork-session` needs `--continue` or `--resume`")
    if given["session_id"] and goes_on and not given["fork_session"]:
        raise click.UsageError("`--session-id` is for a new session, or for a `--fork-session`")
    if given["no_session_persistence"] and goes_on:
        raise click.UsageError(
            "`--no-session-persistence` keeps no session, so it cannot go on with one"
        )
    if given["no_session_persistence"] and given["record_wire"]:
        raise click.UsageError(
            "`--record-wire` keeps bytes in the session, and `--no-session-persistence` keeps none"
        )
    if given["include_partial_messages"] and given["output_format"] != "stream-json":
        raise click.UsageError("`--include-partial-messages` needs `--output-format stream-json`")
    if given["compact"] and given["output_format"] == "stream-json":
        raise click.UsageError("`--compact` goes with text and json only")
    if len(words) == 1 and not given["print_mode"] and not re.search(r"\s", words[0]):
        meant = near(words[0])
        if meant:
            names = " or ".join(f"`claw {name}`" for name in meant)
            raise click.UsageError(
                f"there is no command `{words[0]}`: did you mean {names}? "
                f"To ask the model, use `claw -p {words[0]}`"
            )


def _listed(values: Sequence[str]) -> tuple[str, ...]:
    """Names and rules, separated by commas or blanks outside parentheses."""
    return tuple(item for value in values for item in split_rules(value))


def _clean(text: str) -> str:
    """Arguments may hold bytes that are no text: those become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _refuse_deaf_stdout(screen: Screen) -> None:
    """An answer that nobody can get is not asked for."""
    screen.exit_code(0)
    if fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise ConfigError("cannot write to stdout: it is open for reading only")


# -- the prompt ----------------------------------------------------------------------


def _prompt(words: Sequence[str], screen: Screen) -> str:
    """The words, with what is piped in after them; blank where there is neither."""
    said = _clean(" ".join(words)).strip()
    if screen.terminal.stdin:
        return said
    piped = _piped(PIPE_PATIENCE if said else None, screen).strip("\n")
    if not piped.strip():
        return said
    return f"{said}\n\n{piped}" if said else piped


def _piped(patience: float | None, screen: Screen) -> str:
    """Stdin to its end, up to ``MOST_PIPED``. Raises ``ConfigError`` for more.

    A pipe that stays silent for ``patience`` seconds is left alone: programs often hand
    on a stdin that nobody ever writes to or closes.
    """
    try:
        if patience is not None and not select.select([0], [], [], patience)[0]:
            screen.line(
                f"warning: nothing came from stdin within {patience:.0f} s: going on without it"
            )
            return ""
        with open(0, "rb", closefd=False) as stdin:
            data = stdin.read(MOST_PIPED + 1)
    except OSError:  # closed, or a directory
        return ""
    if len(data) > MOST_PIPED:
        raise ConfigError(
            f"more than {MOST_PIPED // 1024 // 1024} MiB came from stdin",
            hint="Put it into a file, and name the file in the prompt.",
        )
    return data.decode("utf-8", "replace")


# -- where -----------------------------------------------------------------------------


def refuse_broad(cwd: str, screen: Screen, *, allowed: bool) -> None:
    """The home directory and `/` are too much to hand to an agent without a word."""
    real = os.path.realpath(cwd)
    if allowed or real not in ("/", os.path.realpath(home_directory(os.environ))):
        return
    if not (screen.terminal.stdin and screen.terminal.stderr):
        raise ConfigError(
            f"{real} is the home directory or the root of the file system",
            hint="Use `--cwd DIR`, or `--allow-broad-cwd` if that is what you want.",
        )
    screen.say(f"{real} is a broad place to work in.")
    if not asyncio.run(confirmed("Go on? [y/N]: ", screen)):
        raise ConfigError("not started", hint="Change to a project's directory, or use `--cwd`.")


# -- the loop --------------------------------------------------------------------------


def _drive(work: Coroutine[Any, Any, int]) -> int:
    gc.enable()
    gc.freeze()
    return asyncio.run(work)
