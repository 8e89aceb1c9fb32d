"""Which refusals are about one optional field, and what is sent instead."""

from __future__ import annotations

from typing import Any

import pytest

from claw.errors import ContextOverflow, ParameterRefused, RequestRejected
from claw.models.mending import mended, refused_parameter

OPTIONAL = ("stream_options", "max_completion_tokens", "max_tokens", "reasoning_effort")
BODY: dict[str, Any] = {"model": "m", "max_tokens": 9, "stream_options": {"include_usage": True}}


def refused(message: str, *, status: int = 400, body: dict[str, Any] = BODY) -> str:
    return refused_parameter(RequestRejected(message, status=status), body, OPTIONAL)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ('unknown field "stream_options" (status 422)', "stream_options"),
        ("body.stream_options: Extra inputs are not permitted", "stream_options"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("the model `m` is not supported", ""),
        ("stream_options: must be an object", ""),
        ("unknown tool choice; reasoning_effort was fine", ""),
    ],
)
def test_the_field_that_a_refusal_names(message, name):
    assert refused(message) == name


def test_other_errors_are_about_other_things():
    assert refused("unknown field stream_options", status=403) == ""
    too_long = ContextOverflow("unknown field stream_options", status=400)
    assert refused_parameter(too_long, BODY, OPTIONAL) == ""


def test_a_limit_goes_by_its_other_name_before_it_goes():
    once = mended(BODY, ["max_tokens"])
    assert once == {
        "model": "m",
        "max_completion_tokens": 9,
        "stream_options": {"include_usage": True},
    }
    assert "max_completion_tokens" not in mended(once, ["max_tokens", "max_completion_tokens"])
    assert "max_tokens" not in mended(BODY, ["max_tokens", "max_completion_tokens"])


def test_breakpoints_go_wherever_they_stand():
    mark = {"cache_control": {"type": "ephemeral"}}
    body: dict[str, Any] = {"system": [{"text": "s", **mark}], "messages": [{"text": "m", **mark}]}
    assert mended(body, ["cache_control"]) == {
        "system": [{"text": "s"}],
        "messages": [{"text": "m"}],
    }
    assert body["system"][0]["cache_control"]  # the memo's own messages are as they were


def test_the_error_says_which():
    assert ParameterRefused("no", parameter="thinking").advice == "mended"
