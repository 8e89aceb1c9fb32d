from __future__ import annotations

import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from claw.errors import ToolFailed
from claw.ports import ToolCall
from claw.testing.doubles import MemoryWorkspace
from claw.tools.diff import Span, hunks
from claw.tools.edit import Edit
from claw.tools.encoding import decode_text
from claw.tools.ledger import ReadLedger
from tests.unit.tools.conftest import Bench


async def edited(bench: Bench, data: bytes, old: str, new: str, **more: object) -> bytes:
    path = bench.root / "a.txt"
    path.write_bytes(data)
    await bench.run("Edit", path="a.txt", old_str=old, new_str=new, **more)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\nc\r\nd\n", "b", "B", b"a\r\nB\nc\r\nd\n"),
        (b"line1\nline2\nline3", "line1", "x", b"x\nline2\nline3"),
        (b"alpha\nbeta\n\n", "alpha", "x", b"x\nbeta\n\n"),
        (b"\xef\xbb\xbfone\n", "one", "two", b"\xef\xbb\xbftwo\n"),
        (b"\xef\xbb\xbfone\n", "\ufeffone", "one", b"one\n"),
        (b"a\r\nb\r\n", "a\r\nb", "a\r\nc", b"a\r\nc\r\n"),
        ("ü\n".encode("utf-16"), "ü", "é", "é\n".encode("utf-16")),
        (b"x\r", "x", "y", b"y\r"),
        (b"gone", "gone", "", b""),
    ],
)
async def test_only_the_span_changes(
    bench: Bench, before: bytes, old: str, new: str, after: bytes
) -> None:
    assert await edited(bench, before, old, new) == after


async def test_replace_all(bench: Bench) -> None:
    assert await edited(bench, b"a b a\r\na", "a", "c", replace_all=True) == b"c b c\r\nc"


@pytest.mark.parametrize(
    ("data", "old", "said"),
    [
        (b"one two one", "one", "occurs 2 times"),
        (b"aaa", "aa", "occurs 2 times"),
        (b"def  main():\n", "def main():", "    1\tdef  main"),
        (b"a\r\nb\r\n", "a\nb", "CRLF"),
        (b"caf\xe9", "caf", "UTF-8"),
        (b"x\0y", "x", "UTF-8"),
        (b"", "x", "not found"),
    ],
)
async def test_what_does_not_fit_changes_nothing(
    bench: Bench, data: bytes, old: str, said: str
) -> None:
    with pytest.raises(ToolFailed, match=said):
        await edited(bench, data, old, "new")
    assert (bench.root / "a.txt").read_bytes() == data


async def test_a_file_that_changed_since_it_was_read(bench: Bench) -> None:
    path = bench.root / "a.txt"
    path.write_text("one two")
    await bench.run("Read", path="a.txt")
    os.utime(path, (1, 1))  # the time alone means nothing
    await bench.run("Edit", path="a.txt", old_str="one", new_str="1")
    await bench.run("Edit", path="a.txt", old_str="two", new_str="2")
    path.write_text("1 2 3")
    with pytest.raises(ToolFailed, match="changed since"):
        await bench.run("Edit", path="a.txt", old_str="1", new_str="one")


async def test_the_result_is_a_short_diff(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    text = await bench.run("Edit", path="a.txt", old_str="line 500\n", new_str="x\ny\n")
    assert "@@ -497,7 +497,8 @@" in text
    assert "-line 500\n+x\n+y\n" in text
    assert len(text) < 500


def test_hunks_show_exactly_the_change() -> None:
    assert hunks("a\nb\nc\n", [Span(2, "b", "B")]) == "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
    assert hunks("x", [Span(0, "x", "y")]) == "@@ -1,1 +1,1 @@\n-x\n+y"


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=20), st.text(min_size=1, max_size=9), st.text())
async def test_bytes_around_any_span_are_kept(head: str, tail: str, old: str, new: str) -> None:
    whole = head + old + tail
    assume(whole.find(old) == len(head) and whole.find(old, len(head) + 1) < 0 and old != new)
    assume("\0" not in whole and not whole.startswith("\ufeff"))
    workspace = MemoryWorkspace({"f": whole})
    tool = Edit(workspace, ReadLedger())
    args = tool.parse({"path": "f", "old_str": old, "new_str": new})
    await tool.run(args, ToolCall("x", lambda text: None))
    assert workspace.read("f", limit=10_000).data == (head + new + tail).encode()


@given(st.binary(max_size=60))
def test_what_decodes_exactly_encodes_back(data: bytes) -> None:
    decoded = decode_text(data)
    if decoded is not None and decoded.exact:
        assert decoded.encoded(decoded.text) == data
