from __future__ import annotations

import os

import pytest

from claw.errors import ToolFailed
from tests.unit.tools.conftest import Bench


async def test_the_path_and_the_numbered_lines(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("one\ntwo\n")
    text = await bench.run("read_file", path="a.txt")
    assert text == f"{bench.root}/a.txt\n     1\tone\n     2\ttwo"


async def test_a_part_says_what_there_is_more(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    text = await bench.run("Read", path="a.txt", offset=10, limit=2)
    assert "lines 10-11 of 100" in text
    assert "    10\tline 10\n    11\tline 11\n" in text
    assert "[89 more lines: offset 12]" in text
    with pytest.raises(ToolFailed, match="100 lines"):
        await bench.run("Read", path="a.txt", offset=101)


async def test_long_files_and_lines_are_bounded(bench: Bench) -> None:
    (bench.root / "many").write_text("x\n" * 5000)
    (bench.root / "wide").write_text("y" * 250_000 + "\n")
    (bench.root / "both").write_text(("z" * 3000 + "\n") * 2000)
    assert "[3000 more lines: offset 2001]" in await bench.run("Read", path="many")
    wide = await bench.run("Read", path="wide")
    assert len(wide) < 3000
    assert "248,000 more characters" in wide
    assert len(await bench.run("Read", path="both")) < 300_000


@pytest.mark.parametrize(
    ("data", "line", "remark"),
    [
        ("\ufeffgrüß\n".encode(), "     1\tgrüß", ""),
        ("grüß\n".encode("utf-16"), "     1\tgrüß", "utf-16"),
        ("grüß\n".encode("latin-1"), "     1\tgrüß", "Latin-1"),
        (b"a\r\nb\r\n", "     1\ta\n     2\tb", "CRLF"),
    ],
)
async def test_encodings(bench: Bench, data: bytes, line: str, remark: str) -> None:
    (bench.root / "a.txt").write_bytes(data)
    head, _, rest = (await bench.run("Read", path="a.txt")).partition("\n")
    assert rest == line
    assert remark in head
    assert "\ufeff" not in head + rest


async def test_what_is_no_text(bench: Bench) -> None:
    (bench.root / "bin").write_bytes(b"x" * 9000 + b"\0")
    (bench.root / "empty").write_bytes(b"")
    (bench.root / "fake.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + b"rest")
    (bench.root / "doc.pdf").write_bytes(b"%PDF-1.7\n")
    os.mkfifo(bench.root / "fifo")
    assert "binary file of 9,001 bytes" in await bench.run("Read", path="bin")
    assert "is empty" in await bench.run("Read", path="empty")
    for path, said in [
        ("fake.txt", "PNG image"),
        ("doc.pdf", "PDF"),
        ("fifo", "not a regular file"),
        (".", "Glob"),
        ("emty", "empty"),
    ]:
        with pytest.raises(ToolFailed, match=said):
            await bench.run("Read", path=path)
