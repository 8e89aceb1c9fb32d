from __future__ import annotations

import pytest

from claw.errors import ToolFailed
from tests.unit.tools.conftest import Bench


async def test_a_new_file_with_its_directories(bench: Bench) -> None:
    text = await bench.run("write_file", path="new/deep/a.txt", content="one\ntwo\n")
    assert (bench.root / "new/deep/a.txt").read_text() == "one\ntwo\n"
    assert text == f"Created {bench.root}/new/deep/a.txt (2 lines)."


async def test_what_was_not_read_is_not_replaced(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("theirs")
    with pytest.raises(ToolFailed, match="Read it"):
        await bench.run("Write", path="a.txt", content="mine")
    await bench.run("Read", path="a.txt")
    await bench.run("Write", path="a.txt", content="mine")
    await bench.run("Write", path="a.txt", content="mine again")
    assert (bench.root / "a.txt").read_text() == "mine again"


async def test_what_changed_since_is_not_replaced(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("one")
    await bench.run("Read", path="a.txt")
    (bench.root / "a.txt").write_text("two")
    with pytest.raises(ToolFailed, match="changed since"):
        await bench.run("Write", path="a.txt", content="mine")
    assert (bench.root / "a.txt").read_text() == "two"


async def test_what_was_deleted_since_is_created_again(bench: Bench) -> None:
    await bench.run("Write", path="a.txt", content="one")
    (bench.root / "a.txt").unlink()
    assert "Created" in await bench.run("Write", path="a.txt", content="two")


async def test_a_person_sees_the_difference(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("one\ntwo\n")
    await bench.run("Read", path="a.txt")
    tool = bench.tools.get("Write")
    assert tool is not None
    preview = tool.preview(tool.parse({"path": "a.txt", "content": "one\n2\n"}))
    assert "-two\n+2" in preview
    output = await bench.output("Write", path="a.txt", content="one\n2\n")
    assert "-two\n+2" in output.display
    new = tool.preview(tool.parse({"path": "b.txt", "content": "all of it\n"}))
    assert "all of it" in new


async def test_what_cannot_be_stored_is_refused(bench: Bench) -> None:
    for path, content in [("a.txt", "\ud800"), (".", "x"), ("a/", "x"), ("a\0", "x")]:
        with pytest.raises(ToolFailed):
            await bench.run("Write", path=path, content=content)
    assert list(bench.root.iterdir()) == []


async def test_one_line_is_one_line(bench: Bench) -> None:
    assert await bench.run("Write", file_path="a", content="x\n") == (
        f"Created {bench.root}/a (1 line)."
    )
    assert (await bench.run("Write", file_path="b", content="")).endswith("(0 lines).")
