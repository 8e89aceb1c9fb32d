"""From words and flags to what is asked for, without starting anything."""

from __future__ import annotations

from typing import Any

import click
import pytest

from claw.app.wishes import Wishes
from claw.cli.commands import claw
from claw.cli.launch import wishes_of
from claw.errors import ConfigError


def parsed(*args: str) -> tuple[list[str], dict[str, Any]]:
    ctx = claw.make_context("claw", list(args))
    return ctx.args, ctx.params


def wishes(*args: str) -> Wishes:
    return wishes_of(parsed(*args)[1])


@pytest.mark.parametrize(
    "args",
    [
        ("-p", "fix", "the", "bug", "--model", "m"),
        ("--model", "m", "-p", "fix", "the", "bug"),
        ("fix", "--model", "m", "the", "-p", "bug"),
        ("-p", "--model=m", "--", "fix", "the", "bug"),
    ],
)
def test_options_may_stand_before_and_after_the_prompt(args: tuple[str, ...]):
    words, given = parsed(*args)
    assert words == ["fix", "the", "bug"]
    assert given["model"] == "m"
    assert given["print_mode"] is True


def test_what_follows_two_dashes_is_no_option():
    assert parsed("-p", "--", "--model", "is", "a", "flag")[0] == ["--model", "is", "a", "flag"]


def test_the_name_of_a_command_is_a_prompt_with_print():
    assert parsed("-p", "config")[0] == ["config"]


@pytest.mark.parametrize(
    ("values", "rules"),
    [
        (["Read,Edit"], ("Read", "Edit")),
        (["Read Edit"], ("Read", "Edit")),
        (["Bash(git diff:*),Read", "Write"], ("Bash(git diff:*)", "Read", "Write")),
        (["Bash(a, b c) Edit(src/**)"], ("Bash(a, b c)", "Edit(src/**)")),
        ([""], ()),
    ],
)
def test_rules_are_separated_outside_parentheses(values: list[str], rules: tuple[str, ...]):
    args = [arg for value in values for arg in ("--allowedTools", value)]
    assert wishes(*args).allow == rules


def test_no_tools_at_all_is_not_the_same_as_no_wish():
    assert wishes("--tools", "").tools == ()
    assert wishes().tools is None


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("default", "default"),
        ("prompt", "default"),
        ("workspace-write", "acceptEdits"),
        ("acceptedits", "acceptEdits"),
        ("read-only", "read-only"),
        ("danger-full-access", "bypassPermissions"),
    ],
)
def test_modes_have_aliases(name: str, mode: str):
    assert wishes("--permission-mode", name).mode == mode


def test_limits_and_the_rest_arrive():
    wished = wishes(
        *("--max-turns", "3", "--max-time", "1.5", "--max-budget-tokens", "100"),
        *("--max-budget-usd", "0.25", "--fallback-model", "a, b", "--fallback-model", "c"),
        *("--on-denied", "fail", "--resume", "abc", "--no-session-persistence"),
        *("--append-system-prompt", "be brief", "--add-dir", "x", "--add-dir", "y"),
        *("--disallowedTools", "Bash", "--settings", "s.json"),
    )
    assert (wished.max_steps, wished.max_seconds, wished.max_tokens) == (3, 1.5, 100)
    assert wished.max_usd == 0.25
    assert wished.fallback == ("a", "b", "c")
    assert wished.fail_on_denied
    assert wished.session == "abc"
    assert wished.ephemeral
    assert wished.append_system_prompt == "be brief"
    assert wished.add_dirs == ("x", "y")
    assert wished.deny == ("Bash",)
    assert wished.settings_file == "s.json"
    assert wishes("--continue").session == "latest"


@pytest.mark.parametrize(
    "args",
    [
        ("--permission-mode", "nonsense"),
        ("--permission-mode", "plan", "--dangerously-skip-permissions"),
        ("--max-turns", "0"),
        ("--max-budget-usd", "0"),
        ("--max-budget-usd", "inf"),
        ("--max-budget-usd", "nan"),
        ("--on-denied", "maybe"),
        ("--nonsense",),
    ],
)
def test_wrong_flags_are_usage_errors(args: tuple[str, ...]):
    with pytest.raises(click.UsageError):
        wishes(*args)


def test_a_directory_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="/no/such/place"):
        wishes("--cwd", "/no/such/place")
