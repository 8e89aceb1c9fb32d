"""Finding sessions again: by id, prefix, path, and in lists."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import SessionError, SessionNotFound
from claw.sessions.directories import may_create
from claw.sessions.index import (
    find,
    find_anywhere,
    list_all_sessions,
    list_sessions,
    session_path,
    sessions_dir,
)
from claw.sessions.journal import FileJournal
from claw.types.entries import (
    SessionStarted,
    Titled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import Text
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk

CREATED = "2026-11-30T14:20:00.000Z"


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.fixture
def cwd(tmp_path: Path) -> str:
    (tmp_path / "work").mkdir()
    return str(tmp_path / "work")


def make(
    home: str,
    cwd: str,
    id: str,
    *,
    age: int = 0,
    bulk: int = 0,
    title: str = "",
    ends: bool = True,
) -> str:
    path = session_path(home, cwd, id)
    journal = FileJournal(path, now=lambda: 0.0, disk=SystemDisk())
    journal.append(SessionStarted(id, "0", cwd, CREATED, schema=1))
    journal.append(TurnStarted(1))
    journal.append(UserMessaged((Text(f"please\n  look at {id}"),)))
    for _ in range(bulk):
        journal.append(ToolFinished("c", (Text("x" * 9000),), "ok"))
    if title:
        journal.append(Titled(title))
    if ends:
        journal.append(TurnEnded(1, "completed", 1, Usage()))
    journal.close()
    os.utime(path, (10_000 - age, 10_000 - age))
    return path


def test_directories_that_look_alike_do_not_share_sessions(home: str) -> None:
    alike = ["/a/b-c", "/a-b/c", "/a/b/c", "/a b/c", "/", "/a/B/c"]
    assert len({sessions_dir(home, cwd) for cwd in alike}) == len(alike)
    assert "a-b-c-" in sessions_dir(home, "/a/b/c")


def test_a_directory_is_the_same_by_any_of_its_names(home: str, cwd: str) -> None:
    link = cwd + "-link"
    os.symlink(cwd, link)
    assert sessions_dir(home, link) == sessions_dir(home, cwd + "/.")


def test_a_session_is_found_by_id_prefix_path_and_latest(home: str, cwd: str) -> None:
    old = make(home, cwd, "aa-1", age=60)
    new = make(home, cwd, "aa-12", age=0)
    other = make(home, cwd, "bb-1", age=90)
    assert find(home, cwd, "latest") == new
    assert find(home, cwd, "aa-1") == old  # an id counts before a prefix
    assert find(home, cwd, "b") == other
    assert find(home, cwd, other) == other
    assert find(home, os.path.dirname(other), "bb-1.jsonl") == other


def test_an_ambiguous_prefix_names_the_candidates(home: str, cwd: str) -> None:
    make(home, cwd, "aa-1")
    make(home, cwd, "aa-2")
    with pytest.raises(SessionNotFound, match="fits 2 sessions") as caught:
        find(home, cwd, "aa")
    assert "`aa-1`" in caught.value.hint
    assert "`aa-2`" in caught.value.hint


@pytest.mark.parametrize("ref", ["latest", "x", "", "../x", "/nowhere/x.jsonl", ".", "a\0/b", "*"])
def test_what_is_not_there_is_not_found(home: str, cwd: str, ref: str) -> None:
    with pytest.raises(SessionNotFound):
        find(home, cwd, ref)
    make(home, cwd, "aa-1")
    if ref not in ("latest",):
        with pytest.raises(SessionNotFound):
            find(home, cwd, ref)


@pytest.mark.parametrize("others", [0, 1])
def test_the_id_of_another_directory_is_known(home: str, cwd: str, others: int) -> None:
    path = make(home, cwd, "aa-1")
    here = os.path.dirname(cwd)
    for number in range(others):
        make(home, here, f"bb-{number}")
    with pytest.raises(SessionNotFound) as caught:
        find(home, here, "aa-1")
    assert caught.value.hint.endswith(f"--resume {path}")


@given(st.text(max_size=20))
def test_no_id_leads_out_of_the_directory(id: str) -> None:
    try:
        path = session_path("/home", "/work", id)
    except SessionError:
        return
    assert os.path.dirname(os.path.normpath(path)) == sessions_dir("/home", "/work")


def test_empty_and_foreign_files_are_no_sessions(home: str, cwd: str) -> None:
    path = make(home, cwd, "aa-1", age=60)
    directory = Path(path).parent
    (directory / "empty.jsonl").touch()
    (directory / "notes.txt").write_text("x")
    (directory / "dir.jsonl").mkdir()
    assert find(home, cwd, "latest") == path
    assert [s.id for s in list_sessions(home, cwd)] == ["aa-1"]


def test_odd_neighbours_hide_no_session(home: str, cwd: str) -> None:
    path = make(home, cwd, "aa-1", age=60)
    directory = Path(path).parent
    (directory / "loop.jsonl").symlink_to(directory / "loop.jsonl")
    (directory / "nowhere.jsonl").symlink_to(directory / "nothing")
    os.mkfifo(directory / "pipe.jsonl")
    (directory / "zeros.jsonl").write_bytes(b"\0" * 200_000)
    (directory / "blank.jsonl").write_bytes(b"\n" * 50)
    assert find(home, cwd, "latest") == path
    assert [s.id for s in list_sessions(home, cwd)] == ["aa-1"]


def test_a_session_that_was_killed_at_its_first_record_is_none(home: str, cwd: str) -> None:
    path = make(home, cwd, "aa-1", age=60)
    Path(path).with_name("bb-1.jsonl").write_bytes(Path(path).read_bytes()[:40])
    assert find(home, cwd, "latest") == path
    assert [s.id for s in list_sessions(home, cwd)] == ["aa-1"]


def test_the_list_tells_what_a_session_is_about(home: str, cwd: str) -> None:
    make(home, cwd, "short", age=30)
    path = make(home, cwd, "titled", age=20, bulk=30, title="A good title")
    titled, short = list_sessions(home, cwd)
    assert (short.title, short.turns, short.cwd) == ("please look at short", 1, cwd)
    assert (short.created, short.problem) == (CREATED, "")
    assert (titled.title, titled.path, titled.size) == ("A good title", path, os.path.getsize(path))
    assert titled.updated == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("bulk", [30, 400])
def test_a_long_turn_that_has_not_ended_counts(home: str, cwd: str, bulk: int) -> None:
    make(home, cwd, "long", bulk=bulk, ends=False)
    (long,) = list_sessions(home, cwd)
    assert (long.turns, long.updated, long.problem) == (1, "1970-01-01T00:00:00.000Z", "")


def test_a_last_record_of_nearly_the_largest_size(home: str, cwd: str) -> None:
    path = make(home, cwd, "large", ends=False)
    journal, _ = FileJournal.continue_from(path, now=lambda: 60.0, disk=SystemDisk())
    journal.append(UserMessaged(tuple(Text("x" * 60_000) for _ in range(16))))
    journal.close()
    (large,) = list_sessions(home, cwd)
    assert (large.turns, large.updated) == (1, "1970-01-01T00:01:00.000Z")


def test_a_damaged_session_is_listed_with_its_problem(home: str, cwd: str) -> None:
    make(home, cwd, "good", age=30)
    Path(make(home, cwd, "bad")).write_bytes(b"\xff\xfe garbage\n" * 10)
    bad, good = list_sessions(home, cwd)
    assert (bad.id, good.id) == ("bad", "good")
    assert bad.problem
    assert not good.problem


def test_a_project_without_sessions_has_an_empty_list(home: str, cwd: str) -> None:
    assert list_sessions(home, cwd) == ()


def test_the_sessions_of_all_projects(home: str, cwd: str, tmp_path: Path) -> None:
    assert list_all_sessions(home) == ()
    other = str(tmp_path / "other")
    paths = [make(home, cwd, "a", age=3), make(home, other, "b", age=2), make(home, cwd, "c")]
    Path(home, "sessions", "notes.txt").write_text("no project")
    assert [one.id for one in list_all_sessions(home)] == ["c", "b", "a"]
    assert [find_anywhere(home, cwd, id) for id in ("a", "b", "latest")] == [*paths[:2], paths[2]]
    for ref in ("", "x", "../a", "b/../b"):
        with pytest.raises(SessionNotFound):
            find_anywhere(home, other if ref else cwd, ref)


def test_whether_a_home_can_be_written_is_known_without_writing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert may_create(str(tmp_path / "a" / "b"))
    assert not may_create(str(tmp_path / "file" / "b"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
