"""When the next model is asked, when not, and who is said to have answered."""

import pytest
from msgspec.structs import replace

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
    ProtocolViolation,
    RequestRejected,
)
from claw.models.fallback import FallbackModel, Link
from claw.testing import ScriptedModel, ScriptReply, fails, raw, says
from claw.testing.pieces import conversation
from claw.types.events import MessageStop, Notice, TextDelta
from claw.types.messages import AssistantMessage, Text, ToolResult, ToolUse, UserMessage
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.results import final_assistant_text
from claw.types.usage import Usage

ASKED = Request("", (UserMessage((Text("go"),)),), (), Sampling("first"))
DOWN = fails(ModelUnavailable("down", status=503))
BUSY = fails(ModelUnavailable("overloaded", status=529))


class Chain:
    """A chain of scripted models; ``told`` is what a person got to read."""

    def __init__(self, *scripts: list[ScriptReply]) -> None:
        names = ("first", "second", "third")
        self.models = [ScriptedModel(script) for script in scripts]
        self.told: list[Notice] = []
        links = [Link(model, name) for model, name in zip(self.models, names, strict=False)]
        self.model = FallbackModel(links, self.told.append)

    async def ask(self, request: Request = ASKED) -> Reply:
        return assemble([event async for event in self.model.stream(request)])

    @property
    def asked(self) -> list[int]:
        return [len(model.requests) for model in self.models]


async def test_the_first_answers_and_nobody_hears_of_the_others() -> None:
    chain = Chain([says("hi")], [])
    assert (await chain.ask()).text == "hi"
    assert (chain.asked, chain.told) == ([1, 0], [])


async def test_one_failure_is_for_the_caller_to_repeat() -> None:
    chain = Chain([DOWN, says("hi")], [])
    with pytest.raises(ModelUnavailable):
        await chain.ask()
    assert (await chain.ask()).text == "hi"
    assert (chain.asked, chain.told) == ([2, 0], [])


async def test_the_second_failure_in_a_row_moves_on() -> None:
    chain = Chain([DOWN, DOWN], [says("from the second")])
    with pytest.raises(ModelUnavailable):
        await chain.ask()
    reply = await chain.ask()
    assert (reply.text, chain.asked) == ("from the second", [2, 1])
    assert chain.models[1].requests[0] == replace(ASKED, sampling=Sampling("second"))
    (notice,) = chain.told
    assert notice.level == "warning"
    assert "`first`" in notice.text
    assert "`second`" in notice.text
    assert "down" in notice.text


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("overloaded", status=529),
        ModelUnavailable("come back later", status=429, retry_after=3600.0),
        RequestRejected("no credit", status=402),
        RequestRejected("the quota is spent", status=429),
        RequestRejected("no such model", status=404),
    ],
)
async def test_where_waiting_is_no_use_it_moves_on_at_once(error: ModelError) -> None:
    chain = Chain([fails(error)], [says("hi")])
    assert (await chain.ask()).text == "hi"
    assert chain.asked == [1, 1]


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflow("too long", status=400),
        ContextOverflow("too long", status=413),
        OutputLimitTooHigh("too much", max_tokens=10, status=400),
        AuthenticationFailed("a wrong key", status=401),
        RequestRejected("a bad request", status=400),
        ProtocolViolation("nonsense"),
    ],
)
async def test_a_mistake_is_not_hidden(error: ModelError) -> None:
    chain = Chain([fails(error), fails(error)], [])
    for _ in range(2):
        with pytest.raises(type(error)):
            await chain.ask()
    assert chain.asked == [2, 0]


async def test_the_reply_says_who_gave_it() -> None:
    """Also where the server does not."""
    chain = Chain([BUSY], [raw(TextDelta("hi"), MessageStop("end_turn"))])
    assert (await chain.ask()).asked == "second"


async def test_half_a_reply_is_not_continued_by_another_model() -> None:
    chain = Chain([fails(ModelUnavailable("broke", status=529), after="hal")], [says("whole")])
    with pytest.raises(ModelUnavailable):
        await chain.ask()
    assert chain.asked == [1, 0]
    assert (await chain.ask()).text == "whole"


async def test_it_goes_on_with_the_other_one_until_the_user_speaks_again() -> None:
    chain = Chain([BUSY, says("back")], [says("one"), says("two")])
    await chain.ask()
    call = AssistantMessage((ToolUse("c", "T", {}),))
    result = UserMessage((ToolResult("c", (Text("done"),)),))
    later = replace(ASKED, messages=(*ASKED.messages, call, result))
    assert (await chain.ask(later)).text == "two"
    spoken = replace(
        later,
        messages=(*later.messages, AssistantMessage((Text("two"),)), UserMessage((Text("on"),))),
    )
    assert (await chain.ask(spoken)).text == "back"
    assert [notice.level for notice in chain.told] == ["warning", "info"]


async def test_where_none_answers_the_error_says_what_became_of_each() -> None:
    tired = fails(ModelUnavailable("tired", status=529))
    down = fails(ModelUnavailable("the third is down"))
    chain = Chain([BUSY, BUSY], [tired, tired], [down, down, down])
    for _ in range(2):
        with pytest.raises(ModelUnavailable) as raised:
            await chain.ask()
        assert str(raised.value) == (
            "the third is down (before that, `first`: overloaded; `second`: tired)"
        )
    assert chain.asked == [1, 1, 2]
    spoken = replace(ASKED, messages=(*ASKED.messages, UserMessage((Text("again"),))))
    with pytest.raises(ModelUnavailable) as raised:
        await chain.ask(spoken)
    assert raised.value.message.count("overloaded") == 1


async def test_a_mistake_before_does_not_count_as_a_failure() -> None:
    chain = Chain([fails(OutputLimitTooHigh("much", max_tokens=9, status=400)), DOWN], [])
    for kind in (OutputLimitTooHigh, ModelUnavailable):
        with pytest.raises(kind):
            await chain.ask()
    assert chain.asked == [2, 0]


async def test_window_and_price_are_those_of_who_answers() -> None:
    first = ScriptedModel([BUSY], window=10, cost_usd=1.0)
    second = ScriptedModel([says("hi")], window=20, cost_usd=2.0)
    model = FallbackModel([Link(first, "first"), Link(second, "second")], lambda _: None)
    assert (model.window, model.cost(Usage(), "any")) == (10, 1.0)
    [event async for event in model.stream(ASKED)]
    assert (model.window, model.cost(Usage(), "any")) == (20, 2.0)


async def test_with_the_runtimes_own_retries() -> None:
    """One wait, then the other model: not six waits."""
    chain = Chain([DOWN, DOWN], [says("hi")])
    summary = await conversation(chain.model).run_turn("go")
    assert (summary.stop_reason, final_assistant_text(summary)) == ("completed", "hi")
    assert chain.asked == [2, 1]
