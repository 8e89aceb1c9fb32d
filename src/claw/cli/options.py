"""What the commands' options are made of, and those that several commands have.

Imports click and nothing else of weight: help is shown by it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from claw.errors import ConfigError

__all__ = [
    "BROKEN_PIPE",
    "LIMITS",
    "MODEL",
    "OTHER",
    "OUTPUT",
    "PERMISSIONS",
    "SESSION",
    "Compaction",
    "FileName",
    "Flag",
    "Positive",
    "PromptOrCommand",
    "as_json",
    "at_home",
    "flag",
    "help_option",
    "printing",
    "shared",
    "with_a_prompt",
]

BROKEN_PIPE = 141  # as a shell reports SIGPIPE

F = TypeVar("F", bound=Callable[..., Any])

SESSION = "Session"
MODEL = "Model and prompt"
OUTPUT = "Output"
LIMITS = "Limits of a turn"
PERMISSIONS = "Tools and permissions"
OTHER = "Other"


EXAMPLES = """\
claw                                        start a conversation
claw "explain src/main.rs"                  one question, one answer
git diff | claw -p "review this"            use it in a pipe
claw -p "list the TODOs" --output-format json
claw --continue -p "now fix the first one"  go on with the last session
claw --model offline                        try it without a key
"""


class Flag(click.Option):
    """An option that stands under a heading of the help."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class PromptOrCommand(click.Group):
    """A group whose first word may also begin a prompt.

    It is a command where it is the name of one and `-p` is not given; then its
    options follow it. Anything else is a prompt, and options may stand anywhere.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = False
        given, words, _ = self.make_parser(ctx).parse_args(list(args))
        if words and words[0] in self.commands and not given.get("print_mode"):
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        return click.Command.parse_args(self, ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                group = param.group if isinstance(param, Flag) else OTHER
                groups.setdefault(group, []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records, col_max=36)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in EXAMPLES.splitlines():
                formatter.write(f"  {line}\n")
        with formatter.section("Exit codes"):
            formatter.write_text(
                "0 done, 1 failed, 2 wrong usage, 3 a limit was reached, 4 a permission was "
                "missing (with --on-denied fail), 5 a replay differs, 130 interrupted by Ctrl-C, "
                "143 by SIGTERM."
            )


class Positive(click.FloatRange):
    """A finite number of something, above zero."""

    def __init__(self, unit: str) -> None:
        super().__init__(min=0, min_open=True)
        self._unit = unit

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no number of {self._unit}.", param, ctx)
        return number


class FileName(click.ParamType[str]):
    """A blank one is a variable that was not set, not a wish for none."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("the file's name is blank", param, ctx)
        return str(value)


class Compaction(Positive):
    """Where conversations are compacted; 0 for `off`."""

    def __init__(self) -> None:
        super().__init__("tokens")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        off = isinstance(value, str) and value.strip().lower() == "off"
        return 0.0 if off else super().convert(value, param, ctx)


def printing(text: Callable[[click.Context], str], *names: str, help: str) -> Callable[[F], F]:
    """An option that prints something instead of running the command."""

    def callback(ctx: click.Context, _: click.Parameter, given: bool) -> None:
        if given and not ctx.resilient_parsing:
            _produce(text(ctx) + "\n")
            ctx.exit()

    return click.option(
        *names, is_flag=True, is_eager=True, expose_value=False, callback=callback, help=help
    )


def help_option(command: F) -> F:
    option = printing(click.Context.get_help, "-h", "--help", help="Show this message and exit.")
    return option(command)


def flag(group: str, *names: str, **options: Any) -> Callable[[F], F]:
    return click.option(*names, cls=Flag, group=group, **options)


def _produce(text: str) -> None:
    """Write to stdout what a command was run for. Raises ``ConfigError`` where that fails."""
    if sys.stdout is None:
        raise ConfigError("cannot write to stdout: it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise click.exceptions.Exit(BROKEN_PIPE) from error
    except OSError as error:
        raise ConfigError(f"cannot write to stdout: {error.strerror}") from error


def shared(command: F) -> F:
    """Options of commands that look at a configuration; those before the command hold too."""
    for option in (
        click.option("--output-format", type=click.Choice(["text", "json"])),
        click.option("--settings", metavar="FILE", help="Settings to add: a file, or JSON."),
        click.option("--model", metavar="MODEL"),
        click.option("--cwd", metavar="DIR", help="Look there instead of here."),
        click.option("--debug", is_flag=True, help="Tell more when something breaks."),
    ):
        command = option(command)
    return command


def at_home(command: F) -> F:
    """Options of commands that look at sessions."""
    for option in (
        click.option("--cwd", metavar="DIR", help="The project to look at, instead of this one."),
        click.option("--debug", is_flag=True, help="Tell more when something breaks."),
    ):
        command = option(command)
    return command


def as_json(help: str) -> Callable[[F], F]:
    return click.option("--output-format", type=click.Choice(["text", "json"]), help=help)


def with_a_prompt(command: F) -> F:
    """What the commands of the deterministic engine have in common."""
    for option in (
        click.option("--output-format", type=click.Choice(["text", "json"])),
        click.option(
            "--registry",
            type=click.Choice(["builtin", "live"]),
            default="builtin",
            help="builtin: claw's own, the same on every machine; live: what a session offers.",
        ),
        click.option(
            "--limit", type=click.IntRange(min=0), default=5, metavar="N", help="Of matches."
        ),
        click.option("--permission-mode", metavar="MODE"),
        click.option("--settings", metavar="FILE", help="Settings to add: a file, or JSON."),
        click.option("--model", metavar="MODEL", help="Instead of the offline model."),
        click.option("--cwd", metavar="DIR", help="Work there instead of here."),
        click.option("--debug", is_flag=True, help="Tell more when something breaks."),
        click.argument("prompt"),
    ):
        command = option(command)
    return command
