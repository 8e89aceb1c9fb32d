"""Any session replays: random scripts, hooks, answers, words and interrupts in between."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from claw.engine.replaying import replay_session
from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelUnavailable,
    OutputLimitTooHigh,
    ProtocolViolation,
)
from claw.models.scripted import ScriptedModel
from claw.testing import FakeTool, Harness, calls, cut, fails, refuses, says
from claw.types.effects import Execute
from claw.types.entries import KnownEntry
from claw.types.permissions import Answer, Rule
from claw.types.usage import Usage
from tests.replay.recordings import hooked, journal, same

EXAMPLES = 2_000 if os.environ.get("CLAW_LONG") else 60
LOOK = FakeTool("Look", text="seen", required=("at",))
LONG = FakeTool("Long", text="word " * 9_000)
FAILS = FakeTool("Fails", text="no", fails=True)
DO = FakeTool("Do", text="done", read_only=False, does=(Execute("do"),), required=("to",))
EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Stop",
    "PreCompact",
)
HOOKS = (
    "exit 0",
    "exit 1",
    "echo no >&2; exit 2",
    """echo '{"continue": false, "stopReason": "enough"}'""",
    """echo '{"hookSpecificOutput": {"additionalContext": "mind this"}}'""",
    """echo '{"hookSpecificOutput": {"updatedInput": {"to": "that", "at": 9}}}'""",
    """test -e met && exit 0; touch met; echo "not yet" >&2; exit 2""",
)

_call: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.sampled_from(
    [
        ("Look", {"at": 1}),
        ("Look", {"at": 2}),
        ("Look", {}),
        ("Long", {}),
        ("Fails", {}),
        ("Do", {"to": "this"}),
        ("Do", {}),
        ("None", {}),
        ("Write", {"file_path": "a.txt", "content": "x"}),
        ("Read", {"file_path": "a.txt"}),
    ]
)
_made = st.lists(_call, min_size=1, max_size=3).map(lambda made: calls(*made, text="so"))
_reply = st.one_of(
    _made,
    _made.map(lambda reply: replace(reply, stop_reason="max_tokens", usage=Usage(9, 90))),
    _made.map(lambda reply: cut(reply, after=2)),
    st.sampled_from(
        [
            says("well"),
            says(""),
            cut("half"),
            refuses("no"),
            replace(says("wait"), stop_reason="pause_turn"),
            replace(says("and"), stop_reason="max_tokens"),
            replace(says("hm"), stop_reason="odd"),
            fails(ModelUnavailable("overloaded", status=529)),
            fails(ModelUnavailable("later", retry_after=0.25), after="half"),
            fails(OutputLimitTooHigh("too many", max_tokens=300)),
            fails(ContextOverflow("too long", limit_tokens=20_000)),
            fails(AuthenticationFailed("no key")),
            fails(ProtocolViolation("nonsense")),
        ]
    ),
)
_answer = st.sampled_from(
    [
        Answer(True),
        Answer(False, "not today"),
        Answer(False, "nobody", asked=False),
        Answer(True, rule=Rule("allow", "Do", source="this session")),
        Answer(True, input={"to": "another"}),
        Answer(True, input={}),
    ]
)
_act = st.sampled_from(["interrupt", "steer", "rename", "plan", "acceptEdits", "rule"])
_acts = st.lists(st.tuples(st.integers(1, 60), _act, st.booleans()), max_size=4)
_hooks = st.dictionaries(st.sampled_from(EVENTS), st.sampled_from(HOOKS), max_size=3)


class Answers:
    """Gives the answers in turn, over and over."""

    def __init__(self, answers: list[Answer]) -> None:
        self._answers, self._asked = answers, 0

    async def ask(self, question: Any) -> Answer:
        await asyncio.sleep(0)
        self._asked += 1
        return self._answers[self._asked % len(self._answers)]


class Acting:
    """A listener that does what it is to do after its entries, at once or soon."""

    def __init__(self, runtime: Any, acts: list[tuple[int, str, bool]]) -> None:
        self._runtime, self._acts, self._seen = runtime, acts, 0

    def __call__(self, event: Any) -> None:
        self._seen += isinstance(event, KnownEntry)
        due = [act for act in self._acts if act[0] <= self._seen]
        self._acts = [act for act in self._acts if act[0] > self._seen]
        for _, act, at_once in due:
            if at_once and act in ("interrupt", "steer"):
                self._do(act)
            else:
                asyncio.get_running_loop().call_soon(self._do, act)

    def _do(self, act: str) -> None:
        match act:
            case "interrupt":
                self._runtime.interrupt()
            case "steer":
                self._runtime.steer("and that, too")
            case "rename":
                self._runtime.rename(f"title {self._seen}")
            case "rule":
                self._runtime.add_rule(Rule("deny", "Fails"))
            case mode:
                self._runtime.set_mode(mode)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not os.environ.get("CLAW_LONG"),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    replies=st.lists(_reply, max_size=8),
    hooks=_hooks,
    answers=st.lists(_answer, min_size=1, max_size=3),
    acts=_acts,
    mode=st.sampled_from(["default", "bypassPermissions", "plan"]),
    limits=st.fixed_dictionaries(
        {}, optional={"max_steps": st.integers(1, 4), "max_tokens": st.integers(50, 500)}
    ),
)
@example(  # a rule that is added right before a decision that it does not come from
    replies=[
        calls(("Look", {}), text="so"),
        calls(("Look", {"at": 1}), ("Look", {"at": 1}), ("Look", {}), text="so"),
        calls(("Look", {"at": 1}), text="so"),
    ],
    hooks={"UserPromptSubmit": "exit 0"},
    answers=[Answer(True)],
    acts=[(27, "rule", False)],
    mode="default",
    limits={"max_steps": 1},
)
@pytest.mark.timeout(900)
def test_any_session_replays(tmp_path_factory: pytest.TempPathFactory, **made: Any):
    asyncio.run(any_session(tmp_path_factory.mktemp("any"), **made))


async def any_session(
    folder: Any, *, replies: Any, hooks: Any, answers: Any, acts: Any, mode: str, limits: Any
) -> None:
    commands = {event: f"sh {event}.sh" for event in hooks}
    declared: Any = {event: hooked(event)["hooks"] for event in hooks}
    settings: dict[str, Any] = {"hooks": {}}
    for event, command in commands.items():
        (matcher,) = declared[event][event]
        matcher["hooks"][0]["command"] = command
        settings["hooks"][event] = [matcher]
    harness = Harness(
        folder,
        ScriptedModel([*replies, *[says("done")] * 20], strict=False),
        files={f"{event}.sh": hook for event, hook in hooks.items()} | {"a.txt": "one\n"},
        settings=settings,
        approver=Answers(answers),
        tools=(LOOK, LONG, FAILS, DO),
        mode=mode,
        auto_compact=9_000,
        **limits,
    )
    harness.script = None
    async with harness as run:
        run.house.runtime.listen(Acting(run.house.runtime, acts))
        await run.turn("go")
        await run.turn("go on")
        await run.house.runtime.compact("the essence")
        await run.turn("and on")
        await same(run)
    path = journal(run)
    lines = path.read_bytes().splitlines(keepends=True)
    for left in range(1 + len(lines) % 5, len(lines), 5):  # the process may have been killed there
        path.write_bytes(b"".join(lines[:left]))
        (await replay_session(str(path))).check()
