"""Damaged replies never escape as anything but a ``ModelError``, and nothing cut is run.

A case that fails names its seed; ``tests/wire/fuzzing.py`` says how to repeat it.
"""

from __future__ import annotations

import pytest

from claw.models.decode import decode
from tests.wire.fuzzing import STREAMS, WHOLE, Case, check_case, own_seeds, sweep

BLOCK = 5000


async def test_damaged_replies():
    await sweep(own_seeds(), 0, 2000)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", range(20))
async def test_many_damaged_replies(block):
    await sweep(own_seeds(), 100_000 + block * BLOCK, BLOCK)


@pytest.mark.parametrize("dialect", STREAMS)
def test_the_seeds_are_good(dialect):
    for seed in own_seeds():
        reply = decode(seed.dialect, [seed.body])
        assert (reply.complete, reply.text, reply.thinking) == (True, "Good 🌍.", "hm 思")
        assert [call.name for call in reply.tool_calls] == ["Look", "Change"]


END = {
    "anthropic": b"event: message_delta",
    "openai-chat": b'data: {"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": {}, ',
    "openai-responses": b"event: response.completed",
}
"""Where the event begins that says why the reply ended."""


@pytest.mark.parametrize("dialect", STREAMS)
def test_a_stream_cut_anywhere_before_its_stop_reason_is_incomplete(dialect):
    body = STREAMS[dialect]
    for at in range(body.index(b"\n\n", 20), body.index(END[dialect]) + 12):
        reply = decode(dialect, [body[:at]])
        assert not reply.complete, at
        assert not reply.stop_reason, at


@pytest.mark.parametrize("dialect", STREAMS)
async def test_no_call_of_a_cut_stream_runs(dialect):
    body = STREAMS[dialect]
    for at in range(body.index(END[dialect]) - 200, body.index(END[dialect]), 10):
        assert await check_case(Case(dialect, body[:at]), at, turns=True) == 0


@pytest.mark.parametrize("dialect", WHOLE)
async def test_the_calls_of_a_whole_reply_run(dialect):
    assert await check_case(Case(dialect, STREAMS[dialect]), 0, turns=True) == 2 * 2
