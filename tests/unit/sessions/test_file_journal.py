"""The file journal under what happens to files: crashes, full disks, a second writer."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from claw.errors import SessionError, SessionLocked, SessionNotFound
from claw.sessions.journal import FileJournal, MemoryJournal
from claw.sessions.load import load, read_entries
from claw.testing import FaultyDisk, Killed
from claw.testing.disk import Fault
from claw.types.entries import Entry, ModelChanged, SessionStarted, UserMessaged
from claw.types.messages import Text
from claw.workspace.disk import SystemDisk

START = SessionStarted("s1", "0", "/w", "2026-11-30T14:20:00.000Z", schema=1)


def now() -> float:
    return 1_796_048_400.25


def said(text: str) -> Entry:
    return UserMessaged((Text(text),))


def entries(path: Path) -> list[Entry]:
    return [record.entry for record in read_entries(str(path))]


def python(program: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_unused_session_leaves_nothing(tmp_path: Path) -> None:
    FileJournal(str(tmp_path / "home" / "s1.jsonl"), now=now, disk=SystemDisk()).close()
    assert list(tmp_path.iterdir()) == []


def test_only_the_user_may_look(tmp_path: Path) -> None:
    path = tmp_path / "home" / "project" / "s1.jsonl"
    journal = FileJournal(str(path), now=now, disk=SystemDisk())
    journal.append(START, sync=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    journal.close()
    assert [file.name for file in path.parent.iterdir()] == ["s1.jsonl"]


def test_a_new_session_does_not_take_an_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"mine\n")
    with pytest.raises(SessionError, match="already a session"):
        FileJournal(str(path), now=now, disk=SystemDisk()).append(START)
    assert path.read_bytes() == b"mine\n"


def test_going_on_continues_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    first = FileJournal(str(path), now=now, disk=SystemDisk())
    first.append(START)
    first.append(said("one"))
    first.close()
    second, loaded = FileJournal.continue_from(str(path), now=now, disk=SystemDisk())
    assert (loaded.records, loaded.last_id, loaded.notes) == (2, "e2", ())
    second.append(said("two"), sync=True)
    second.close()
    records = list(read_entries(str(path)))
    assert [(r.seq, r.id, r.parent) for r in records] == [
        (1, "e1", ""),
        (2, "e2", "e1"),
        (3, "e3", "e2"),
    ]
    assert records[2].at == "2026-11-30T14:20:00.250Z"


def test_going_on_moves_a_torn_tail_away(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    first = FileJournal(str(path), now=now, disk=SystemDisk())
    first.append(START)
    first.append(said("one"))
    first.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert load(str(path)).torn  # a reader leaves it alone
    assert path.read_bytes() == whole[:-5]

    second, loaded = FileJournal.continue_from(str(path), now=now, disk=SystemDisk())
    second.append(said("two"))
    second.close()
    (torn,) = tmp_path.glob("s1.jsonl.torn-*")
    assert torn.read_bytes() == whole.splitlines(keepends=True)[1][:-5]
    assert any(str(torn) in note for note in loaded.notes)
    assert entries(path) == [START, said("two")]


@pytest.mark.parametrize("fault", get_args(Fault))
def test_going_on_that_fails_can_be_tried_again(tmp_path: Path, fault: Fault) -> None:
    for number in range(1, 100):
        path = tmp_path / str(number) / "s1.jsonl"
        first = FileJournal(str(path), now=now, disk=SystemDisk())
        first.append(START)
        first.append(said("one"))
        first.close()
        path.write_bytes(path.read_bytes()[:-5])
        disk = FaultyDisk(SystemDisk(), fail_at=number, fault=fault)
        try:
            broken, _ = FileJournal.continue_from(str(path), now=now, disk=disk)
            broken.close()
        except (SessionError, Killed):
            pass
        second, _ = FileJournal.continue_from(str(path), now=now, disk=SystemDisk())
        second.append(said("two"))
        second.close()
        assert entries(path) == [START, said("two")]
        assert list(path.parent.glob("s1.jsonl.torn-*"))
        if not disk.hit:
            return
    raise AssertionError("the fault was always hit")


def test_a_record_without_its_newline_gets_it_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    first = FileJournal(str(path), now=now, disk=SystemDisk())
    first.append(START)
    first.close()
    path.write_bytes(path.read_bytes()[:-1])
    disk = FaultyDisk(SystemDisk(), fail_at=7, fault="short_write")
    second, loaded = FileJournal.continue_from(str(path), now=now, disk=disk)
    assert (loaded.records, loaded.torn) == (1, 0)
    appended: list[Entry] = []
    for text in ("one", "two", "three"):
        try:
            second.append(said(text))
            appended.append(said(text))
        except SessionError:
            assert disk.hit
    second.close()
    assert disk.hit
    assert entries(path) == [START, *appended]


def test_going_on_with_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        FileJournal.continue_from(str(tmp_path / "s1.jsonl"), now=now, disk=SystemDisk())
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_was_deleted_takes_nothing(tmp_path: Path) -> None:
    path, other = tmp_path / "s1.jsonl", tmp_path / "other.jsonl"
    for take_away in (path.unlink, lambda: other.rename(path)):
        journal = FileJournal(str(path), now=now, disk=SystemDisk())
        journal.append(START)
        other.write_text("")
        take_away()
        with pytest.raises(SessionError, match="deleted or replaced"):
            journal.append(said("lost"))
        journal.close()
    assert path.read_text() == ""


def test_a_journal_that_was_moved_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = FileJournal(str(path), now=now, disk=SystemDisk())
    journal.append(START)
    moved = path.rename(tmp_path / "s2.jsonl")
    journal.append(said("kept"))
    journal.close()
    assert entries(moved) == [START, said("kept")]


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    journal = FileJournal(str(tmp_path / "s1.jsonl"), now=now, disk=SystemDisk())
    journal.append(START)
    journal.close()
    journal.close()
    with pytest.raises(SessionError, match="closed"):
        journal.append(said("late"))


def test_a_lone_surrogate_is_replaced_and_a_pair_joined(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = FileJournal(str(path), now=now, disk=SystemDisk())
    journal.append(said("a\ud83d\ude00b\udc80c"))
    journal.close()
    assert entries(path) == [said("a\U0001f600b\ufffdc")]


SECOND_WRITER = """
import sys
from claw.sessions.journal import FileJournal
from claw.workspace.disk import SystemDisk
journal, _ = FileJournal.continue_from(sys.argv[1], now=lambda: 0.0, disk=SystemDisk())
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = FileJournal(str(path), now=now, disk=SystemDisk())
    journal.append(START)
    journal.close()
    holder = python(SECOND_WRITER, str(path))
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        before = path.read_bytes()
        with pytest.raises(SessionLocked) as caught:
            FileJournal.continue_from(str(path), now=now, disk=SystemDisk())
        assert caught.value.pid == holder.pid
        assert str(holder.pid) in caught.value.message
        assert "--fork-session" in caught.value.hint
        assert path.read_bytes() == before
        assert load(str(path)).records == 1  # reading needs no lock
    finally:
        holder.kill()
        holder.communicate()
    third, _ = FileJournal.continue_from(
        str(path), now=now, disk=SystemDisk()
    )  # a killed holder holds nothing
    third.close()


