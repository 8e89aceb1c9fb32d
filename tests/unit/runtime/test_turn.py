"""What ends a turn, and with which word; what hooks, limits and people do to it."""

import asyncio

import pytest

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelUnavailable,
    OutputLimitTooHigh,
    ToolFailed,
)
from claw.runtime.limits import MaxCost, MaxSteps, MaxTokens
from claw.runtime.turn import TurnOptions
from claw.testing import (
    FakeClock,
    FakeHooks,
    Gate,
    MemoryBlobs,
    MemoryJournal,
    ScriptedApprover,
    ScriptedModel,
    calls,
    cut,
    fails,
    raw,
    refuses,
    says,
    waits,
)
from claw.testing.pieces import FakeTool, FixedPolicy, conversation
from claw.types.effects import WritePath
from claw.types.entries import (
    DecisionMade,
    ReplyReceived,
    Retried,
    RuleAdded,
    Steered,
    ToolFinished,
    ToolIntended,
)
from claw.types.events import MessageStop
from claw.types.hooks import HookOutcome
from claw.types.messages import Text, ToolUse, text_of
from claw.types.permissions import Answer, Rule
from claw.types.results import final_assistant_text
from claw.types.usage import Usage


def results(summary) -> list[str]:
    return [text_of(result.content) for result in summary.tool_results]


@pytest.mark.parametrize("stop", ["end_turn", "stop", "stop_sequence"])
async def test_the_model_ends(stop: str) -> None:
    summary = await conversation(ScriptedModel([says("hi", stop_reason=stop)])).run_turn("hello")
    assert (summary.stop_reason, summary.iterations) == ("completed", 1)
    assert final_assistant_text(summary) == "hi"
    assert summary.error is None


@pytest.mark.parametrize(
    ("reply", "reason", "kind"),
    [
        (says("half", stop_reason="max_tokens"), "output_limit", None),
        (refuses("no"), "refused", "refused"),
        (says("", stop_reason="weird"), "error", "stopped_oddly"),
        (says("", stop_reason="content_filter"), "refused", "refused"),
        (refuses(), "refused", "refused"),
        (says(" ", stop_reason="weird"), "error", "stopped_oddly"),
        (says("text", stop_reason="weird"), "completed", None),
        (fails(AuthenticationFailed("bad key")), "error", "authentication"),
        (fails(ContextOverflow("too long")), "context_overflow", "context_overflow"),
    ],
)
async def test_other_ends(reply, reason: str, kind: str | None) -> None:
    summary = await conversation(ScriptedModel([reply])).run_turn("go")
    assert summary.stop_reason == reason
    assert (summary.error.kind if summary.error else None) == kind


@pytest.mark.parametrize(
    "nothing", [raw(), raw(MessageStop("end_turn")), says(" \n"), says("", thinking="hm")]
)
async def test_a_reply_that_says_nothing_is_asked_for_once_more(nothing) -> None:
    model = ScriptedModel([nothing, says("here I am")])
    summary = await conversation(model).run_turn("go")
    assert (summary.stop_reason, summary.iterations) == ("completed", 1)
    assert [text_of(m.content) for m in summary.assistant_messages] == ["here I am"]
    assert len(model.requests[1].messages) == 1
    summary = await conversation(ScriptedModel([nothing, nothing])).run_turn("go")
    assert summary.error is not None
    assert summary.error.kind == "protocol_violation"


async def test_a_pause_before_an_empty_reply_is_kept() -> None:
    model = ScriptedModel([says("one", stop_reason="pause_turn"), says(""), says("two")])
    summary = await conversation(model).run_turn("go")
    assert [text_of(m.content) for m in summary.assistant_messages] == ["one", "two"]


async def test_an_empty_end_after_a_result_is_normal() -> None:
    model = ScriptedModel([calls(("Look", {})), raw(MessageStop("end_turn"))])
    summary = await conversation(model, [FakeTool("Look")]).run_turn("go")
    assert (summary.stop_reason, summary.iterations) == ("completed", 2)


