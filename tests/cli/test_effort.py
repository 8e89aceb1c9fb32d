"""`--effort` from the command line to the body of the request."""

from __future__ import annotations

import pytest

from claw.models.scripted import says
from claw.testing.strict_server import StrictServer
from tests.cli.running import Workplace


@pytest.mark.parametrize(
    ("model", "variable", "suffix", "field", "sent"),
    [
        ("claude-opus-5-5", "ANTHROPIC", "", "output_config", {"effort": "high"}),
        ("openai/gpt-5", "OPENAI", "/v1", "reasoning_effort", "high"),
        ("openai-responses/gpt-5", "OPENAI", "/v1", "reasoning", {"effort": "high"}),
    ],
)
async def test_the_flag_reaches_the_model(
    place: Workplace, *, model: str, variable: str, suffix: str, field: str, sent: object
):
    for flags, expected in ((["--effort", "high"], sent), ([], None)):
        async with StrictServer([says("done")]) as server:
            env = {
                f"{variable}_BASE_URL": server.base_url + suffix,
                f"{variable}_API_KEY": "key-for-a-test",
            }
            ended = await place.run("-p", "x", "--model", model, *flags, env=env)
        assert (ended.code, ended.out) == (0, "done\n")
        assert server.requests[-1].body.get(field) == expected


async def test_an_unknown_level_is_wrong_use(place: Workplace):
    ended = await place.run("-p", "x", "--effort", "enormous", "--model", place.script("no"))
    assert (ended.code, ended.out) == (2, "")
    assert "xhigh" in ended.err
