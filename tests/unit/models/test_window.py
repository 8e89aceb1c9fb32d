"""Servers that report a success where the context was full or the request was cut."""

from __future__ import annotations

import pytest

from claw.errors import ContextOverflow
from claw.models.window import WindowWatch, believable, is_overflow, was_truncated
from claw.types.events import AssistantEvent, MessageStop, TextDelta
from claw.types.messages import Image, Text, ToolUse, UserMessage
from claw.types.request import Request, Sampling
from claw.types.usage import Usage

WINDOW = 100_000


def estimating(tokens: int):
    return lambda: tokens


@pytest.mark.parametrize(
    ("usage", "stop", "said", "estimate", "overflow"),
    [
        pytest.param(Usage(120_000, 50), "stop", True, 110_000, True, id="more than fits"),
        pytest.param(Usage(90_000, 50, 30_000), "stop", True, 95_000, True, id="with the cache"),
        pytest.param(Usage(120_000, 50), "stop", True, 900, False, id="nobody sent that much"),
        pytest.param(Usage(99_000), "max_tokens", False, 90_000, True, id="full, no output"),
        pytest.param(Usage(99_900), "max_tokens", False, 50, True, id="full, by its own count"),
        pytest.param(Usage(98_999), "max_tokens", False, 90_000, False, id="room was left"),
        pytest.param(Usage(99_000, 9), "max_tokens", False, 90_000, False, id="it only thought"),
        pytest.param(Usage(99_000), "max_tokens", True, 90_000, False, id="it wrote"),
        pytest.param(Usage(99_000), "stop", False, 90_000, False, id="it had nothing to say"),
        pytest.param(Usage(5), "model_context_window_exceeded", False, 5, True, id="said so"),
        pytest.param(Usage(5), "model_context_window_exceeded", True, 5, False, id="cut text"),
        pytest.param(Usage(120_000, estimated=True), "stop", True, 120_000, False, id="our guess"),
    ],
)
def test_overflow_in_disguise(usage: Usage, stop: str, said: bool, estimate: int, overflow: bool):
    found = is_overflow(usage, stop, said=said, window=WINDOW, estimate=estimating(estimate))
    assert found is overflow


def test_an_unknown_window_is_never_full():
    full = Usage(10**9)
    assert not is_overflow(full, "stop", said=True, window=None, estimate=estimating(10**9))
    assert believable(full, window=None, estimate=estimating(5)) is full


def test_figures_that_no_window_holds_are_not_believed():
    doubled = Usage(90_000, 100, 90_000)
    believed = believable(doubled, window=WINDOW, estimate=estimating(80_000))
    assert believed == Usage(80_000, 100, estimated=True)
    absurd = believable(Usage(10, 10**9), window=WINDOW, estimate=estimating(10))
    assert absurd.context_tokens <= WINDOW
    assert absurd.estimated
    fits = Usage(10, 5, WINDOW - 15)
    assert believable(fits, window=WINDOW, estimate=estimating(7)) is fits


def test_truncation_is_seen_only_where_it_is_plain():
    assert was_truncated(Usage(4_096, 10), 12_000)
    assert was_truncated(Usage(96, 10, 4_000), 12_000)
    assert not was_truncated(Usage(8_000, 10), 12_000)
    assert not was_truncated(Usage(100, 10), 900)
    assert not was_truncated(Usage(0, 10), 12_000)
    assert not was_truncated(Usage(4_096, 10, estimated=True), 12_000)


def watched(*events: AssistantEvent, estimate: int = 10, window: int | None = WINDOW):
    watch = WindowWatch(window, estimating(estimate))
    for event in events:
        watch.see(event)
    return watch


def asking(*blocks: Text | Image) -> Request:
    return Request("", (UserMessage(blocks),), (), Sampling("m"))


def test_the_overflow_names_the_window():
    watch = watched(Usage(WINDOW), MessageStop("max_tokens"))
    with pytest.raises(ContextOverflow) as caught:
        list(watch.end())
    assert caught.value.limit_tokens == WINDOW


def test_blanks_are_no_output_and_calls_are():
    with pytest.raises(ContextOverflow):
        list(watched(TextDelta(" \n"), Usage(WINDOW), MessageStop("max_tokens")).end())
    call = ToolUse("a", "Read", {}, '{"pa')
    assert not list(watched(call, Usage(WINDOW), MessageStop("max_tokens")).end())


def test_a_cut_stream_is_left_alone():
    watch = watched(Usage(2 * WINDOW), estimate=2 * WINDOW)
    assert not list(watch.end())
    assert not watch.cut_in_silence(asking(Text("x")), 10**6)


def test_a_server_that_cuts_is_told_of():
    watch = watched(Usage(4_096, 9), MessageStop("stop"), estimate=12_000)
    told = watch.cut_in_silence(asking(Text("x")), 48_000)
    assert "4,096" in told
    assert "num_ctx" in told
    # What was sent is less than what the estimate counts: thinking stays behind.
    assert not watch.cut_in_silence(asking(Text("x")), 12_000)
    # An image is a long text on the wire and few tokens.
    assert not watch.cut_in_silence(asking(Image("image/png", "a")), 10**6)
