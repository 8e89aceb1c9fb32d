"""With ``record_wire`` a session keeps its replies as they came, and replays decode them again."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.app.furnish import furnish
from claw.app.wishes import Lent, Wishes
from claw.engine.live import Live
from claw.engine.replaying import replay_session
from claw.errors import ModelUnavailable, SessionError
from claw.models.decode import decode_again
from claw.models.fallback import FallbackModel, Link
from claw.models.openai_chat.schema_client import SchemaChatClient
from claw.models.transport import HttpTransport
from claw.models.wire_text import tool_name
from claw.recordings.verify import Replayed
from claw.sessions.fork import fork
from claw.sessions.removal import delete
from claw.sessions.salvage import verify
from claw.testing import (
    FakeTool,
    Gate,
    Harness,
    ServerReply,
    StrictServer,
    calls,
    fails,
    says,
    sent,
    waits,
)
from claw.types.entries import Entry, ReplyReceived, Retried, StepRequested
from claw.types.events import AssistantEvent, MessageStop, Notice, TextDelta
from claw.types.messages import Text, ToolUse
from claw.types.request import Request
from claw.types.usage import Usage
from claw.types.wire import cut, total
from claw.workspace.disk import SystemDisk
from tests.replay.recordings import changed, journal
from tests.replay.wires import (
    DIALECTS,
    blobs_of,
    body_of,
    client,
    kept,
    recording,
    replies_in,
    streamed,
)

SAYING = "Grüße, 世界 🎉: naïve"
LOOK = FakeTool("Look", text="gesehen ✓", required=("at",))
CALL = calls(("Look", {"at": "世界"}), text=SAYING)
each = pytest.mark.parametrize("dialect", DIALECTS)


async def same(run: Harness) -> Replayed:
    report = await replay_session(str(journal(run)))
    report.check()
    return report


# -- what is kept --------------------------------------------------------------------


@each
@pytest.mark.parametrize("pieces", [{"every": 1}, {"every": 7}, {"seed": 4}, {"every": 10**6}])
async def test_the_bytes_are_those_that_the_server_sent(
    tmp_path: Path, dialect: str, pieces: dict[str, int]
):
    bodies = [body_of(dialect, CALL), body_of(dialect, says(SAYING), 2)]
    replies = [sent(streamed(body), **pieces) for body in bodies]  # type: ignore[arg-type]
    async with recording(tmp_path, dialect, replies, tools=(LOOK,)) as run:
        await run.turn("go")
        found = replies_in(run)
        assert [kept(run, reply) for reply in found] == bodies
        assert {reply.wire_dialect for reply in found} == {dialect}
        assert [total(reply.wire_sizes) for reply in found] == [len(body) for body in bodies]
        if pieces.get("every") == 1:
            assert found[0].wire_sizes == f"{len(bodies[0])}*1"
        if pieces.get("every") == 7:
            assert {*map(len, [*cut(bodies[0], found[0].wire_sizes)][:-1])} == {7}
        assert found[1].blocks == (Text(SAYING),)
        assert (await same(run)).steps == 2


@each
async def test_without_it_nothing_is_kept(tmp_path: Path, dialect: str):
    async with recording(tmp_path, dialect, [says(SAYING)], record=False) as run:
        await run.turn("go")
        assert "wire" not in journal(run).read_text()
        assert all(SAYING.encode() not in blob.read_bytes() for blob in blobs_of(run).iterdir())
        await same(run)


@each
async def test_a_body_that_was_compressed_is_kept_as_it_is_read(tmp_path: Path, dialect: str):
    body = body_of(dialect, says(SAYING))
    packed = streamed(gzip.compress(body), **{"content-encoding": "gzip"})
    async with recording(tmp_path, dialect, [sent(packed, every=5)]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        assert kept(run, reply) == body
        assert total(reply.wire_sizes) == len(body)
        await same(run)


@each
async def test_a_reply_that_was_not_streamed_is_kept_too(tmp_path: Path, dialect: str):
    bodies: dict[str, dict[str, Any]] = {
        "anthropic": {"type": "message", "role": "assistant", "stop_reason": "end_turn",
                      "content": [{"type": "text", "text": SAYING}]},
        "openai-chat": {"choices": [{"message": {"content": SAYING}, "finish_reason": "stop"}]},
        "openai-responses": {"object": "response", "status": "completed", "output": [
            {"type": "message", "content": [{"type": "output_text", "text": SAYING}]}]},
    }  # fmt: skip
    body = json.dumps(bodies[dialect], ensure_ascii=False, indent=1).encode()
    async with recording(tmp_path, dialect, [sent(streamed(body), every=1)]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        assert (reply.blocks, kept(run, reply)) == ((Text(SAYING),), body)
        assert reply.usage.estimated
        await same(run)


@each
async def test_what_comes_after_the_end_is_kept_and_not_read(tmp_path: Path, dialect: str):
    body = body_of(dialect, says(SAYING)) + b": bye\n\ndata: {nothing\n\n"
    async with recording(tmp_path, dialect, [sent(streamed(body), every=3)]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        assert kept(run, reply) == body
        await same(run)


# -- what went wrong -----------------------------------------------------------------


@each
async def test_a_cut_reply_is_kept_as_far_as_it_came(tmp_path: Path, dialect: str):
    body = body_of(dialect, says(SAYING * 3))
    at = body.rindex("世".encode()) + 1  # in the middle of a character
    replies = [sent(streamed(body), every=9, cut_at=at), sent(streamed(body), every=8)]
    async with recording(tmp_path, dialect, replies) as run:
        assert (await run.turn("go")).stop_reason == "completed"
        broken, whole = replies_in(run)
        assert (broken.complete, whole.complete) == (False, True)
        assert kept(run, broken) == body[:at]
        assert kept(run, whole) == body
        await same(run)


@each
async def test_what_breaks_off_before_it_begins_is_no_reply(tmp_path: Path, dialect: str):
    sign = b": I am here\n\n" * 9
    replies: list[ServerReply] = [sent(streamed(sign), every=4, cut_at=30), says("done")]
    async with recording(tmp_path, dialect, replies) as run:
        await run.turn("go")
        (retried,) = (entry for entry in run.entries if isinstance(entry, Retried))
        assert retried.error == "model_unavailable"
        (reply,) = replies_in(run)
        assert reply.complete
        assert b"I am here" not in kept(run, reply)
        await same(run)


@each
async def test_an_error_inside_the_stream(tmp_path: Path, dialect: str):
    busy = fails(ModelUnavailable("busy", status=529), after=says(SAYING))
    async with recording(tmp_path, dialect, [busy, says("done")]) as run:
        assert (await run.turn("go")).stop_reason == "completed"
        broken, whole = replies_in(run)
        assert not broken.complete
        assert b"busy" in kept(run, broken)
        assert kept(run, whole) != kept(run, broken)
        await same(run)


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses"])
async def test_an_error_before_anything_was_said_is_no_reply(tmp_path: Path, dialect: str):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    first = streamed(b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n")
    async with recording(tmp_path, dialect, [first, says("done")]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        assert b"busy" not in kept(run, reply)
        await same(run)


@each
async def test_an_empty_reply_and_one_of_nothing_but_life_signs(tmp_path: Path, dialect: str):
    async with recording(tmp_path, dialect, [streamed(b""), says("done")]) as run:
        await run.turn("go")
        empty, whole = replies_in(run)
        assert (empty.wire, empty.wire_dialect, empty.wire_sizes) == ("", "", "")
        assert whole.wire
        await same(run)
    async with recording(tmp_path / "2", dialect, [streamed(b": sign\n\n"), says("done")]) as run:
        await run.turn("go")
        assert kept(run, replies_in(run)[0]) == b": sign\n\n"
        await same(run)


class Impatient:
    """A listener that interrupts at the first word of a reply."""

    def __init__(self, run: Harness) -> None:
        self.run = run

    def __call__(self, event: Any) -> None:
        if isinstance(event, TextDelta):
            self.run.house.runtime.interrupt()


@each
async def test_an_interrupted_reply_is_kept_as_far_as_it_came(tmp_path: Path, dialect: str):
    long = waits(Gate(), says("word " * 20), after=2)
    async with recording(tmp_path, dialect, [long, says("fine")]) as run:
        patient = run.house.runtime.listen(Impatient(run))
        assert (await run.turn("go")).stop_reason == "interrupted"
        (reply,) = replies_in(run)
        assert not reply.complete
        assert b"word" in kept(run, reply)
        assert total(reply.wire_sizes) == len(kept(run, reply))
        patient()
        await run.turn("go on")
        await same(run)


# -- what a client does between the decoder and the conversation ----------------------


@each
async def test_tools_with_names_that_no_provider_takes(tmp_path: Path, dialect: str):
    name = "mcp__server__" + "x" * 70
    tool = FakeTool(name, text="seen")
    body = body_of(dialect, calls((tool_name(name), {})))
    wishes = Wishes(cwd=str(tmp_path), env={"HOME": str(tmp_path)})
    transport = HttpTransport()
    async with StrictServer([streamed(body), says("done")]) as server:
        model = client(dialect, transport, server.base_url, record_wire=True)
        house = await furnish(wishes, lent=Lent(model=model, tools=(tool,)))
        await house.runtime.run_turn("go")
        await house.close()
    await transport.aclose()
    assert tool.runs == 1
    assert house.journal_path is not None
    (await replay_session(house.journal_path)).check()


@each
async def test_ids_that_are_not_the_models_last_word(tmp_path: Path, dialect: str):
    one = calls(("Look", {"at": 1}), ("Look", {"at": 2}))
    twice = replace(one, blocks=tuple(replace(b, id="call") for b in one.tool_calls))
    replies = [streamed(body_of(dialect, twice, n)) for n in (1, 1)]
    async with recording(tmp_path, dialect, [*replies, says("done")], tools=(LOOK,)) as run:
        await run.turn("go")
        ids = [block.id for reply in replies_in(run) for block in reply.blocks
               if isinstance(block, ToolUse)]  # fmt: skip
        assert len({*ids}) == 4
        await same(run)


@each
async def test_the_id_of_a_header(tmp_path: Path, dialect: str):
    body = body_of(dialect, says(SAYING)).replace(b'"id"', b'"no"')
    answer = streamed(body, **{"request-id": "req_of_the_header"})
    async with recording(tmp_path, dialect, [answer]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        assert (reply.request_id, reply.served_by) == ("req_of_the_header", "m")
        await same(run)


async def test_usage_that_no_window_holds(tmp_path: Path):
    body = body_of("anthropic", says(SAYING)).replace(b'"input_tokens": 9', b'"input_tokens": 9999')
    transport = HttpTransport()
    async with StrictServer([streamed(body)]) as server:
        near = client("anthropic", transport, server.base_url, record_wire=True, window=5000)
        async with Harness(tmp_path, near) as run:
            await run.turn("go")
            (reply,) = replies_in(run)
            assert reply.usage.estimated
            await same(run)
        await transport.aclose()


async def test_what_the_prompt_cache_lost(tmp_path: Path):
    bodies = [
        body_of("anthropic", replace(says(SAYING), usage=Usage(9, 5, read, 0)), n)
        for n, read in enumerate((5000, 0), 1)
    ]
    async with recording(tmp_path, "anthropic", [streamed(body) for body in bodies]) as run:
        await run.turn("go")
        await run.turn("on")
        assert [reply.prompt_cache is not None for reply in replies_in(run)] == [False, True]
        await same(run)


@pytest.mark.parametrize("finish", [None, 40])
async def test_calls_in_the_text_of_a_reply(tmp_path: Path, finish: int | None):
    said = [says(json.dumps({"tool": "Look", "input": {"at": "世界"}})), says('{"answer": "ja"}')]
    replies = [sent(streamed(body_of("openai-chat", reply)), every=1) for reply in said]
    if finish:
        replies.insert(0, sent(streamed(body_of("openai-chat", said[0])), cut_at=finish * 10))
    transport = HttpTransport()
    async with StrictServer(replies) as server:
        model = SchemaChatClient(transport, base_url=f"{server.base_url}/v1", record_wire=True)
        async with Harness(tmp_path, model, tools=(LOOK,)) as run:
            await run.turn("go")
            *_, first, last = replies_in(run)
            assert first.wire_dialect == "openai-chat/json_schema"
            assert first.blocks == (ToolUse("call_1", "Look", {"at": "世界"}),)
            assert last.blocks == (Text("ja"),)
            await same(run)
        await transport.aclose()


async def test_a_model_that_stands_in_is_the_one_whose_bytes_are_kept(tmp_path: Path):
    sign = sent(streamed(b": sign\n\n" * 9), cut_at=20)
    body = body_of("anthropic", says(SAYING))
    transport = HttpTransport()
    told: list[Notice] = []
    async with StrictServer([sign] * 2) as first, StrictServer([sign, streamed(body)]) as second:
        links = [
            Link(client("openai-chat", transport, first.base_url, record_wire=True), "scripted"),
            Link(client("anthropic", transport, second.base_url, record_wire=True), "other"),
        ]
        async with Harness(tmp_path, FallbackModel(links, told.append)) as run:
            assert (await run.turn("go")).stop_reason == "completed"
            (reply,) = replies_in(run)
            assert [e.attempt for e in run.entries if isinstance(e, StepRequested)] == [1, 2, 3]
            assert (reply.model, reply.wire_dialect) == ("other", "anthropic")
            assert kept(run, reply) == body
            await same(run)
        await transport.aclose()
    assert len(told) == 1


async def test_half_a_reply_of_the_first_model_is_not_taken_for_the_others(tmp_path: Path):
    """Nothing at all comes of the second body: no byte of the first stands for it."""
    sign = sent(streamed(b": sign\n\n" * 9), cut_at=20)
    transport = HttpTransport()
    async with StrictServer([sign, sign]) as first, StrictServer([streamed(b""), says("x")]) as two:
        links = [
            Link(client("openai-chat", transport, first.base_url, record_wire=True), "scripted"),
            Link(client("anthropic", transport, two.base_url, record_wire=True), "other"),
        ]
        async with Harness(tmp_path, FallbackModel(links, lambda notice: None)) as run:
            await run.turn("go")
            empty, whole = replies_in(run)
            assert (empty.wire, whole.wire_dialect) == ("", "anthropic")
            await same(run)
        await transport.aclose()


# -- decoded again -------------------------------------------------------------------


class Otherwise:
    """Decodes as today, but for events of one kind, in whose place there is another."""

    def __init__(self, old: type, new: AssistantEvent | Exception) -> None:
        self.old, self.new = old, new
        self.chunks: list[bytes] = []

    def __call__(
        self, spoken: str, chunks: Iterable[bytes], request: Request
    ) -> Iterator[AssistantEvent]:
        self.chunks = [*chunks]
        for event in decode_again(spoken, self.chunks, request):
            if isinstance(event, self.old):
                if isinstance(self.new, Exception):
                    raise self.new
                yield self.new
            else:
                yield event


OTHERWISE = [
    (TextDelta, TextDelta("Gruesse"), "blocks[0].text"),
    (ToolUse, ToolUse("call_other", "Look", {"at": "世界"}), "blocks[1].id"),
    (ToolUse, ToolUse("call_1_1", "Look", {"at": "?"}), "blocks[1].input.at"),
    (MessageStop, MessageStop("strange"), "stop_reason"),
    (MessageStop, Notice("x", "info", "no stop at all"), "stop_reason"),
    (MessageStop, MessageStop("tool_use", {"more": 1}), "provider_metadata"),
    (MessageStop, ModelUnavailable("no sense in it"), "stop_reason"),
    (Usage, Usage(1, 2), "usage"),
]


@each
@pytest.mark.parametrize(("old", "new", "field"), OTHERWISE, ids=range(len(OTHERWISE)))
@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_decoder_that_decodes_otherwise_is_named(
    tmp_path: Path, dialect: str, old: type, new: Any, field: str, *, goes_on: bool
):
    reply = replace(CALL, blocks=(Text(SAYING), ToolUse("call_1_1", "Look", {"at": "世界"})))
    bodies = [body_of(dialect, reply), body_of(dialect, says("done"), 2)]
    async with recording(
        tmp_path, dialect, [sent(streamed(body), every=7) for body in bodies], tools=(LOOK,)
    ) as run:
        await run.turn("go")
        other = Otherwise(old, new)
        report = await replay_session(str(journal(run)), Live(goes_on=goes_on), decode=other)
    first = report.differences[0]
    assert (first.turn, first.step, first.entry) == (1, 1, "reply_received")
    assert first.field.startswith(field)
    assert first.expected != first.actual
    if not goes_on:
        assert len(report.differences) == 1
        assert other.chunks == [bodies[0][at : at + 7] for at in range(0, len(bodies[0]), 7)]


@pytest.mark.no_replay("the recording was changed")
@each
async def test_other_bytes_are_another_reply(tmp_path: Path, dialect: str):
    async with recording(tmp_path, dialect, [streamed(body_of(dialect, says(SAYING)))]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        spoilt = kept(run, reply).replace("世".encode(), "时".encode())
        digest = hashlib.sha256(spoilt).hexdigest()
        (blobs_of(run) / digest).write_bytes(spoilt)
        changed(journal(run), lambda entry: rewired(entry, wire=digest))
        report = await replay_session(str(journal(run)))
    first = report.differences[0]
    assert (first.entry, first.field) == ("reply_received", "blocks[0].text")
    assert "时" in first.actual


def rewired(entry: Entry, **fields: str) -> Entry:
    return replace(entry, **fields) if isinstance(entry, ReplyReceived) else entry


@pytest.mark.parametrize(
    "fields", [{"wire_sizes": ""}, {"wire_sizes": "0 9*0 no -1 12"}, {"wire_dialect": "of later"}]
)
async def test_a_recording_of_another_claw_is_played(tmp_path: Path, fields: dict[str, str]):
    async with recording(tmp_path, "anthropic", [says(SAYING)]) as run:
        await run.turn("go")
        changed(journal(run), lambda entry: rewired(entry, **fields))
        await same(run)


# -- the blobs -----------------------------------------------------------------------


async def test_without_the_bytes_the_reply_is_played_as_it_was_recorded(tmp_path: Path):
    async with recording(tmp_path, "anthropic", [CALL, says("done")], tools=(LOOK,)) as run:
        await run.turn("go")
        for reply in replies_in(run):
            (blobs_of(run) / reply.wire).unlink()
        assert (await same(run)).steps == 2


@pytest.mark.no_replay("the recording was damaged")
async def test_one_changed_byte_is_damage(tmp_path: Path):
    async with recording(tmp_path, "anthropic", [says(SAYING)]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        body = kept(run, reply)
        path = blobs_of(run) / reply.wire
    path.chmod(0o600)
    path.write_bytes(body.replace(b"m", b"n", 1))
    (damage,) = verify(str(journal(run))).damage
    assert reply.wire in damage.what
    with pytest.raises(SessionError, match="damaged"):
        await replay_session(str(journal(run)))


async def test_a_copy_has_the_bytes_and_a_deleted_session_has_none(tmp_path: Path):
    async with recording(tmp_path, "anthropic", [says(SAYING)]) as run:
        await run.turn("go")
        (reply,) = replies_in(run)
        body, path = kept(run, reply), journal(run)
    copy = path.with_name("copy.jsonl")
    fork(str(path), str(copy), now=lambda: 0.0, disk=SystemDisk())
    delete(str(path), disk=SystemDisk())
    assert not path.with_suffix(".blobs").exists()
    assert (copy.with_suffix(".blobs") / reply.wire).read_bytes() == body
    assert not verify(str(copy)).damage
    (await replay_session(str(copy))).check()
