"""What the user puts under `env` in the settings is in the environment of commands and hooks."""

from pathlib import Path

from claw.testing import Harness, calls, says


async def test_commands_and_hooks_see_it(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "echo hook sees $FOO"}
    settings = {
        "env": {"FOO": "bar", "MY_TOKEN": "let-it-through"},
        "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]},
    }
    script = [calls(("Bash", {"command": "echo [$FOO] ${MY_TOKEN%through}"})), says("ok")]
    async with Harness(tmp_path, script, settings=settings, mode="bypassPermissions") as run:
        summary = await run.turn("go")
        assert "[bar] let-it-" in run.results(summary)[0]
        assert "hook sees bar" in str(run.requests[0].messages[0])
