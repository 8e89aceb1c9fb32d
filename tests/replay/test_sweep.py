"""Whatever is changed in a recording, under valid checksums, the replay says so."""

from __future__ import annotations

import asyncio
import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from claw.engine.replaying import replay
from claw.errors import SessionError
from tests.replay.rich import rich

pytestmark = pytest.mark.no_replay("the recordings were changed")

Place = tuple[str | int, ...]
COMMON = {"crc", "v", "seq", "id", "parent", "at"}
"""Where and when a line stands: of the journal, not of the session. The checksum is made anew."""

NOT_COMPARED = {
    ("session_started", "session_id"): "a name",
    ("session_started", "claw_version"): "of the claw that wrote it",
    ("session_started", "cwd"): "a place on another machine",
    ("session_started", "created"): "a time",
    ("hook_finished", "ms"): "a duration",
    ("tool_finished", "ms"): "a duration",
    ("turn_ended", "ms"): "a duration",
}
"""The same, whatever stands there."""

BETWEEN_TURNS = {
    ("compacted", "cost"): "what a summary cost",
    ("compacted", "removed_messages"): "told to people",
    ("compacted", "tokens_before"): "told to people",
    ("compacted", "tokens_after"): "an estimate for the next compaction",
    ("hook_finished", "hook"): "a PreCompact hook",
    ("hook_finished", "outcome"): "a PreCompact hook",
    ("hook_finished", "messages"): "a PreCompact hook",
    ("hook_finished", "exit_code"): "a PreCompact hook",
    ("hook_finished", "merged"): "a PreCompact hook",
    ("hook_finished", "kind"): "a PreCompact hook",
    ("rewound", "to"): "another place with the same conversation",
    ("rewound", "files"): "told to people",
    ("titled", "title"): "repeated by the next turn",
}
"""Between the turns entries are taken as they stand; what a request shows of them is compared."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(rich(tmp_path_factory.mktemp("rich")))


@pytest.fixture
def copy(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded.parent, tmp_path / "copy")
    return tmp_path / "copy" / recorded.name


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write(path: Path, entries: list[dict[str, Any]], *, renumbered: bool = False) -> None:
    lines = b""
    for number, entry in enumerate(entries, 1):
        fields = {key: value for key, value in entry.items() if key != "crc"}
        fields |= {"seq": number} if renumbered else {}
        rest = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()[1:]
        lines += b'{"crc":"%08x",%b\n' % (zlib.crc32(rest), rest)
    path.write_bytes(lines)


def leaves(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from leaves(item, (*at, key))
    else:
        yield at, value


def other(value: Any) -> Any:
    """The same with one character changed; another truth, another number."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() if value:
            return value[:-1] + ("x" if value[-1] != "x" else "y")
        case _:
            return "x"


def with_other(entry: dict[str, Any], at: Place) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(entry))
    holder: Any = changed
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = other(holder[at[-1]])
    return changed


def outcome(path: Path) -> str:
    """``same``, ``ended early``, ``error``, or the first difference."""
    try:
        report = replay(path)
    except SessionError:
        return "error"
    if report.differences:
        first = report.differences[0]
        assert first.turn >= 0
        assert first.entry
        assert first.field
        assert first.expected != first.actual
        return str(first)
    return "ended early" if report.ended_early else "same"


def in_turns(entries: list[dict[str, Any]]) -> list[bool]:
    """Of each entry, whether a turn runs then."""
    found, running = [], False
    for entry in entries:
        running = running or entry["kind"] == "turn_started"
        found.append(running)
        running = running and entry["kind"] != "turn_ended"
    return found


def is_excused(entry: dict[str, Any], at: Place, *, in_turn: bool) -> bool:
    field = entry["kind"], str(at[0])
    return field in NOT_COMPARED or (not in_turn and field in BETWEEN_TURNS)


def test_the_recording_itself_is_the_same(copy: Path):
    before = read(copy)
    assert outcome(copy) == "same"
    write(copy, before)
    assert outcome(copy) == "same"
    assert len({entry["kind"] for entry in before}) >= 20


