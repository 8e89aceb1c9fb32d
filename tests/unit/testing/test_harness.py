"""What a ``Harness`` offers, and what it refuses before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from claw.errors import ConfigError
from claw.testing import FakeTool, Harness, assert_not_offered, assert_offered, says


async def test_only_limits_the_tools_of_claw_and_not_those_of_the_test(tmp_path):
    tools = [FakeTool("Weather")]
    async with Harness(tmp_path, [says("hi")], tools=tools, only=("Read",)) as run:
        await run.turn("hello")
        assert_offered(run, "Read", "Weather")
        assert_not_offered(run, "Bash", "Write")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"permissions": {"denny": ["Read"]}}, "denny"),
        ({"permissions": {"allow": ["Bash(rm"]}}, "allow rule `Bash\\(rm`"),
        ({"hooks": {"PreTolUse": []}}, "PreTolUse"),
        (
            {"hooks": {"Stop": [{"matcher": "(", "hooks": [{"type": "command", "command": "x"}]}]}},
            "is not a regular expression",
        ),
    ],
)
async def test_mistyped_settings_fail_before_anything_runs(
    tmp_path, settings: dict[str, Any], words: str
):
    with pytest.raises(ConfigError, match=words):
        await Harness(tmp_path, [], settings=settings).__aenter__()


async def test_all_mistakes_are_named_at_once(tmp_path):
    settings = {"permissions": {"denny": ["Read"]}, "hooks": {"PreTolUse": []}}
    with pytest.raises(ConfigError) as caught:
        await Harness(tmp_path, [], settings=settings).__aenter__()
    assert "denny" in str(caught.value)
    assert "PreTolUse" in str(caught.value)


def test_a_text_is_no_script(tmp_path):
    model: Any = "hello"
    with pytest.raises(TypeError, match=r"has to be a list of replies .*says\('hello'\)"):
        Harness(tmp_path, model)
