"""What was said, whatever it was, and also where nobody heard it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.engine.replaying import replay_session
from claw.sessions.load import load
from claw.testing import FakeTool, Harness, ScriptedApprover, calls, says
from claw.types.entries import Entry, Steered, ToolFinished, TurnEnded, UserMessaged
from claw.types.messages import Text, text_of
from claw.types.permissions import Answer
from tests.replay.recordings import changed, hooked, journal, same

HALF = "half of \ud83d, a pair \ud83d\ude00, a zero \0, the end"
WHOLE = "half of \ufffd, a pair \U0001f600, a zero \0, the end"
LOOK = FakeTool("Look", text=HALF, required=("at",))
NO = "echo 'we do not say that' >&2; exit 2"


async def test_half_characters_are_the_same_live_stored_and_replayed(tmp_path: Path):
    script: list[Any] = [calls(("Look", {"at": HALF}), text=HALF), says(HALF)]
    async with Harness(tmp_path, script, tools=(LOOK,)) as run:
        runtime = run.house.runtime
        runtime.listen(lambda e: runtime.steer(HALF) if isinstance(e, ToolFinished) else None)
        await runtime.run_turn((Text(HALF), Text("\ud800")))
        runtime.rename(HALF)
        live = runtime.state
        assert load(str(journal(run))).state.transcript == live.transcript
        assert live.title == WHOLE
        (asked,) = (e for e in run.entries if isinstance(e, UserMessaged))
        assert text_of(asked.content) == WHOLE + "\ufffd"
        assert [text_of(e.content) for e in run.entries if isinstance(e, Steered)] == [WHOLE]
        await same(run)
    async with Harness(tmp_path, [says("again")], tools=(LOOK,), session="latest") as run:
        assert run.house.runtime.state.transcript == live.transcript
        await run.turn("go on")
        await same(run)


async def test_half_characters_of_people_and_hooks(tmp_path: Path):
    do = FakeTool("Do", text=HALF * 2000, read_only=False)
    answers = [Answer(True, input={"to": HALF}), Answer(False, reason=HALF)]
    script: list[Any] = [calls(("Do", {}), ("Do", {})), says("done")]
    hook = r"""echo '{"hookSpecificOutput": {"additionalContext": "half \ud83d"}}'"""
    options: Any = {"settings": hooked("PostToolUse", "UserPromptSubmit")}
    options |= {"files": {"hook.sh": hook}, "approver": ScriptedApprover(answers)}
    async with Harness(tmp_path, script, tools=(do,), **options) as run:
        await run.turn("go")
        assert load(str(journal(run))).state.transcript == run.house.runtime.state.transcript
        await same(run)


# -- prompts that nobody heard -----------------------------------------------------------


def unheard(run: Harness) -> list[str]:
    ended = [entry for entry in run.entries if isinstance(entry, TurnEnded)]
    return [text_of(entry.unheard) for entry in ended]


async def test_a_blocked_prompt_is_on_record_and_nowhere_else(tmp_path: Path):
    options: Any = {"settings": hooked("UserPromptSubmit"), "files": {"hook.sh": NO}}
    async with Harness(tmp_path, [], **options) as run:
        assert (await run.turn("say it")).stop_reason == "blocked"
        assert unheard(run) == ["say it"]
        assert run.house.runtime.state.transcript.messages == ()
        assert run.house.runtime.turns() == ()
        await same(run)
    files = {"hook.sh": "exit 0"}
    async with Harness(tmp_path, [says("hi")], files=files, session="latest") as run:
        await run.turn("say something else")
        assert unheard(run) == ["say it", ""]
        assert "say it" not in str(run.requests)
        await same(run)


async def test_no_secret_of_a_blocked_prompt_is_kept(tmp_path: Path):
    settings = {**hooked("UserPromptSubmit"), "env": {"MY_API_KEY": "tr0ub4dor-and-3"}}
    async with Harness(tmp_path, [], settings=settings, files={"hook.sh": NO}) as run:
        await run.turn("is it tr0ub4dor-and-3?")
        assert unheard(run) == ["is it [redacted:MY_API_KEY]?"]
        await same(run)


async def test_a_prompt_of_a_turn_that_was_over_before(tmp_path: Path):
    options: Any = {"settings": hooked("UserPromptSubmit"), "files": {"hook.sh": "sleep 60"}}
    async with Harness(tmp_path, [], **options) as run:
        runtime = run.house.runtime
        runtime.listen(lambda event: runtime.interrupt())
        assert (await run.turn("never mind")).stop_reason == "interrupted"
        assert unheard(run) == ["never mind"]
        await same(run)


@pytest.mark.no_replay("the recording was changed")
async def test_another_blocked_prompt_is_a_difference(tmp_path: Path):
    options: Any = {"settings": hooked("UserPromptSubmit"), "files": {"hook.sh": NO}}
    async with Harness(tmp_path, [], **options) as run:
        await run.turn("say it")

    def other(entry: Entry) -> Entry:
        said = isinstance(entry, TurnEnded)
        return replace(entry, unheard=(Text("say if"),)) if said else entry

    report = await replay_session(str(changed(journal(run), other)))
    assert [str(d) for d in report.differences] == ["turn 1, step 0: turn_ended.digest"]
