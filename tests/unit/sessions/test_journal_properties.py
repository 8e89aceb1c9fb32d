"""Whatever entries come: lines give them back, and every prefix of a journal loads."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any, Literal, Union

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from claw.errors import SessionCorrupt
from claw.sessions.journal import FileJournal
from claw.sessions.load import load, read_entries
from claw.sessions.record import decode_record, encode_record
from claw.types.entries import (
    Entry,
    Interrupted,
    KnownEntry,
    ReplyReceived,
    Retried,
    SessionStarted,
    Steered,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UnknownEntry,
    UserMessaged,
)
from claw.types.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.session import SessionState
from claw.types.tools import CallStatus
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk

AT = "2026-11-30T14:20:00.000Z"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
SIMPLE: dict[Any, SearchStrategy[Any]] = {
    str: texts,
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    type(None): st.none(),
    Any: json_values,
}


def values_of(hint: Any) -> SearchStrategy[Any]:
    """Values of any type that entries are made of."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(arg) for arg in args])
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=2)
    fields = typing.get_type_hints(hint)
    return st.builds(hint, **{name: values_of(fields[name]) for name in hint.__struct_fields__})


# A schema above the known one is refused, as it must be.
any_entry = values_of(KnownEntry).map(
    lambda e: msgspec.structs.replace(e, schema=1) if isinstance(e, SessionStarted) else e
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Entry]:
    """Entries in an order in which a session may write them, broken off anywhere."""
    entries: list[Entry] = [SessionStarted("s", "1", "/w", AT, schema=1)]
    calls = 0
    for turn in range(1, draw(st.integers(1, 3)) + 1):
        entries.append(TurnStarted(turn))
        entries.append(UserMessaged((Text(draw(texts) or "go"),)))
        for step in range(1, draw(st.integers(1, 3)) + 1):
            uses = []
            for _ in range(draw(st.integers(0, 3))):
                calls += 1
                uses.append(ToolUse(f"c{calls}", "Bash", {"n": calls}))
            blocks: tuple[AssistantBlock, ...] = (
                *([Text("hm")] if draw(st.booleans()) else []),
                *uses,
            )
            complete = draw(st.booleans())
            entries.append(
                ReplyReceived(
                    step, blocks, "tool_use" if complete else "", Usage(3, 2), complete, "m"
                )
            )
            if not complete and draw(st.booleans()):
                entries.append(Retried(step, 1, "cut", 0.5))
                continue
            entries.extend(ToolIntended(call_id=use.id, name="Bash") for use in uses)
            for use in uses:
                status = draw(st.sampled_from(typing.get_args(CallStatus)))
                entries.append(ToolFinished(use.id, (Text(draw(texts)),), status))
            if draw(st.booleans()):
                entries.append(Steered((Text("also this"),)))
        if draw(st.booleans()):
            entries.append(Interrupted("tools"))
        entries.append(TurnEnded(turn, "completed", 1, Usage(3, 2)))
    return entries[: draw(st.integers(0, len(entries)))]


def written(path: Path, entries: list[Entry]) -> Path:
    path.unlink(missing_ok=True)
    journal = FileJournal(str(path), now=lambda: 0.0, disk=SystemDisk())
    for entry in entries:
        journal.append(entry)
    journal.close()
    if not entries:
        path.touch()
    return path


def folded(entries: list[Entry]) -> SessionState:
    state = SessionState()
    for entry in entries:
        state = state.fold(entry)
    return state


def assert_paired(messages: tuple[Message, ...]) -> None:
    """Every call has one result, in order, directly after it; no result is without a call."""
    expected: list[str] = []
    for message in messages:
        assert message.content
        results = [b.tool_use_id for b in message.content if isinstance(b, ToolResult)]
        assert results == expected
        assert not results or isinstance(message, UserMessage)
        expected = (
            [call.id for call in message.tool_calls]
            if isinstance(message, AssistantMessage)
            else []
        )
    assert expected == []


def assert_loads_as_prefix(path: Path, content: bytes, entries: list[Entry]) -> None:
    path.write_bytes(content)
    loaded = load(str(path))
    complete = content.count(b"\n") + (not loaded.ended)  # a whole one may lack its newline
    assert loaded.records == loaded.last_seq == complete
    assert loaded.state == folded(entries[:complete])
    assert loaded.end + loaded.torn == len(content)
    assert bool(loaded.notes) is bool(loaded.torn)
    assert_paired(loaded.state.transcript.messages)


