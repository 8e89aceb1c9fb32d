"""The runtime itself opens no file, starts no process and makes no connection."""

import subprocess
import sys

SCRIPT = """
import asyncio, sys
from claw.testing import FakeTool, ScriptedModel, calls, conversation, cut, says

TOUCHES = ("open", "os.", "socket.", "subprocess.", "shutil.", "tempfile.")

async def main():
    model = ScriptedModel([
        cut(says("half")), calls(("Look", {}), ("Change", {})), says("done"),
    ])
    tools = [FakeTool("Look"), FakeTool("Change", read_only=False)]
    runtime = conversation(model, tools)
    await runtime.run_turn("warm up")          # what is imported lazily is imported now
    model = ScriptedModel([
        cut(says("half")), calls(("Look", {}), ("Change", {})), says("done"),
    ])
    runtime = conversation(model, tools)

    def watch(event, args):
        if event.startswith(TOUCHES):
            raise AssertionError(f"the runtime touches the machine: {event} {args!r}")

    sys.addaudithook(watch)
    summary = await runtime.run_turn("go")
    assert summary.stop_reason == "completed", summary
    assert len(summary.tool_results) == 2

asyncio.run(main())
print("clean")
"""


def test_the_runtime_on_fakes_touches_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "clean\n", done.stderr
