"""kill -9 at any moment of a session with tools running: it loads, nothing runs on or again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from claw.sessions.load import load, read_entries
from claw.sessions.salvage import verify
from claw.types.entries import Entry, ToolFinished, ToolIntended
from tests.cli.running import Workplace
from tests.unit.sessions.making import complaints

AT_ONCE = 4
GONE_WITHIN = 2.0  # seconds
MARK = "CLAW_SESSION_MARK"


def bash(*commands: str) -> dict[str, object]:
    return {"calls": [{"name": "Bash", "input": {"command": command}} for command in commands]}


def script() -> list[object]:
    """Commands that leave their name once they run, some with children that try to stay."""
    return [
        bash("echo 1 >> ran; sleep 0.1", "echo 2 >> ran; sleep 60 & sleep 0.1"),
        {
            "calls": [
                {"name": "Write", "input": {"file_path": "new.txt", "content": "new\n" * 20_000}},
                {"name": "Bash", "input": {"command": "echo 3 >> ran; seq 20000; sleep 0.1"}},
            ]
        },
        bash("echo 4 >> ran; setsid sleep 60 & (sleep 60 & exec sleep 60) & sleep 0.2"),
        bash("echo 5 >> ran; nohup sleep 60 >/dev/null 2>&1 & sleep 0.1"),
        "That is all.",
    ]


def marked(mark: str) -> list[int]:
    """Processes that carry the mark in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                environ = Path(f"/proc/{name}/environ").read_bytes()
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in environ and state not in "ZX":
                found.append(int(name))
    return found


async def until_begun(process: asyncio.subprocess.Process, place: Workplace) -> None:
    """Until there is a journal: starting takes long, and there is little to kill in it."""
    for _ in range(1000):
        if process.returncode is not None or list(place.home.glob(".claw/sessions/*/*.jsonl")):
            return
        await asyncio.sleep(0.01)


async def until_gone(mark: str) -> float:
    """Seconds until nobody carries the mark; too many are a failure."""
    clock = asyncio.get_running_loop().time
    began = clock()
    while left := marked(mark):
        assert clock() - began < 5 * GONE_WITHIN, f"still there: {left}"
        await asyncio.sleep(0.05)
    return clock() - began


async def killed_and_continued(folder: Path, delay: float, *, from_start: bool) -> str:
    """What became of one session; raises where it is not as it must be."""
    folder.mkdir(parents=True)
    place = Workplace(folder)
    mark = f"outer-{os.urandom(8).hex()};"
    process = await place.start(
        "-p", "begin", "--permission-mode", "bypassPermissions", "--model", place.script(*script()),
        env={MARK: mark},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    if not from_start:
        await until_begun(process, place)
    await asyncio.sleep(delay)
    if process.returncode is None:
        process.send_signal(signal.SIGKILL)
    await process.wait()
    took = await until_gone(mark)

    ran = Counter(ran_in(place))
    assert set(ran.values()) <= {1}
    new = place.work / "new.txt"
    assert not new.exists() or new.read_text() == "new\n" * 20_000
    journals = [p for p in place.home.glob(".claw/sessions/*/*.jsonl") if p.stat().st_size]
    if not journals:
        return "nothing yet"
    (journal,) = journals
    loaded = load(str(journal))
    assert complaints(loaded.state) == []
    assert verify(str(journal)).damage == ()
    before = entries(journal)
    waiting = [call.id for call in loaded.state.transcript.open_calls]
    intended = {e.call_id for e in before if isinstance(e, ToolIntended)}
    if not loaded.records:
        return "nothing yet"

    ended = await place.run("-p", "again", "--continue", "--model", place.script("Here I am."))
    assert (ended.code, ended.out) == (0, "Here I am.\n"), ended.err
    after = entries(journal)
    assert after[: len(before)] == before
    status = {e.call_id: e.status for e in after if isinstance(e, ToolFinished)}
    for call in waiting:
        assert status[call] == ("outcome_unknown" if call in intended else "not_run")
    assert Counter(ran_in(place)) == ran
    assert complaints(load(str(journal)).state) == []
    assert took < GONE_WITHIN, f"processes were there for {took:.1f} s"
    return "killed at work" if waiting else "killed between"


def ran_in(place: Workplace) -> list[str]:
    log = place.work / "ran"
    return log.read_text().split() if log.exists() else []


def entries(journal: Path) -> list[Entry]:
    return [record.entry for record in read_entries(str(journal))]


async def kill_many(folder: Path, count: int, seed: int) -> Counter[str]:
    dice = random.Random(seed)
    turns = asyncio.Semaphore(AT_ONCE)
    tries = [(n, dice.uniform(0, 1.6), dice.random() < 0.1) for n in range(count)]

    async def one(number: int, delay: float, from_start: bool) -> str:
        async with turns:
            try:
                return await killed_and_continued(
                    folder / str(number), delay, from_start=from_start
                )
            except AssertionError as error:
                error.add_note(json.dumps({"number": number, "delay": delay, "start": from_start}))
                raise

    return Counter(await asyncio.gather(*(one(*given) for given in tries)))


async def test_a_killed_session_loads_and_nothing_runs_on_or_again(tmp_path: Path) -> None:
    seen = await kill_many(tmp_path, 50, seed=9)
    assert seen["killed at work"] >= 5, seen


@pytest.mark.long
@pytest.mark.timeout(7200)
async def test_a_thousand_killed_sessions(tmp_path: Path) -> None:
    seen = await kill_many(tmp_path, 1000, seed=1)
    assert seen["killed at work"] >= 100, seen
