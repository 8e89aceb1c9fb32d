"""What a journal file may look like, and what loading makes of it."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from claw.errors import SessionCorrupt, SessionNotFound, SessionTooNew
from claw.sessions.load import load, read_entries
from claw.sessions.record import encode_record
from claw.types.entries import (
    Entry,
    ReplyReceived,
    SessionStarted,
    Titled,
    UnknownEntry,
    UserMessaged,
)
from claw.types.messages import Text, ToolUse
from claw.types.usage import Usage

AT = "2026-11-30T14:20:00.000Z"
START = SessionStarted("s1", "0", "/w", AT, schema=1)
U = Usage()


def line(entry: Entry, seq: int) -> bytes:
    return encode_record(
        entry, seq=seq, id=f"e{seq}", parent=f"e{seq - 1}" if seq > 1 else "", at=AT
    )


def sealed(rest: bytes) -> bytes:
    return b'{"crc":"%08x",%b\n' % (zlib.crc32(rest), rest)


THREE = [line(START, 1), line(UserMessaged((Text("hello"),)), 2), line(Titled("t"), 3)]


def journal(tmp_path: Path, *lines: bytes) -> str:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"".join(lines))
    return str(path)


def test_the_line_format_is_fixed() -> None:
    rest = b'"v":1,"seq":3,"id":"e3","parent":"e2","at":"%b","kind":"titled","title":"t"}' % (
        AT.encode()
    )
    assert THREE[2] == sealed(rest)


def test_zeros_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    loaded = load(
        journal(tmp_path, b"\n", THREE[0], b"\0\0\0\n", b"\0\0" + THREE[1], b" \r\n", THREE[2])
    )
    assert (loaded.records, loaded.torn, loaded.notes) == (3, 0, ())
    assert loaded.state.title == "t"


def test_records_that_lost_the_newline_between_them_are_read(tmp_path: Path) -> None:
    nested = line(ReplyReceived(1, (ToolUse("a", "X", {"c": {"crc": "1"}}),), "", U, True, "m"), 2)
    glued = b" \0".join(whole.removesuffix(b"\n") for whole in (THREE[0], nested, THREE[2]))
    loaded = load(journal(tmp_path, glued + b"\n"))
    assert (loaded.records, loaded.torn, loaded.notes) == (3, 0, ())
    assert loaded.state.title == "t"


def test_garbage_between_records_is_damage(tmp_path: Path) -> None:
    with pytest.raises(SessionCorrupt) as caught:
        load(journal(tmp_path, THREE[0][:-1] + b"*" + THREE[1], THREE[2]))
    assert caught.value.line == 1


@pytest.mark.parametrize("after", [b"", b"\0\0", b"*", THREE[2][:50]])
def test_a_whole_last_record_counts_without_its_newline(tmp_path: Path, after: bytes) -> None:
    loaded = load(journal(tmp_path, THREE[0], THREE[1][:-1] + after))
    assert (loaded.records, loaded.torn, loaded.ended) == (2, len(after), False)
    assert bool(loaded.notes) is bool(after)


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    loaded = load(journal(tmp_path, *THREE, b"\0" * 100))
    assert (loaded.records, loaded.torn) == (3, 100)


@pytest.mark.parametrize("middle", [b"{}\n", b"garbage\n", THREE[1][:-9] + b"\n", b"\xff\n"])
def test_damage_in_the_middle_stops_the_load_at_its_line(tmp_path: Path, middle: bytes) -> None:
    path = journal(tmp_path, THREE[0], middle, THREE[2])
    with pytest.raises(SessionCorrupt) as caught:
        load(path)
    assert caught.value.line == 2
    assert f"claw sessions verify {path} --salvage" in caught.value.hint


def test_damage_with_a_newline_at_the_end_is_no_torn_tail(tmp_path: Path) -> None:
    with pytest.raises(SessionCorrupt):
        load(journal(tmp_path, *THREE[:2], THREE[2].replace(b"titled", b"tilted")))


def test_a_repeated_record_is_damage(tmp_path: Path) -> None:
    with pytest.raises(SessionCorrupt, match="stands after"):
        load(journal(tmp_path, *THREE, THREE[1]))


def test_a_missing_record_is_reported(tmp_path: Path) -> None:
    loaded = load(journal(tmp_path, THREE[0], THREE[2]))
    assert loaded.records == 2
    assert loaded.last_seq == 3
    assert "missing before line 2" in loaded.notes[0]


def test_kinds_and_fields_of_a_later_claw_are_kept_and_ignored(tmp_path: Path) -> None:
    unknown = sealed(b'"v":1,"seq":2,"id":"e2","parent":"e1","at":"x","kind":"dreamt","of":[1]}')
    extra = sealed(
        b'"v":1,"seq":3,"id":"e3","parent":"e2","at":"x","new":1,"kind":"titled","title":"t","z":2}'
    )
    path = journal(tmp_path, THREE[0], unknown, extra)
    assert load(path).state.title == "t"
    assert [r.entry for r in read_entries(path)][1:] == [
        UnknownEntry("dreamt", unknown.removesuffix(b"\n")),
        Titled("t"),
    ]


@pytest.mark.parametrize(
    "rest",
    [
        b'"v":2,"seq":1,"kind":"titled","title":"t"}',
        b'"v":1,"seq":1,"kind":"titled","title":{"rich":"t"}}',
        b'"v":1,"seq":1,"kind":"session_started","session_id":"s","claw_version":"9","cwd":"/",'
        b'"created":"","schema":2}',
    ],
)
def test_what_only_a_newer_claw_can_read_is_said_to_be_so(tmp_path: Path, rest: bytes) -> None:
    with pytest.raises(SessionTooNew) as caught:
        load(journal(tmp_path, sealed(rest)))
    assert "Update claw" in caught.value.hint


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        load(str(tmp_path / "none.jsonl"))
