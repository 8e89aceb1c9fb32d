from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from claw.config.paths import (
    Homes,
    find_homes,
    make_private,
    managed_objection,
    project_root,
    settings_files,
)
from claw.errors import ConfigError


def test_homes(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    assert find_homes(cwd, {"HOME": "/h"}).config == "/h/.claw"
    assert find_homes(cwd, {"HOME": "/h", "CLAW_CONFIG_HOME": "/c"}).config == "/c"
    assert find_homes(cwd, {"HOME": "/h", "CLAW_CONFIG_HOME": "~/c"}).config == "/h/c"
    assert find_homes(cwd, {"HOME": "/h", "CLAW_CONFIG_HOME": "~"}).config == "/h"
    assert find_homes(cwd, {"HOME": "/h"}).sessions == "/h/.claw/sessions"


@pytest.mark.parametrize("home", [None, "", ".", "home"])
def test_a_relative_home_is_never_the_workspace(tmp_path: Path, home: str | None) -> None:
    env = {} if home is None else {"HOME": home}
    own = pwd.getpwuid(os.getuid()).pw_dir
    assert find_homes(str(tmp_path), env).config == os.path.join(own, ".claw")


@pytest.mark.parametrize("place", ["c", "./c", "../c", "~c"])
def test_a_relative_config_home_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigError, match="CLAW_CONFIG_HOME"):
        find_homes(str(tmp_path), {"HOME": "/h", "CLAW_CONFIG_HOME": place})


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_project_begins_where_git_does(tmp_path: Path, kind: str) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert project_root(str(deep)) == str(deep)
    git = tmp_path / ".git"
    git.mkdir() if kind == "directory" else git.write_text("gitdir: elsewhere")
    assert project_root(str(deep)) == str(tmp_path)


def test_the_users_own_file_is_not_a_projects() -> None:
    files = settings_files(Homes("/h/.claw", "/h"))
    assert [file.layer for file in files if file.path == "/h/.claw/settings.json"] == ["user"]
    assert files[0].layer == "user"
    assert files[-1].layer == "managed"


def test_directories_are_private(tmp_path: Path) -> None:
    made = make_private(str(tmp_path / "a" / "b"))
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o700
    assert make_private(made) == made
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="not a directory"):
        make_private(str(tmp_path / "file" / "x"))


def test_managed_settings_must_be_roots_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    if os.getuid() != 0:
        assert "does not belong to root" in managed_objection(str(file))
        return
    tmp_path.chmod(0o755)
    file.chmod(0o644)
    assert managed_objection(str(file)) == ""
    file.chmod(0o664)
    assert "written by others" in managed_objection(str(file))
    file.chmod(0o644)
    tmp_path.chmod(0o777)
    assert "written by others" in managed_objection(str(file))
    tmp_path.chmod(0o755)
    os.chown(file, 12345, 12345)
    assert "does not belong to root" in managed_objection(str(file))
