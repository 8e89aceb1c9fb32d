"""What was sent to the model, asserted, with words that show what is there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claw.errors import ConfigError
from claw.testing import (
    FakeTool,
    Harness,
    ScriptedModel,
    a_request,
    assert_extends,
    assert_not_offered,
    assert_offered,
    assert_system_contains,
    calls,
    conversation,
    says,
)
from claw.testing.fixtures import Session

INSTRUCTIONS = "Run the tests before you say that something works.\n"
SCRIPT = [calls(("Glob", {"pattern": "*"})), says("done")]


async def test_they_hold_of_a_harness(tmp_path):
    files = {"AGENTS.md": INSTRUCTIONS}
    async with Harness(tmp_path, SCRIPT, files=files, only=("Glob", "Read")) as run:
        await run.turn("look")
        assert_offered(run, "Glob", "Read")
        assert_not_offered(run, "Bash", "Write")
        assert_system_contains(run, "Run the tests before")
        assert_extends(run)


def test_they_hold_of_a_session(tmp_path):
    session = Session(tmp_path, SCRIPT, {"tools": (FakeTool("Weather"),)})
    session.turn("look")
    assert_offered(session, "Glob", "Weather")
    assert_extends(session)
    session.close()


async def test_they_hold_of_a_model_double():
    model = ScriptedModel([says("hi")])
    await conversation(model, [FakeTool("Weather")]).run_turn("hello")
    assert_offered(model, "Weather")
    assert_system_contains(model, "You are a test.")


async def test_they_say_what_is_there_instead(tmp_path):
    files = {"AGENTS.md": INSTRUCTIONS}
    async with Harness(tmp_path, SCRIPT, files=files, only=("Glob", "Read")) as run:
        await run.turn("look")
        with pytest.raises(AssertionError) as caught:
            assert_offered(run, "Glob", "Bash")
        assert str(caught.value) == "request 1 does not offer `Bash`; it offers `Read`, `Glob`"
        with pytest.raises(AssertionError) as caught:
            assert_not_offered(run, "Glob")
        assert str(caught.value) == "request 1 offers `Glob`; it offers `Read`, `Glob`"
        with pytest.raises(AssertionError) as caught:
            assert_system_contains(run, "Run all tests before you say something works.")
        said = str(caught.value)
        assert said.startswith("the system prompt of request 1 does not contain 'Run all tests")
        assert f"the nearest line is {INSTRUCTIONS.strip()!r}" in said
        assert run.requests[0].system[:100] in said


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (a_request("other"), "request 2 does not extend request 1: message 1 was"),
        (a_request(), "request 2 has another `tools` than request 1"),
        (a_request(), "request 2 has another `system` than request 1"),
    ],
)
def test_what_does_not_extend(later, words):
    if "system" in words:
        later = replace(later, system="Another one.")
    elif "tools" in words:
        later = replace(later, tools=(FakeTool("Weather").spec,))
    model = ScriptedModel([])
    model.requests = [a_request(), later]
    with pytest.raises(AssertionError, match=words):
        assert_extends(model)


def test_without_a_request_nothing_holds():
    model = ScriptedModel([])
    for check in (assert_offered, assert_not_offered, assert_system_contains, assert_extends):
        with pytest.raises(AssertionError, match="no request was sent"):
            check(model, *([] if check is assert_extends else ["Read"]))


async def test_tools_are_named_as_a_model_may_and_never_in_vain(tmp_path):
    async with Harness(tmp_path, SCRIPT, only=("Glob", "Read")) as run:
        await run.turn("look")
        assert_offered(run, "read_file", "GLOB")
        with pytest.raises(AssertionError, match="offers `Read`"):
            assert_not_offered(run, "read")
        for check in (assert_offered, assert_not_offered):
            with pytest.raises(ConfigError, match="no tool is called `Bahs`"):
                check(run, "Bahs")
