"""The README's examples are true."""

import re
from pathlib import Path

from claw.testing import Harness, calls, says

README = Path(__file__).parents[3] / "README.md"


async def test_the_ten_lines(tmp_path: Path) -> None:
    """The example as it stands in the README, run."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    [example] = [block for block in blocks if "Harness" in block]
    scope: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), scope)
    test = scope["test_my_rules_keep_secrets"]
    await test(tmp_path)  # type: ignore[operator]


async def test_a_hook_is_tested_the_same_way(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "echo 'not on Fridays' >&2; exit 2"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    script = [calls(("Bash", {"command": "git push"})), says("Then on Monday.")]
    async with Harness(tmp_path, script, settings=settings, mode="bypassPermissions") as run:
        summary = await run.turn("push it")
        assert "not on Fridays" in run.results(summary)[0]
        assert summary.permission_denials[0].tool_name == "Bash"
