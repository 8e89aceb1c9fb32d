"""Room is made before a request that would be too large, and the turn just goes on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from claw.compaction.compactor import PruningCompactor
from claw.compaction.plan import Estimates
from claw.compaction.summarize import Summarizer
from claw.compaction.trigger import Policy
from claw.models.estimate import estimate_request, estimate_tokens
from claw.runtime.conversation import ConversationRuntime
from claw.testing import (
    FakeHooks,
    FakeTool,
    Gate,
    Harness,
    MemoryJournal,
    ScriptedModel,
    ScriptReply,
    calls,
    conversation,
    says,
    waits,
)
from claw.types.entries import Compacted, PromptInstalled
from claw.types.hooks import HookOutcome
from claw.types.messages import text_of
from claw.types.results import final_assistant_text
from claw.types.usage import Usage

ESTIMATES = Estimates(estimate_request, estimate_tokens)


class Window(ScriptedModel):
    """A model that would not take a request larger than its window."""

    def __init__(self, replies: list[ScriptReply], window: int) -> None:
        super().__init__(replies, window=window)
        self.largest = 0

    def stream(self, request: Any) -> Any:
        self.largest = max(self.largest, estimate_request(request))
        return super().stream(request)


def with_compactor(
    model: ScriptedModel, tools: list[FakeTool], policy: Policy | None = None, **options: Any
) -> ConversationRuntime:
    made = PruningCompactor(policy or Policy(), ESTIMATES, lambda notice: None)
    return conversation(model, tools, **{"compactor": made, **options})


def steps(number: int) -> list[ScriptReply]:
    return [calls(("Look", {"at": n})) for n in range(number)]


async def test_a_long_turn_never_runs_into_the_wall() -> None:
    look = FakeTool("Look", "word " * 4_000)  # 5,000 tokens
    model = Window([*steps(40), says("done")], 100_000)
    summary = await with_compactor(model, [look]).run_turn("the request")
    assert summary.stop_reason == "completed"
    assert look.runs == 40
    assert model.largest < 0.8 * 75_000 + 6_000
    assert 1 <= len(summary.compactions) <= 8
    assert {c.trigger for c in summary.compactions} == {"auto"}
    assert all(c.tokens_after < c.tokens_before for c in summary.compactions)


async def test_a_large_paste_is_counted_before_it_is_sent() -> None:
    model = Window([says("one " * 12_000), says("two")], 40_000)
    runtime = with_compactor(model, [])
    await runtime.run_turn("a question")
    summary = await runtime.run_turn("pasted " * 8_000)
    assert len(summary.compactions) == 1
    assert model.largest < 20_000


async def test_a_server_that_reports_the_same_for_ever_is_not_compacted_for_ever() -> None:
    model = ScriptedModel([says("hi", usage=Usage(50_000, 200)) for _ in range(8)])
    runtime = with_compactor(model, [], Policy(threshold=40_000))
    done = [len((await runtime.run_turn(f"ask {n}")).compactions) for n in range(8)]
    assert done == [0, 1, 0, 0, 0, 0, 0, 0]


async def test_the_cache_does_not_count_twice_nor_do_earlier_requests() -> None:
    usage = Usage(206, 78, cache_read_input_tokens=30_000)
    replies = [calls(("Look", {"at": n}), usage=usage) for n in range(12)]
    runtime = with_compactor(
        ScriptedModel([*replies, says("done", usage=usage)]),
        [FakeTool("Look")],
        Policy(threshold=40_000),
    )
    assert (await runtime.run_turn("go")).compactions == ()
    assert runtime.state.context.context_tokens == 30_284


async def test_without_room_to_make_the_turn_goes_on() -> None:
    model = ScriptedModel([says("ok")])
    runtime = with_compactor(model, [], Policy(threshold=1_000))
    summary = await runtime.run_turn("word " * 4_000)
    assert (summary.stop_reason, summary.compactions) == ("completed", ())


async def test_hooks_come_first_and_may_forbid_it_once_a_turn() -> None:
    hooks = FakeHooks({"PreCompact": HookOutcome("denied", "not now")})
    model = ScriptedModel([*steps(6), says("done")])
    look = FakeTool("Look", "word " * 1_000)
    runtime = with_compactor(model, [look], Policy(threshold=2_000), hooks=hooks)
    assert (await runtime.run_turn("go")).compactions == ()
    fired = [p for p in hooks.fired if p.event == "PreCompact"]
    assert [(p.subject, p.fields["trigger"]) for p in fired] == [("auto", "auto")]


# -- by hand -------------------------------------------------------------------------------


async def test_a_person_can_have_it_done() -> None:
    hooks = FakeHooks({})
    model = ScriptedModel([*steps(8), says("done"), says("more")])
    runtime = with_compactor(model, [FakeTool("Look", "word " * 300)], hooks=hooks)
    await runtime.run_turn("the request")
    entry = await runtime.compact("the colours")
    assert entry is not None
    assert (entry.trigger, entry.provisional) == ("manual", False)
    payload = hooks.fired[-1]
    assert payload.fields == {"trigger": "manual", "custom_instructions": "the colours"}
    assert final_assistant_text(await runtime.run_turn("next")) == "more"
    texts = [text_of(m.content) for m in runtime.state.transcript.messages]
    assert sum("the request" in text for text in texts) == 1
    assert not runtime.busy


async def test_with_nothing_to_compact_nothing_is_stored() -> None:
    journal = MemoryJournal()
    runtime = with_compactor(ScriptedModel([]), [], journal=journal)
    assert await runtime.compact() is None
    assert journal.entries == []


async def test_it_can_be_interrupted() -> None:
    gate = Gate()
    writer = ScriptedModel([waits(gate, says("never"))])
    made = PruningCompactor(
        Policy(),
        ESTIMATES,
        lambda notice: None,
        summarizer=Summarizer(writer, "m", estimate_tokens),
    )
    model = ScriptedModel([*steps(8), says("done"), says("more")])
    runtime = with_compactor(model, [FakeTool("Look", "word " * 900)], compactor=made)
    await runtime.run_turn("go")
    before = runtime.state
    running = asyncio.ensure_future(runtime.compact())
    await gate.reached()
    with pytest.raises(RuntimeError):
        await runtime.run_turn("no")
    runtime.interrupt()
    assert await running is None
    assert runtime.state.transcript == before.transcript
    assert final_assistant_text(await runtime.run_turn("on")) == "more"


# -- the real thing ------------------------------------------------------------------------


def work(number: int) -> list[ScriptReply]:
    todo = {"todos": [{"content": "PAINT-THE-SHED", "status": "in_progress"}]}
    return [
        calls(("TodoWrite", todo)),
        calls(("Write", {"file_path": "made.txt", "content": "x"})),
        *[calls(("Read", {"file_path": f"f{n}.txt"})) for n in range(number)],
        says("done"),
    ]


@pytest.mark.parametrize("edited", [False, True])
async def test_what_must_stay_is_in_the_next_request(tmp_path: Path, edited: bool) -> None:
    files = {f"f{n}.txt": f"{n} " + "some words\n" * 800 for n in range(12)}
    async with Harness(
        tmp_path,
        work(12),
        files={**files, "AGENTS.md": "Obey RULE-7431."},
        mode="acceptEdits",
        auto_compact=15_000.0,
    ) as run:
        if edited:
            (run.workspace / "AGENTS.md").write_text("Obey RULE-9999.")
        summary = await run.turn("Do the work, REQUEST-1.")
        assert summary.compactions
        last = run.requests[-1]
        rule = "RULE-9999" if edited else "RULE-7431"
        assert last.system.count(rule) == 1
        assert last.system.count("Obey") == 1
        said = "".join(text_of(m.content) for m in last.messages)
        assert said.count("Do the work, REQUEST-1.") == 1
        if any(e.kept_from for e in run.entries if isinstance(e, Compacted)):
            assert said.count("PAINT-THE-SHED") == 1
            assert "made.txt" in said
        reasons = [e.reason for e in run.entries if isinstance(e, PromptInstalled)]
        assert reasons == (["start", "compaction"] if edited else ["start"])


async def test_instructions_that_were_edited_hold_in_a_resumed_session(tmp_path: Path) -> None:
    replies = [says(f"{n} " + "word " * 3_000) for n in range(3)]
    options: dict[str, Any] = {"auto_compact": 6_000.0}
    files = {"AGENTS.md": "Obey RULE-1."}
    async with Harness(tmp_path, [*replies], files=files, **options) as run:
        for n in range(3):
            await run.turn(f"ask {n}")
    files = {"AGENTS.md": "Obey RULE-2."}
    async with Harness(tmp_path, [says("x")], files=files, session="latest", **options) as run:
        summary = await run.turn("and now")
        assert summary.compactions
        assert "RULE-2" in run.requests[-1].system


async def test_a_hook_of_the_settings_is_told_and_may_forbid_it(tmp_path: Path) -> None:
    said = tmp_path / "said.json"
    command = f"cat > {said}; echo 'not today' >&2; exit 2"
    hooks = {"PreCompact": [{"matcher": "manual", "hooks": [{"command": command}]}]}
    replies = [says("word " * 1_000) for _ in range(3)]
    async with Harness(tmp_path / "run", replies, settings={"hooks": hooks}) as run:
        for n in range(3):
            await run.turn(f"ask {n}")
        assert await run.house.runtime.compact("the words") is None
    told = json.loads(said.read_text())
    assert told["hook_event_name"] == "PreCompact"
    assert (told["trigger"], told["custom_instructions"]) == ("manual", "the words")
