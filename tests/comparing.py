"""Replays to look at side by side: sessions that were run, then judged with today's parts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from claw.engine.replay_page import page_of_replay
from claw.engine.replaying import Live, replay_session
from claw.recordings.align import pairs
from claw.recordings.verify import Played, Replayed
from claw.testing import Harness, calls, says
from claw.types.entries import DecisionMade, KnownEntry, ToolFinished, TurnStarted
from claw.types.messages import Text
from claw.viewer.compare import Verdict, comparison
from tests.replay.recordings import changed, journal, with_text
from tests.viewing import ANSWER, HOSTILE, SESSION_PY, many

FILES = {"session.py": SESSION_PY, "AGENTS.md": "Answer in English.\n\nBe kind, and be brief.\n"}
EDIT = {
    "file_path": "session.py",
    "old_string": "    lock.acquire()\n    journal.open()\n    lock.release()\n",
    "new_string": "    with lock:\n        journal.open()\n",
}
SCRIPT: list[Any] = [
    calls(
        ("Read", {"file_path": "session.py"}),
        ("Bash", {"command": "grep -n lock session.py"}),
        ("Bash", {"command": "cat notes.txt"}),
        text="I look where the lock is taken.",
    ),
    calls(("Edit", EDIT), text="It is not released where `open` fails."),
    calls(("Bash", {"command": "python3 -m compileall -q session.py"})),
    says(ANSWER),
]
LATER: list[Any] = [
    calls(("Bash", {"command": "git push"}), text="I publish it."),
    calls(("Read", {"file_path": "session.py"})),
    says("Published."),
]


async def judged(
    folder: Path, *parts: Any, change: Callable[[Harness], None], goes_on: bool = True
) -> tuple[str, Replayed]:
    """Two turns, then ``change``, then the replay with these parts as of today."""
    files = {**FILES, "notes.txt": "one\ntwo\nthe lock is old\nfour\n"}
    async with Harness(folder, [*SCRIPT, *LATER], files=files, mode="bypassPermissions") as run:
        await run.turn("Where is the session lock taken?\n\nFix it if it leaks.")
        await run.turn("Now publish it.")
        path = str(journal(run))
        env = {"PATH": os.environ["PATH"], "HOME": str(run.home)}
        change(run)
    live = Live(parts=frozenset(parts), env=env, goes_on=goes_on)
    return path, await replay_session(path, live)


def new_rule(run: Harness) -> None:
    rules = {"permissions": {"deny": ["Bash(git push:*)"]}}
    (run.home / ".claw/settings.json").write_text(json.dumps(rules))


def new_instructions(run: Harness) -> None:
    (run.workspace / "AGENTS.md").write_text(
        "Answer in English.\n\nBe kind, but be thorough.\n\nNever push.\n"
    )


def new_rule_and_instructions(run: Harness) -> None:
    new_rule(run)
    new_instructions(run)


def new_notes(run: Harness) -> None:
    (run.workspace / "notes.txt").write_text("one\ntwo\nthe lock is new\nfour\nfive\n")


def nothing(run: Harness) -> None:
    """All is as it was."""


async def another_result(folder: Path) -> tuple[str, Replayed]:
    """One byte of one tool result in the recording is another one."""
    path, _ = await judged(folder, change=nothing)
    changed(Path(path), lambda entry: with_text(entry, ToolFinished, "another text"))
    return path, await replay_session(path, Live(goes_on=True))


async def attacked(folder: Path) -> tuple[str, Replayed]:
    """All that differs is an attack."""

    def change(run: Harness) -> None:
        (run.workspace / "notes.txt").write_text(
            f"{HOSTILE}\n{HOSTILE[::-1]}\n\udcff", errors="replace"
        )
        (run.workspace / "AGENTS.md").write_text(HOSTILE.replace("\0", ""))

    return await judged(folder, "tools", "prompt", change=change)


def page(path: str, report: Replayed, clean: Callable[[str], str] = str) -> str:
    return page_of_replay(path, report, clean).decode()


def comparisons(folder: Path) -> Iterator[tuple[str, str]]:
    """Pages of replays with their names."""
    made: dict[str, Coroutine[Any, Any, tuple[str, Replayed]]] = {
        "stopped": judged(folder / "1", "policy", change=new_rule, goes_on=False),
        "judged": judged(folder / "2", "policy", "prompt", change=new_rule_and_instructions),
        "attacked": attacked(folder / "3"),
        "alike": judged(folder / "4", change=nothing),
    }
    for name, replayed in made.items():
        yield name, page(*asyncio.run(replayed))
    yield "replayed-many", page_of_many(2_000)


def page_of_many(entries: int, *, every: int = 301) -> str:
    """A replay of ``many`` in which every so many entries another result or decision is made."""
    recorded = [record.entry for record in many(entries) if isinstance(record.entry, KnownEntry)]
    made = [_other(entry) if n % every == 7 else entry for n, entry in enumerate(recorded)]
    begins = [n for n, entry in enumerate(recorded) if isinstance(entry, TurnStarted)]
    turns = [slice(a, b) for a, b in pairwise([*begins, len(recorded)])]
    played = tuple(Played((), tuple(recorded[turn]), tuple(made[turn])) for turn in turns)
    found = pairs(Replayed("many", len(played), entries // 5, played=played))
    first = next(pair for pair in found if not pair.same)
    verdict = Verdict(len(played), entries // 5, first=f"turn {first.turn}, step {first.step}")
    return comparison(found, verdict, clean=str, blob=lambda _: None, price=lambda usage, _: None)


def _other(entry: KnownEntry) -> KnownEntry:
    match entry:
        case ToolFinished():
            text = SESSION_PY.replace("journal.open()", "journal.start(now)")
            return replace(entry, content=(Text(text * 4),))
        case DecisionMade():
            return replace(entry, decision="deny", reason="not today", source="rule:user")
        case _:
            return entry