async def test_a_pause_goes_on() -> None:
    model = ScriptedModel([says("one", stop_reason="pause_turn"), says("two")])
    summary = await conversation(model).run_turn("go")
    assert [text_of(m.content) for m in summary.assistant_messages] == ["one", "two"]


# -- tool calls ------------------------------------------------------------------


async def test_every_kind_of_bad_call_gets_a_result_and_siblings_run() -> None:
    tool = FakeTool("Look", required=("path",))
    model = ScriptedModel(
        [
            calls(
                ("Nope", {}),
                ("", {}),
                ToolUse("x", "Look", {}, "{broken"),
                ToolUse("x", "Look", {}),
                ("Look", {"path": "a"}),
            ),
            says("ok"),
        ]
    )
    summary = await conversation(model, [tool]).run_turn("go")
    first, blank, broken, missing, good = results(summary)
    assert "Unknown tool `Nope`" in first
    assert "Look" in first
    assert "Unknown tool ``" in blank
    assert "not a JSON object" in broken
    assert "needs path" in missing
    assert good == "done"
    assert [r.is_error for r in summary.tool_results] == [True, True, True, True, False]
    assert tool.runs == 1


async def test_at_the_output_limit_only_the_last_call_is_cut() -> None:
    tool = FakeTool("Look")
    model = ScriptedModel(
        [calls(("Look", {}), ("Look", {}), stop_reason="max_tokens"), says("smaller")]
    )
    summary = await conversation(model, [tool]).run_turn("go")
    assert tool.runs == 1
    assert results(summary)[0] == "done"
    assert "output limit" in results(summary)[1]
    assert summary.stop_reason == "completed"


async def test_calls_cut_at_the_limit_for_ever_end_the_turn() -> None:
    model = ScriptedModel([calls(("Look", {}), stop_reason="max_tokens")] * 3)
    summary = await conversation(model, [FakeTool("Look")]).run_turn("go")
    assert (summary.stop_reason, summary.iterations) == ("output_limit", 3)
    model.assert_finished()


async def test_a_cut_stream_is_sampled_again_and_left_out() -> None:
    tool = FakeTool("Look")
    journal = MemoryJournal()
    model = ScriptedModel([cut(calls(("Look", {}), text="let me")), says("again, whole")])
    runtime = conversation(model, [tool], journal=journal)
    summary = await runtime.run_turn("go")
    assert tool.runs == 0
    assert final_assistant_text(summary) == "again, whole"
    assert len(model.requests[1].messages) == 1
    kept = [e for e in journal.entries if isinstance(e, ReplyReceived)]
    assert [e.complete for e in kept] == [False, True]
    assert [text_of(m.content) for m in summary.assistant_messages] == ["again, whole"]


async def test_a_stream_cut_twice_stands_and_none_of_its_calls_runs() -> None:
    tool = FakeTool("Look")
    dead = cut(calls(("Look", {})))
    model = ScriptedModel([dead, dead, says("made it")])
    summary = await conversation(model, [tool]).run_turn("go")
    assert tool.runs == 0
    assert "cut off" in results(summary)[0]
    assert summary.stop_reason == "completed"


async def test_streams_cut_for_ever_end_the_turn() -> None:
    model = ScriptedModel([cut(calls(("Look", {})))] * 6)
    summary = await conversation(model, [FakeTool("Look")]).run_turn("go")
    assert summary.stop_reason == "error"
    assert summary.error is not None
    assert summary.error.kind == "stream_cut"
    model.assert_finished()


async def test_read_only_neighbours_run_together_and_changes_alone() -> None:
    clock = FakeClock()
    look = FakeTool("Look", clock=clock, takes=5)
    change = FakeTool("Change", read_only=False, clock=clock, takes=5)
    wanted: list[tuple[str, dict[str, object]]] = [
        ("Look", {}),
        ("Look", {}),
        ("Change", {}),
        ("Look", {}),
    ]
    model = ScriptedModel([calls(*wanted), says("ok")])
    await conversation(model, [look, change], clock=clock).run_turn("go")
    assert clock.monotonic() == 15


