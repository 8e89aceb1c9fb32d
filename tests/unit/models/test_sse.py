from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.models.sse import MAX_EVENT, SseDecoder, SseEvent


def events_of(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


def test_named_events_data_lines_and_comments():
    body = b": hello\n\nevent: ping\ndata: {}\n\ndata: one\ndata:two\nid: 7\nretry: 5\n\n"
    assert events_of(body) == [SseEvent("ping", b"{}"), SseEvent("", b"one\ntwo")]


def test_a_name_without_data_is_no_event():
    assert events_of(b"event: ping\n\ndata: x\n\n") == [SseEvent("", b"x")]


def test_byte_order_mark_and_every_line_end():
    assert events_of(b"\xef\xbb\xbfdata: a\r\n\r\ndata: b\r\rdata: c\n\n") == [
        SseEvent("", b"a"),
        SseEvent("", b"b"),
        SseEvent("", b"c"),
    ]


def test_the_last_event_needs_no_blank_line():
    assert events_of(b"data: [DONE]") == [SseEvent("", b"[DONE]")]


def test_an_event_of_several_megabytes():
    data = b"x" * 3_000_000
    body = b"data: " + data + b"\n\n"
    assert events_of(*[body[i : i + 65536] for i in range(0, len(body), 65536)]) == [
        SseEvent("", data)
    ]


@pytest.mark.parametrize("size", [MAX_EVENT + 1, 1 << 20])
def test_what_is_larger_than_any_event(size):
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\n\n") == [SseEvent("", b"1")]
    for _ in range(0, MAX_EVENT, size):
        assert not decoder.overgrown
        assert decoder.feed(b"data: " + b"x" * size + b"\n") == []
    assert decoder.overgrown
    assert decoder.feed(b"\ndata: 2\n\n") == []


def test_an_event_over_the_limit_in_one_chunk_comes_after_those_before_it():
    decoder = SseDecoder()
    body = b"data: 1\n\ndata: " + b"x" * MAX_EVENT + b"\n\ndata: 2\n\n"
    assert decoder.feed(body) == [SseEvent("", b"1")]
    assert decoder.overgrown


@pytest.mark.parametrize("start", [b"data: ", b": ", b""])
def test_a_line_without_end(start):
    decoder = SseDecoder()
    decoder.feed(b"data: 1\n" + start)
    for _ in range(MAX_EVENT >> 20):
        decoder.feed(b"x" * (1 << 20))
    assert decoder.overgrown


LINES = st.sampled_from(
    ["data: é🌍", "data:", "data: {}", "event: a", ": ping", "", "", "junk", "data", "id: 3"]
)


@given(
    st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=12),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_any_chunking_gives_the_same(lines, cuts):
    body = "".join(line + end for line, end in lines).encode()
    places = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    pieces = [body[a:b] for a, b in pairwise(places)]
    assert events_of(*pieces) == events_of(body)
    assert events_of(*[body[i : i + 1] for i in range(len(body))]) == events_of(body)