def test_every_value_of_every_entry_counts(copy: Path):
    entries = read(copy)
    silent, used = [], set()
    for number, (entry, in_turn) in enumerate(zip(entries, in_turns(entries), strict=True)):
        for at, _ in leaves(entry):
            if at[0] in COMMON:
                continue
            changed = with_other(entry, at)
            write(copy, [*entries[:number], changed, *entries[number + 1 :]])
            found = outcome(copy)
            if found == "ended early":
                assert (entry["kind"], at) == ("turn_ended", ("kind",))
            elif found == "same":
                used.add((entry["kind"], str(at[0])))
                if not is_excused(entry, at, in_turn=in_turn):
                    silent.append((number, entry["kind"], at))
    assert silent == []
    assert {key for key in NOT_COMPARED if key[1] != "ms"} <= used


@pytest.mark.parametrize(
    ("kind", "field", "found"),
    [
        ("user_message", "text", "turn 1, step 1: step_requested.messages[0]"),
        ("tool_finished", "text", "turn 1, step 1: tool_finished.content[0].text"),
        ("decision_made", "reason", "turn 1, step 3: turn_ended.digest"),
        ("retried", "error", "turn 1, step 1: retried.error"),
        ("tool_intended", "name", "turn 1, step 1: tool_intended.name"),
        ("step_requested", "system", "turn 1, step 1: step_requested.digests.system"),
    ],
)
def test_the_first_difference_is_named(copy: Path, kind: str, field: str, found: str):
    entries = read(copy)
    number, entry = next((n, e) for n, e in enumerate(entries) if e["kind"] == kind)
    at = next(at for at, _ in leaves(entry) if at[-1] == field)
    write(copy, [*entries[:number], with_other(entry, at), *entries[number + 1 :]])
    assert outcome(copy) == found


Lines = list[dict[str, Any]]


def removed(lines: Lines, at: int) -> Lines:
    return [*lines[:at], *lines[at + 1 :]]


def twice(lines: Lines, at: int) -> Lines:
    return [*lines[: at + 1], *lines[at:]]


def swapped(lines: Lines, at: int) -> Lines:
    return [*lines[:at], *reversed(lines[at : at + 2]), *lines[at + 2 :]]


STANDS = {
    "removed": {"hook_finished"},
    "twice": {"prompt_installed", "mode_changed", "rewound"},
    "swapped": {"hook_finished", "prompt_installed", "mode_changed"},
}
"""Between the turns: a hook that said nothing, an order that does not matter, the same again."""
ENDS = {"removed": {"turn_ended"}, "twice": {"turn_started"}, "swapped": {"turn_ended"}}
"""A turn that has lost its end: the recording ends there, and that is said."""


@pytest.mark.parametrize("change", [removed, twice, swapped])
def test_every_entry_has_its_place(copy: Path, change: Callable[[Lines, int], Lines]):
    entries = read(copy)
    running = in_turns(entries)
    silent = []
    for at, entry in enumerate(entries[:-1]):
        write(copy, change(entries, at), renumbered=True)
        found = outcome(copy)
        name = change.__name__
        if found == "ended early":
            assert entry["kind"] in ENDS[name]
        elif found == "same" and (running[at] or entry["kind"] not in STANDS[name]):
            silent.append((at, entry["kind"]))
    assert silent == []


@pytest.mark.parametrize("change", [removed, twice, swapped])
def test_a_line_that_is_not_in_its_place_is_told(copy: Path, change: Callable[[Lines, int], Lines]):
    entries = read(copy)
    for at in range(len(entries) - 1):
        write(copy, change(entries, at))
        found = outcome(copy)
        assert found != "same"
        assert found == "error" or change is removed


@pytest.mark.parametrize("between", [False, True])
def test_one_more_user_message_is_a_difference(copy: Path, between: bool):
    entries = read(copy)
    said = next(entry for entry in entries if entry["kind"] == "user_message")
    for at, in_turn in enumerate(in_turns(entries)):
        if at and in_turn != between:
            write(copy, [*entries[:at], said, *entries[at:]], renumbered=True)
            assert outcome(copy).startswith("turn ")


def test_entries_of_a_later_claw_are_passed_over(copy: Path):
    entries = read(copy)
    later = {**entries[0], "kind": "foreseen", "with": {"more": [1, None]}}
    for at in range(1, len(entries) + 1):
        rest = [{**e, "to": e["to"] + (e["to"] > at)} if "to" in e else e for e in entries[at:]]
        write(copy, [*entries[:at], later, *rest], renumbered=True)
        assert outcome(copy) == "same"


def test_a_recording_of_an_earlier_claw_has_no_digests(copy: Path):
    entries = read(copy)
    assert [entry.pop("digest") for entry in entries if entry["kind"] == "turn_ended"]
    write(copy, entries)
    assert outcome(copy) == "same"
