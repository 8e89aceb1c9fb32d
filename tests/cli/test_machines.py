"""The same bytes on every machine: directory, home, user, locale, time zone, hash seed, tools."""

from __future__ import annotations

import asyncio
import functools
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import CLAW, Ended, Workplace

PROMPT = "find the session lock"


class Machine(Workplace):
    """A workplace whose commands are run by somebody else, by way of ``prefix``."""

    def __init__(self, root: Path, env: dict[str, str], prefix: list[str], umask: int) -> None:
        super().__init__(root)
        self.env |= env
        self.prefix, self.umask = prefix, umask
        (self.work / "lock.py").write_text("# the session lock\nclass SessionLock:\n    pass\n")
        (self.work / "docs").mkdir()
        (self.work / "docs/notes.md").write_text("The session lock is held in a turn.\n")

    async def start(self, *args: str, **options: Any) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        command = [*self.prefix, *CLAW, *args]
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=self.work,
            env=self.env,
            umask=self.umask,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )

    def own(self) -> None:
        """Give everything to who runs it."""
        if self.prefix:
            nobody = pwd.getpwnam("nobody")
            for path in (self.home, self.work, *self.home.rglob("*"), *self.work.rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)

    def journal(self) -> Path:
        return max(self.home.glob(".claw/sessions/*/*.jsonl"))


def bare_tools(folder: Path) -> str:
    """A PATH with a shell, and neither git nor ripgrep."""
    folder.mkdir()
    for name in ("sh", "bash", "cat", "ls", "env"):
        if (found := shutil.which(name)) is not None:
            (folder / name).symlink_to(found)
    return str(folder)


@functools.cache
def why_not_another_user() -> str:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return "only root can be another user, and with `setpriv`"
    tried = [*another_user(), *CLAW, "--version"]
    failed = subprocess.run(tried, check=False, stdout=subprocess.DEVNULL).returncode
    return "another user cannot run this interpreter" if failed else ""


def another_user() -> list[str]:
    name = shutil.which("setpriv") or "setpriv"
    return [name, "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """The second one is another user's where that can be."""
    prefix = [] if why_not_another_user() else another_user()
    first = tmp_path / "a"
    first.mkdir()
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)  # pytest's own is closed to others
        second = Path(folder, "much/deeper/directory with blanks/ü")
        second.mkdir(parents=True)
        here = {"TZ": "UTC", "PYTHONHASHSEED": "1", "USER": "ann", "COLUMNS": "200"}
        there = {"LANG": "tr_TR.UTF-8", "LC_ALL": "C", "TZ": "Asia/Kathmandu", "TERM": "dumb"}
        there |= {"PYTHONHASHSEED": "77", "USER": "bob", "LOGNAME": "bob", "COLUMNS": "40"}
        there |= {"HOSTNAME": "elsewhere", "EDITOR": "vi", "PATH": bare_tools(second / "bin")}
        yield Machine(first, here, [], 0o022), Machine(second, there, prefix, 0o077)


async def good(machine: Machine, *args: str) -> Ended:
    machine.own()
    ended = await machine.run(*args)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    return ended


def normalised(machine: Machine, text: str) -> str:
    """As `docs/engine.md` says: directory, home, the project's folder, the session's id."""
    for path, name in ((machine.work, "${CWD}"), (machine.home, "${HOME}")):
        text = text.replace(str(path), name)
    text = re.sub(r"(?<=/sessions/)[^/\s]+", "${PROJECT}", text)
    return re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}", "${SESSION}", text)


RUNS = [
    ("turn-loop", PROMPT),
    ("turn-loop", PROMPT, "--persist", "--output-format", "json"),
    ("turn-loop", PROMPT, "--route", "each", "--structured-output", "--engine-max-turns", "2"),
    ("turn-loop", "列出所有文件", "--output-format", "json"),
    ("turn-loop", "show lock.py", "--max-budget-tokens", "3000", "--output-format", "json"),
    ("bootstrap", PROMPT),
    ("bootstrap", "show lock.py", "--output-format", "json"),
    ("route", PROMPT, "--output-format", "json"),
    ("flush-transcript", PROMPT),
    ("flush-transcript", PROMPT, "--output-format", "json"),
]


@pytest.mark.parametrize("args", RUNS, ids=" ".join)
async def test_two_machines_give_the_same_bytes(
    machines: tuple[Machine, Machine], args: tuple[str, ...]
):
    outputs = [normalised(machine, (await good(machine, *args)).out) for machine in machines]
    assert outputs[0] == outputs[1]
    assert outputs[0]


async def test_the_second_machine_is_somebody_elses(machines: tuple[Machine, Machine]):
    if reason := why_not_another_user():
        pytest.skip(reason)
    await good(machines[1], "flush-transcript", PROMPT)
    assert machines[1].journal().stat().st_uid == pwd.getpwnam("nobody").pw_uid


@pytest.mark.parametrize("form", ["text", "json"])
async def test_a_session_is_loaded_and_replayed_alike(machines: tuple[Machine, Machine], form: str):
    for args in (("load-session", "latest"), ("replay", "latest")):
        outputs = []
        for machine in machines:
            await good(machine, "turn-loop", PROMPT, "--persist", "--max-turns", "2")
            ended = await good(machine, *args, "--output-format", form)
            outputs.append(normalised(machine, ended.out))
        assert outputs[0] == outputs[1]
        assert outputs[0]


def moved(recorded: Path, machine: Machine) -> str:
    """The recording, as a file on another machine."""
    for path in (recorded, recorded.with_suffix(".blobs")):
        target = machine.work / path.name
        if path.is_dir():
            shutil.copytree(path, target)
            os.chmod(target, 0o755)
            for blob in target.iterdir():
                os.chmod(blob, 0o644)
        else:
            shutil.copy(path, target)
    return recorded.name


@pytest.mark.parametrize("form", ["html", "markdown", "jsonl", "atif", "text", "json"])
async def test_a_recording_is_told_alike_and_replays_elsewhere(
    machines: tuple[Machine, Machine], form: str
):
    first, second = machines
    await good(first, "bootstrap", PROMPT)
    outputs = []
    recorded = first.journal()
    for machine in (first, second):
        reference = f"./{moved(recorded, machine)}"
        args = ["export", reference, "--format", form]
        if form in ("text", "json"):
            args = ["replay", reference, "--output-format", form]
        outputs.append((await good(machine, *args)).out)
    assert outputs[0] == outputs[1]
    assert PROMPT in outputs[0] or "same" in outputs[0]


async def test_what_the_second_machine_recorded_replays_on_the_first(
    machines: tuple[Machine, Machine],
):
    first, second = machines
    await good(second, "turn-loop", PROMPT, "--persist")
    ended = await good(first, "replay", f"./{moved(second.journal(), first)}")
    assert ended.out.startswith("same: 3 turns")
