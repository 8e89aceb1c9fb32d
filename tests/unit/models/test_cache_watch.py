"""A cache that lets go is noticed, and explained where it can be."""

import pytest
from msgspec.structs import replace

from claw.models.cache_watch import CacheWatch
from claw.testing import FakeClock, ScriptedModel, says
from claw.types.events import PromptCache
from claw.types.messages import AssistantMessage, Text, UserMessage
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec
from claw.types.usage import PromptCacheEvent, Usage

FIRST = Request("system", (UserMessage((Text("a"),)),), (), Sampling("m"))
GROWN = replace(
    FIRST,
    messages=(*FIRST.messages, AssistantMessage((Text("b"),)), UserMessage((Text("c"),))),
)


async def watched(
    second: Request, reads: tuple[int, int], wait: float = 1.0
) -> list[PromptCacheEvent]:
    clock = FakeClock()
    replies = [says("x", usage=Usage(1, 1, cache_read_input_tokens=read)) for read in reads]
    watch = CacheWatch(ScriptedModel(replies), clock)
    found: list[PromptCacheEvent] = []
    for request in (FIRST, second):
        async for event in watch.stream(request):
            if isinstance(event, PromptCache):
                found.append(event.event)
        clock.advance(wait)
    return found


async def test_a_drop_without_a_reason_is_unexpected() -> None:
    (event,) = await watched(GROWN, (10_000, 3_000))
    assert event == PromptCacheEvent(True, "nothing changed on our side", 10_000, 3_000, 7_000)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (replace(GROWN, sampling=Sampling("other")), "the model changed"),
        (replace(GROWN, system="another"), "the system prompt changed"),
        (replace(GROWN, tools=(ToolSpec("T", "", {}),)), "the tools changed"),
        (replace(GROWN, messages=GROWN.messages[1:]), "earlier messages changed"),
    ],
)
async def test_a_change_of_ours_is_named(second: Request, reason: str) -> None:
    (event,) = await watched(second, (10_000, 0))
    assert (event.unexpected, event.reason) == (False, reason)


async def test_time_explains_it_too() -> None:
    (event,) = await watched(GROWN, (10_000, 0), wait=301)
    assert (event.unexpected, event.reason) == (False, "more than five minutes passed")


@pytest.mark.parametrize("reads", [(10_000, 8_001), (0, 10_000), (1_999, 0)])
async def test_small_drops_and_growth_are_no_events(reads: tuple[int, int]) -> None:
    assert await watched(GROWN, reads) == []
