"""The n-th call to the disk fails, for all n: sessions load, files are old or new."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest

from claw.app.furnish import House, furnish
from claw.app.wishes import Lent, Wishes
from claw.errors import SessionError
from claw.models.scripted import PlainReply, ScriptedModel, calls, says
from claw.ports import Disk
from claw.sessions.load import load, read_entries
from claw.sessions.salvage import verify
from claw.testing import FakeClock, FaultyDisk, Killed
from claw.testing.disk import Fault
from claw.types.entries import Entry, Event, KnownEntry
from claw.types.events import Notice
from claw.types.messages import AssistantMessage, ToolResult, text_of
from claw.types.request import Request
from claw.workspace.disk import SystemDisk
from tests.unit.sessions.making import complaints

LARGE = "all of it\n" * 7000  # over 64 KiB: lies in a blob
OLD = {"old.txt": "one\ntwo\n", "large.txt": "line\n" * 20_000}
NEW = {"old.txt": "one\nTWO\n", "large.txt": OLD["large.txt"], "new/new.txt": LARGE}
PLAN: dict[str, list[PlainReply]] = {
    "begin": [
        calls(("Read", {"file_path": "old.txt"}), ("Read", {"file_path": "large.txt"})),
        calls(
            ("Write", {"file_path": "new/new.txt", "content": LARGE}),
            ("Edit", {"file_path": "old.txt", "old_string": "two", "new_string": "TWO"}),
        ),
        says("Both are written."),
    ],
    "go on": [calls(("Read", {"file_path": "old.txt"})), says("I looked again.")],
    "again": [says("Here I am.")],
}


class QuickDisk(SystemDisk):
    """Nothing here loses power, so nothing has to wait for the platters."""

    def fsync(self, fd: int) -> None:
        pass


def answer(request: Request) -> PlainReply:
    """By the last prompt, and how often it was answered: whatever failed before."""
    replies = 0
    for message in reversed(request.messages):
        if isinstance(message, AssistantMessage):
            replies += 1
        elif not isinstance(message.content[0], ToolResult):
            prompt = text_of(message.content)
            return PLAN[prompt][replies]
    raise AssertionError("no prompt")


class Place:
    """A home, a workspace, and the sessions that are tried in them."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.home = folder / "home"
        for name, content in OLD.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.home.mkdir()
        self.acknowledged: list[Entry] = []
        self.journal = ""
        self._unwritten = False

    async def open(self, disk: Disk, *, goes_on: bool = False, id: str = "s1") -> House:
        wishes = Wishes(
            cwd=str(self.work),
            mode="acceptEdits",
            origin="sdk",
            session="latest" if goes_on else None,
            session_id=None if goes_on else id,
            env={"HOME": str(self.home), "PATH": os.environ["PATH"]},
        )
        model = ScriptedModel([answer] * 20)
        house = await furnish(wishes, lent=Lent(model=model, clock=FakeClock(), disk=disk))
        house.runtime.listen(self._heard)
        assert house.journal_path is not None
        self.journal = house.journal_path
        return house

    def _heard(self, event: Event) -> None:
        """An entry that is told was acknowledged, unless it was just said that it was not."""
        if isinstance(event, KnownEntry):
            if not self._unwritten:
                self.acknowledged.append(event)
            self._unwritten = False
        elif isinstance(event, Notice) and event.code == "journal":
            self._unwritten = True

    @property
    def written(self) -> list[Entry]:
        if not os.path.exists(self.journal):
            return []
        return [record.entry for record in read_entries(self.journal)]

    def check_files(self) -> None:
        """Each is as it was or as it should be."""
        for name, new in NEW.items():
            path = self.work / name
            found = path.read_text() if path.exists() else None
            assert found in (OLD.get(name), new), f"{name} is half written"

    def check_journal(self) -> None:
        if os.path.exists(self.journal) and os.path.getsize(self.journal):
            assert complaints(load(self.journal).state) == []
            assert [found.what for found in verify(self.journal).damage] == []


async def turn(house: House, prompt: str) -> str | None:
    """How it ended; None where it could not even begin."""
    try:
        return (await house.runtime.run_turn(prompt)).stop_reason
    except SessionError:
        return None


async def go_on_later(place: Place) -> None:
    """As the next process does, on a disk without faults."""
    held = os.path.exists(place.journal) and bool(place.written)
    house = await place.open(QuickDisk(), goes_on=held, id="s2")
    try:
        assert await turn(house, "again") == "completed"
    finally:
        await house.close()
    place.check_journal()


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "short_write"])
async def test_a_failing_call_loses_nothing_that_was_acknowledged(
    tmp_path: Path, fault: Fault, lasting: bool
) -> None:
    for number in range(1, 1000):
        place = Place(tmp_path / str(number))
        disk = FaultyDisk(QuickDisk(), fail_at=number, fault=fault, lasting=lasting)
        house = await place.open(disk)
        try:
            for prompt in ("begin", "go on"):
                await turn(house, prompt)
                place.check_files()
                place.check_journal()
            disk.heal()
            assert await turn(house, "again") == "completed", f"call {number}"
        finally:
            await house.close()
        assert place.written == place.acknowledged, f"call {number}"
        place.check_files()
        await go_on_later(place)
        if not disk.hit:
            return
    raise AssertionError("the fault was always hit")


@pytest.mark.parametrize("fault", [f for f in get_args(Fault) if "kill" in f or "torn" in f])
async def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged(
    tmp_path: Path, fault: Fault
) -> None:
    for number in range(1, 1000):
        place = Place(tmp_path / str(number))
        disk = FaultyDisk(QuickDisk(), fail_at=number, fault=fault)
        house = await place.open(disk)
        try:
            await turn(house, "begin")
            await turn(house, "go on")
            await house.close()
        except Killed:
            pass
        place.check_files()
        place.check_journal()
        more = place.written[len(place.acknowledged) :]
        assert place.written[: len(place.acknowledged)] == place.acknowledged, f"call {number}"
        assert len(more) <= 1, f"call {number}"
        await go_on_later(place)
        if not disk.hit:
            return
    raise AssertionError("the fault was always hit")