async def test_intents_come_before_the_first_run_and_are_synced_once() -> None:
    journal = MemoryJournal()
    synced_at_run: list[tuple[int, int]] = []

    class Watch(FakeTool):
        async def run(self, args, call):
            intents = sum(isinstance(e, ToolIntended) for e in journal.entries)
            synced_at_run.append((intents, journal.synced))
            return await super().run(args, call)

    tool = Watch("Change", read_only=False, does=(WritePath("f"),))
    model = ScriptedModel([calls(("Change", {}), ("Change", {})), says("ok")])
    await conversation(model, [tool], journal=journal).run_turn("go")
    first = next(n for n, e in enumerate(journal.entries) if isinstance(e, ToolIntended))
    assert synced_at_run == [(2, first + 2), (2, first + 2)]


async def test_a_tool_that_crashes_gives_an_error_result() -> None:
    class Crash(FakeTool):
        async def run(self, args, call):
            raise ZeroDivisionError("oops")

    model = ScriptedModel([calls(("Crash", {})), says("ok")])
    summary = await conversation(model, [Crash("Crash")]).run_turn("go")
    assert results(summary) == ["`Crash` crashed: ZeroDivisionError: oops"]


@pytest.mark.parametrize("stage", ["parse", "effects", "preview"])
async def test_a_tool_that_crashes_before_it_runs_gives_a_result_too(stage: str) -> None:
    class Crash(FakeTool):
        pass

    def boom(*_: object) -> None:
        raise ZeroDivisionError("oops")

    setattr(Crash, stage, boom)
    approver = ScriptedApprover([Answer(False, "no")])
    model = ScriptedModel([calls(("Crash", {})), says("ok")])
    policy = FixedPolicy(otherwise="ask")
    runtime = conversation(model, [Crash("Crash")], approver=approver, policy=policy)
    summary = await runtime.run_turn("go")
    assert summary.stop_reason == "completed"
    shown = [q.detail for q in approver.questions] + results(summary)
    assert "`Crash` crashed: ZeroDivisionError: oops" in shown


async def test_long_output_keeps_head_and_tail_and_the_whole_is_in_a_blob() -> None:
    whole = "".join(f"line {n}\n" for n in range(20_000))
    blobs, journal = MemoryBlobs(), MemoryJournal()
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    runtime = conversation(model, [FakeTool("Look", whole)], blobs=blobs, journal=journal)
    (shown,) = results(await runtime.run_turn("go"))
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 19999\n")
    assert len(shown) < 31_000
    assert "omitted" in shown
    (finished,) = [e for e in journal.entries if isinstance(e, ToolFinished)]
    assert blobs.get(finished.spilled).decode() == whole


# -- permissions -------------------------------------------------------------------


async def test_a_denial_is_a_result_with_its_reason_once() -> None:
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    tool = FakeTool("Look")
    runtime = conversation(model, [tool], policy=FixedPolicy(otherwise="deny"))
    summary = await runtime.run_turn("go")
    (text,) = results(summary)
    assert text.count("Look: deny") == 1
    assert tool.runs == 0
    (denial,) = summary.permission_denials
    assert (denial.tool_name, denial.status) == ("Look", "denied")


async def test_yes_for_the_session_is_not_asked_again() -> None:
    approver = ScriptedApprover([Answer(True, rule=Rule("allow", "Look"))])
    journal = MemoryJournal()
    model = ScriptedModel([calls(("Look", {})), calls(("Look", {})), says("ok")])
    runtime = conversation(
        model,
        [FakeTool("Look")],
        approver=approver,
        journal=journal,
        policy=FixedPolicy(otherwise="ask"),
    )
    summary = await runtime.run_turn("go")
    assert results(summary) == ["done", "done"]
    assert len(approver.questions) == 1
    assert any(isinstance(e, RuleAdded) for e in journal.entries)
    asked = [e.asked for e in journal.entries if isinstance(e, DecisionMade)]
    assert asked == [True, False]


async def test_a_human_who_says_no_gives_the_reason() -> None:
    approver = ScriptedApprover([Answer(False, "not that file")])
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    runtime = conversation(
        model,
        [FakeTool("Look")],
        approver=approver,
        policy=FixedPolicy(otherwise="ask"),
        options=TurnOptions(fail_on_denied=True),
    )
    summary = await runtime.run_turn("go")
    assert "not that file" in results(summary)[0]
    assert summary.stop_reason == "completed"  # a human's no is no missing permission


