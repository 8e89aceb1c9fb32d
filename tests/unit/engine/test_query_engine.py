"""``QueryEngine``: gates in their order, budgets, compaction, output, going on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from claw.engine.query_engine import QueryEngine, QueryEngineConfig
from claw.engine.store import load_session
from claw.errors import RequestRejected, SessionError, SessionNotFound, WrongUse
from claw.models.scripted import ScriptedModel, ScriptReply, calls, fails, says
from claw.types.entries import Compacted, Event
from claw.types.permissions import PermissionDenial
from claw.types.usage import Usage

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


class Desk:
    """A workspace and a home; engines in them, closed at the end."""

    def __init__(self, root: Path) -> None:
        self.work = root / "work"
        self.work.mkdir()
        (self.work / "notes.md").write_text("# Notes\nthe session lock\n")
        self.env = {"HOME": str(root / "home"), "PATH": "/usr/bin:/bin"}
        self.engines: list[QueryEngine] = []

    def engine(
        self, script: Sequence[ScriptReply] | None = None, *, mode: str | None = None, **config: Any
    ) -> QueryEngine:
        model = None if script is None else ScriptedModel(script)
        engine = QueryEngine.from_workspace(
            str(self.work),
            QueryEngineConfig(**config),
            model=model,
            permission_mode=mode,
            env=self.env,
        )
        self.engines.append(engine)
        return engine

    def again(self, session: str, script: Sequence[ScriptReply], **config: Any) -> QueryEngine:
        engine = QueryEngine.from_saved_session(
            session,
            str(self.work),
            QueryEngineConfig(**config),
            model=ScriptedModel(script),
            env=self.env,
        )
        self.engines.append(engine)
        return engine


@pytest.fixture
def desk(tmp_path: Path):
    desk = Desk(tmp_path)
    yield desk
    for engine in desk.engines:
        engine.close()


def use(tokens: int) -> Usage:
    return Usage(input_tokens=tokens - 1, output_tokens=1)


# -- a turn ----------------------------------------------------------------------------


def test_a_turn_is_kept_and_charged(desk: Desk):
    engine = desk.engine([says("First.", usage=use(10)), says("Second.", usage=use(20))])
    one, two = engine.submit_message("one"), engine.submit_message("two")
    assert (one.output, one.stop_reason, one.prompt) == ("First.", "completed", "one")
    assert (one.usage, one.turn_usage) == (use(10), use(10))
    assert two.usage == use(10) + use(20)
    assert two.turn_usage == use(20)
    assert engine.total_usage == two.usage
    assert engine.replay_user_messages() == ("one", "two")
    assert [message.content[0].text for message in engine.messages] == [  # type: ignore[union-attr]
        "one",
        "First.",
        "two",
        "Second.",
    ]
    assert engine.session_id == one.session_id == two.session_id


def test_the_offline_model_answers_where_none_is_named(desk: Desk):
    result = desk.engine().submit_message("find the session lock")
    assert "notes.md:2" in result.output
    assert result.usage.estimated


def test_a_blank_prompt_is_refused(desk: Desk):
    engine = desk.engine([])
    with pytest.raises(ValueError, match="empty"):
        engine.submit_message(" \n")
    assert engine.turns == 0


def test_what_went_wrong_stands_in_the_output(desk: Desk):
    engine = desk.engine([fails(RequestRejected("no such thing", hint="Try another."))])
    result = engine.submit_message("go")
    assert result.stop_reason == "error"
    assert result.output == "no such thing\nTry another."
    assert engine.stop_reasons == ("error",)


def test_a_running_loop_is_refused(desk: Desk):
    engine = desk.engine([])

    async def inside() -> None:
        engine.submit_message("go")

    with pytest.raises(RuntimeError, match=r"claw\.open"):
        engine._runner.run(inside())


@pytest.mark.parametrize(
    "prompt",
    ["show \ud800.md", "show \0.md", "\x1b[31mshow notes.md", "find x" * 100_000, "/" * 100_000],
)
def test_hostile_prompts_are_turns_like_any_other(desk: Desk, prompt: str):
    engine = desk.engine(max_turns=1)
    events = [*engine.stream_submit_message(prompt)]
    assert events[-1]["stop_reason"] in ("completed", "error")
    assert json.dumps(events)
    assert engine.submit_message("more").stop_reason == "max_turns_reached"


def test_a_closed_engine_says_so(desk: Desk):
    engine = desk.engine([])
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.submit_message("go")


# -- gate 1 ----------------------------------------------------------------------------


def test_a_turn_too_many_is_neither_sent_nor_stored_nor_charged(desk: Desk):
    engine = desk.engine([says("one", usage=use(5))], max_turns=1)
    engine.submit_message("one")
    before = Path(engine.persist_session()).read_bytes()
    result = engine.submit_message("two")
    assert result.stop_reason == "max_turns_reached"
    assert result.usage == use(5)
    assert result.turn_usage == Usage()
    assert engine.replay_user_messages() == ("one",)
    assert Path(engine.persist_session()).read_bytes() == before


def test_compacts_session_after_turns(desk: Desk):
    script = [says("a long answer " * 100) for _ in range(4)]
    engine = desk.engine(script, max_turns=4, compact_after_turns=1)
    events: list[Event] = []
    engine.runtime.listen(events.append)
    results = [engine.submit_message(f"prompt {n}") for n in range(5)]
    reasons = [result.stop_reason for result in results]
    assert reasons == ["completed"] * 4 + ["max_turns_reached"]
    assert any(isinstance(event, Compacted) for event in events)
    assert engine.turns == 4


def test_a_failed_turn_was_accepted(desk: Desk):
    engine = desk.engine([fails(RequestRejected("no")), says("yes")], max_turns=2)
    engine.submit_message("one")
    engine.submit_message("two")
    assert engine.submit_message("three").stop_reason == "max_turns_reached"


# -- budgets ---------------------------------------------------------------------------


def test_the_turn_over_the_budget_is_kept_and_the_next_is_not_sent(desk: Desk):
    engine = desk.engine([says("one", usage=use(30))], max_budget_tokens=20)
    over = engine.submit_message("one")
    assert (over.stop_reason, over.output, over.usage) == ("max_budget_reached", "one", use(30))
    refused = engine.submit_message("two")
    assert (refused.stop_reason, refused.turn_usage) == ("max_budget_reached", Usage())
    assert engine.replay_user_messages() == ("one",)
    assert engine.stop_reasons == ("max_budget_reached",)


def test_the_budget_is_looked_at_between_steps(desk: Desk):
    read = ("Read", {"file_path": "notes.md"})
    script: list[ScriptReply] = [says("one", usage=use(10)), calls(read, usage=use(15))]
    engine = desk.engine(script, max_budget_tokens=20)
    assert engine.submit_message("one").stop_reason == "completed"
    result = engine.submit_message("two")
    assert result.stop_reason == "max_budget_reached"
    assert result.turn_usage == use(15)


def test_an_unknown_price_spends_a_budget_in_dollars(desk: Desk):
    with pytest.raises(WrongUse):  # what the settings refuse, too
        QueryEngine.from_workspace(
            str(desk.work),
            model=ScriptedModel([]),
            settings='{"limits": {"maxBudgetUsd": 1}}',
            env=desk.env,
        )
    engine = desk.engine([says("one")], max_budget_usd=1.0)
    assert engine.submit_message("one").stop_reason == "max_budget_reached"


def test_the_offline_model_costs_nothing(desk: Desk):
    engine = desk.engine(max_budget_usd=0.01)
    results = [engine.submit_message(f"show notes.md [turn {n}]") for n in (1, 2)]
    assert [result.stop_reason for result in results] == ["completed", "completed"]


# -- output ----------------------------------------------------------------------------


def test_the_envelope_in_every_branch(desk: Desk):
    script: list[ScriptReply] = [says("fine", usage=use(5)), fails(RequestRejected("no"))]
    engine = desk.engine(script, max_turns=2, structured_output=True)
    for reason in ("completed", "error", "max_turns_reached"):
        result = engine.submit_message("go", ("help",), ("Read", "Grep"))
        assert result.stop_reason == reason
        found = json.loads(result.output)
        assert set(found) == {"summary", "session_id"}
        assert found["session_id"] == engine.session_id
        assert all(isinstance(line, str) for line in found["summary"])
        assert "Matched tools: Read, Grep" in found["summary"]
    spent = desk.engine([says("x", usage=use(9))], max_budget_tokens=3, structured_output=True)
    for _ in range(2):
        assert "summary" in json.loads(spent.submit_message("go").output)


def test_a_document_that_does_not_fit_is_asked_for_again_in_the_same_turn(desk: Desk):
    script = [says("not yet"), says('{"n": "x"}'), says('```json\n{"n": 1}\n```')]
    engine = desk.engine(script, structured_output=SCHEMA, max_turns=1)
    result = engine.submit_message("count")
    assert (result.stop_reason, result.output) == ("completed", '{"n": 1}')
    assert engine.turns == 1
    assert engine.replay_user_messages() == ("count",)


def test_a_document_that_never_fits_fails_typed(desk: Desk):
    script = [says("{}"), says("{}"), says('{"n": 2}')]
    engine = desk.engine(script, structured_output=SCHEMA, structured_retry_limit=1)
    result = engine.submit_message("count")
    assert result.stop_reason == "error"
    assert json.loads(result.output)["error"]["kind"] == "structured_output"
    assert json.loads(engine.submit_message("again").output) == {"n": 2}


def test_with_a_schema_every_refusal_is_json(desk: Desk):
    engine = desk.engine([], structured_output=SCHEMA, max_turns=0)
    result = engine.submit_message("count")
    assert result.stop_reason == "max_turns_reached"
    assert json.loads(result.output)["error"]["kind"] == "max_turns_reached"


# -- commands and denials ----------------------------------------------------------------


def test_only_an_explicit_command_is_executed(desk: Desk):
    engine = desk.engine([says("I see.")])
    shown = engine.submit_message("/help", ("help",))
    assert "/compact" in shown.output
    assert engine.turns == 0
    assert engine.submit_message("help me", ("help",)).output == "I see."
    unknown = engine.submit_message("/nonsense")
    assert (unknown.stop_reason, engine.turns) == ("error", 1)
    assert "/nonsense" in unknown.output


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("/mode", "default"),
        ("/mode read-only", "The mode is read-only."),
        ("/mode nonsense", "There is no mode nonsense"),
        ("/model", "scripted"),
        ("/permissions", "No rule was added."),
        ("/rename my own", "my own"),
        ("/session", "turns: 0"),
        ("/todos", "Nothing is on the list."),
        ("/compact", "Nothing was compacted."),
    ],
)
def test_what_commands_answer(desk: Desk, command: str, answer: str):
    assert answer in desk.engine([]).submit_message(command).output


def test_denials_are_given_inferred_and_handed_on(desk: Desk):
    write = ("Write", {"file_path": "new.md", "content": "x"})
    engine = desk.engine([calls(write), says("It was denied.")], mode="plan")
    mine = PermissionDenial("Fetch", "", "not today", "me", "denied")
    result = engine.submit_message("write it", (), ("Write", "Read"), (mine,))
    assert [(d.tool_name, d.status) for d in result.permission_denials] == [
        ("Fetch", "denied"),
        ("Write", "would-deny"),
        ("Write", "denied"),
    ]
    assert result.permission_denials[2].tool_use_id
    assert all(denial.source and denial.reason for denial in result.permission_denials)
    assert sorted(engine.permission_denials, key=str) == sorted(result.permission_denials, key=str)
    assert not (desk.work / "new.md").exists()


def test_a_deny_rule_is_inferred(desk: Desk):
    engine = QueryEngine.from_workspace(
        str(desk.work),
        model=ScriptedModel([says("a"), says("b")]),
        settings='{"permissions": {"deny": ["Grep", "Read(./secret/**)", "Bash(rm:*)"]}}',
        env=desk.env,
    )
    desk.engines.append(engine)
    result = engine.submit_message("go", (), ("Grep", "Read", "Bash", "Unknown"))
    assert [denial.tool_name for denial in result.permission_denials] == ["Grep"]


# -- events ----------------------------------------------------------------------------


def test_the_stream_is_the_same_turn_once(desk: Desk):
    write = ("Write", {"file_path": "new.md", "content": "x"})
    engine = desk.engine([calls(write), says("Done it.")], mode="plan")
    events = [*engine.stream_submit_message("go", ("help",), ("Write",))]
    kinds = [event["type"] for event in events]
    assert kinds[:4] == ["message_start", "command_match", "tool_match", "permission_denial"]
    assert kinds.count("permission_denial") == 2
    assert kinds[-1] == "message_stop"
    deltas = [event["text"] for event in events if event["type"] == "message_delta"]
    assert "".join(deltas) == "Done it."
    stop = events[-1]
    assert (stop["stop_reason"], stop["transcript_size"]) == ("completed", 1)
    assert engine.turns == 1
    assert json.dumps(events)


def test_a_refusal_streams_too(desk: Desk):
    engine = desk.engine([], max_turns=0, structured_output=True)
    events = [*engine.stream_submit_message("go")]
    assert [event["type"] for event in events] == ["message_start", "message_delta", "message_stop"]
    assert json.loads(events[1]["text"])["session_id"] == engine.session_id


def test_a_stream_that_is_left_ends_its_turn(desk: Desk):
    engine = desk.engine([says("a long answer " * 20), says("Next.")])
    for event in engine.stream_submit_message("go"):
        if event["type"] == "message_delta":
            break
    assert engine.stop_reasons == ("interrupted",)
    assert engine.submit_message("again").output == "Next."


def test_a_compaction_is_told(desk: Desk):
    engine = desk.engine([says("x " * 400), says("two"), says("three")], compact_after_turns=1)
    engine.submit_message("one")
    events = [*engine.stream_submit_message("two")]
    (told,) = [event for event in events if event["type"] == "compaction"]
    assert told["removed_messages"] == 2
    assert engine.replay_user_messages() == ("two",)
    assert engine.submit_message("three").output == "three"


# -- going on --------------------------------------------------------------------------


def test_a_new_engine_goes_on_from_what_was_kept(desk: Desk):
    write = ("Write", {"file_path": "new.md", "content": "x"})
    script: list[ScriptReply] = [
        calls(write, usage=use(7)),
        says("denied", usage=use(9)),
        fails(RequestRejected("no")),
    ]
    first = desk.engine(script, mode="plan", max_turns=3)
    first.submit_message("one")
    first.submit_message("two")
    path = first.persist_session()
    assert first.transcript_store.flushed
    first.close()
    stored = load_session(first.session_id, cwd=str(desk.work), env=desk.env)
    assert stored.messages == ("one", "two")
    assert stored.outputs == ("denied", "")
    assert stored.stop_reasons == ("completed", "error")
    assert [denial.tool_name for denial in stored.permission_denials] == ["Write"]
    assert (stored.input_tokens, stored.output_tokens) == (14, 2)
    second = desk.again(first.session_id, [says("three")], max_turns=3)
    assert second.messages == first.messages
    assert second.total_usage == first.total_usage
    assert (second.outputs, second.stop_reasons) == (first.outputs, first.stop_reasons)
    assert second.permission_denials == first.permission_denials
    assert second.replay_user_messages() == first.replay_user_messages()
    assert second.submit_message("three").stop_reason == "completed"
    assert second.submit_message("four").stop_reason == "max_turns_reached"
    assert second.persist_session() == path


def test_the_budget_of_a_session_outlasts_the_process(desk: Desk):
    first = desk.engine([says("one", usage=use(30))], max_budget_tokens=20)
    first.submit_message("one")
    first.close()
    second = desk.again(first.session_id, [], max_budget_tokens=20)
    assert second.stop_reasons == ("max_budget_reached",)
    assert second.submit_message("two").stop_reason == "max_budget_reached"


def test_a_compacted_session_looks_the_same_later(desk: Desk):
    script = [says("x " * 400), says("y " * 400), says("z")]
    first = desk.engine(script, compact_after_turns=1)
    for prompt in ("one", "two", "three"):
        first.submit_message(prompt)
    view = first.replay_user_messages()
    first.close()
    second = desk.again(first.session_id, [], compact_after_turns=1)
    assert second.replay_user_messages() == view
    assert second.messages == first.messages
    assert second.transcript_store.since_compaction == first.transcript_store.since_compaction
    assert second.transcript_store.stored().messages == ("one", "two", "three")


def test_what_a_rewind_took_away_is_not_told(desk: Desk):
    engine = desk.engine([says("one"), says("two"), says("other")])
    engine.submit_message("one")
    engine.submit_message("two")
    engine.runtime.rewind(engine.runtime.turns()[-1].seq)
    assert engine.replay_user_messages() == ("one",)
    engine.submit_message("other")
    assert engine.outputs == ("one", "other")
    engine.close()
    stored = load_session(engine.session_id, cwd=str(desk.work), env=desk.env)
    assert stored.messages == ("one", "other")


def test_a_session_in_memory_has_no_file(desk: Desk):
    engine = QueryEngine.from_workspace(str(desk.work), env=desk.env, persist=False)
    desk.engines.append(engine)
    engine.submit_message("show notes.md")
    with pytest.raises(SessionError, match="memory"):
        engine.persist_session()
    assert not Path(desk.env["HOME"]).exists()


def test_there_is_nothing_to_keep_before_the_first_turn(desk: Desk):
    with pytest.raises(SessionError, match="nothing was said"):
        desk.engine([]).persist_session()


@pytest.mark.parametrize("id", ["nope", "../x", "a/b", "", "x\0y", "/etc/passwd", "~/x.jsonl"])
def test_unknown_and_impossible_ids_are_typed_errors(desk: Desk, id: str):
    desk.engine([says("hi")]).submit_message("hi")
    with pytest.raises(SessionError):
        load_session(id, cwd=str(desk.work), env=desk.env)
    with pytest.raises(SessionError):
        desk.again(id, [])


def test_a_damaged_file_is_a_typed_error(desk: Desk):
    engine = desk.engine([says("hi")])
    engine.submit_message("hi")
    path = Path(engine.persist_session())
    engine.close()
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in ([lines[0], b"{}\n", *lines[2:]], [b"\xff" * 80], [b"# no session\n"]):
        path.write_bytes(b"".join(damaged))
        with pytest.raises(SessionError):
            load_session(engine.session_id, cwd=str(desk.work), env=desk.env)
    path.write_bytes(b"")
    with pytest.raises(SessionNotFound):
        load_session(engine.session_id, cwd=str(desk.work), env=desk.env)


def test_a_session_whose_process_was_killed_is_told_as_interrupted(desk: Desk):
    engine = desk.engine([says("one"), says("two")])
    engine.submit_message("one")
    engine.submit_message("two")
    path = Path(engine.persist_session())
    engine.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))  # without the second answer and the turn's end
    stored = load_session(engine.session_id, cwd=str(desk.work), env=desk.env)
    assert stored.messages == ("one", "two")
    assert stored.stop_reasons == ("completed", "interrupted")
    assert desk.again(engine.session_id, [says("three")]).submit_message("x").output == "three"