APPEND_FOREVER = """
import itertools, sys
from claw.sessions.journal import FileJournal
from claw.types.entries import UserMessaged
from claw.types.messages import Text
from claw.workspace.disk import SystemDisk
journal, loaded = FileJournal.continue_from(sys.argv[1], now=lambda: 0.0, disk=SystemDisk())
for n in itertools.count(loaded.records):
    journal.append(UserMessaged((Text(f"{n} " + "x" * (n * 977 % 200_000)),)))
    print(n, flush=True)
"""


def test_nothing_acknowledged_is_lost_to_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.touch()
    for round in range(4):
        writer = python(APPEND_FOREVER, str(path))
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(25 + 3 * round)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout.read().splitlines()]
        writer.communicate()
        loaded = load(str(path))
        assert loaded.records in (acknowledged[-1] + 1, acknowledged[-1] + 2)
        assert [e.content[0].text.split()[0] for e in entries(path)] == [  # type: ignore[union-attr]
            str(n) for n in range(loaded.records)
        ]


FULL_DISK = """
import os, resource, signal, sys
from claw.errors import SessionError
from claw.sessions.journal import FileJournal
from claw.types.entries import UserMessaged
from claw.types.messages import Text
from claw.workspace.disk import SystemDisk

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = FileJournal(sys.argv[1], now=lambda: 0.0, disk=SystemDisk())
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
kept = []
for n in range(40):
    entry = UserMessaged((Text(f"{n} " + "x" * 50),))
    # Now there is room for all of it, now for nothing, now for a part.
    end = os.path.getsize(sys.argv[1]) if n else 0
    room = resource.RLIM_INFINITY if n % 4 == 0 else end + (n % 4 - 1) * (n * 7 % 100)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        journal.append(entry, sync=n % 3 == 0)
        kept.append(n)
    except SessionError as error:
        assert "cannot write" in error.message and error.hint, error
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
journal.close()
print(*kept)
"""


def test_short_and_failed_writes_leave_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    out, _ = python(FULL_DISK, str(path)).communicate()
    kept = out.split()
    assert 10 <= len(kept) < 40
    assert load(str(path)).torn == 0
    assert [e.content[0].text.split()[0] for e in entries(path)] == kept  # type: ignore[union-attr]


def test_a_read_only_home_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SessionError, match="cannot make the directory") as caught:
        FileJournal(
            str(tmp_path / "file" / "sessions" / "s1.jsonl"), now=now, disk=SystemDisk()
        ).append(START)
    assert "--no-session-persistence" in caught.value.hint


def test_the_memory_journal_keeps_the_same_records(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    memory, file = MemoryJournal(now=now), FileJournal(str(path), now=now, disk=SystemDisk())
    for entry in (START, said("one"), ModelChanged("m")):
        memory.append(entry, sync=True)
        file.append(entry, sync=True)
    file.close()
    memory.close()
    assert memory.records == tuple(read_entries(str(path)))
