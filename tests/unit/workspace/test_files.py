"""The gate to files: what is opened, what is refused, what survives a write."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.errors import ToolFailed
from claw.ports import Workspace
from claw.testing.conformance import WorkspaceSuite
from claw.types.effects import Execute, Observed, ReadPath, WritePath
from claw.workspace.files import LocalWorkspace

LIMIT = 1_000_000


class TestConformance(WorkspaceSuite):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self._root = tmp_path

    def make(self, files: Mapping[str, bytes]) -> Workspace:
        for name, data in files.items():
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return LocalWorkspace(str(self._root))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return tmp_path / "work"


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> LocalWorkspace:
    return LocalWorkspace(str(root), home=str(tmp_path / "home"))


def seen(workspace: LocalWorkspace, path: str, *, write: bool = False) -> Observed:
    return workspace.observe((WritePath(path) if write else ReadPath(path),)).observed[0]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a\0b",
        "a.txt/",
        "A" * 300,
        "a/" * 5000,
        "file:///etc/passwd",
        "..%2foutside%2fsecret.txt",
    ],
)
def test_impossible_paths_are_refused(workspace: LocalWorkspace, root: Path, path: str) -> None:
    (root / "a.txt").write_text("x")
    with pytest.raises(ToolFailed):
        workspace.read(path, limit=LIMIT)


def test_only_regular_files_are_opened(workspace: LocalWorkspace, root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        for path in ("fifo", "socket", "/dev/zero", "/dev/stdin", "."):
            with pytest.raises(ToolFailed):
                workspace.read(path, limit=LIMIT)
            with pytest.raises(ToolFailed):
                workspace.write(path, b"", expect=None)


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
def test_views_of_the_kernel_are_refused(workspace: LocalWorkspace, root: Path) -> None:
    (root / "link").symlink_to("/proc/self/environ")
    for path in ("/proc/self/environ", "/proc/self/mem", "link"):
        with pytest.raises(ToolFailed, match="kernel"):
            workspace.read(path, limit=LIMIT)


def test_a_missing_file_comes_with_what_may_be_meant(workspace: LocalWorkspace, root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "main.rs").write_text("")
    with pytest.raises(ToolFailed, match=r"src/main\.rs"):
        workspace.read("main.rs", limit=LIMIT)
    with pytest.raises(ToolFailed, match=r"src/main\.rs"):
        workspace.read("src/mian.rs", limit=LIMIT)


def test_loops_of_links_are_an_error(workspace: LocalWorkspace, root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    with pytest.raises(ToolFailed, match="loop"):
        seen(workspace, "one")
    with pytest.raises(ToolFailed, match="loop"):
        workspace.write("one", b"", expect=None)


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("src/new.py", True),
        (".", True),
        ("a..b.txt", True),
        ("../outside/secret.txt", False),
        ("../work-other/x", False),
        ("src/../../outside", False),
        ("/etc/passwd", False),
        ("~/.ssh/id_rsa", False),
        ("link/secret.txt", False),
        ("dangling", False),
    ],
)
def test_inside_is_judged_on_real_paths(
    workspace: LocalWorkspace, root: Path, path: str, inside: bool
) -> None:
    (root / "src").mkdir()
    (root / "link").symlink_to("../outside")
    (root / "dangling").symlink_to("../outside/not-there")
    assert seen(workspace, path).inside is inside


def test_added_directories_are_inside(root: Path, tmp_path: Path) -> None:
    workspace = LocalWorkspace(str(root), [str(tmp_path / "outside")])
    assert seen(workspace, "../outside/secret.txt").inside
    assert seen(workspace, "../outside/secret.txt").relative == ""
    assert not seen(workspace, "../elsewhere").inside


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        (".git/config", True),
        ("sub/.git/hooks/post-commit", True),
        (".GIT/hooks/post-commit", True),
        (".claude/settings.json", True),
        (".claude /settings.json", True),
        (".claw/hooks/x", True),
        (".mcp.json", True),
        ("~/.bashrc", True),
        ("~/.ssh/authorized_keys", True),
        ("~/notes.txt", False),
        (".gitignore", False),
        ("src/app.py", False),
        ("bashrc", False),
    ],
)
def test_protected_files(workspace: LocalWorkspace, path: str, protected: bool) -> None:
    assert bool(seen(workspace, path, write=True).protected) is protected
    assert not seen(workspace, path).protected


def test_the_git_directory_of_a_worktree_is_protected(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "store" / "worktrees" / "w"
    bare.mkdir(parents=True)
    (bare / "commondir").write_text("../..\n")
    (root / ".git").write_text(f"gitdir: {bare}\n")
    workspace = LocalWorkspace(str(root), [str(tmp_path / "store")])
    assert seen(workspace, "../store/config", write=True).protected
    assert seen(workspace, "../store/worktrees/w/HEAD", write=True).protected
    assert seen(workspace, ".git", write=True).protected


def test_own_directories_are_read_and_not_written(root: Path, tmp_path: Path) -> None:
    workspace = LocalWorkspace(str(root), own_dirs=[str(tmp_path / "kept")])
    assert seen(workspace, "../kept/blobs/x").inside
    written = seen(workspace, "../kept/blobs/x", write=True)
    assert written.protected
    assert not written.inside


def test_a_workspace_in_a_settings_folder_is_usable(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "worktrees" / "one").mkdir(parents=True)
    workspace = LocalWorkspace(str(tmp_path / ".claude" / "worktrees" / "one"))
    assert not seen(workspace, "src/x.py", write=True).protected
    assert seen(workspace, ".claude/x", write=True).protected


@pytest.mark.parametrize(
    ("path", "private"),
    [
        (".env", True),
        ("sub/.env.local", True),
        (".envrc", True),
        ("~/.ssh/id_ed25519", True),
        (".env.example", False),
        ("environment.py", False),
    ],
)
def test_private_files(workspace: LocalWorkspace, path: str, private: bool) -> None:
    assert seen(workspace, path).private is private


def test_other_effects_are_in_the_workspace(workspace: LocalWorkspace, root: Path) -> None:
    [execute] = workspace.observe((Execute("ls"),)).observed
    assert execute.inside
    assert execute.real == str(root)


def test_a_link_swapped_after_the_look_is_refused(workspace: LocalWorkspace, root: Path) -> None:
    (root / "folder").mkdir()
    (root / "folder" / "secret.txt").write_text("harmless")
    seen(workspace, "folder/secret.txt")
    (root / "folder").rename(root / "moved")
    (root / "folder").symlink_to("../outside")
    with pytest.raises(ToolFailed, match="elsewhere"):
        workspace.read("folder/secret.txt", limit=LIMIT)
    with pytest.raises(ToolFailed, match="elsewhere"):
        workspace.write("folder/secret.txt", b"", expect=digest(b"secret"))
    seen(workspace, "folder/secret.txt")
    assert workspace.read("folder/secret.txt", limit=LIMIT).data == b"secret"


def test_a_write_goes_through_links_to_their_target(workspace: LocalWorkspace, root: Path) -> None:
    (root / "real.txt").write_text("old")
    (root / "one").symlink_to("real.txt")
    (root / "two").symlink_to("one")
    written = workspace.write("two", b"new", expect=digest(b"old"))
    assert written.real == str(root / "real.txt")
    assert (root / "real.txt").read_text() == "new"
    assert (root / "one").is_symlink()
    assert (root / "two").is_symlink()


def test_a_write_keeps_the_mode_and_leaves_nothing_else(
    workspace: LocalWorkspace, root: Path
) -> None:
    path = root / "run.sh"
    path.write_text("old")
    path.chmod(0o751)
    assert workspace.write("run.sh", b"new", expect=digest(b"old")).mode == 0o751
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert os.listdir(root) == ["run.sh"]


def test_hard_links_and_read_only_files_are_refused(workspace: LocalWorkspace, root: Path) -> None:
    (root / "a").write_text("old")
    os.link(root / "a", root / "b")
    (root / "c").write_text("old")
    (root / "c").chmod(0o444)
    with pytest.raises(ToolFailed, match="hard links"):
        workspace.write("a", b"new", expect=digest(b"old"))
    with pytest.raises(ToolFailed, match="read-only"):
        workspace.write("c", b"new", expect=digest(b"old"))
    assert (root / "a").read_text() == (root / "c").read_text() == "old"


def test_what_surprises_is_not_overwritten(workspace: LocalWorkspace, root: Path) -> None:
    (root / "a").write_text("theirs")
    with pytest.raises(ToolFailed, match="exists already"):
        workspace.write("a", b"mine", expect=None)
    with pytest.raises(ToolFailed, match="changed since"):
        workspace.write("a", b"mine", expect=digest(b"mine before"))
    (root / "a").unlink()
    with pytest.raises(ToolFailed, match="deleted since"):
        workspace.write("a", b"mine", expect=digest(b"theirs"))
    assert os.listdir(root) == []


def test_files_do_not_follow_links(workspace: LocalWorkspace, root: Path) -> None:
    (root / "loop").symlink_to(".")
    (root / "away").symlink_to("/")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("")
    (root / "a.txt").write_text("")
    assert list(workspace.files(".", limit=100)) == ["a.txt"]


def test_names_that_are_no_text_are_left_out(workspace: LocalWorkspace, root: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    (root / odd).write_text("x")
    (root / "link").symlink_to(odd)
    assert list(workspace.files(".", limit=10)) == []
    for path in (odd, "link"):
        with pytest.raises(ToolFailed, match="characters"):
            workspace.read(path, limit=LIMIT)
    with pytest.raises(ToolFailed) as caught:
        workspace.read("cafe", limit=LIMIT)
    caught.value.message.encode()


def test_a_root_that_is_gone(root: Path) -> None:
    workspace = LocalWorkspace(str(root))
    root.rmdir()
    with pytest.raises(ToolFailed, match="does not exist"):
        workspace.probe()
    with pytest.raises(ToolFailed, match="does not exist"):
        LocalWorkspace(str(root))


parts = st.sampled_from(["..", ".", "", "a", "link", "away", "gone", "~", " ", "é", "x" * 300])


@settings(deadline=None)
@given(st.lists(parts, min_size=1, max_size=8))
def test_whatever_is_inside_lies_beneath_the_root(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "a").mkdir()
    (root / "link").symlink_to("a/..")
    (root / "away").symlink_to("..")
    workspace = LocalWorkspace(str(root))
    path = "/".join(names)
    try:
        found = seen(workspace, path)
        workspace.write(path, b"x", expect=None)
    except ToolFailed:
        return
    assert found.inside == (Path(found.real) == root or root in Path(found.real).parents)
    assert Path(found.real).read_bytes() == b"x"
    Path(found.real).unlink()
