"""What is a command, and what is a mode."""

from __future__ import annotations

import pytest

from claw.cli.slash import is_command, mode_named


@pytest.mark.parametrize("line", ["/help", " /mode plan ", "/nonsense with words"])
def test_commands(line: str):
    assert is_command(line)


@pytest.mark.parametrize("line", ["", "help", "/etc/hosts is what?", "/help\nand more", "1/2"])
def test_what_is_no_command(line: str):
    assert not is_command(line)


def test_modes_by_name_and_alias():
    assert mode_named("ACCEPTEDITS") == "acceptEdits"
    assert mode_named("full-access") == "bypassPermissions"
    assert mode_named("nonsense") is None