async def test_what_a_human_rewrote_is_what_runs() -> None:
    seen: list[dict[str, object]] = []

    class Watch(FakeTool):
        async def run(self, args, call):
            seen.append(args)
            return await super().run(args, call)

    approver = ScriptedApprover([Answer(True, input={"cmd": "safe"})])
    journal = MemoryJournal()
    model = ScriptedModel([calls(("Look", {"cmd": "rm"})), says("ok")])
    policy = FixedPolicy(otherwise="ask")
    runtime = conversation(
        model, [Watch("Look")], approver=approver, journal=journal, policy=policy
    )
    await runtime.run_turn("go")
    assert seen == [{"cmd": "safe"}]
    (intent,) = [e for e in journal.entries if isinstance(e, ToolIntended)]
    assert intent.input == {"cmd": "safe"}


async def test_an_edit_that_policy_allows_was_still_the_humans_yes() -> None:
    class Policy(FixedPolicy):
        def judge(self, spec, facts, mode, added):
            self._otherwise = "ask" if not asked else "allow"
            asked.append(1)
            return super().judge(spec, facts, mode, added)

    asked: list[int] = []
    approver = ScriptedApprover([Answer(True, input={"cmd": "safe"})])
    journal = MemoryJournal()
    model = ScriptedModel([calls(("Look", {"cmd": "rm"})), says("ok")])
    runtime = conversation(
        model, [FakeTool("Look")], approver=approver, journal=journal, policy=Policy()
    )
    await runtime.run_turn("go")
    (made,) = [e for e in journal.entries if isinstance(e, DecisionMade)]
    assert (made.decision, made.asked, made.answer) == ("allow", True, "yes")


async def test_an_edit_that_policy_denies_does_not_run() -> None:
    class Policy(FixedPolicy):
        def judge(self, spec, facts, mode, added):
            self._otherwise = "ask" if not asked else "deny"
            asked.append(1)
            return super().judge(spec, facts, mode, added)

    asked: list[int] = []
    tool = FakeTool("Look")
    approver = ScriptedApprover([Answer(True, input={"cmd": "worse"})])
    model = ScriptedModel([calls(("Look", {"cmd": "rm"})), says("ok")])
    await conversation(model, [tool], approver=approver, policy=Policy()).run_turn("go")
    assert tool.runs == 0


async def test_nobody_to_ask_can_end_the_turn() -> None:
    model = ScriptedModel([calls(("Look", {}), ("Look", {}))])
    policy = FixedPolicy({"Look": "ask"})
    approver = ScriptedApprover([Answer(False, "nobody to ask", asked=False)] * 2)
    runtime = conversation(
        model,
        [FakeTool("Look")],
        approver=approver,
        policy=policy,
        options=TurnOptions(fail_on_denied=True),
    )
    summary = await runtime.run_turn("go")
    assert summary.stop_reason == "permission_denied"
    assert len(summary.tool_results) == 2


# -- hooks -----------------------------------------------------------------------


async def test_hooks_change_the_input_and_add_feedback() -> None:
    hooks = FakeHooks(
        {
            "PreToolUse": HookOutcome(updated_input={"path": "b"}, context=("b is newer",)),
            "PostToolUse": HookOutcome(messages=("formatted", "checked")),
        }
    )
    model = ScriptedModel([calls(("Look", {"path": "a"})), says("ok")])
    summary = await conversation(model, [FakeTool("Look")], hooks=hooks).run_turn("go")
    assert results(summary) == ["done\n\nHook feedback:\nb is newer\nformatted\nchecked"]
    post = next(p for p in hooks.fired if p.event == "PostToolUse")
    assert post.fields["tool_input"] == {"path": "b"}
    assert post.fields["tool_response"] == "done"


async def test_a_post_hook_that_objects_makes_an_error_and_the_output_stays() -> None:
    hooks = FakeHooks({"PostToolUse": HookOutcome("denied", reason="lint failed")})
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    summary = await conversation(model, [FakeTool("Look")], hooks=hooks).run_turn("go")
    assert results(summary) == ["done\n\nHook feedback (error):\nlint failed"]
    assert summary.tool_results[0].is_error


