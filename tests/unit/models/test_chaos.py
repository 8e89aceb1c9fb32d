from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import ModelUnavailable, ProtocolViolation
from claw.models.chaos import FAULTS, ChaosModel, Fault
from claw.models.scripted import ScriptedModel, calls, says
from claw.testing.clock import FakeClock
from claw.testing.conformance import a_request
from claw.types.events import AssistantEvent, MessageStop
from claw.types.messages import ToolUse
from claw.types.reply import Reply, assemble
from claw.types.usage import Usage

TWO_CALLS = calls(("Read", {"file_path": "a"}), ("Read", {}), text="I look at both of them.")


def inner(window: int | None = None) -> ScriptedModel:
    return ScriptedModel([TWO_CALLS], strict=False, window=window, cost_usd=2.0)


async def events_of(model: ChaosModel) -> list[AssistantEvent]:
    return [event async for event in model.stream(a_request())]


def spoiled(fault: Fault, seed: int = 1, clock: FakeClock | None = None) -> ChaosModel:
    return ChaosModel(inner(), seed, clock=clock or FakeClock(), faults=[fault], rate=1)


async def sampled(fault: Fault) -> Reply:
    return assemble(await events_of(spoiled(fault)))


async def test_without_a_fault_nothing_changes():
    model = ChaosModel(inner(window=9), 1, clock=FakeClock(), rate=0)
    plain = [event async for event in inner().stream(a_request())]
    assert await events_of(model) == plain
    assert (model.window, model.cost(Usage(), "m"), model.injected) == (9, 2.0, [])


@pytest.mark.parametrize("seed", range(20))
async def test_a_cut_stream_has_begun_and_does_not_end(seed):
    events = await events_of(spoiled("cut", seed))
    assert events
    assert not any(isinstance(event, MessageStop) for event in events)


async def test_a_missing_stop_leaves_everything_else():
    reply = await sampled("missing_stop")
    assert not reply.complete
    assert len(reply.tool_calls) == 2


async def test_an_empty_stream():
    assert await events_of(spoiled("empty")) == []
    with pytest.raises(ProtocolViolation):
        assemble([])


async def test_overloaded_comes_before_the_first_byte():
    with pytest.raises(ModelUnavailable) as caught:
        await events_of(spoiled("overloaded"))
    assert caught.value.status == 529


async def test_duplicate_ids():
    events = await events_of(spoiled("duplicate_ids"))
    assert [e.id for e in events if isinstance(e, ToolUse)] == ["call", "call"]


async def test_malformed_arguments():
    reply = await sampled("malformed_arguments")
    assert [(call.input, call.raw_input) for call in reply.tool_calls] == [
        ({}, '{"file_path": "a"'),
        ({}, "{"),
    ]


async def test_slow_waits_by_the_clock():
    clock = FakeClock()
    assert assemble(await events_of(spoiled("slow", clock=clock))).complete
    assert clock.monotonic() > 1


@given(st.integers(), st.floats(0, 1))
async def test_the_same_seed_does_the_same(seed, rate):
    async def play() -> list[object]:
        model = ChaosModel(inner(), seed, clock=FakeClock(), faults=FAULTS, rate=rate)
        seen: list[object] = []
        for _ in range(5):
            try:
                seen.append(await events_of(model))
            except ModelUnavailable as error:
                seen.append(str(error))
        return [seen, model.injected]

    assert await play() == await play()


async def test_the_rate_is_kept_and_every_fault_comes_up():
    model = ChaosModel(ScriptedModel([says("x")], strict=False), 7, clock=FakeClock(), rate=0.5)
    for _ in range(200):
        with suppress(ModelUnavailable):
            await events_of(model)
    assert 60 < len(model.injected) < 140
    assert {fault for _, fault in model.injected} == set(FAULTS)
