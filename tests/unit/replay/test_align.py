"""A recording beside its replay: what belongs together stands together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw.engine.replaying import Live, replay_session
from claw.recordings.align import Pair, pairs
from claw.recordings.verify import Played, Replayed
from claw.sessions.load import read_entries
from claw.types.entries import (
    DecisionMade,
    Digests,
    Entry,
    HookFinished,
    KnownEntry,
    PromptInstalled,
    ReplyReceived,
    StepRequested,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import Text, ToolUse
from claw.types.usage import Usage
from tests.comparing import judged, new_instructions, new_rule, nothing
from tests.replay.recordings import changed

DIGESTS = Digests("", "", "", "")
REPLY = ReplyReceived(1, (ToolUse("a", "Read", {}),), "tool_use", Usage(), True, "m")
HOOK = HookFinished("PreToolUse", "h", "passed", "a")
DECIDED = DecisionMade("a", "allow", "", "mode:default")
FINISHED = ToolFinished("a", (Text("one"),), "ok", ms=5)
ENDED = TurnEnded(1, "completed", 1, Usage())
TURN: list[KnownEntry] = [
    TurnStarted(1),
    UserMessaged((Text("go"),)),
    StepRequested(1, "m", 1, DIGESTS),
    REPLY,
    HOOK,
    DECIDED,
    FINISHED,
    ENDED,
]


def aligned(made: Sequence[KnownEntry] | None, stopped: bool = False) -> list[Pair]:
    turn = Played((), tuple(TURN), None if made is None else tuple(made), stopped)
    return pairs(Replayed("s", 1, 1, played=(turn,)))


def kinds(found: Sequence[Pair]) -> list[str]:
    """What is not the same: the side on which alone it stands, or its fields."""
    told = []
    for pair in found:
        only = "-" if pair.made is None else "+" if pair.recorded is None else ""
        entry = pair.recorded or pair.made
        assert entry is not None
        if not pair.reached:
            told.append(f"?{type(entry).__name__}")
        elif not pair.same:
            told.append(f"{only}{type(entry).__name__}{[name for name, _, _ in pair.fields]}")
    return told


def without(entry: KnownEntry) -> list[KnownEntry]:
    return [each for each in TURN if each is not entry]


def test_durations_do_not_count():
    made = [replace(FINISHED, ms=9) if each is FINISHED else each for each in TURN]
    assert kinds(aligned(made)) == []


def test_every_field_that_differs_is_named():
    other = replace(DECIDED, decision="deny", source="rule")
    made = [other if each is DECIDED else each for each in TURN]
    assert kinds(aligned(made)) == ["DecisionMade['decision', 'source']"]


def test_what_is_on_one_side_only_moves_nothing_else():
    assert kinds(aligned(without(HOOK))) == ["-HookFinished[]"]
    again = replace(HOOK, call_id="b")
    made = [*TURN[:5], again, *TURN[5:]]
    assert kinds(aligned(made)) == ["+HookFinished[]"]


def test_steps_are_told_by_their_numbers():
    more = StepRequested(2, "m", 1, DIGESTS)
    found = aligned([*TURN[:-1], more, replace(REPLY, step=2), ENDED])
    assert kinds(found) == ["+StepRequested[]", "+ReplyReceived[]"]
    assert [pair.step for pair in found if not pair.same] == [2, 2]


def test_nothing_is_told_of_what_comes_after_a_stop():
    other = replace(DECIDED, decision="deny")
    found = aligned([*TURN[:5], other], stopped=True)
    assert kinds(found) == ["DecisionMade['decision']", "?ToolFinished", "?TurnEnded"]
    found = aligned([*TURN[:4], DECIDED], stopped=True)
    assert kinds(found) == ["-HookFinished[]", "?ToolFinished", "?TurnEnded"]
    found = aligned([*TURN[:4], replace(FINISHED, call_id="b")], stopped=True)
    assert kinds(found)[:2] == ["-HookFinished[]", "+ToolFinished[]"]
    assert kinds(found)[2:] == ["?DecisionMade", "?ToolFinished", "?TurnEnded"]


def test_what_was_not_made_at_the_end_differs():
    assert kinds(aligned(TURN[:-1], stopped=True)) == ["-TurnEnded[]"]
    assert kinds(aligned(TURN[:-2], stopped=True)) == ["-ToolFinished[]", "?TurnEnded"]


def test_a_turn_that_was_not_replayed_differs_in_nothing():
    assert {each[0] for each in kinds(aligned(None))} == {"?"}
    assert len(aligned(None)) == len(TURN)


async def test_a_replay_that_is_the_same_has_only_pairs_that_are(tmp_path: Path):
    path, report = await judged(tmp_path, change=nothing)
    assert report.same
    assert all(pair.same for pair in pairs(report))
    recorded = [record.entry for record in read_entries(path)]
    assert [pair.recorded for pair in pairs(report)] == recorded


@pytest.mark.no_replay("the recording was changed")
@pytest.mark.parametrize("goes_on", [False, True])
async def test_the_first_pair_that_differs_is_the_first_difference(tmp_path: Path, goes_on: bool):
    path, _ = await judged(tmp_path, change=nothing)
    before = Path(path).read_bytes()
    entries = [record.entry for record in read_entries(path)]
    for at, kind in enumerate(entries):
        if _spoiled(kind) is kind:
            continue
        Path(path).write_bytes(before)
        changed(Path(path), _spoiler(at))
        report = await replay_session(path, Live(goes_on=goes_on))
        differing = [pair for pair in pairs(report) if pair.reached and not pair.same]
        assert bool(differing) != report.same, kind
        if differing:
            first = report.differences[0]
            assert (differing[0].turn, differing[0].step) == (first.turn, first.step)
            fields = [name for name, _, _ in differing[0].fields] or ["kind"]
            found = "digests.messages" if first.field.startswith("messages[") else first.field
            assert fields[0] == found, kind


def _spoiler(at: int) -> Callable[[Entry], Entry]:
    places = itertools.count()
    return lambda entry: _spoiled(entry) if next(places) == at else entry


def _spoiled(entry: Entry) -> Entry:
    match entry:
        case DecisionMade():
            return replace(entry, reason="another")
        case ToolFinished() | UserMessaged():
            return replace(entry, content=(Text("another"),))
        case TurnEnded():
            return replace(entry, iterations=99)
        case _:
            return entry


async def test_the_system_prompt_of_today_stands_beside_the_recorded_one(tmp_path: Path):
    _, report = await judged(tmp_path, "prompt", change=new_instructions, goes_on=False)
    first, *rest = [pair for pair in pairs(report) if not pair.same]
    assert isinstance(first.recorded, PromptInstalled)
    ((name, old, new),) = first.fields
    assert name == "system"
    assert "Be kind, and be brief." in old
    assert old.replace("Be kind, and be brief.", "Be kind, but be thorough.\n\nNever push.") == new
    assert rest
    assert not any(pair.reached for pair in rest)


async def test_parts_of_today_make_pairs_that_differ(tmp_path: Path):
    _, report = await judged(tmp_path, "policy", change=new_rule)
    found = [pair for pair in pairs(report) if not pair.same]
    assert {pair.turn for pair in found} == {2}
    assert isinstance(found[0].made, DecisionMade)
    assert found[0].made.decision == "deny"