async def test_a_failure_fires_the_failure_hook() -> None:
    hooks = FakeHooks({})
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    await conversation(model, [FakeTool("Look", fails=True)], hooks=hooks).run_turn("go")
    assert [p.event for p in hooks.fired] == [
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUseFailure",
        "Stop",
    ]


@pytest.mark.parametrize(
    ("behavior", "by_default", "runs"),
    [("ask", True, 1), ("ask", False, 0), ("deny", True, 0), ("allow", True, 1)],
)
async def test_a_hooks_allow_lifts_only_a_default_ask(
    behavior: str, by_default: bool, runs: int
) -> None:
    tool = FakeTool("Look")
    hooks = FakeHooks({"PreToolUse": HookOutcome(permission="allow")})
    approver = ScriptedApprover([Answer(False, "no")])
    policy = FixedPolicy(otherwise=behavior, by_default=by_default)  # type: ignore[arg-type]
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    await conversation(model, [tool], hooks=hooks, approver=approver, policy=policy).run_turn("x")
    assert tool.runs == runs


async def test_a_hook_may_ask_for_what_policy_allows() -> None:
    hooks = FakeHooks({"PreToolUse": HookOutcome(permission="ask", reason="careful")})
    approver = ScriptedApprover([Answer(True)])
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    await conversation(model, [FakeTool("Look")], hooks=hooks, approver=approver).run_turn("x")
    assert [q.reason for q in approver.questions] == ["careful"]


async def test_a_hook_may_block_the_prompt_or_add_to_it() -> None:
    hooks = FakeHooks({"UserPromptSubmit": HookOutcome("denied", reason="no secrets, please")})
    model = ScriptedModel([])
    summary = await conversation(model, hooks=hooks).run_turn("go")
    assert summary.stop_reason == "blocked"
    assert summary.error is not None
    assert summary.error.message == "no secrets, please"
    hooks = FakeHooks({"UserPromptSubmit": HookOutcome(context=("it is Monday",))})
    model = ScriptedModel([says("ok")])
    await conversation(model, hooks=hooks).run_turn("go")
    assert model.requests[0].messages[0].content == (Text("go"), Text("it is Monday"))


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
async def test_a_hook_may_stop_the_turn_and_the_other_calls_do_not_run(event: str) -> None:
    tool = FakeTool("Look", read_only=False)
    hooks = FakeHooks({event: HookOutcome(stop="enough")})  # type: ignore[dict-item]
    model = ScriptedModel([calls(("Look", {}), ("Look", {}))])
    summary = await conversation(model, [tool], hooks=hooks).run_turn("go")
    assert summary.stop_reason == "blocked"
    assert summary.error is not None
    assert summary.error.message == "enough"
    assert tool.runs == (0 if event == "PreToolUse" else 1)
    assert len(summary.tool_results) == 2


async def test_a_hook_that_denies_and_stops_keeps_its_reason() -> None:
    hooks = FakeHooks({"PreToolUse": HookOutcome("denied", reason="no way", by="h", stop="enough")})
    journal = MemoryJournal()
    model = ScriptedModel([calls(("Look", {}), ("Look", {}))])
    runtime = conversation(model, [FakeTool("Look")], hooks=hooks, journal=journal)
    summary = await runtime.run_turn("go")
    assert "no way" in results(summary)[0]
    assert "Not run" in results(summary)[1]
    assert not any(isinstance(e, ToolIntended) for e in journal.entries)


async def test_steering_during_a_stop_hook_is_not_left_behind() -> None:
    def stop(payload):
        if not said:
            said.append(1)
            runtime.steer("one more thing")
        return HookOutcome()

    said: list[int] = []
    model = ScriptedModel([says("done"), says("that too")])
    runtime = conversation(model, hooks=FakeHooks({"Stop": stop}))
    summary = await runtime.run_turn("go")
    assert final_assistant_text(summary) == "that too"


