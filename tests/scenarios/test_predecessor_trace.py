"""The typical trace of the predecessor: one read, one answer, two iterations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from claw.testing import calls, says
from claw.testing.harness import Harness
from claw.types.results import final_assistant_text

MAIN = """\
use std::io;

fn main() {
    let mut cli = LiveCli::new();
    cli.@("hello").unwrap();
}

impl LiveCli {
    fn @(&mut self, input: &str) -> io::Result<()> {
        println!("{input}");
        Ok(())
    }
}
""".replace("@", "run_turn")
PROMPT = "帮我看看main.rs的run_turn函数"
ANSWER = "`run_turn` 在 main.rs:9，它打印输入并返回 Ok。"


async def test_predecessor_trace(tmp_path: Path, golden: Callable[[dict[str, Any]], None]) -> None:
    script = [calls(("read_file", {"path": "main.rs"})), says(ANSWER)]
    async with Harness(tmp_path, script, files={"main.rs": MAIN}) as run:
        summary = await run.turn(PROMPT)
        assert summary.iterations == 2
        assert len(summary.tool_results) == 1
        assert summary.stop_reason == "completed"
        assert final_assistant_text(summary) == ANSWER
        assert "fn run_turn" in run.results(summary)[0]
        golden(run.trajectory())
