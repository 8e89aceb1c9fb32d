"""A secret of the environment reaches neither journal nor model, whoever says it."""

from pathlib import Path
from typing import Any

from claw.errors import RequestRejected
from claw.testing import Harness, ScriptReply, calls, fails, says

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
