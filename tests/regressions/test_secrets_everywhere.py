"""A secret of the environment reaches neither journal nor model, whoever says it."""

from pathlib import Path
from typing import Any

import pytest

from claw.errors import RequestRejected
from claw.testing import Harness, ScriptReply, calls, fails, says
from claw.types.messages import ToolUse
from tests.replay.recordings import same

SECRET = "tr0ub4dor-and-3"


async def test_hooks_errors_and_results_are_cleaned(tmp_path: Path) -> None:
    def hook(command: str) -> list[dict[str, object]]:
        return [{"hooks": [{"type": "command", "command": command}]}]

    settings = {
        "env": {"MY_API_KEY": SECRET},
        "hooks": {
            "UserPromptSubmit": hook("echo context $MY_API_KEY"),
            "PreToolUse": hook("echo no, $MY_API_KEY >&2; exit 2"),
            "Stop": hook("echo failing $MY_API_KEY >&2; exit 1"),
        },
    }
    script: list[ScriptReply] = [
        calls(("Bash", {"command": "echo hello"})),
        says("done"),
        fails(RequestRejected(f"you sent the key {SECRET}", hint=f"not {SECRET}")),
    ]
    async with Harness(tmp_path, script, settings=settings, mode="bypassPermissions") as run:
        first = await run.turn("go")
        second = await run.turn("again")
        assert second.error is not None
        assert "[redacted:MY_API_KEY]" in second.error.message
        assert SECRET not in repr((first, second))
        assert SECRET not in repr(run.requests)
        journal = Path(run.house.journal_path or "").read_text()
        assert SECRET not in journal
        assert journal.count("[redacted:MY_API_KEY]") >= 4


async def test_a_key_in_the_command_of_a_hook_is_cleaned(tmp_path: Path) -> None:
    command = f"echo {SECRET} >/dev/null; exit 2"
    settings = {
        "env": {"MY_API_KEY": SECRET},
        "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]},
    }
    script: list[ScriptReply] = [calls(("Bash", {"command": "echo hello"})), says("done")]
    async with Harness(tmp_path, script, settings=settings, mode="bypassPermissions") as run:
        await run.turn("go")
        kept = [
            path.read_bytes() for path in run.home.glob(".claw/sessions/**/*") if path.is_file()
        ]
        assert not [data for data in kept if SECRET.encode() in data]
        assert b"[redacted:MY_API_KEY]" in b"".join(kept)


async def test_a_file_that_is_changed_is_not_kept_with_its_key(tmp_path: Path) -> None:
    def change(old: str, new: str) -> ScriptReply:
        return calls(("Edit", {"file_path": ".env", "old_string": old, "new_string": new}))

    before = f"KEY={SECRET}\nLEVEL=low\n"
    options: dict[str, Any] = {
        "files": {".env": before, "AGENTS.md": f"The key is {SECRET}.", "a.txt": "one\n"},
        "settings": {"env": {"MY_API_KEY": SECRET}},
        "mode": "bypassPermissions",
    }
    script: list[ScriptReply] = [
        calls(("Read", {"file_path": ".env"}), ("Read", {"file_path": "a.txt"})),
        change("low", "high"),
        calls(("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        says("done"),
    ]
    async with Harness(tmp_path, script, **options) as run:
        await run.turn("go")
        assert SECRET not in repr(run.requests)
        files = run.home.glob(".claw/sessions/**/*")
        kept = [path.read_bytes() for path in files if path.is_file()]
        assert not [data for data in kept if SECRET.encode() in data]
        (point,) = run.house.runtime.turns()
        done = run.house.runtime.rewind(point.seq)
        assert [Path(path).name for path in done.files] == ["a.txt"]
        assert "holds a secret" in "".join(done.left)
        assert (run.workspace / "a.txt").read_text() == "one\n"
        assert (run.workspace / ".env").read_text() == before.replace("low", "high")


@pytest.mark.parametrize("rewritten", [False, True])
async def test_results_that_quote_a_key_of_the_model_replay(
    tmp_path: Path, rewritten: bool
) -> None:
    """What the model says stays as it is; where the runtime quotes it, it does not."""
    script: list[ScriptReply] = [
        calls(ToolUse("a", "Read", {}, "{bad " + SECRET)),
        calls((SECRET, {}), ("Bash", {"command": f"echo {SECRET}"}), ("Bash", {"command": "ls"})),
        says("done"),
    ]
    settings: dict[str, Any] = {
        "env": {"MY_API_KEY": SECRET},
        "permissions": {"deny": [f"Bash(echo {SECRET})"]},
    }
    if rewritten:
        command = "echo seen; echo no >&2; exit 1"
        settings["hooks"] = {"PostToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    async with Harness(tmp_path, script, settings=settings, mode="bypassPermissions") as run:
        summary = await run.turn("go")
        results = run.results(summary)
        assert len([text for text in results if "[redacted:MY_API_KEY]" in text]) == 3
        assert SECRET not in repr((results, summary.permission_denials))
        await same(run)
