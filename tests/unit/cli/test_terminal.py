"""What a terminal can do, and text that is safe to put on it."""

from __future__ import annotations

import os
import termios
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.cli.style import harmless, human_seconds, human_tokens, one_line
from claw.cli.terminal import Terminal, typing_hidden, typing_shown


@pytest.mark.parametrize(
    ("env", "colored"),
    [
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, True),
        ({"TERM": "dumb", "FORCE_COLOR": "0"}, False),
        ({"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour(env: dict[str, str], colored: bool):
    assert Terminal.look(env).color_stdout is colored


@pytest.mark.parametrize(
    ("env", "pictures"),
    [
        ({"LANG": "en_US.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ({}, False),
    ],
)
def test_pictures(env: dict[str, str], pictures: bool):
    assert Terminal.look(env).pictures is pictures


@pytest.mark.parametrize("mode", [typing_hidden, typing_shown])
def test_the_terminal_is_as_before_whatever_happens(mode):
    master, slave = os.openpty()
    try:
        before = termios.tcgetattr(slave)
        with suppress(ZeroDivisionError), mode(slave):
            assert bool(termios.tcgetattr(slave)[3] & termios.ECHO) is (mode is typing_shown)
            raise ZeroDivisionError
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


def test_what_is_no_terminal_is_left_alone():
    with open(os.devnull, "rb") as nothing, typing_hidden(nothing.fileno()):
        pass


@given(st.text())
def test_harmless_text_moves_no_cursor(text: str):
    shown = harmless(text)
    assert not any(char < " " and char not in "\n\t" for char in shown)
    assert not any("\x7f" <= char <= "\x9f" or "\u202a" <= char <= "\u202e" for char in shown)


@given(st.text(), st.integers(20, 200))
def test_one_line_is_one_line(text: str, width: int):
    line = one_line(text, width)
    assert len(line) <= width
    assert "\n" not in line
    assert "\t" not in line


def test_numbers_for_people():
    assert [human_seconds(n) for n in (0.4, 59.9, 125, 3720)] == ["0s", "59s", "2m 05s", "1h 02m"]
    assert [human_tokens(n) for n in (1, 950, 1234, 999_951)] == [
        *("1 token", "950 tokens", "1.2k tokens", "1.0M tokens")
    ]