async def test_a_stop_hook_sends_the_model_back_to_work() -> None:
    said = iter(["run the tests", ""])

    def stop(payload):
        text = next(said)
        return HookOutcome("denied", reason=text, by="hook") if text else HookOutcome()

    hooks = FakeHooks({"Stop": stop})
    model = ScriptedModel([says("done"), says("now really")])
    journal = MemoryJournal()
    summary = await conversation(model, hooks=hooks, journal=journal).run_turn("go")
    assert final_assistant_text(summary) == "now really"
    assert [e.source for e in journal.entries if isinstance(e, Steered)] == ["hook"]
    assert [p.fields.get("stop_hook_active") for p in hooks.fired[1:]] == [False, True]


@pytest.mark.parametrize(("different", "steps"), [(False, 2), (True, 3)])
async def test_a_stop_hook_that_never_rests_ends_the_turn(different: bool, steps: int) -> None:
    number = 0

    def stop(payload):
        nonlocal number
        number += 1
        reason = f"again {number}" if different else "again"
        return HookOutcome("denied", reason=reason, by="the stubborn hook")

    model = ScriptedModel([says("done")] * steps)
    summary = await conversation(model, hooks=FakeHooks({"Stop": stop})).run_turn("go")
    assert (summary.stop_reason, summary.iterations) == ("blocked", steps)
    assert summary.error is not None
    assert "the stubborn hook" in summary.error.message


# -- limits, steering, retries -------------------------------------------------------


async def test_the_step_limit_keeps_everything_so_far() -> None:
    model = ScriptedModel([calls(("Look", {}))] * 2)
    options = TurnOptions((MaxSteps(2),))
    summary = await conversation(model, [FakeTool("Look")], options=options).run_turn("go")
    assert (summary.stop_reason, summary.iterations) == ("max_turns_reached", 2)
    assert len(summary.tool_results) == 2


async def test_the_token_budget_ends_between_steps() -> None:
    model = ScriptedModel([calls(("Look", {}), usage=Usage(90, 20))])
    options = TurnOptions((MaxTokens(100),))
    summary = await conversation(model, [FakeTool("Look")], options=options).run_turn("go")
    assert summary.stop_reason == "max_budget_reached"


@pytest.mark.parametrize(("price", "steps"), [(0.5, 2), (1.0, 1), (None, 1)])
async def test_the_money_budget_ends_between_steps(price: float | None, steps: int) -> None:
    """A cost that cannot be told any more ends the turn, too."""
    model = ScriptedModel([calls(("Look", {}))] * 2, strict=False, cost_usd=price)
    options = TurnOptions((MaxCost(1.0),))
    summary = await conversation(model, [FakeTool("Look")], options=options).run_turn("go")
    assert (summary.stop_reason, summary.iterations) == ("max_budget_reached", steps)


async def test_the_time_limit_reaches_into_a_running_tool() -> None:
    clock = FakeClock()
    tool = FakeTool("Look", clock=clock, takes=1000)
    model = ScriptedModel([calls(("Look", {}))])
    options = TurnOptions(max_seconds=60)
    runtime = conversation(model, [tool], clock=clock, options=options)
    summary = await runtime.run_turn("go")
    assert summary.stop_reason == "max_time_reached"
    assert len(summary.tool_results) == 1
    assert clock.monotonic() == 60


async def test_steering_reaches_the_model_before_its_next_response() -> None:
    gate = Gate()
    model = ScriptedModel([waits(gate, says("first")), says("second")])
    runtime = conversation(model)
    running = asyncio.ensure_future(runtime.run_turn("go"))
    await gate.reached()
    runtime.steer("and mind the gap")
    gate.open()
    summary = await running
    assert final_assistant_text(summary) == "second"
    assert text_of(model.requests[1].messages[-1].content) == "and mind the gap"


async def test_retries_wait_longer_each_time_and_respect_the_server() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    busy = fails(ModelUnavailable("busy"))
    model = ScriptedModel([busy, busy, fails(ModelUnavailable("wait", retry_after=7)), says("ok")])
    summary = await conversation(model, clock=clock, journal=journal).run_turn("go")
    assert summary.stop_reason == "completed"
    assert clock.sleeps == [0.375, 0.75, 7]
    assert [e.delay for e in journal.entries if isinstance(e, Retried)] == clock.sleeps


