"""What is too long for a record lies in blobs, and comes back from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.errors import SessionCorrupt
from claw.sessions.index import list_sessions, session_path
from claw.sessions.journal import FileJournal
from claw.sessions.load import load, read_entries
from claw.sessions.record import LONGEST, decode_record, encode_record
from claw.sessions.spill import fill, spill
from claw.types.entries import Entry, ReplyReceived, ToolFinished
from claw.types.messages import Text, ToolUse
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk
from tests.unit.sessions.making import digest, every_kind, now, said, start, write

KIB = 1024


def call(input: dict[str, Any]) -> ReplyReceived:
    return ReplyReceived(1, (ToolUse("a", "X", input),), "tool_use", Usage(), True, "m")


LARGE: dict[str, Entry] = {
    "a text": said("x" * 70 * KIB),
    "texts that are many": ToolFinished(
        "c", tuple(Text(f"{n}" * 60 * KIB) for n in range(30)), "ok"
    ),
    "a text of quotes": said('"' * 70 * KIB),
    "characters of several bytes": said("\U0001f600" * 17 * KIB),
    "a text deep in an input": call({"a/b~c": [1, {"": "y" * 70 * KIB}], "n": 2**70, "f": 1.0}),
    "a name in an input": call({"k" * 1100 * KIB: 1}),
    "numbers": call({"n": list(range(300_000))}),
    "thousands of short texts": call({"n": [f"text {n} of many" for n in range(90_000)]}),
}


@pytest.mark.parametrize("name", LARGE)
def test_every_line_is_short_and_every_entry_comes_back(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), LARGE[name], said("next")])
    assert all(len(line) <= LONGEST for line in path.read_bytes().splitlines(keepends=True))
    assert list((tmp_path / "s1.blobs").iterdir())
    assert [record.entry for record in read_entries(str(path))] == [
        start(),
        LARGE[name],
        said("next"),
    ]


def test_what_fits_stays_in_its_record(tmp_path: Path) -> None:
    write(tmp_path / "s1.jsonl", [start(), said("x" * 64 * KIB)])
    assert not (tmp_path / "s1.blobs").exists()


def test_the_record_names_the_place_of_its_text() -> None:
    held: dict[str, bytes] = {}

    def put(data: bytes) -> str:
        name = digest(data.decode())
        held[name] = data
        return name

    text = "z" * 65 * KIB
    line = encode_record(said(text), seq=1, id="e1", parent="", at="", put=put)
    assert b'"blobs":{"/content/0/text":"%b"}' % digest(text).encode() in line
    assert b'"text":""' in line
    assert decode_record(line, held.__getitem__).entry == said(text)
    assert decode_record(line).entry == said("")


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_lost_text_stops_the_load_at_its_line(tmp_path: Path, harm: str) -> None:
    path = write(tmp_path / "s1.jsonl", [start(), said("x" * 70 * KIB), said("y")])
    (blob,) = (tmp_path / "s1.blobs").iterdir()
    blob.unlink()
    if harm == "damaged":
        blob.write_bytes(b"x" * 70 * KIB + b"!")
    with pytest.raises(SessionCorrupt, match=blob.name) as caught:
        load(str(path))
    assert caught.value.line == 2


def test_going_on_with_a_spilled_session_gives_the_same_state(tmp_path: Path) -> None:
    entries = every_kind("words " * 12_000)
    whole = load(str(write(tmp_path / "whole.jsonl", entries))).state
    path = write(tmp_path / "s1.jsonl", entries[:15])
    journal, _ = FileJournal.continue_from(str(path), now=now, disk=SystemDisk())
    for entry in entries[15:]:
        journal.append(entry)
    journal.close()
    assert load(str(path)).state == whole


def test_the_list_shows_a_spilled_prompt(tmp_path: Path) -> None:
    path = Path(session_path(str(tmp_path), "/w", "s1"))
    write(path, [start(), said("look at this: " + "x" * 70 * KIB)])
    (listed,) = list_sessions(str(tmp_path), "/w")
    assert listed.title.startswith("look at this: xxx")
    assert not listed.problem


json = st.recursive(
    st.none() | st.integers() | st.text(max_size=300) | st.just("long " * 40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("a/~1", max_size=3), inner),
    max_leaves=20,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text("a/~", max_size=3), json), st.integers(10, 5000))
def test_whatever_is_taken_out_goes_back(fields: dict[str, Any], room: int) -> None:
    body = msgspec.json.encode({"kind": "k", **fields})
    left, texts = spill(body, longest=100, room=room)
    assert msgspec.json.decode(fill(left, texts)) == msgspec.json.decode(body)
    assert msgspec.json.decode(left)["kind"] == "k"
    assert len(left) <= room or left == b'{"kind":"k"}'
