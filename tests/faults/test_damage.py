"""Every prefix and every flipped bit of a journal: it loads as a prefix, or the line is named."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw.errors import SessionCorrupt
from claw.models.scripted import ScriptReply, calls, cut, says
from claw.sessions.folding import NeedsPast, fold_records, targets
from claw.sessions.lines import scan
from claw.sessions.load import Loaded, load, load_from, read_entries
from claw.testing import Harness
from claw.types.entries import Entry
from tests.unit.sessions.making import complaints, every_kind, said, start, write


async def scripted(folder: Path) -> Path:
    """A session of a real conversation: several tools, a cut reply, a long result."""
    script: list[ScriptReply] = [
        cut("I beg", after=1),
        calls(("Write", {"file_path": "a.txt", "content": "one\n"}), ("Glob", {"pattern": "*"})),
        calls(("Read", {"file_path": "long.txt"}), ("Nothing", {}), ("Edit", {"x": 1})),
        says("That is all."),
        calls(("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "zwölf"})),
        says("Changed."),
    ]
    files = {"long.txt": "a line\n" * 8000}
    async with Harness(folder, script, files=files, mode="acceptEdits") as run:
        await run.turn("begin")
        await run.turn("go on")
        assert run.house.journal_path is not None
        return Path(run.house.journal_path)


@pytest.fixture(params=["every kind", "spilled", "scripted"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "scripted":
        return await scripted(tmp_path)
    text = "a short text, 世界" if request.param == "every kind" else "lang " * 14_000
    return write(tmp_path / "s1.jsonl", every_kind(text))


def loaded_from(path: Path, content: bytes) -> Loaded:
    """As ``load`` does, without a file for each try."""
    try:
        return load_from(str(path), io.BytesIO(content))
    except NeedsPast:
        past = targets(line.record.entry for line in scan(io.BytesIO(content)) if line.record)
        return load_from(str(path), io.BytesIO(content), past)


def test_every_prefix_loads_into_what_providers_accept(journal: Path) -> None:
    content = journal.read_bytes()
    records = list(read_entries(str(journal)))
    begin = 0
    for count, line in enumerate(content.splitlines(keepends=True)):
        # What stands before is read as before: so inside of a record, that record is enough.
        for length in range(len(line) - 1):
            assert list(scan(io.BytesIO(line[:length]))) == []
        for length in (0, 1, len(line) // 2, len(line) - 1, len(line)):
            loaded = loaded_from(journal, content[: begin + length])
            assert loaded.records == count + (length >= len(line) - 1)
            assert loaded.ended is (length != len(line) - 1)
            assert loaded.end + loaded.torn == begin + length
            assert bool(loaded.notes) is bool(loaded.torn)
            known = records[: loaded.records]
            assert loaded.state == fold_records(lambda known=known: known)  # type: ignore[misc]
        assert complaints(loaded_from(journal, content[: begin + len(line)]).state) == []
        begin += len(line)
    assert begin == len(content)


def test_a_prefix_in_a_file_is_no_other(journal: Path, tmp_path: Path) -> None:
    content = journal.read_bytes()
    dice = random.Random(7)
    for length in [0, 1, len(content) - 1, *(dice.randrange(len(content)) for _ in range(50))]:
        expected = loaded_from(journal, content[:length])
        journal.write_bytes(content[:length])
        assert load(str(journal)) == expected


def of_64_kib(folder: Path) -> Path:
    entries: list[Entry] = [start()]
    size = 0
    while size < 48_000:
        entries += every_kind("many words, " * 20)[1:36]  # up to the rewind, whose place is fixed
        size = write(folder / f"{len(entries)}.jsonl", entries).stat().st_size
    path = write(folder / "s1.jsonl", entries)
    padding = 64 * 1024 - path.stat().st_size - 500
    return write(folder / "s2.jsonl", [*entries, said("p" * padding)])


def flips(line: bytes, after: bytes) -> Iterator[tuple[int, bytes]]:
    """A line with each of its bits flipped in turn, and what follows it."""
    flipped = bytearray(line + after)
    for bit in range(8 * len(line)):
        flipped[bit // 8] ^= 1 << bit % 8
        yield bit, bytes(flipped)
        flipped[bit // 8] ^= 1 << bit % 8


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_flipped_bit_is_named_with_its_line(tmp_path: Path) -> None:
    """Line by line, since loading stops at the first one with an error."""
    lines = of_64_kib(tmp_path).read_bytes().splitlines(keepends=True)
    tried = 0
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else b""
        original = next(scan(io.BytesIO(line))).record
        for bit, content in flips(line, after):
            first = next(scan(io.BytesIO(content)))
            tried += 1
            if not after and bit // 8 == len(line) - 1:  # the last newline
                assert (first.record, first.ended) == (original, False)
            else:
                assert (first.number, first.record) == (1, None), f"line {number + 1}, bit {bit}"
                assert first.error is not None
    assert tried > 500_000


def test_flipped_bits_stop_the_load_at_their_line(tmp_path: Path) -> None:
    path = of_64_kib(tmp_path)
    content = path.read_bytes()
    assert 60_000 < len(content) <= 64 * 1024
    whole = load(str(path))
    dice = random.Random(4096)
    for bit in dice.sample(range(8 * len(content)), 4096):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        line = content.count(b"\n", 0, bit // 8) + 1
        if bit // 8 == len(content) - 1:
            loaded = loaded_from(path, bytes(flipped))
            assert loaded.state == whole.state
            assert loaded.notes
            continue
        with pytest.raises(SessionCorrupt, match="damaged") as caught:
            loaded_from(path, bytes(flipped))
        assert caught.value.line == line
        assert "--salvage" in caught.value.hint


def test_a_flip_in_the_first_record_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("one")])
    content = path.read_bytes()
    for bit in range(8 * content.index(b"\n")):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(SessionCorrupt) as caught:
            load(str(path))
        assert caught.value.line == 1
