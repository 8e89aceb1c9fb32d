"""Command hooks with real processes."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from claw.policy.hooks.declared import HookDeclaration, declare, matcher_problem, matching
from claw.policy.hooks.runner import CommandHooks
from claw.ports import Command, Processes, ProcessResult
from claw.testing.clock import FakeClock
from claw.types.hooks import HookEvent, HookOutcome, HookPayload
from claw.types.tools import ToolSpec
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

SPECS = (
    ToolSpec("Bash", "", {}, aliases=("bash",)),
    ToolSpec("Read", "", {}, aliases=("read_file",)),
)


class NoProcesses:
    """Fails the test that starts something."""

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        raise AssertionError(f"started {command.argv}")


class BrokenProcesses:
    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        raise RuntimeError("out of luck")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[LocalProcesses]:
    environ = {**os.environ, "ANTHROPIC_API_KEY": "a-key-that-nobody-may-see"}
    local = LocalProcesses(str(tmp_path), environ, Guard())
    yield local
    local.close()


def runner(
    processes: Processes, cwd: Path, *hooks: HookDeclaration, project: str = ""
) -> CommandHooks:
    return CommandHooks(
        hooks,
        processes,
        session_id="s1",
        transcript_path="/t.jsonl",
        cwd=str(cwd),
        clock=FakeClock(),
        project_dir=project,
        specs=SPECS,
    )


def before(command: str = "ls", subject: str = "Bash") -> HookPayload:
    fields = {"tool_name": subject, "tool_input": {"command": command}}
    return HookPayload("PreToolUse", "default", subject, "c1", fields)


def pre(command: str, **more: Any) -> HookDeclaration:
    return declare("PreToolUse", command, source="settings.json:3", **more)


async def fire(processes: Processes, cwd: Path, *hooks: HookDeclaration) -> HookOutcome:
    return await runner(processes, cwd, *hooks).fire(before())


async def test_no_hooks_start_nothing(tmp_path: Path) -> None:
    assert await runner(NoProcesses(), tmp_path).fire(before()) == HookOutcome()
    other = runner(NoProcesses(), tmp_path, declare("Stop", "x"), pre("x", matcher="Edit|Write"))
    assert await other.fire(before()) == HookOutcome()


async def test_what_a_hook_is_told(processes: LocalProcesses, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    hook = pre(
        'cat > in.json; env > env.txt; echo "$CLAUDE_PROJECT_DIR $CLAW_PROJECT_DIR"; ps -o tty= $$'
    )
    outcome = await runner(processes, tmp_path, hook, project=str(project)).fire(before("ä\ud800"))
    assert outcome.verdict == "passed"
    assert outcome.runs[0].outcome == "passed"
    told = json.loads((tmp_path / "in.json").read_bytes())
    assert told == {
        "session_id": "s1",
        "transcript_path": "/t.jsonl",
        "cwd": str(tmp_path),
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": "ä\ud800"},
        "tool_use_id": "c1",
    }
    environment = (tmp_path / "env.txt").read_text()
    assert f"CLAUDE_PROJECT_DIR={project}\n" in environment
    assert f"CLAW_PROJECT_DIR={project}\n" in environment
    assert "nobody-may-see" not in environment


async def test_exit_2_blocks_with_its_reason(processes: LocalProcesses, tmp_path: Path) -> None:
    outcome = await fire(processes, tmp_path, pre("echo not today >&2; exit 2"))
    assert (outcome.verdict, outcome.reason) == ("denied", "not today")
    assert outcome.by == "hook `echo not today >&2; exit 2` (settings.json:3)"
    assert (outcome.runs[0].exit_code, outcome.runs[0].outcome) == (2, "denied")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("echo oops >&2; exit 1", "it exited with code 1: oops"),
        ("/nonexistent/cmd", "it could not start (exit code 127)"),
        ("./noexec.sh", "it could not start (exit code 126)"),
        ("kill -9 $$", "it was ended by signal 9"),
        ("sleep 600", "it was killed after 0.2 seconds"),
        ("trap '' TERM; sleep 600 & sleep 600", "it was killed after 0.2 seconds"),
        ("python3 /nope.py", "it could not start: /nope.py does not exist"),
        ('python3 "$CLAUDE_PROJECT_DIR"/nope.py', "nope.py does not exist"),
        ("""echo '{"hookSpecificOutput": {"permissionDecision": "maybe"}}'""", "'maybe'"),
    ],
)
async def test_a_failure_warns_or_blocks_where_it_must_succeed(
    processes: LocalProcesses, tmp_path: Path, command: str, says: str
) -> None:
    (tmp_path / "noexec.sh").write_text("#!/bin/sh\n")
    limit = 0.2 if "sleep" in command else 20
    outcome = await fire(processes, tmp_path, pre(command, timeout=limit))
    assert (outcome.verdict, outcome.permission) == ("passed", None)
    assert says in outcome.notices[0]
    assert outcome.runs[0].outcome == "error"
    strict = await fire(processes, tmp_path, pre(command, timeout=limit, on_failure="block"))
    assert strict.verdict == "failed"
    assert says in strict.reason
    assert strict.runs[0].outcome == "failed"


async def test_a_crash_of_what_runs_it_is_an_outcome_too(tmp_path: Path) -> None:
    outcome = await fire(BrokenProcesses(), tmp_path, pre("x"))
    assert outcome.verdict == "passed"
    assert "out of luck" in outcome.notices[0]
    strict = await fire(BrokenProcesses(), tmp_path, pre("x", on_failure="block"))
    assert strict.verdict == "failed"


@pytest.mark.parametrize(
    "command",
    [
        "exec 0<&-; exit 2",
        "yes | head -c 5000000; exit 2",
        "yes | head -c 5000000 >&2; exit 2",
        r"printf '\xff\xfe' >&2; exit 2",
        """printf '{"reason":"\\xff"}'; exit 2""",
    ],
)
async def test_exit_2_blocks_whatever_else_happens(
    processes: LocalProcesses, tmp_path: Path, command: str
) -> None:
    hooks = runner(processes, tmp_path, pre(command))
    outcome = await hooks.fire(before("x" * 300_000))
    assert outcome.verdict == "denied"
    assert 0 < len(outcome.reason) < 11_000


def say(**fields: Any) -> str:
    return f"echo '{json.dumps({'hookSpecificOutput': fields})}'"


ALLOW = say(permissionDecision="allow", permissionDecisionReason="fine")
ASK = say(permissionDecision="ask", permissionDecisionReason="sure?")


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ([ALLOW], ("passed", "allow", "fine")),
        ([ALLOW, ASK], ("passed", "ask", "sure?")),
        ([ASK, ALLOW], ("passed", "ask", "sure?")),
        ([ALLOW, "echo no >&2; exit 2"], ("denied", "allow", "no")),
        (["echo no >&2; exit 2", ALLOW], ("denied", "allow", "no")),
        (["exit 1", "echo no >&2; exit 2"], ("denied", None, "no")),
        (["echo a >&2; exit 2", "echo b >&2; exit 2"], ("denied", None, "a\nb")),
        (["true"], ("passed", None, "")),
    ],
)
async def test_the_strictest_counts_in_any_order(
    processes: LocalProcesses,
    tmp_path: Path,
    commands: list[str],
    expected: tuple[str, str | None, str],
) -> None:
    outcome = await fire(processes, tmp_path, *map(pre, commands))
    assert (outcome.verdict, outcome.permission, outcome.reason) == expected
    assert len(outcome.runs) == len(commands)


async def test_each_sees_the_input_as_the_one_before_left_it(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    seen = "cat | tee -a seen >/dev/null; echo >> seen"
    outcome = await fire(
        processes,
        tmp_path,
        pre(say(updatedInput={"command": "one"})),
        pre(seen),
        pre(say(updatedInput={"command": "two"}) + "; exit 1"),
        pre(seen),
    )
    assert outcome.updated_input == {"command": "one"}
    inputs = [
        json.loads(line)["tool_input"]
        for line in (tmp_path / "seen").read_text().split("\n")
        if line
    ]
    assert inputs == [{"command": "one"}, {"command": "one"}]


async def test_other_events_run_together_and_are_merged_in_order(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    # Each waits for the other: one after the other they would never end.
    first = declare("UserPromptSubmit", "touch a; until [ -e b ]; do sleep 0.01; done; echo first")
    second = declare(
        "UserPromptSubmit", "until [ -e a ]; do sleep 0.01; done; touch b; echo second"
    )
    outcome = await runner(processes, tmp_path, first, second).fire(
        HookPayload("UserPromptSubmit", "default", fields={"prompt": "hi"})
    )
    assert outcome.context == ("first", "second")


async def test_cancelling_leaves_nothing_running(processes: LocalProcesses, tmp_path: Path) -> None:
    commands = ["echo $$ > pid1; trap '' TERM; sleep 600", "echo $$ > pid2; sleep 600"]
    hooks = runner(processes, tmp_path, *(declare("PostToolUse", c) for c in commands))
    firing = asyncio.ensure_future(hooks.fire(HookPayload("PostToolUse", "default", "Bash")))
    files = [tmp_path / "pid1", tmp_path / "pid2"]
    while not all(file.exists() and file.read_text() for file in files):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    firing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await firing
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


@pytest.mark.parametrize(
    ("matcher", "subject", "runs"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("bash", "Bash", True),
        ("Edit|Bash", "Bash", True),
        ("Edit | Bash", "Bash", True),
        ("Edit|Write", "Bash", False),
        ("Bas", "Bash", False),
        ("read_file", "Read", True),
        ("Read", "Read", True),
        ("^(Read|Grep)$", "Read", True),
        ("mcp__.*__write.*", "mcp__fs__write_file", True),
        (".*", "Anything", True),
        ("(", "Bash", False),
    ],
)
def test_matchers(matcher: str, subject: str, runs: bool) -> None:
    names = {"read": ("Read", "read_file"), "bash": ("Bash", "bash")}
    hook = pre("x", matcher=matcher)
    assert matching([hook], before(subject=subject), names) == ([hook] if runs else [])


def test_a_broken_matcher_is_named_and_matches_everything_where_a_hook_must_succeed() -> None:
    assert "(" in matcher_problem("(")
    assert matcher_problem("Edit|Write") == matcher_problem("*") == matcher_problem("^a$") == ""
    hook = pre("x", matcher="(", on_failure="block")
    assert matching([hook], before(), {}) == [hook]


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
def test_events_without_a_subject_have_no_matcher(event: HookEvent) -> None:
    hook = declare(event, "x", matcher="Bash")
    assert matching([hook], HookPayload(event, "default"), {}) == [hook]


def test_a_digest_is_of_what_would_run() -> None:
    assert pre("a").digest == declare("PreToolUse", "a", source="elsewhere").digest
    assert len({pre("a").digest, pre("b").digest, pre("a", timeout=1).digest}) == 3
