"""Which instruction files are read, in which order, and how much of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claw.prompts.instructions import MAX_BYTES, discover_instructions


@pytest.fixture
def user(tmp_path: Path) -> Path:
    path = tmp_path / "user"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "outer" / "project"
    (path / "a" / "b").mkdir(parents=True)
    (path / ".git").mkdir()
    return path


def told(cwd: Path, user: Path, max_bytes: int = MAX_BYTES) -> list[tuple[str, str]]:
    found = discover_instructions(str(cwd), user_dir=str(user), max_bytes=max_bytes)
    return [(item.path, item.text) for item in found.instructions]


def test_the_user_comes_first_then_the_project_from_its_root_down(
    user: Path, project: Path
) -> None:
    for number, file in enumerate(
        [
            user / "CLAUDE.md",
            user / "AGENTS.md",
            project / "CLAUDE.md",
            project / "AGENTS.md",
            project / "a" / "AGENTS.md",
            project / "a" / "b" / "CLAUDE.md",
        ]
    ):
        file.write_text(f"number {number}\n")
    (project.parent / "CLAUDE.md").write_text("outside of the project")
    assert [text for _, text in told(project / "a" / "b", user)] == [
        f"number {n}" for n in range(6)
    ]
    assert len(told(project, user)) == 4


def test_without_a_repository_only_the_directory_itself_counts(user: Path, tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "AGENTS.md").write_text("above")
    (tmp_path / "x" / "y" / "AGENTS.md").write_text("here")
    assert told(tmp_path / "x" / "y", user) == [(str(tmp_path / "x" / "y" / "AGENTS.md"), "here")]


def test_the_same_content_is_told_once(user: Path, project: Path) -> None:
    (project / "AGENTS.md").write_text("be kind")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (project / "a" / "CLAUDE.md").write_text("twice")
    (project / "a" / "AGENTS.md").write_text("twice")
    assert [text for _, text in told(project / "a", user)] == ["be kind", "twice"]


def test_links_do_not_lead_out_of_the_project(user: Path, project: Path) -> None:
    (project.parent / "secret").write_text("secret")
    (project / "CLAUDE.md").symlink_to("../secret")
    (project / "AGENTS.md").symlink_to(project.parent / "secret")
    (project / "a" / "CLAUDE.md").symlink_to("../inside.md")
    (project / "inside.md").write_text("inside")
    (user / "CLAUDE.md").symlink_to(project.parent / "dotfiles.md")
    (project.parent / "dotfiles.md").write_text("the user's own")
    assert [text for _, text in told(project / "a", user)] == ["the user's own", "inside"]


def test_only_regular_files_that_say_something(user: Path, project: Path) -> None:
    os.mkfifo(project / "CLAUDE.md")
    (project / "AGENTS.md").mkdir()
    (project / "a" / "CLAUDE.md").write_text(" \n")
    (project / "a" / "AGENTS.md").symlink_to("AGENTS.md")
    assert told(project / "a", user) == []


def test_bytes_that_are_no_text_do_not_stop_it(user: Path, project: Path) -> None:
    (project / "CLAUDE.md").write_bytes(b"\xef\xbb\xbfok \xff\xfe done\r\n")
    assert told(project, user) == [(str(project / "CLAUDE.md"), "ok \ufffd\ufffd done")]


def test_too_much_is_clipped_and_says_so(user: Path, project: Path) -> None:
    (user / "CLAUDE.md").write_text("u" * 30)
    (project / "CLAUDE.md").write_text("ä" * 500)
    (project / "a" / "CLAUDE.md").write_text("n" * 30)
    (_, first), (path, clipped), (_, nearest) = told(project / "a", user, max_bytes=101)
    assert (first, nearest) == ("u" * 30, "n" * 30)
    text, notice = clipped.splitlines()
    assert text == "ä" * 20
    assert notice == f"[Clipped: 41 of 1000 bytes are shown. Read {path} for the rest.]"


def test_what_is_left_out_or_clipped_is_told(user: Path, project: Path, tmp_path: Path) -> None:
    (user / "CLAUDE.md").write_text("u" * 50)
    (tmp_path / "secret").write_text("outside")
    (project / "CLAUDE.md").symlink_to(tmp_path / "secret")
    os.mkfifo(project / "AGENTS.md")
    (project / "a" / "CLAUDE.md").symlink_to("nowhere")
    (project / "a" / "AGENTS.md").mkdir()
    (project / "a" / "b" / "CLAUDE.md").write_text("p" * 100)
    found = discover_instructions(str(project / "a" / "b"), user_dir=str(user), max_bytes=60)
    told_of = [note.split(" ")[0] for note in found.notes]
    assert told_of == [
        str(project / place)
        for place in ("CLAUDE.md", "AGENTS.md", "a/CLAUDE.md", "a/AGENTS.md", "a/b/CLAUDE.md")
    ]
    assert "outside of the project" in found.notes[0]
    assert "10 of 100 bytes" in found.notes[-1]
    assert discover_instructions(str(project.parent), user_dir=str(user)).notes == ()
