from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from claw.policy.hooks.scripts import LONGEST, script_digests


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work, home):
        folder.mkdir()
        (folder / "check.sh").write_text(folder.name)
    (tmp_path / "other.sh").write_text("beside both")
    for name in ("other.txt", "log.txt"):
        (work / name).write_text("no script")
    return work, home


def found(command: str, places: tuple[Path, Path]) -> dict[str, str]:
    return script_digests(command, cwd=str(places[0]), home=str(places[1]))


@pytest.mark.parametrize(
    ("command", "word", "whose"),
    [
        ("sh check.sh --all", "check.sh", "work"),
        ('"$CLAUDE_PROJECT_DIR"/check.sh', "$CLAUDE_PROJECT_DIR/check.sh", "work"),
        ("${CLAW_PROJECT_DIR}/check.sh", "${CLAW_PROJECT_DIR}/check.sh", "work"),
        ("~/check.sh", "~/check.sh", "home"),
        ("$HOME/check.sh 2>&1", "$HOME/check.sh", "home"),
        ("sh check.sh 'with no end", "check.sh", "work"),
        ("sh check.sh other.txt >>log.txt", "check.sh", "work"),
        ("true && sh check.sh", "check.sh", "work"),
        ("echo x 2>log.txt; ./check.sh", "./check.sh", "work"),
    ],
)
def test_a_script_is_known_by_its_bytes(
    places: tuple[Path, Path], command: str, word: str, whose: str
) -> None:
    assert found(command, places) == {word: hashlib.sha256(whose.encode()).hexdigest()}


@pytest.mark.parametrize(
    "command",
    [
        "echo hello",
        "sh ../other.sh",
        "sh gone.sh",
        "sh .",
        "cat 'a\0b'",
        "",
        "echo x >check.sh",
        "echo x >> check.sh",
    ],
)
def test_what_is_no_script_of_ones_own_is_not(places: tuple[Path, Path], command: str) -> None:
    assert found(command, places) == {}


def test_a_program_is_not_read(places: tuple[Path, Path]) -> None:
    (places[0] / "check.sh").write_bytes(b"\0" * (LONGEST + 1))
    assert found("./check.sh", places) == {}
