"""A session as a trajectory that evaluation tools read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from claw.errors import ModelUnavailable, SessionError
from claw.models.prices import cost
from claw.models.scripted import Gate, ScriptedModel, ScriptReply, calls, cut, fails, says, waits
from claw.ports import ModelClient
from claw.sessions.blobs import blobs_dir, read_blob
from claw.sessions.load import load, read_entries
from claw.sessions.record import Record
from claw.testing.doubles import FakeHooks, MemoryJournal, ScriptedApprover
from claw.testing.harness import Harness
from claw.testing.pieces import FakeTool, FixedPolicy, conversation
from claw.types.effects import WritePath
from claw.types.entries import (
    Compacted,
    Digests,
    Entry,
    KnownEntry,
    PromptInstalled,
    RecoveryFailed,
    ReplyReceived,
    Retried,
    Rewound,
    SessionStarted,
    Steered,
    StepRequested,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UnknownEntry,
    UserMessaged,
)
from claw.types.messages import (
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
)
from claw.types.permissions import Answer
from claw.types.request import Request
from claw.types.session import SessionState
from claw.types.transcript import Transcript
from claw.types.usage import Usage
from tests.atif import check, context, exported, judge, judges_are_here, placed, seen
from tests.unit.runtime.test_turn_invariants import hook_outcomes
from tests.unit.runtime.test_turn_invariants import replies as any_reply
from tests.unit.sessions.test_journal_properties import any_entry
from tests.unit.viewer.test_fold import SECRET, asks, decodes, planted, replies, turn
from tests.viewing import MODEL, PricedModel, many

Golden = Callable[[dict[str, Any]], None]


def told(entries: Sequence[Entry], **others: Any) -> Any:
    document = exported(placed(entries), **others)
    check(document)
    return document


def of_file(path: str, clean: Callable[[str], str] = str, **others: Any) -> Any:
    def blob(digest: str) -> bytes | None:
        try:
            return read_blob(blobs_dir(path), digest)
        except SessionError:
            return None

    document = exported(list(read_entries(path)), clean=clean, blob=blob, **others)
    check(document)
    return document


def said(document: Any) -> list[tuple[str, Any]]:
    return [
        (step["source"], step["message"])
        for step in document["steps"]
        if "prompt_installed" not in step.get("extra", {})
    ]


def the_call(document: Any) -> tuple[Any, Any]:
    """The only call, and its result, None where there is none."""
    (step,) = (step for step in document["steps"] if "tool_calls" in step)
    (call,) = step["tool_calls"]
    results = step.get("observation", {"results": [None]})["results"]
    return call, results[0]


@pytest.mark.skipif(not judges_are_here(), reason="no harbor here (requirements/atif.txt)")
def test_the_formats_own_models_judge_it() -> None:
    use, done = replies(1, ToolUse("c", "Bash", {})), ToolFinished("c", (Text("1"),), "ok")
    document = exported(placed(turn(1, asks(1), use, done)))
    judge(document)
    agent = document["steps"][1]
    for wrong in (
        {**document, "steps": []},
        {**document, "schema_version": "ATIF-v0.9"},
        {**document, "steps": document["steps"][1:]},
        {**document, "steps": [{**agent, "step_id": 1, "tool_calls": []}]},
        {**document, "steps": [{**agent, "step_id": 1, "source": "user"}]},
    ):
        with pytest.raises(AssertionError):
            judge(wrong)


# -- real sessions -------------------------------------------------------------------------


async def test_a_small_session(tmp_path: Path, golden: Golden) -> None:
    """The whole document, as it is meant."""
    script: list[ScriptReply] = [
        fails(ModelUnavailable("overloaded")),
        calls(
            ("Read", {"file_path": "a.txt"}),
            ("Write", {"file_path": "b.txt", "content": "b\n"}),
            text="I look.",
            thinking="There may be two.",
            signature="s",
            usage=Usage(100, 20, 3_000, 400),
            model=MODEL,
        ),
        cut("It sa"),
        says("It says “größer”. 你好", usage=Usage(50, 9, 3_500, 0), model=MODEL),
    ]
    no = ScriptedApprover([Answer(False, reason="not there")])
    files = {"a.txt": "größer\n"}
    async with Harness(tmp_path, PricedModel(script), files=files, approver=no) as run:
        await run.turn("What does a.txt say?")
        path = str(run.house.journal_path)
        names = {str(run.workspace.resolve()): "${CWD}"}
    document = of_file(path, price=lambda usage, model: cost(usage, MODEL))
    document["agent"]["tool_definitions"] = document["agent"]["tool_definitions"][:1]
    document["agent"]["version"] = "0"
    document["steps"][0]["message"] = document["steps"][0]["message"].split(".")[0]
    text = json.dumps(document)
    for old, new in names.items():
        text = text.replace(old, new)
    golden(json.loads(text))


def test_a_session_in_which_everything_happens(all_kinds: str) -> None:
    document = of_file(all_kinds)
    texts = [text if isinstance(text, str) else text[0]["text"] for _, text in said(document)]
    assert "Another way." in texts
    assert "A way that is left again." not in texts
    assert "The lock is ta" not in texts
    assert document["extra"]["undone"] == {"replies_asked_for_again": 1, "rewound_turns": 1}
    assert [turn["stop_reason"] for turn in document["extra"]["turns"]] == [
        "completed",
        "interrupted",
        *["completed"] * 4,
    ]
    copied = [step.get("is_copied_context", False) for step in document["steps"]]
    assert copied == sorted(copied, reverse=True)
    assert copied.count(False) == 2  # what was said and answered in the copy
    assert context(document)[1:] == _after_summary(all_kinds)


def _after_summary(path: str) -> list[Any]:
    """What the model sees at the end, but for the block that a compaction put there."""
    transcript = load(path).state.transcript
    head, *rest = transcript.messages
    first = replace(head, content=head.content[transcript.notes :])
    # The picture's place is told by parts.
    spoken = seen([first, *rest])
    return [
        (who, text, ids)
        if text != "What is in this?"
        else (who, [{"type": "text", "text": text}, NO_PICTURE], ids)
        for who, text, ids in spoken
    ]


NO_PICTURE = {"type": "text", "text": "[image/png: not in this trajectory]"}


def test_foreign_text_of_any_kind_is_only_text(hostile_session: str) -> None:
    assert of_file(hostile_session)["steps"]


def test_a_secret_in_any_text_of_any_entry_is_not_in_it(all_kinds: str) -> None:
    records = []
    for record in read_entries(all_kinds):
        entry = msgspec.convert(planted(msgspec.to_builtins(record.entry), decodes), KnownEntry)
        records.append(replace(record, entry=entry))
    records.append(Record(999, "e999", "", "", UnknownEntry(f"k{SECRET}", b"{}")))

    def blob(digest: str) -> bytes:
        data = read_blob(blobs_dir(all_kinds), digest.removesuffix(SECRET))
        return data + SECRET.encode()

    def export(clean: Callable[[str], str]) -> Any:
        document = exported(records, clean=clean, blob=blob, file=lambda d: f"/blobs/{d}")
        return document, json.dumps(document)

    assert export(str)[1].count("fish-42") > 100
    document, text = export(lambda text: text.replace(SECRET, "[redacted]"))
    assert text.count("[redacted]") > 100
    assert "fish-42" not in text
    check(document)


async def test_a_killed_session_and_how_it_goes_on(tmp_path: Path) -> None:
    script = [calls(("Bash", {"command": "echo 1"}), ("Bash", {"command": "echo 2"})), says("ok")]
    async with Harness(tmp_path, script, mode="bypassPermissions") as run:
        await run.turn("go")
        path = Path(str(run.house.journal_path))
    whole = path.read_bytes().splitlines(keepends=True)
    kinds = [type(record.entry) for record in read_entries(str(path))]
    for count in range(kinds.index(UserMessaged) + 1, len(whole)):
        path.write_bytes(b"".join(whole[:count]) + whole[count][:20])
        document = of_file(str(path))
        assert said(document)[0] == ("user", "go")
    path.write_bytes(b"".join(whole[: kinds.index(ToolFinished)]))
    step = of_file(str(path))["steps"][-1]
    assert [call["extra"]["status"] for call in step["tool_calls"]] == ["outcome_unknown"] * 2
    assert "observation" not in step
    async with Harness(tmp_path, [says("I look again.")], session="latest") as run:
        await run.turn("and now?")
        assert context(of_file(str(path))) == seen(run.house.runtime.state.transcript.messages)
    step = next(step for step in of_file(str(path))["steps"] if "tool_calls" in step)
    statuses = [result["extra"]["status"] for result in step["observation"]["results"]]
    assert statuses == ["outcome_unknown"] * 2


async def test_steering_and_an_interrupt(tmp_path: Path) -> None:
    gate = Gate()
    script: list[ScriptReply] = [
        calls(("Glob", {"pattern": "*"})),
        waits(gate, says("one two three"), after=2),
    ]
    async with Harness(tmp_path, script) as run:
        runtime = run.house.runtime
        runtime.steer("also this")
        task = asyncio.ensure_future(run.turn("go"))
        await gate.reached()
        runtime.interrupt()
        await task
        document = of_file(str(run.house.journal_path))
        assert context(document) == seen(runtime.state.transcript.messages)
    assert said(document)[:2] == [("user", "go"), ("user", "also this")]
    assert document["steps"][2]["extra"]["steered_by"] == "user"
    assert document["steps"][-1]["extra"]["complete"] is False
    (turn,) = document["extra"]["turns"]
    assert (turn["stop_reason"], turn["interrupted"]) == ("interrupted", "sampling")


async def test_a_copy_has_what_it_inherited_as_context(tmp_path: Path) -> None:
    async with Harness(tmp_path, [says("one", usage=Usage(10, 1))]) as run:
        await run.turn("first")
    async with Harness(
        tmp_path, [says("two", usage=Usage(20, 2))], session="latest", fork=True
    ) as run:
        await run.turn("second")
        path = str(run.house.journal_path)
    document = of_file(path)
    copied = [s["message"] for s in document["steps"] if s.get("is_copied_context")]
    assert copied[1:] == ["first", "one"]
    assert said(document)[2:] == [("user", "second"), ("agent", "two")]
    assert document["final_metrics"]["total_prompt_tokens"] == 20
    assert "extra" not in document["final_metrics"]
    assert document["extra"]["forked_from"] == "session"
    assert document["session_id"] == Path(path).stem


def test_a_long_session() -> None:
    document = exported(many(20_000))
    kinds = [type(record.entry) for record in many(20_000)]
    assert len(document["steps"]) == kinds.count(UserMessaged) + kinds.count(ReplyReceived)


# -- anything at all -----------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(any_entry, max_size=12))
def test_any_entries_give_a_valid_document_or_none(entries: list[Entry]) -> None:
    try:
        document = exported(placed(entries), blob=lambda digest: digest.encode())
    except SessionError:
        return
    check(document)


class Compacts:
    """Makes room before certain steps, keeping half of the messages and some results."""

    def __init__(self, before: set[int], *, prunes: bool) -> None:
        self._before = before
        self._prunes = prunes

    def target(self, request: Request, state: SessionState, window: int | None) -> int | None:
        due = state.steps in self._before and state.steps > 0
        self._before.discard(state.steps)
        return 1 if due else None

    async def make_room(
        self, transcript: Transcript, keep_rounds: int, target_tokens: int | None, focus: str
    ) -> Compacted | None:
        pruned = dict.fromkeys(sorted(transcript.call_ids)[:2], "[left out]")
        if self._prunes:
            return Compacted("auto", 0, 0, (), 100, 50, pruned=pruned) if pruned else None
        cut = len(transcript.closed) // 2
        summary = (Text("notes"),) if cut else ()
        return Compacted("auto", cut, cut, summary, 100, 50, pruned=pruned) if cut else None


@settings(deadline=None)
@given(
    script=st.lists(any_reply, max_size=8),
    interrupt_at=st.none() | st.integers(0, 60),
    steer_at=st.none() | st.integers(0, 40),
    compact_before=st.sets(st.integers(1, 8)),
    prunes=st.booleans(),
    rewinds=st.lists(st.integers(0, 9), max_size=2),
)
async def test_what_the_model_sees_can_be_read_from_the_document(
    *,
    script: list[ScriptReply],
    interrupt_at: int | None,
    steer_at: int | None,
    compact_before: set[int],
    prunes: bool,
    rewinds: list[int],
) -> None:
    model: ModelClient = ScriptedModel([*script, *[says("done")] * 9], strict=False)
    journal = MemoryJournal()
    tools = [
        FakeTool("Look"),
        FakeTool("Change", read_only=False, does=(WritePath("f"),)),
        FakeTool("Break", fails=True, required=("key",)),
        FakeTool("Forbidden"),
    ]
    runtime = conversation(
        model,
        tools,
        journal=journal,
        hooks=FakeHooks({"PreToolUse": hook_outcomes, "PostToolUse": hook_outcomes}),
        policy=FixedPolicy({"Change": "ask", "Forbidden": "deny"}),
        compactor=Compacts(compact_before, prunes=prunes),
    )
    count = 0

    def on_event(_: object) -> None:
        nonlocal count
        if count == interrupt_at:
            runtime.interrupt()
        if count == steer_at:
            runtime.steer("also this")
        count += 1

    runtime.listen(on_event)
    for prompt in ("go", "and again"):
        await runtime.run_turn(prompt)
    for choice in rewinds:
        if points := runtime.turns():
            runtime.rewind(points[choice % len(points)].seq, files=False)
            await runtime.run_turn("another way")
    transcript = runtime.state.transcript
    messages = list(transcript.messages)
    if not messages:
        return
    document = told(journal.entries)
    if transcript.notes:
        first = messages[0]
        parts = [first.content[: transcript.notes], first.content[transcript.notes :]]
        messages[:1] = [replace(first, content=part) for part in parts if part]
    assert context(document) == seen(messages)


# -- single facts --------------------------------------------------------------------------


def test_tokens_are_counted_as_the_format_has_it() -> None:
    reply = replace(replies(1, Text("a")), usage=Usage(5, 7, 100, 20))
    other = replace(replies(2, Text("b")), usage=Usage(1, 2, estimated=True))
    document = told(turn(1, asks(1), reply, asks(2), other))
    assert [step.get("metrics") for step in document["steps"]] == [
        None,
        {
            "prompt_tokens": 125,
            "completion_tokens": 7,
            "cached_tokens": 100,
            "extra": {"cache_creation_input_tokens": 20},
        },
        {
            "prompt_tokens": 1,
            "completion_tokens": 2,
            "cached_tokens": 0,
            "extra": {"estimated": True},
        },
    ]
    assert document["final_metrics"] == {
        "total_prompt_tokens": 126,
        "total_completion_tokens": 9,
        "total_cached_tokens": 100,
        "total_steps": 3,
    }


def test_what_was_spent_besides_the_steps_is_told() -> None:
    lost = replies(1, Text("ha"), complete=False)
    summary = Compacted("manual", 2, 2, (Text("s"),), 9, 5, usage=Usage(3, 1), cost=0.5)
    entries = [
        *turn(
            1, asks(1), lost, Retried(1, 1, "cut", 0.5), asks(1, 2), replies(1, Text("b")), cost=1
        ),
        summary,
        *turn(2, asks(1), replies(1, Text("c")), cost=2),
    ]
    final = told([*entries, Rewound(len(turn(1)) + 6)])["final_metrics"]
    assert final["total_prompt_tokens"] == 10
    assert final["extra"]["outside_steps"]["prompt_tokens"] == 10 + 3 + 10
    assert final["total_cost_usd"] == 3.5


def test_costs() -> None:
    inside = (asks(1), replies(1, Text("a")))

    def price(usage: Usage, model: str) -> float | None:
        return {"m": 0.25, "served": 0.75}.get(model)

    def costs(*entries: Entry) -> Any:
        document = told(entries, price=price)
        step = document["steps"][1]
        return step["metrics"].get("cost_usd"), document["final_metrics"].get("total_cost_usd")

    assert costs(*turn(1, *inside, cost=0.7)) == (0.25, 0.7)
    assert costs(*turn(1, *inside)) == (None, None)
    assert costs(*turn(1, *inside)[:-1]) == (0.25, 0.25)
    assert costs(*turn(1, *inside)[:-1], *turn(2, *inside, cost=0.5)) == (0.25, 0.75)
    served = replace(replies(1, Text("a")), served_by="served")
    assert costs(*turn(1, asks(1), served)[:-1]) == (0.75, 0.75)
    odd = replace(served, model="odd", served_by="")
    assert costs(*turn(1, asks(1), odd)[:-1]) == (None, None)


def test_a_model_that_works_by_rules_makes_no_inference() -> None:
    reply = replies(1, Thinking("hm"), Text("by the rules"))
    document = told(turn(1, asks(1), reply, cost=0.0), rules={"m"})
    step = document["steps"][1]
    assert step["llm_call_count"] == 0
    assert step.keys().isdisjoint({"metrics", "reasoning_content"})
    assert document["final_metrics"]["total_prompt_tokens"] == 0
    assert "extra" not in document["final_metrics"]


def test_thoughts_and_blocks_that_only_a_provider_knows() -> None:
    blocks = (
        Thinking("one"),
        Thinking("", "signed"),
        Text("a"),
        RedactedThinking("xyz"),
        Opaque("p", {"type": "search", "query": "q"}),
        Thinking("two"),
        Text("b"),
    )
    step = told(turn(1, asks(1), replies(1, *blocks)))["steps"][1]
    assert step["message"] == "ab"
    assert step["reasoning_content"] == "one\n\ntwo"
    assert step["extra"]["redacted_thinking"] == 1
    assert step["extra"]["opaque_blocks"] == [
        {"provider": "p", "raw": {"type": "search", "query": "q"}}
    ]


def test_effort_and_the_model_that_served() -> None:
    request = StepRequested(1, "m", 1, Digests("", "", "", ""), effort="high")
    reply = replace(replies(1, Text("a")), served_by="m-2026")
    document = told(turn(1, request, reply, asks(2), replies(2, Text("b"))))
    _, first, second = document["steps"]
    assert (first["reasoning_effort"], first["model_name"]) == ("high", "m-2026")
    assert "reasoning_effort" not in second
    assert document["agent"]["model_name"] == "m"


def test_a_call_that_was_changed_or_could_not_be_read() -> None:
    asked = ToolUse("c", "Bash", {"command": "rm x"})
    intended = ToolIntended("c", "Bash", input={"command": "rm -i x"})
    done = ToolFinished("c", (Text(""),), "ok", ms=3)
    call, result = the_call(told(turn(1, asks(1), replies(1, asked), intended, done)))
    assert call["arguments"] == {"command": "rm x"}
    assert call["extra"] == {"input_run": {"command": "rm -i x"}}
    assert result == {"source_call_id": "c", "content": "", "extra": {"status": "ok", "ms": 3}}
    unread = ToolUse("c", "Bash", {}, raw_input='{"command": ')
    call, _ = the_call(told(turn(1, asks(1), replies(1, unread), done)))
    assert (call["arguments"], call["extra"]) == ({}, {"raw_input": '{"command": '})


def test_a_long_result_is_whole_where_it_was_kept() -> None:
    done = ToolFinished("c", (Text("clip…"),), "ok", spilled="d", omitted=7)
    entries = turn(1, asks(1), replies(1, ToolUse("c", "Bash", {})), done)
    _, result = the_call(told(entries, blob=lambda digest: b"x" * 100_000))
    assert result["content"] == "x" * 100_000
    assert result["extra"] == {"status": "ok", "text_in_context": "clip…", "omitted_bytes": 7}
    _, lost = the_call(told(entries))
    assert lost["content"] == "clip…"
    assert lost["extra"] == {"status": "ok", "clipped": True, "omitted_bytes": 7}


def test_pictures_are_named_by_their_file(tmp_path: Path) -> None:
    content = (Text("see"), Image("image/png", "d"), Image("image/bmp", "d"))
    entries: list[Entry] = [TurnStarted(1), UserMessaged((*content, Document("text/x", "d")))]
    entries += [replies(1, ToolUse("c", "Read", {})), ToolFinished("c", content[:2], "ok")]
    (tmp_path / "d").write_bytes(b"")
    document = told(entries, file=lambda digest: str(tmp_path / digest))
    picture = {
        "type": "image",
        "source": {"media_type": "image/png", "path": str(tmp_path / "d")},
    }
    assert document["steps"][0]["message"] == [
        {"type": "text", "text": "see"},
        picture,
        {"type": "text", "text": "[image/bmp: not in this trajectory]"},
        {"type": "text", "text": "[text/x: not in this trajectory]"},
    ]
    assert the_call(document)[1]["content"] == [{"type": "text", "text": "see"}, picture]
    assert told(entries)["steps"][0]["message"][1] == NO_PICTURE
    hidden = told(entries, file=lambda digest: "/s3cret/d", clean=lambda t: t.replace("s3cret", ""))
    assert hidden["steps"][0]["message"][1] == NO_PICTURE


def test_the_prompt_and_the_tools_that_stand_before_it() -> None:
    tools = b'[{"name":"Look","description":"Looks.","input_schema":{"type":"object"}}]'
    blobs = {"s1": b"be brief", "s2": b"be long", "t": tools, "h": b"[]"}

    def installed(system: str, reason: Any = "start") -> PromptInstalled:
        return PromptInstalled(system, "t", "", "h", reason)

    entries = [
        installed("s1"),
        *turn(1),
        installed("s1", "tools"),
        *turn(2),
        installed("s2", "instructions"),
        installed("lost", "model"),
    ]
    document = told([*entries, Rewound(4)], blob=blobs.get)
    assert [(s["source"], s["message"]) for s in document["steps"]] == [
        ("system", "be brief"),
        ("user", "ask 1"),
        ("system", "be long"),
    ]
    function = {"name": "Look", "description": "Looks.", "parameters": {"type": "object"}}
    assert document["agent"]["tool_definitions"] == [{"type": "function", "function": function}]
    for broken in (b"{", b'[{"name": 1}]', b"[" * 100_000):
        assert "tool_definitions" not in told(entries, blob={**blobs, "t": broken}.get)["agent"]


def test_rewinds_and_their_undoing() -> None:
    entries = [*turn(1), *turn(2), *turn(3)]  # 3 entries each

    def asked(*more: Entry) -> list[str]:
        return [step["message"] for step in told([*entries, *more])["steps"]]

    assert asked(Rewound(3)) == ["ask 1"]
    assert asked(Rewound(3), Rewound(9)) == ["ask 1", "ask 2", "ask 3"]
    assert asked(Rewound(3), *turn(4), Rewound(10)) == ["ask 1"]
    assert asked(Rewound(3), *turn(4), Rewound(6)) == ["ask 1", "ask 2"]
    assert told([*entries, Rewound(3)])["extra"]["undone"] == {"rewound_turns": 2}
    with pytest.raises(SessionError, match="nothing was said"):
        asked(Rewound(0))


def test_a_compaction_shows_again_what_it_kept() -> None:
    prompt = PromptInstalled("s", "", "", "", "start")
    use = replies(1, ToolUse("c", "Bash", {"command": "ls"}))
    done = ToolFinished("c", (Text("files"),), "error")
    made = Compacted("auto", 2, 2, (Text("notes"),), 900, 90, dropped=("a picture",))
    entries = [
        prompt,
        *turn(1, asks(1), replies(1, Text("one"))),
        TurnStarted(2),
        UserMessaged((Text("ask 2"),)),
        *(asks(1), use, done, made, asks(2), replies(2, Text("two"))),
    ]
    document = told(entries, blob=lambda digest: b"be brief")
    at = [step["source"] for step in document["steps"]].index("system", 1)
    boundary, *rest = document["steps"][at:]
    assert boundary["observation"]["results"] == [{"content": "notes"}]
    assert boundary["message"] == "Context compacted (auto): 2 messages removed, 900 to 90 tokens"
    assert boundary["extra"] == {
        "turn": 2,
        "context_management": {"type": "compaction", "boundary": "replace"},
        "trigger": "auto",
        "removed_messages": 2,
        "tokens_before": 900,
        "tokens_after": 90,
        "dropped": ["a picture"],
    }
    assert [(s["source"], s["message"], s.get("is_copied_context")) for s in rest] == [
        ("system", "be brief", True),
        ("user", "ask 2", True),
        ("agent", "", True),
        ("agent", "two", None),
    ]
    (result,) = rest[2]["observation"]["results"]
    assert result == {"source_call_id": "c", "content": "files", "extra": {"status": "error"}}
    assert rest[2].keys().isdisjoint({"metrics", "llm_call_count", "timestamp"})


def test_results_that_became_stubs() -> None:
    use, done = replies(1, ToolUse("c", "Bash", {})), ToolFinished("c", (Text("long"),), "ok")
    made = Compacted("auto", 0, 0, (), 900, 90, pruned={"c": "[gone]"})
    document = told(turn(1, asks(1), use, done, made))
    extra = document["steps"][-1]["extra"]
    assert extra["context_management"] == {"type": "pruning", "boundary": "truncate"}
    assert extra["pruned_results"] == {"c": "[gone]"}
    assert the_call(document)[1]["content"] == "long"


def test_a_compaction_that_did_not_help_was_none() -> None:
    made = Compacted("overflow", 1, 1, (Text("notes"),), 900, 90, provisional=True)
    before = turn(1, asks(1), replies(1, Text("one")))
    failed = told([*before, *turn(2, made, made, RecoveryFailed(2, "too long"))])
    assert said(failed) == [("user", "ask 1"), ("agent", "one"), ("user", "ask 2")]
    assert failed["extra"]["undone"] == {"compactions_without_effect": 1}
    assert failed["extra"]["turns"][1]["recoveries_failed"] == [{"rounds": 2, "error": "too long"}]
    assert said(told([*before, *turn(2, made)[:-1]])) == said(failed)
    helped = told([*before, *turn(2, made, asks(1), replies(1, Text("two")))])
    assert "undone" not in helped["extra"]
    assert helped["steps"][-1]["message"] == "two"


def test_who_steered() -> None:
    by_hook = Steered((Text("tests fail"),), source="hook")
    document = told(turn(1, asks(1), replies(1, Text("a")), by_hook, Steered((Text("hey"),))))
    assert said(document)[2:] == [("system", "tests fail"), ("user", "hey")]


def test_a_session_without_a_word() -> None:
    started = SessionStarted("s", "1", "/w", "2026-01-01T00:00:00.000Z", schema=1)
    blocked: list[Entry] = [started, TurnStarted(1), TurnEnded(1, "blocked", 0, Usage())]
    for count in range(len(blocked) + 1):
        with pytest.raises(SessionError, match="nothing was said") as raised:
            told(blocked[:count])
        assert "jsonl" in raised.value.hint


def test_times_that_are_none_are_left_out() -> None:
    for at in ("", "yesterday", "2026-01-01Z00:00", "2026-13-01T00:00:00Z"):
        record = replace(placed([UserMessaged((Text("a"),))])[0], at=at)
        document = exported([record])
        check(document)
        assert "timestamp" not in document["steps"][0]


def test_text_that_is_hard_to_write_down() -> None:
    odd = 'nul \0 quote " \u2028 emoji 👩‍👩‍👧 rtl \u202e bom \ufeff esc \x1b[31m 你好'
    use = ToolUse(odd, odd, {odd: [odd, {odd: None}], "deep": _deep(300)})
    entries = turn(1, asks(1), replies(1, Text(odd), use), ToolFinished(odd, (Text(odd),), "ok"))
    call, result = the_call(told(entries))
    assert result["source_call_id"] == call["tool_call_id"] == odd
    assert call["arguments"][odd] == [odd, {odd: None}]


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_an_unfinished_reply_without_a_word_is_no_step() -> None:
    nothing = ReplyReceived(1, (), "", Usage(5, 0), False, "m")
    silent = ReplyReceived(1, (), "end_turn", Usage(5, 0), True, "m")
    assert said(told(turn(1, asks(1), nothing))) == [("user", "ask 1")]
    assert said(told(turn(1, asks(1), silent))) == [("user", "ask 1"), ("agent", "")]
    again = told(turn(1, asks(1), silent, Retried(1, 1, "empty_reply", 0.0)))
    assert said(again) == [("user", "ask 1")]


def test_a_retry_takes_nothing_from_the_turn_before() -> None:
    first = turn(1, asks(1), replies(1, Text("one")))
    failed = (asks(1), Retried(1, 1, "overloaded", 0.5), asks(1, 2), replies(1, Text("two")))
    assert said(told([*first, *turn(2, *failed)])) == [
        *(("user", "ask 1"), ("agent", "one")),
        *(("user", "ask 2"), ("agent", "two")),
    ]


def test_hooks_outside_of_calls(tmp_path: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": "echo mind the gap"}]}
    shared: dict[str, Any] = {"hooks": {"UserPromptSubmit": [hook]}}

    async def run_it() -> tuple[str, SessionState]:
        async with Harness(tmp_path, [says("ok")], settings=shared) as run:
            await run.turn("go")
            return str(run.house.journal_path), run.house.runtime.state

    path, state = asyncio.run(run_it())
    document = of_file(path)
    (turn,) = document["extra"]["turns"]
    (fired,) = turn["hooks"]
    assert (fired["event"], fired["hook"], fired["outcome"]) == (
        "UserPromptSubmit",
        "`echo mind the gap`",
        "passed",
    )
    assert context(document) == seen(state.transcript.messages)
