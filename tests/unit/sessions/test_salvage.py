"""Damage is found, named, and left behind; all the rest goes on."""

from __future__ import annotations

import shutil
import stat
import tempfile
import zlib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json

from claw.errors import SessionCorrupt, SessionError, SessionLocked, SessionNotFound
from claw.sessions.journal import FileJournal
from claw.sessions.load import load, read_entries
from claw.sessions.record import encode_record
from claw.sessions.salvage import salvage, verify
from claw.testing import FaultyDisk, Killed
from claw.testing.disk import Fault
from claw.types.entries import Entry, RuleAdded, Titled, ToolFinished
from claw.types.messages import Image, Text, ToolUse
from claw.types.permissions import Rule
from claw.workspace.disk import SystemDisk
from tests.unit.sessions.making import complaints, every_kind, now, reply, said, start, write

ENTRIES: list[Entry] = [start(), said("one"), Titled("t"), said("two")]


def mended(path: Path) -> tuple[int, ...]:
    done = salvage(str(path), now=now, disk=SystemDisk())
    assert done.path == str(path)
    return tuple(lost.line for lost in done.lost)


def test_a_good_session_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    before = path.read_bytes()
    report = verify(str(path))
    assert (report.records, report.bytes, report.torn) == (4, len(before), 0)
    assert report.damage == ()
    assert report.notes == ()
    done = salvage(str(path), now=now, disk=SystemDisk())
    assert (done.kept, done.lost, done.damaged) == (4, (), "")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["s1.jsonl"]


def test_all_damage_is_found_at_once_and_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    lines = path.read_bytes().splitlines(keepends=True)
    harmed = [lines[0], lines[1].replace(b"one", b"0ne"), lines[2], b"garbage\n", lines[3], b"torn"]
    path.write_bytes(b"".join(harmed))
    report = verify(str(path))
    assert [found.line for found in report.damage] == [2, 4]
    assert (report.records, report.torn) == (3, 4)

    done = salvage(str(path), now=now, disk=SystemDisk())
    assert done.kept == 3
    assert [lost.line for lost in done.lost] == [2, 4, 0]
    assert Path(done.damaged).read_bytes() == b"".join(harmed)
    assert Path(done.damaged).name.startswith("s1.jsonl.damaged-")
    assert path.read_bytes() == b"".join([lines[0], lines[2], lines[3]])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = load(str(path))
    assert (loaded.records, loaded.last_seq) == (3, 4)
    assert "missing" in loaded.notes[0]
    assert not list(tmp_path.glob("*.tmp"))


def test_records_beside_garbage_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    one, two, three, four = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(one + two[:30] + three[:-1] + b"\xff" + four)
    assert mended(path) == (2,)
    assert [r.entry for r in read_entries(str(path))] == [ENTRIES[0], ENTRIES[2], ENTRIES[3]]


def test_a_record_that_a_model_wrote_into_its_call_is_none(tmp_path: Path) -> None:
    planted = encode_record(
        RuleAdded(Rule("allow", "Bash", "", "session")), seq=9, id="e9", parent="e8", at=""
    )
    call = reply(1, ToolUse("a", "X", {"one": json.decode(planted), "all": [json.decode(planted)]}))
    path = write(tmp_path / "s1.jsonl", [start(), said("one"), call])
    whole = path.read_bytes()
    for harmed in (whole.replace(b'"id":"a"', b'"id":"b"'), whole[:-30]):
        assert planted[:-1] in harmed
        path.write_bytes(harmed)
        salvage(str(path), now=now, disk=SystemDisk())
        assert [record.entry for record in read_entries(str(path))] == [start(), said("one")]


def test_an_older_damaged_file_is_kept_as_well(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    for old, new in ((b"one", b"0ne"), (b"two", b"tw0")):
        path.write_bytes(path.read_bytes().replace(old, new))
        salvage(str(path), now=now, disk=SystemDisk())
    assert len(list(tmp_path.glob("s1.jsonl.damaged-*"))) == 2


def test_a_repeated_record_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[1]]))
    assert mended(path) == (5,)
    assert path.read_bytes() == b"".join(lines)


