"""One session with a bit of everything, for recordings to be changed in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from claw.errors import ContextOverflow, ModelUnavailable
from claw.testing import FakeTool, Harness, ScriptedApprover, calls, cut, fails, says
from claw.types.entries import HookFinished, KnownEntry, ReplyReceived
from claw.types.permissions import Answer, Rule
from tests.replay.recordings import hooked, journal

__all__ = ["DO", "LOOK", "Then", "rich"]

LOOK = FakeTool("Look", text="seen", required=("at",))
LONG = FakeTool("Long", text="word " * 9000)
DO = FakeTool("Do", text="done", read_only=False)
HOOK = """#!/bin/sh
read -r payload
case "$payload" in
  *unspeakable*) echo "not that word" >&2; exit 2 ;;
  *secret.txt*) echo "not that file" >&2; exit 2 ;;
  *PostToolUse*) echo '{"hookSpecificOutput": {"additionalContext": "mind the tests"}}' ;;
  *) echo "a weak hook" >&2; exit 1 ;;
esac
"""


class Then:
    """A listener that does something soon after the n-th entry of a kind."""

    def __init__(self, kind: Any, nth: int, do: Any) -> None:
        self.kind, self.left, self.do = kind, nth, do

    def __call__(self, event: Any) -> None:
        if isinstance(event, KnownEntry) and isinstance(event, self.kind):
            self.left -= 1
            if self.left == 0:
                asyncio.get_running_loop().call_soon(self.do)


async def rich(folder: Path) -> Path:
    """Three processes, eight turns; the file of its journal."""
    events = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "PreCompact")
    files = {"hook.sh": HOOK, "a.txt": "one\n", "secret.txt": "two\n"}
    answers = [
        Answer(True, rule=Rule("allow", "Do", source="this session")),
        Answer(True, input={"to": "that"}),
        Answer(False, "not today"),
    ]
    edit = ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    script: list[Any] = [
        fails(ModelUnavailable("overloaded", status=529)),
        calls(("Look", {"at": 1}), ("Read", {"file_path": "a.txt"}), text="I look"),
        calls(("Do", {"to": "this"}), edit, ("Read", {"file_path": "secret.txt"})),
        cut("half of"),
        says("done"),
        calls(("Long", {}), ("Look", {}), ("Nothing", {"x": "y"})),
        calls(("Write", {"file_path": "new.txt", "content": "x\n"})),
        says("again"),
        fails(ContextOverflow("too long", limit_tokens=20_000)),
        says("smaller"),
        calls(("Look", {"at": 2})),
    ]
    options: Any = {"settings": hooked(*events), "files": files}
    options |= {"tools": (LOOK, LONG, DO), "approver": ScriptedApprover(answers)}
    run = Harness(folder, script, **options)
    run.script = None
    async with run:
        runtime = run.house.runtime
        await run.turn("go")
        runtime.rename("a title")
        stop = runtime.listen(Then(ReplyReceived, 1, lambda: runtime.set_mode("acceptEdits")))
        also = runtime.listen(Then(HookFinished, 5, lambda: runtime.steer("and that, too")))
        await run.turn("go on")
        stop()
        also()
        await run.turn("the unspeakable")
        await run.turn("more")
        await runtime.compact("the essence")
        runtime.listen(Then(HookFinished, 2, runtime.interrupt))
        await run.turn("and stop")
    async with Harness(folder, [says("back")], session="latest", mode="plan") as run:
        run.house.runtime.rewind(run.house.runtime.turns()[-1].seq)
        await run.turn("from here")
    return journal(run)
