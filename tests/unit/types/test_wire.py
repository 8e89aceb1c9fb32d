"""The chunks of a body are found again from their sizes, whatever the sizes say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claw.types.wire import cut, sizes_of, total

CHUNKS = st.lists(st.binary(min_size=1, max_size=4), max_size=30)


@given(CHUNKS)
def test_the_same_chunks_come_back(chunks: list[bytes]):
    data = b"".join(chunks)
    assert [*cut(data, sizes_of(chunks))] == chunks
    assert total(sizes_of(chunks)) == len(data)


def test_equal_sizes_in_a_row_are_counted():
    assert sizes_of([b"abc", b"d", b"e", b"f", b"gh"]) == "3 3*1 2"
    assert sizes_of([b"x"] * 100_000) == "100000*1"
    assert sizes_of([]) == ""


@given(st.binary(max_size=20), st.text("0123456789* -x", max_size=20))
def test_sizes_that_nobody_wrote_lose_no_byte(data: bytes, sizes: str):
    assert b"".join(cut(data, sizes)) == data
    assert all(cut(data, sizes))


def test_absurd_counts_take_no_time():
    assert [*cut(b"abc", "999999999999*0 999999999999*2")] == [b"ab", b"c"]