async def test_a_server_that_names_no_time_is_not_asked_again_at_once() -> None:
    clock = FakeClock()
    now = fails(ModelUnavailable("slow down", retry_after=0.0))
    summary = await conversation(ScriptedModel([now, now, says("ok")]), clock=clock).run_turn("go")
    assert summary.stop_reason == "completed"
    assert clock.sleeps == [0.375, 0.75]


@pytest.mark.parametrize(
    "error", [ModelUnavailable("b", retry_after=7200), AuthenticationFailed("x")]
)
async def test_what_is_not_worth_a_retry_ends_at_once(error) -> None:
    clock = FakeClock()
    summary = await conversation(ScriptedModel([fails(error)]), clock=clock).run_turn("go")
    assert summary.stop_reason == "error"
    assert clock.sleeps == []


async def test_too_high_an_output_limit_is_lowered_once() -> None:
    model = ScriptedModel([fails(OutputLimitTooHigh("too much", max_tokens=123)), says("ok")])
    summary = await conversation(model).run_turn("go")
    assert summary.stop_reason == "completed"
    assert model.requests[1].sampling.max_tokens == 123


async def test_an_error_inside_the_stream_keeps_what_was_heard() -> None:
    model = ScriptedModel([fails(AuthenticationFailed("revoked"), after=says("partial"))])
    summary = await conversation(model).run_turn("go")
    assert summary.stop_reason == "error"
    assert final_assistant_text(summary) == "partial"


# -- interrupts --------------------------------------------------------------------


async def test_an_interrupt_while_streaming_keeps_what_was_said() -> None:
    gate = Gate()
    model = ScriptedModel([waits(gate, says("a long answer, cut"), after=1), says("next")])
    runtime = conversation(model)
    running = asyncio.ensure_future(runtime.run_turn("go"))
    await gate.reached()
    runtime.interrupt()
    summary = await running
    assert summary.stop_reason == "interrupted"
    assert final_assistant_text(summary) == "a long answe"
    assert (await runtime.run_turn("again")).stop_reason == "completed"


async def test_an_interrupt_among_reads_keeps_none_of_the_group() -> None:
    clock = FakeClock(automatic=False)
    started = asyncio.Event()

    class Slow(FakeTool):
        async def run(self, args, call):
            started.set()
            return await super().run(args, call)

    quick, slow = FakeTool("Quick"), Slow("Slow", clock=clock, takes=100)
    change = FakeTool("Change", read_only=False)
    wanted: list[tuple[str, dict[str, object]]] = [
        ("Change", {}),
        ("Quick", {}),
        ("Slow", {}),
        ("Change", {}),
    ]
    model = ScriptedModel([calls(*wanted)])
    runtime = conversation(model, [quick, slow, change], clock=clock)
    running = asyncio.ensure_future(runtime.run_turn("go"))
    await started.wait()
    runtime.interrupt()
    summary = await running
    assert results(summary)[0] == "done"
    assert all("Interrupted" in text for text in results(summary)[1:3])
    assert "Not run" in results(summary)[3]
    assert change.runs == 1


async def test_an_interrupt_before_the_turn_has_begun_is_an_interrupt() -> None:
    journal = MemoryJournal()
    model = ScriptedModel([says("never")], strict=False)
    runtime = conversation(model, journal=journal)
    running = asyncio.ensure_future(runtime.run_turn("go"))
    asyncio.get_running_loop().call_soon(runtime.interrupt)  # after run_turn, before the turn
    assert (await running).stop_reason == "interrupted"
    assert model.requests == []


async def test_what_a_human_changed_is_told_to_the_model() -> None:
    approver = ScriptedApprover([Answer(True, input={"cmd": "safe"})])
    model = ScriptedModel([calls(("Look", {"cmd": "rm"})), says("ok")])
    policy = FixedPolicy(otherwise="ask")
    runtime = conversation(model, [FakeTool("Look")], approver=approver, policy=policy)
    (text,) = results(await runtime.run_turn("go"))
    assert text.startswith("done\n\n")
    assert 'The user changed this call before it ran, to: {"cmd":"safe"}' in text


