"""The front door: what it offers, and what it costs to open."""

import subprocess
import sys
from pathlib import Path

import claw
import claw.testing


def test_public_names_resolve_and_are_sorted() -> None:
    for module in (claw, claw.testing):
        assert list(module.__all__) == sorted(module.__all__)
        assert len({id(getattr(module, name)) for name in module.__all__}) == len(module.__all__)


def test_no_public_name_is_hidden_by_a_module() -> None:
    code = (
        "import claw.app.furnish, claw.cli.main, claw.engine.replaying, claw.testing, claw; "
        "print([n for n in claw.__all__ if type(getattr(claw, n)).__name__ == 'module'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_claw_loads_nothing_of_it() -> None:
    code = "import claw, sys; print(sorted(m for m in sys.modules if m.startswith('claw')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['claw']"


def test_the_plugin_costs_a_run_of_pytest_nothing() -> None:
    code = (
        "import pytest, sys; before = {*sys.modules}; import claw.testing.plugin; "
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = "claw claw.testing claw.testing.flags claw.testing.plugin claw.testing.stash"
    assert done.stdout.strip() == loaded


def test_run_is_a_turn_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\nremember the milk\n")
    env = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    summary = claw.run("show notes.md", str(tmp_path), model="offline", env=env)
    assert summary.stop_reason == "completed"
    assert "remember the milk" in claw.final_assistant_text(summary)


async def test_open_keeps_a_session_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    env = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    async with claw.open(str(tmp_path), model="offline", env=env) as first:
        await first.run_turn("show notes.md")
        before = first.state
    async with claw.open(str(tmp_path), model="offline", env=env, session="latest") as second:
        assert second.state == before
        kinds = [type(event).__name__ async for event in second.stream_turn("show notes.md")]
        assert kinds[-1] == "TurnEnded"
        assert second.state.turns == 2