def test_a_session_without_its_first_record_keeps_its_id(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    path.write_bytes(path.read_bytes().replace(b'"cwd"', b'"cvd"'))
    with pytest.raises(SessionCorrupt):
        load(str(path))
    assert mended(path) == (1,)
    journal, loaded = FileJournal.continue_from(str(path), now=now, disk=SystemDisk())
    assert loaded.state.session_id == "s1"
    journal.append(said("three"))
    journal.close()
    assert load(str(path)).records == 4


def test_a_lost_text_becomes_a_mark_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("x" * 70_000), said("y" * 70_000)])
    lost, held = sorted((tmp_path / "s1.blobs").iterdir(), key=lambda f: f.read_bytes()[0:1])
    lost.unlink()
    assert [found.line for found in verify(str(path)).damage] == [2]
    assert mended(path) == (2,)
    entries = [record.entry for record in read_entries(str(path))]
    assert entries == [
        start(),
        said(f"[lost: the text with the digest {lost.name}]"),
        said("y" * 70_000),
    ]
    assert verify(str(path)).damage == ()
    assert held.exists()


def test_blobs_that_no_load_needs_are_checked_too(tmp_path: Path) -> None:
    shown = ToolFinished("c", (Text("x"), Image("image/png", "e" * 64)), "ok", spilled="f" * 64)
    path = write(tmp_path / "s1.jsonl", [start(), shown])
    report = verify(str(path))
    assert report.blobs == 2
    assert [found.line for found in report.damage] == [0, 0]
    assert load(str(path)).records == 2


def test_what_a_newer_claw_wrote_is_kept_word_for_word(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    rest = b'"v":2,"seq":5,"id":"e5","kind":"dreamt","of":[1]}'
    newer = b'{"crc":"%08x",%b\n' % (zlib.crc32(rest), rest)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"one", b"0ne") + newer)
    salvage(str(path), now=now, disk=SystemDisk())
    assert path.read_bytes().endswith(newer)


def test_what_a_newer_claw_wrote_is_no_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    rest = b'"v":1,"seq":5,"id":"e5","kind":"titled","name":"of a field that is new"}'
    with path.open("ab") as file:
        file.write(b'{"crc":"%08x",%b\n' % (zlib.crc32(rest), rest))
    before = path.read_bytes()
    done = salvage(str(path), now=now, disk=SystemDisk())
    assert (done.kept, done.lost, done.damaged) == (5, (), "")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["s1.jsonl"]


def test_where_nothing_can_be_read_nothing_is_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", ENTRIES)
    path.write_bytes(before := path.read_bytes().replace(b'{"crc":"', b'{"crc": "'))
    with pytest.raises(SessionError, match="can be read"):
        salvage(str(path), now=now, disk=SystemDisk())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["s1.jsonl"]


def test_a_session_in_use_is_not_salvaged(tmp_path: Path) -> None:
    journal = FileJournal(str(tmp_path / "s1.jsonl"), now=now, disk=SystemDisk())
    journal.append(start())
    with pytest.raises(SessionLocked):
        salvage(journal.path, now=now, disk=SystemDisk())
    journal.close()


def test_what_is_no_session_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(b"hello\n")
    for act in (lambda: verify(str(path)), lambda: salvage(str(path), now=now, disk=SystemDisk())):
        with pytest.raises(SessionNotFound):
            act()
    assert [file.name for file in tmp_path.iterdir()] == ["notes.jsonl"]


@pytest.mark.parametrize("fault", get_args(Fault))
def test_a_salvage_that_fails_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, fault: Fault
) -> None:
    model = write(tmp_path / "model.jsonl", ENTRIES)
    harmed = model.read_bytes().replace(b"one", b"0ne")
    good = b"".join(
        line for line in model.read_bytes().splitlines(keepends=True) if b"one" not in line
    )
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "s1.jsonl"
        path.write_bytes(harmed)
        disk = FaultyDisk(SystemDisk(), fail_at=number, fault=fault)
        try:
            salvage(str(path), now=now, disk=disk)
        except (SessionError, Killed):
            assert path.read_bytes() in (harmed, good)
        else:
            assert path.read_bytes() == good
        salvage(str(path), now=now, disk=SystemDisk())
        assert path.read_bytes() == good
        kept = {file.read_bytes() for file in folder.glob("s1.jsonl.damaged-*")}
        assert kept == {harmed}
        if not disk.hit:
            return
    raise AssertionError("the fault was always hit")


@settings(max_examples=150, deadline=None)
@given(st.sets(st.integers(0, len(every_kind()) - 1)))
def test_whatever_records_are_lost_the_rest_is_a_valid_session(lost: set[int]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        path = write(folder / "s1.jsonl", every_kind())
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line[:-9] + b"\n" if n in lost else line for n, line in enumerate(lines)]
        path.write_bytes(b"".join(kept))
        salvage(str(path), now=now, disk=SystemDisk())
        loaded = load(str(path))
        assert loaded.records == len(lines) - len(lost)
        assert complaints(loaded.state) == []
    finally:
        shutil.rmtree(folder)