async def test_the_reason_of_a_hook_that_asks_is_shown() -> None:
    hooks = FakeHooks({"PreToolUse": HookOutcome(permission="ask", reason="careful", by="hook")})
    approver = ScriptedApprover([Answer(True)])
    model = ScriptedModel([calls(("Look", {})), says("ok")])
    policy = FixedPolicy(otherwise="ask")
    runtime = conversation(model, [FakeTool("Look")], hooks=hooks, approver=approver, policy=policy)
    await runtime.run_turn("go")
    assert [q.reason for q in approver.questions] == ["careful"]


async def test_a_tool_that_swallows_the_interrupt_does_not_keep_the_turn_alive() -> None:
    started = asyncio.Event()

    class Deaf(FakeTool):
        async def run(self, args, call):
            started.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                raise ToolFailed("something came in between") from None

    model = ScriptedModel([calls(("Deaf", {})), says("never asked for")], strict=False)
    runtime = conversation(model, [Deaf("Deaf")])
    running = asyncio.ensure_future(runtime.run_turn("go"))
    await started.wait()
    runtime.interrupt()
    assert (await running).stop_reason == "interrupted"
    assert len(model.requests) == 1


async def test_a_tool_that_cancels_itself_has_crashed() -> None:
    class Odd(FakeTool):
        async def run(self, args, call):
            raise asyncio.CancelledError

    model = ScriptedModel([calls(("Odd", {}), ("Odd", {})), says("ok")])
    summary = await conversation(model, [Odd("Odd")]).run_turn("go")
    assert summary.stop_reason == "completed"
    assert results(summary) == ["`Odd` crashed: CancelledError: "] * 2


async def test_leaving_the_iterator_early_interrupts_the_turn() -> None:
    model = ScriptedModel([says("a rather long answer in pieces")])
    journal = MemoryJournal()
    runtime = conversation(model, journal=journal)
    stream = runtime.stream_turn("go")
    async for _ in stream:
        break
    await stream.aclose()
    assert not runtime.busy
    assert journal.entries[-1].stop_reason == "interrupted"  # type: ignore[union-attr]


async def test_cancelling_the_waiter_ends_the_turn_first() -> None:
    gate = Gate()
    journal = MemoryJournal()
    runtime = conversation(ScriptedModel([waits(gate, "never")]), journal=journal)
    running = asyncio.ensure_future(runtime.run_turn("go"))
    await gate.reached()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert journal.entries[-1].stop_reason == "interrupted"  # type: ignore[union-attr]


async def test_misuse_is_an_exception() -> None:
    gate = Gate()
    runtime = conversation(ScriptedModel([waits(gate, "x")]))
    with pytest.raises(ValueError, match="empty"):
        await runtime.run_turn("  ")
    running = asyncio.ensure_future(runtime.run_turn("go"))
    await gate.reached()
    with pytest.raises(RuntimeError, match="steer"):
        await runtime.run_turn("two")
    gate.open()
    await running


@pytest.mark.parametrize("stop", ["stop", "tool_calls"])
async def test_a_call_that_the_server_handed_out_as_text_is_no_success(stop: str) -> None:
    text = 'Let me look.\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    talk = conversation(ScriptedModel([says(text, stop_reason=stop)]), [FakeTool("look")])
    summary = await talk.run_turn("go")
    assert summary.error is not None
    assert (summary.stop_reason, summary.error.kind) == ("error", "unparsed_call")
    assert "look" in summary.error.message


async def test_an_output_limit_that_fitted_is_kept_and_halved_when_it_does_not_any_more() -> None:
    too_much = [fails(OutputLimitTooHigh("too much", max_tokens=n)) for n in (4000, 3000)]
    look = calls(("look", {}))
    model = ScriptedModel([too_much[0], look, look, too_much[1], look, says("done")])
    await conversation(model, [FakeTool("look")]).run_turn("go")
    limits = [request.sampling.max_tokens for request in model.requests]
    assert limits == [None, 4000, 4000, 4000, 1500, 1500]