@settings(deadline=None)
@given(any_entry, st.integers(1, 2**53))
def test_a_line_gives_back_its_entry(entry: Entry, seq: int) -> None:
    line = encode_record(entry, seq=seq, id=f"e{seq}", parent="e0", at=AT)
    assert line.count(b"\n") == 1
    record = decode_record(line)
    assert record.entry == entry
    assert (record.seq, record.id, record.parent, record.at) == (seq, f"e{seq}", "e0", AT)


@settings(deadline=None)
@given(st.dictionaries(texts, json_values, max_size=4))
def test_an_unknown_kind_is_copied_with_all_its_fields(fields: dict[str, Any]) -> None:
    common = {"crc", "v", "seq", "id", "parent", "at"}
    fields = {k: v for k, v in fields.items() if k not in common} | {"kind": "from_the_future"}
    raw = msgspec.json.encode(fields)
    copied = decode_record(
        encode_record(UnknownEntry("from_the_future", raw), seq=1, id="e1", parent="", at=AT)
    ).entry
    assert isinstance(copied, UnknownEntry)
    again = decode_record(encode_record(copied, seq=2, id="e2", parent="e1", at=AT)).entry
    assert isinstance(again, UnknownEntry)
    held = msgspec.json.decode(again.raw)
    assert {k: v for k, v in held.items() if k not in common} == fields


@settings(deadline=None)
@given(any_entry, st.data())
def test_every_flipped_bit_of_a_line_is_noticed(entry: Entry, data: st.DataObject) -> None:
    line = bytearray(encode_record(entry, seq=1, id="e1", parent="", at=AT))
    bit = data.draw(st.integers(0, 8 * (len(line) - 1) - 1))  # all but the newline
    line[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError, match=r"record|checksum"):
        decode_record(bytes(line))


def test_every_prefix_of_a_journal_loads(tmp_path: Path) -> None:
    calls = (ToolUse("c1", "Bash", {"n": 1}), ToolUse("c2", "Bash", {"n": 2}))
    entries: list[Entry] = [
        SessionStarted("s", "1", "/w", AT, schema=1),
        TurnStarted(1),
        UserMessaged((Text("nützlich"),)),
        ReplyReceived(1, (Text("half"),), "", Usage(1, 1), False, "m"),
        Retried(1, 1, "cut", 0.5),
        ReplyReceived(1, (Text("now"), *calls), "tool_use", Usage(1, 1), True, "m"),
        *(ToolIntended(call_id=call.id, name="Bash") for call in calls),
        *(ToolFinished(call.id, (Text("out"),), "ok") for call in calls),
        TurnEnded(1, "completed", 1, Usage(1, 1)),
    ]
    whole = written(tmp_path / "whole.jsonl", entries).read_bytes()
    for length in range(len(whole) + 1):
        assert_loads_as_prefix(tmp_path / "cut.jsonl", whole[:length], entries)


@settings(deadline=None)
@given(sessions(), st.data())
def test_any_prefix_of_any_journal_loads(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("j")
    whole = written(directory / "whole.jsonl", entries).read_bytes()
    length = data.draw(st.integers(0, len(whole)))
    assert_loads_as_prefix(directory / "cut.jsonl", whole[:length], entries)


@settings(deadline=None)
@given(sessions())
def test_a_journal_loads_to_what_was_folded_live(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]
) -> None:
    path = written(tmp_path_factory.mktemp("j") / "s.jsonl", entries)
    assert [record.entry for record in read_entries(str(path))] == entries
    assert load(str(path)).state == folded(entries)


@settings(deadline=None)
@given(sessions().filter(bool), st.data())
def test_a_flipped_bit_stops_the_load_or_is_reported(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], data: st.DataObject
) -> None:
    path = written(tmp_path_factory.mktemp("j") / "s.jsonl", entries)
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    line = content[: bit // 8].count(b"\n") + 1
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    if bit == 8 * len(content) - 8 + bit % 8:  # the last newline: nothing is lost
        loaded = load(str(path))
        assert (loaded.records, loaded.torn, loaded.ended) == (len(entries), 1, False)
        assert loaded.notes
        return
    with pytest.raises(SessionCorrupt) as caught:
        load(str(path))
    assert caught.value.line == line
