"""The package in `examples/` tests its own hook, rule and prompt with the plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/careful-agent"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy far away from this repository."""
    copy = tmp_path / "example"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    return copy


def pytest_in(example: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "claw.testing.plugin", "-q", *args]
    env = {"PATH": os.environ["PATH"], "HOME": str(example.parent), "PYTHONPATH": str(example)}
    return subprocess.run(
        command, cwd=example, env=env, capture_output=True, text=True, check=False, timeout=100
    )


def test_its_tests_pass(example: Path):
    ended = pytest_in(example)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "3 passed" in ended.stdout


def test_they_find_what_was_broken(example: Path):
    rules = example / "careful/settings.json"
    rules.write_text(rules.read_text().replace("git push:*", "git pull:*"))
    (example / "careful/no_todo.py").write_text("")
    (example / "careful/AGENTS.md").write_text("Be quick.")
    ended = pytest_in(example)
    assert ended.returncode == 1
    assert "3 failed" in ended.stdout


def test_one_flag_rewrites_goldens(example: Path):
    golden = example / "tests/golden/no_push.json"
    before = golden.read_text()
    golden.write_text(before.replace("deny", "allow"))
    assert "--claw-update" in pytest_in(example).stdout
    assert pytest_in(example, "--claw-update").returncode == 0
    assert golden.read_text() == before
