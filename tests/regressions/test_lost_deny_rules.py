"""A file whose deny rules cannot all be read: no start; but a project cannot prevent one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from claw.config.load import Loaded, load_settings
from claw.errors import ConfigError

DENY = '{"permissions": {"deny": ["Bash(rm:*)"]}}'


@pytest.fixture
def load(tmp_path: Path) -> Callable[[], Loaded]:
    (tmp_path / "home" / ".claw").mkdir(parents=True)
    (tmp_path / "work" / ".git").mkdir(parents=True)
    (tmp_path / "work" / ".claw").mkdir()
    cwd, env = str(tmp_path / "work"), {"HOME": str(tmp_path / "home")}
    nowhere = str(tmp_path / "none" / "settings.json")
    return lambda: load_settings(cwd=cwd, env=env, managed_file=nowhere)


def user_file(root: Path) -> Path:
    return root / "home" / ".claw" / "settings.json"


def project_file(root: Path) -> Path:
    return root / "work" / ".claw" / "settings.json"


def make(kind: str) -> Callable[[Path], object]:
    return {
        "directory": lambda path: path.mkdir(),
        "fifo": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "dangling": lambda path: path.symlink_to("nowhere.json"),
        "utf-16": lambda path: path.write_bytes(DENY.encode("utf-16")),
        "utf-16-le": lambda path: path.write_bytes(DENY.encode("utf-16-le")),
        "latin-1": lambda path: path.write_bytes(DENY.replace("rm", "é").encode("latin-1")),
        "large": lambda path: path.write_text(DENY + " " * 1024 * 1024),
        "nonsense": lambda path: path.write_text("$VAULT;1.1;AES\n66386439"),
        "yaml": lambda path: path.write_text("permissions:\n  deny:\n    - Bash\n"),
    }[kind]


KINDS = [
    *("directory", "fifo", "device", "dangling", "utf-16", "utf-16-le"),
    *("latin-1", "large", "nonsense", "yaml"),
]
TEXTS = [
    '{"permissions": {"deny": "Bash"}}',
    '{"permissions": {"deny": [["Bash"]]}}',
    '{"permissions": {"deny": ["Edit", 1]}}',
    '{"permissions": {"deny": [null]}}',
    '{"permissions": {"deny": {"0": "Bash"}}}',
    '{"permissions": {"deny": 7}}',
    '{"permissions": "deny"}',
    '{"permissions": ["deny", "Bash"]}',
    '[{"permissions": {"deny": ["Bash"]}}]',
    '{"permissions": {"deny": "Bash"}, "permissions": {}}',
    '{"permissions": {"deny": ["Edit"], "de\\u006ey": "Bash"}}',
    '{"permissions": {"deny": ["Bash"',
    '{"permissions": {"deny": ["Ba',
    '{"permissions": {"de',
    '{"model": "x", "perm',
    "{'permissions': {'deny': ['Bash']}}",
    "{permissions: {deny: ['Bash']}}",
    '{"permissions": {"deny": /* all */ ["Bash"]}}',
    '{"permissions": {"deny" /* all */: ["Bash"],}}',
    '{"permissions": {"deny": ["Bash" "\\q"],}}',
    '{"permissions": {"deny": [{"x": 1}], "allow": [}}',
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_unreadable_file_of_the_user_stops_the_start(
    tmp_path: Path, load: Callable[[], Loaded], kind: str
) -> None:
    make(kind)(user_file(tmp_path))
    with pytest.raises(ConfigError) as caught:
        load()
    assert caught.value.message.startswith(str(user_file(tmp_path)))
    assert caught.value.hint


@pytest.mark.parametrize("kind", KINDS)
def test_an_unreadable_file_of_a_project_is_a_warning(
    tmp_path: Path, load: Callable[[], Loaded], kind: str
) -> None:
    make(kind)(project_file(tmp_path))
    user_file(tmp_path).write_text(DENY)
    loaded = load()
    assert "Bash(rm:*)" in [rule.text for rule in loaded.rules]
    assert [problem.file for problem in loaded.problems] == [str(project_file(tmp_path))]
    if kind in ("large", "utf-16", "utf-16-le"):
        assert len(loaded.rules) == 2


@pytest.mark.parametrize("text", TEXTS)
def test_a_list_that_cannot_be_read_whole_stops_the_start(
    tmp_path: Path, load: Callable[[], Loaded], text: str
) -> None:
    user_file(tmp_path).write_text(f"\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load()
    assert caught.value.message.startswith(f"{user_file(tmp_path)}:")
    if text.startswith("{"):
        assert caught.value.message.startswith(f"{user_file(tmp_path)}:2: ")


@pytest.mark.parametrize("text", TEXTS)
def test_the_same_in_a_project_is_a_warning(
    tmp_path: Path, load: Callable[[], Loaded], text: str
) -> None:
    project_file(tmp_path).write_text(text)
    assert load().problems


@pytest.mark.parametrize("where", [user_file, project_file])
def test_of_keys_that_stand_twice_all_rules_hold(
    tmp_path: Path, load: Callable[[], Loaded], where: Callable[[Path], Path]
) -> None:
    text = (
        '{"permissions": {"deny": ["Bash"]},\n"permissions": {"deny": ["Edit"], "ask": ["Read"]}}'
    )
    where(tmp_path).write_text(text)
    loaded = load()
    file = where(tmp_path)
    assert [(rule.behavior, rule.text, rule.source) for rule in loaded.rules] == [
        ("deny", "Bash", f"{file}:1"),
        ("deny", "Edit", f"{file}:2"),
        ("ask", "Read", f"{file}:2"),
    ]
    assert "repeated_key" in [problem.code for problem in loaded.problems]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_without_permission_stops_the_start(
    tmp_path: Path, load: Callable[[], Loaded]
) -> None:
    user_file(tmp_path).write_text(DENY)
    user_file(tmp_path).chmod(0)
    with pytest.raises(ConfigError, match="Permission denied"):
        load()


def test_a_rule_list_of_a_broken_file_that_is_whole_is_enough(
    tmp_path: Path, load: Callable[[], Loaded]
) -> None:
    user_file(tmp_path).write_text('{"model": x, ' + DENY[1:])
    assert [rule.text for rule in load().rules] == ["Bash(rm:*)"]


def test_deep_nesting_is_named_with_its_line(tmp_path: Path, load: Callable[[], Loaded]) -> None:
    deep = json.dumps({"providers": {"x": {"quirks": {"a": "DEEP"}}}}).replace(
        '"DEEP"', "[" * 500 + "]" * 500
    )
    user_file(tmp_path).write_text(deep + "\n")
    (problem,) = load().problems
    assert (problem.code, problem.line) == ("syntax", 1)
    assert "recursion" not in problem.message
    user_file(tmp_path).write_text("{\n\n" + deep[1:] + "\n")
    assert load().problems[0].line == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "--settings is empty"),
        (" ", "--settings is empty"),
        ("[]", "--settings: expected an object, got an array"),
        ('"x"', "--settings: expected an object, got a string"),
        ("/tmp", "/tmp: it is a directory"),
        ('{"permissions": {"deny": "Bash"}}', "--settings:1: `permissions.deny` is a string"),
    ],
)
def test_what_settings_may_be_given(tmp_path: Path, given: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(cwd=str(tmp_path), env={"HOME": str(tmp_path)}, settings_file=given)
    assert caught.value.message.startswith(message)
    assert caught.value.hint
