"""What no journal can hold, and what breaks in other people's code, is refused or told at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import claw
from claw.engine.replaying import replay_session
from claw.errors import SessionError
from claw.recordings.verify import Replayed
from claw.sessions.load import read_entries
from claw.testing import FakeTool, Harness, calls, says
from claw.types.entries import ToolFinished, TurnEnded, UserMessaged
from claw.types.messages import Image, Text
from claw.types.permissions import Answer, Question
from claw.types.tools import ToolOutput
from tests.replay.recordings import changed, journal, same

WRITE = calls(("Write", {"file_path": "a.txt", "content": "one\n"}))
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
    "78da63f8ffff3f0005fe02fea135b7d40000000049454e44ae426082"
)


def engine(tmp_path: Path, **config: Any) -> claw.QueryEngine:
    env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    (tmp_path / "work").mkdir()
    made = claw.QueryEngineConfig(**config)
    return claw.QueryEngine.from_workspace(str(tmp_path / "work"), made, env=env)


@pytest.mark.parametrize(
    "config",
    [
        {"max_budget_usd": float("inf")},
        {"max_budget_usd": float("nan")},
        {"max_budget_tokens": 1.5},
        {"max_turns": "3"},
        {"compact_after_turns": None},
        {"structured_retry_limit": None},
        {"structured_output": "yes"},
    ],
)
def test_a_config_that_makes_no_sense(tmp_path: Path, config: dict[str, Any]):
    with pytest.raises((TypeError, ValueError)):
        engine(tmp_path, **config)


@pytest.mark.parametrize(
    "given", [{"denied_tools": ["Bash"]}, {"matched_tools": "Bash"}, {"matched_commands": [1]}]
)
def test_arguments_of_another_type_leave_nothing_behind(tmp_path: Path, given: dict[str, Any]):
    with engine(tmp_path) as made:
        with pytest.raises(TypeError):
            made.submit_message("list files", **given)
        with pytest.raises(TypeError):
            made.submit_message(None)  # type: ignore[arg-type]
        with pytest.raises(SessionError, match="nothing was said"):
            made.persist_session()


def test_a_stream_whose_engine_was_closed(tmp_path: Path):
    made = engine(tmp_path)
    events = made.stream_submit_message("list files")
    next(events)
    made.close()
    events.close()  # type: ignore[attr-defined]


def test_all_prompts_are_looked_at_before_the_first_turn(tmp_path: Path):
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with pytest.raises(ValueError, match="empty"):
        claw.run_turn_loop("list files", prompts=[" "], persist=True, cwd=str(tmp_path), env=env)
    assert not (tmp_path / ".claw").exists()


async def test_plain_calls_say_that_a_loop_runs(tmp_path: Path):
    for call in (lambda: claw.run("hi"), lambda: claw.replay("x.jsonl")):
        with pytest.raises(RuntimeError, match=r"claw\.open"):
            call()


@pytest.mark.parametrize(
    "output",
    [ToolOutput(content="abc"), ToolOutput.of(5), "abc", None],  # type: ignore[arg-type]
)
async def test_a_tool_that_gives_something_else_has_failed(tmp_path: Path, output: Any):
    class Odd(FakeTool):
        async def run(self, args: Any, call: Any) -> ToolOutput:
            return output  # type: ignore[no-any-return]

    script = [calls(("Odd", {})), says("done")]
    async with Harness(tmp_path, script, tools=(Odd("Odd"),), mode="bypassPermissions") as run:
        summary = await run.turn("go")
        assert (summary.stop_reason, summary.tool_results[0].is_error) == ("completed", True)
    await same(run)


@pytest.mark.parametrize("answer", [OSError("tty gone"), True, None, Answer(False, 5)])  # type: ignore[arg-type]
async def test_an_approver_that_breaks_ends_the_turn_and_replays(tmp_path: Path, answer: Any):
    class Broken:
        async def ask(self, question: Question) -> Answer:
            if isinstance(answer, OSError):
                raise answer
            return answer  # type: ignore[no-any-return]

    script = [WRITE, says("never")]
    async with Harness(tmp_path, script, approver=Broken()) as run:
        run.script = None
        with pytest.raises((OSError, TypeError)):
            await run.turn("go")
        assert not (run.workspace / "a.txt").exists()
        assert [*read_entries(str(journal(run)))]
    await same(run)


@pytest.mark.parametrize("at", [ToolFinished, UserMessaged, TurnEnded])
async def test_a_listener_that_raises_is_heard_when_the_turn_has_ended(tmp_path: Path, at: Any):
    def listener(event: Any) -> None:
        if isinstance(event, at):
            raise LookupError("mine")

    script = [WRITE, says("done")]
    async with Harness(tmp_path, script, mode="acceptEdits") as run:
        run.house.runtime.listen(listener)
        with pytest.raises(LookupError, match="mine"):
            await run.turn("go")
        ended = [e for e in run.entries if isinstance(e, TurnEnded)]
        assert [e.stop_reason for e in ended] == ["completed"]
    await same(run)


async def test_modes_and_rules_that_are_none(tmp_path: Path):
    async with Harness(tmp_path, [says("done")]) as run:
        for call in (
            lambda: run.house.runtime.set_mode("yolo"),  # type: ignore[arg-type]
            lambda: run.house.runtime.add_rule("Bash(*)"),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError):
                call()
        await run.turn("go")
    await same(run)


@pytest.mark.no_replay("the recording was changed")
async def test_a_prompt_that_is_gone_is_named(tmp_path: Path):
    async with Harness(tmp_path, [says("done")]) as run:
        await run.turn("go")
    changed(
        journal(run),
        lambda e: UserMessaged(()) if isinstance(e, UserMessaged) else e,
    )
    (first,) = (await replayed(run)).differences
    assert (first.turn, first.entry, first.field) == (1, "user_message", "content")


@pytest.mark.no_replay("its picture was changed")
async def test_a_damaged_picture_of_a_prompt_is_an_error(tmp_path: Path):
    async with Harness(tmp_path, [says("done")]) as run:
        digest = run.house.blobs.put(PIXEL)
        await run.house.runtime.run_turn((Text("look"), Image("image/png", digest)))
    await same(run)
    blob = journal(run).with_suffix(".blobs") / digest
    blob.chmod(0o600)
    blob.write_bytes(PIXEL[:-1] + b"x")
    with pytest.raises(SessionError, match="damaged"):
        await replayed(run)


async def replayed(run: Harness) -> Replayed:
    return await replay_session(str(journal(run)))
