from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.policy.display import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -la 'ä ö' 目录 🙂 e\u0301", "ls -la 'ä ö' 目录 🙂 e\u0301"),
        ("ls\x1b[2J\x1b[H", r"ls\x1b[2J\x1b[H"),
        ("\x1b]52;c;AAAA\x07x", r"\x1b]52;c;AAAA\x07x"),
        ("rm -rf ~ #\rls", r"rm -rf ~ #\rls"),
        ("rm\x08\x08ls", r"rm\x08\x08ls"),
        ("a\x00b\x7f", r"a\0b\x7f"),
        ("ls\x9b2J", r"ls\x9b2J"),
        ("file \u202etxt.exe", "file <U+202E>txt.exe"),
        ("a\u2066b\u2069c", "a<U+2066>b<U+2069>c"),
        ("cu\u200brl\ufeff", "cu<U+200B>rl<U+FEFF>"),
        ("r\u00adm\u00a0-rf", "r<U+00AD>m<U+00A0>-rf"),
        ("a\u3164b\u2800c", "a<U+3164>b<U+2800>c"),
        ("\U000e0041\ufe01", "<U+E0041><U+FE01>"),
        ("r\u0337m", "r<U+0337>m"),
        ("z\u0301\u0302\u0303\u0304", "z\u0301\u0302<U+0303><U+0304>"),
        ("\uff1b rm x", "<U+FF1B> rm x"),
        ("a\u2028b", "a<U+2028>b"),
        ("\udcff\udcfeA\ud800", r"\xff\xfeA<U+D800>"),
    ],
)
def test_what_could_deceive_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls" + " " * 20 + "; rm x", "ls" + " " * 20 + "; rm x"),
        ("ls" + " " * 300 + "; rm x", "ls<300 spaces>; rm x"),
        ("ls" + "\t" * 200 + "; rm x", "ls<200 tabs>; rm x"),
        ("ls \t \t \t x", "ls<7 spaces>x"),
        ("  " * 15 + "code", "  " * 15 + "code"),
        (" " * 99 + "code", "<99 spaces>code"),
        ("a\n" + " " * 99 + "code", "a\n<99 spaces>code"),
        ("ls" + "\n" * 200 + "rm x", "ls\n<199 blank lines>\nrm x"),
        ("ls" + "\n  \t" * 9 + "\nrm x", "ls\n<9 blank lines>\nrm x"),
        ("a\n\n\nb", "a\n\n\nb"),
    ],
)
def test_padding_becomes_its_length(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_on_one_line() -> None:
    assert visible("a\n\tb", multiline=False) == r"a\n\tb"


@given(st.text())
def test_only_printing_characters_come_out_and_no_visible_one_is_lost(text: str) -> None:
    shown = visible(text)
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not [c for c in shown if c not in "\n\t" and unicodedata.category(c) in hidden]
    words = [c for c in text if c.isascii() and c.isprintable() and c != " "]
    left = iter(shown)
    assert all(c in left for c in words)
    assert "\n" not in visible(text, multiline=False)
