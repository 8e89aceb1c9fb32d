from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.models.tool_input import parse_input
from claw.types.surrogates import Rejoin, mend


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("  \n", {}),
        ("{}", {}),
        ('{"a": {"b": [1, "x"]}}', {"a": {"b": [1, "x"]}}),
        ('{"a": NaN, "b": [Infinity, 1.5]}', {"a": None, "b": [None, 1.5]}),
        (r'{"a": "\ud83d\ude00"}', {"a": "😀"}),
        (r'{"a": "x\ud800y"}', {"a": "x\ufffdy"}),
        (r'{"\ud800": 1}', {"\ufffd": 1}),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}),
    ],
)
def test_what_parses(text, value):
    assert parse_input(text) == (value, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "ls',
        '{"a": 1} trailing',
        "[1]",
        '"text"',
        "null",
        "not json",
        '{"a": ' + "[" * 5000 + "]" * 5000 + "}",
    ],
)
def test_what_does_not_is_kept_as_text(text):
    assert parse_input(text) == ({}, text)


@given(st.text())
def test_never_raises_and_can_always_be_written(text):
    value, raw = parse_input(text)
    msgspec.json.encode([value, raw])


@given(st.text(), st.integers(0, 50))
def test_a_pair_split_over_two_deltas_is_joined(text, at):
    units = text.encode("utf-16-le", "surrogatepass")
    cut = min(at * 2, len(units))
    halves = [half.decode("utf-16-le", "surrogatepass") for half in (units[:cut], units[cut:])]
    rejoin = Rejoin()
    joined = "".join(rejoin.add(half) for half in halves) + rejoin.end()
    assert joined == mend(text)
    joined.encode()


def test_floats_stay_finite():
    value, _ = parse_input('{"x": 1e999}')
    assert value == {"x": None}
    assert not any(isinstance(v, float) and math.isinf(v) for v in value.values())
