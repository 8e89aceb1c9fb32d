"""A cache that lets go is noticed, and explained where it can be."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.errors import ModelError, ModelUnavailable
from claw.models.cache_watch import CacheWatch
from claw.models.fallback import FallbackModel, Link
from claw.testing import (
    FakeClock,
    Harness,
    ScriptedModel,
    ScriptReply,
    calls,
    cut,
    fails,
    raw,
    says,
)
from claw.types.entries import ReplyReceived
from claw.types.events import MessageStop, PromptCache, TextDelta
from claw.types.messages import AssistantMessage, Text, UserMessage
from claw.types.reply import Reply
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
    return await events_of(second, *(reports(read) for read in reads), wait=wait)


def reports(read: int, *, model: str = "", estimated: bool = False) -> Reply:
    usage = Usage(1, 1, cache_read_input_tokens=read, estimated=estimated)
    return says("x", usage=usage, model=model)


async def events_of(
    later: Request, *replies: ScriptReply, wait: float = 1.0
) -> list[PromptCacheEvent]:
    """What is noticed where the first reply is to ``FIRST``, all others to ``later``."""
    clock = FakeClock()
    watch = CacheWatch(ScriptedModel(replies), clock)
    found: list[PromptCacheEvent] = []
    for number in range(len(replies)):
        with suppress(ModelError):
            async for event in watch.stream(later if number else FIRST):
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
        (replace(GROWN, sampling=Sampling("m", effort="high")), "the effort changed"),
        (replace(GROWN, system="another"), "the system prompt changed"),
        (replace(GROWN, tools=(ToolSpec("T", "", {}),)), "the tools changed"),
        (replace(GROWN, messages=GROWN.messages[1:]), "earlier messages changed"),
    ],
)
async def test_a_change_of_ours_is_named(second: Request, reason: str) -> None:
    (event,) = await watched(second, (10_000, 0))
    assert (event.unexpected, event.reason) == (False, reason)


@pytest.mark.parametrize(("wait", "unexpected"), [(299, True), (300, False), (3_000, False)])
async def test_time_explains_it_too(wait: float, unexpected: bool) -> None:
    (event,) = await watched(GROWN, (10_000, 0), wait=wait)
    assert event.unexpected is unexpected
    assert ("five minutes" in event.reason) is not unexpected


async def test_another_model_answers() -> None:
    """A gateway may pass requests on to one model today and to another one tomorrow."""
    first, same = reports(10_000, model="m-one"), reports(0, model="vendor/m-one-20261101")
    (event,) = await events_of(GROWN, first, reports(0, model="m-two"))
    assert (event.unexpected, event.reason) == (False, "the model changed")
    (event,) = await events_of(GROWN, first, same)
    assert event.unexpected


async def test_a_model_that_stands_in_explains_it() -> None:
    busy = fails(ModelUnavailable("busy", status=529))
    first = ScriptedModel([reports(10_000), busy])
    links = [Link(first, "m"), Link(ScriptedModel([reports(0)]), "n")]
    watch = CacheWatch(FallbackModel(links, lambda _: None), FakeClock())
    found = [e for r in (FIRST, GROWN) async for e in watch.stream(r) if isinstance(e, PromptCache)]
    assert [(e.event.unexpected, e.event.reason) for e in found] == [(False, "the model changed")]


@pytest.mark.parametrize(
    "between",
    [
        reports(0, estimated=True),
        raw(TextDelta("no figures"), MessageStop("end_turn")),
        cut(reports(0)),
        fails(ModelUnavailable("busy")),
    ],
    ids=["estimated", "none", "cut", "failed"],
)
async def test_a_request_without_figures_is_passed_over(between: ScriptReply) -> None:
    assert await events_of(GROWN, reports(10_000), between) == []
    (event,) = await events_of(GROWN, reports(10_000), between, reports(1_000))
    assert event.token_drop == 9_000


async def test_it_is_in_the_summary_and_in_the_journal(tmp_path: Path) -> None:
    script = [
        calls(("Glob", {"pattern": "*"}), usage=Usage(1, 1, cache_read_input_tokens=9_000)),
        reports(4_000),
        reports(4_000),
    ]
    async with Harness(tmp_path, script) as run:
        event = PromptCacheEvent(True, "nothing changed on our side", 9_000, 4_000, 5_000)
        assert (await run.turn("go")).prompt_cache_events == (event,)
        assert (await run.turn("on")).prompt_cache_events == ()
        replies = [entry for entry in run.entries if isinstance(entry, ReplyReceived)]
    assert [reply.prompt_cache for reply in replies] == [None, event, None]


async def test_a_new_process_begins_anew(tmp_path: Path) -> None:
    begun: tuple[str, int, dict[str, Any]] = ("go", 9_000, {})
    for prompt, read, options in (begun, ("on", 0, {"session": "latest"})):
        async with Harness(tmp_path, [reports(read)], **options) as run:
            assert (await run.turn(prompt)).prompt_cache_events == ()


@pytest.mark.parametrize("reads", [(10_000, 8_001), (0, 10_000), (1_999, 0)])
async def test_small_drops_and_growth_are_no_events(reads: tuple[int, int]) -> None:
    assert await watched(GROWN, reads) == []
