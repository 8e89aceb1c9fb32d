"""Forks, deleting, pruning: what is copied, what goes, what stays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest

from claw.errors import SessionCorrupt, SessionError, SessionLocked
from claw.sessions.fork import fork
from claw.sessions.index import list_sessions, session_path
from claw.sessions.journal import FileJournal
from claw.sessions.load import load, read_entries
from claw.sessions.removal import delete, prune
from claw.sessions.salvage import verify
from claw.testing import FaultyDisk, Killed
from claw.testing.disk import Fault
from claw.types.entries import SessionStarted
from claw.workspace.disk import SystemDisk
from tests.unit.sessions.making import AT, every_kind, now, said, start, write

LATER = "2026-11-30T14:20:00.250Z"


def forked(path: Path, new: Path, at_seq: int | None = None) -> Path:
    fork(str(path), str(new), at_seq=at_seq, now=now, disk=SystemDisk())
    return new


def test_a_fork_has_the_same_records_and_its_own_id(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", every_kind("words " * 20_000))
    copy = forked(path, tmp_path / "s2.jsonl")
    *lines, own = copy.read_bytes().splitlines(keepends=True)
    assert b"".join(lines) == path.read_bytes()
    assert b'"forked_from":"s1"' in own
    old, new = load(str(path)), load(str(copy))
    assert (new.state.session_id, new.records) == ("s2", old.records + 1)
    assert new.state.transcript == old.state.transcript
    assert not list(tmp_path.glob("*.tmp"))


def test_a_fork_outlives_its_original(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("x" * 70_000)])
    copy = forked(path, tmp_path / "s2.jsonl")
    blobs = list((tmp_path / "s2.blobs").iterdir())
    assert [blob.stat().st_nlink for blob in blobs] == [2]
    delete(str(path), disk=SystemDisk())
    assert [r.entry for r in read_entries(str(copy))][1] == said("x" * 70_000)
    assert verify(str(copy)).damage == ()


def test_a_fork_may_end_earlier(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("one"), said("two")])
    copy = forked(path, tmp_path / "s2.jsonl", at_seq=2)
    assert [r.entry for r in read_entries(str(copy))][:-1] == [start(), said("one")]
    assert [r.seq for r in read_entries(str(copy))] == [1, 2, 3]


def test_a_session_in_use_can_be_forked_and_its_torn_end_stays(tmp_path: Path) -> None:
    journal = FileJournal(str(tmp_path / "s1.jsonl"), now=now, disk=SystemDisk())
    journal.append(start())
    with open(journal.path, "ab") as file:
        file.write(b'{"crc":"')
    copy = forked(Path(journal.path), tmp_path / "s2.jsonl")
    journal.close()
    assert load(str(copy)).torn == 0
    again, loaded = FileJournal.continue_from(str(copy), now=now, disk=SystemDisk())
    assert again.append(said("on")) == loaded.last_seq + 1 == 3
    again.close()


def test_a_fork_of_a_fork_knows_where_it_is_from(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("one")])
    copy = forked(forked(path, tmp_path / "s2.jsonl"), tmp_path / "s3.jsonl")
    started = [r.entry for r in read_entries(str(copy)) if isinstance(r.entry, SessionStarted)]
    assert [(e.session_id, e.forked_from) for e in started] == [
        ("s1", ""),
        ("s2", "s1"),
        ("s3", "s2"),
    ]


def test_a_damaged_session_is_not_forked_and_no_name_is_taken_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("one"), said("two")])
    other = write(tmp_path / "s2.jsonl", [start("s2")])
    before = other.read_bytes()
    with pytest.raises(SessionError, match="already"):
        forked(path, other)
    assert other.read_bytes() == before
    path.write_bytes(path.read_bytes().replace(b"one", b"0ne"))
    with pytest.raises(SessionCorrupt):
        forked(path, tmp_path / "s3.jsonl")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["s1.jsonl", "s2.jsonl"]


def test_the_list_tells_forks_from_their_originals(tmp_path: Path) -> None:
    home = str(tmp_path)
    path = write(Path(session_path(home, "/w", "s1")), [start(), said("one")])
    short = forked(path, path.with_name("s2.jsonl"))
    long = forked(path, path.with_name("s3.jsonl"))
    journal, _ = FileJournal.continue_from(str(long), now=lambda: 0.0, disk=SystemDisk())
    for _ in range(30):
        journal.append(said("x" * 9000))
    journal.close()
    listed = {s.id: (s.created, s.title, s.problem) for s in list_sessions(home, "/w")}
    assert listed == {
        "s1": (AT, "one", ""),
        "s2": (LATER, "one", ""),
        "s3": (LATER, "one", ""),
    }
    assert short.exists()


@pytest.mark.parametrize("fault", get_args(Fault))
def test_a_fork_is_whole_or_not_there(tmp_path: Path, fault: Fault) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("x" * 70_000)])
    for number in range(1, 100):
        copy = tmp_path / f"copy{number}" / "s2.jsonl"
        disk = FaultyDisk(SystemDisk(), fail_at=number, fault=fault)
        try:
            fork(str(path), str(copy), now=now, disk=disk)
        except (SessionError, Killed):
            pass
        else:
            assert copy.exists()
        if not copy.exists():
            forked(path, copy)
        assert load(str(copy)).records == 3
        if not disk.hit:
            return
    raise AssertionError("the fault was always hit")


def test_deleting_takes_everything_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("x" * 70_000)])
    other = write(tmp_path / "s10.jsonl", [start("s10"), said("y" * 70_000)])
    for suffix in ("torn-1", "damaged-1", "1.tmp"):
        path.with_name(f"s1.jsonl.{suffix}").write_bytes(b"x")
    assert delete(str(path), disk=SystemDisk()) > 70_000
    assert sorted(file.name for file in tmp_path.iterdir()) == ["s10.blobs", "s10.jsonl"]
    assert load(str(other)).records == 2


def test_a_session_with_a_like_name_is_no_part_of_another(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", [start()])
    others = [write(tmp_path / f"s1.jsonl{end}.jsonl", [start()]) for end in ("", ".torn-1")]
    delete(str(path), disk=SystemDisk())
    assert sorted(tmp_path.glob("*.jsonl")) == sorted(others)


def test_a_session_in_use_is_not_deleted(tmp_path: Path) -> None:
    journal = FileJournal(str(tmp_path / "s1.jsonl"), now=now, disk=SystemDisk())
    journal.append(start())
    with pytest.raises(SessionLocked):
        delete(journal.path, disk=SystemDisk())
    journal.append(said("still here"))
    journal.close()
    assert load(journal.path).records == 2


@pytest.mark.parametrize("fault", get_args(Fault))
def test_a_deletion_that_broke_off_can_be_done_again(tmp_path: Path, fault: Fault) -> None:
    for number in range(1, 100):
        path = write(tmp_path / f"{number}" / "s1.jsonl", [start(), said("x" * 70_000)])
        disk = FaultyDisk(SystemDisk(), fail_at=number, fault=fault)
        try:
            delete(str(path), disk=disk)
        except (SessionError, Killed):
            if path.exists():
                delete(str(path), disk=SystemDisk())
        assert not path.exists()
        assert not list(path.parent.glob("*.blobs"))
        if not disk.hit:
            return
    raise AssertionError("the fault was always hit")


def test_old_sessions_are_pruned_with_all_that_is_theirs(tmp_path: Path) -> None:
    home = str(tmp_path)
    old = write(Path(session_path(home, "/a", "old")), [start(), said("x" * 70_000)])
    young = write(Path(session_path(home, "/b", "young")), [start(), said("x" * 70_000)])
    used = FileJournal(session_path(home, "/b", "used"), now=now, disk=SystemDisk())
    used.append(start())
    orphan = Path(young.parent / "gone.blobs")
    orphan.mkdir()
    (orphan / ("a" * 64)).write_bytes(b"x")
    notes = young.parent / "notes.txt"
    notes.write_bytes(b"mine")
    for path in (old, Path(used.path), orphan, notes):
        os.utime(path, (1000, 1000))
    done = prune(home, 60, now=2000.0, disk=SystemDisk())
    assert done.deleted == (str(old),)
    assert done.bytes > 70_000
    assert [path for path, why in done.kept if "in use" in why] == [used.path]
    used.close()
    assert not old.parent.exists()
    left = sorted(file.name for file in young.parent.iterdir())
    assert left == ["notes.txt", "used.jsonl", "young.blobs", "young.jsonl"]
    assert prune(home + "/none", 60, now=2000.0, disk=SystemDisk()).deleted == ()
