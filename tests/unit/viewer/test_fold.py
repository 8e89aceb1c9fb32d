"""What the page is told of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.sessions.blobs import blobs_dir, read_blob
from claw.sessions.load import read_entries
from claw.sessions.record import Record
from claw.types.entries import (
    Digests,
    Entry,
    KnownEntry,
    ReplyReceived,
    Retried,
    Rewound,
    StepRequested,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UnknownEntry,
    UserMessaged,
)
from claw.types.messages import Text, ToolUse
from claw.types.usage import Usage
from claw.viewer.fold import fold
from claw.viewer.page import page
from claw.viewer.story import Call, Note, Said, Session, Step, Turn
from claw.viewer.texts import LONGEST, MOST, SHORT
from tests.viewing import folded


def told(entries: Sequence[Entry], **others: Any) -> Session:
    """Folded, one second after another."""
    records = [
        Record(n, f"e{n}", "", f"2026-01-01T00:{n // 60:02}:{n % 60:02}.000Z", entry)
        for n, entry in enumerate(entries, 1)
    ]
    ports: dict[str, Any] = {"clean": str, "blob": lambda d: None, "price": lambda u, m: None}
    return fold(records, **{**ports, **others})


def asks(step: int, attempt: int = 1) -> StepRequested:
    return StepRequested(step, "m", attempt, Digests("", "", "", ""))


def replies(step: int, *blocks: Any, complete: bool = True) -> Entry:
    return ReplyReceived(step, blocks, "end_turn", Usage(10, 5), complete, "m")


def turn(number: int, *inside: Entry, cost: float | None = None) -> list[Entry]:
    end = TurnEnded(number, "completed", 1, Usage(10, 5), cost)
    return [TurnStarted(number), UserMessaged((Text(f"ask {number}"),)), *inside, end]


def the_call(session: Session) -> Call:
    (call,) = session.calls
    return call


# -- real sessions -------------------------------------------------------------------------


def test_all_that_happened_is_told(all_kinds: str) -> None:
    session = folded(all_kinds)
    assert session.title == "The lock that leaked"
    assert [t.stop_reason for t in session.turns] == [
        "completed",
        "interrupted",
        *["completed"] * 5,
    ]
    assert [t.left_out for t in session.turns] == [False, False, False, True, False, False, False]
    first = session.turns[0]
    assert [call.name for call in session.calls][:5] == [
        "Grep",
        "Read",
        "Read",
        "Edit",
        "TodoWrite",
    ]
    edit = next(call for call in session.calls if call.name == "Edit")
    assert edit.change is not None
    assert "-    lock.acquire()" in edit.change.text
    assert "@@" not in edit.result.text
    lines = [trace.title for trace in edit.traces]
    assert any("a person was asked and said: yes" in line for line in lines)
    assert any("PostToolUse hook `echo formatted`: passed" in line for line in lines)
    assert [c.status for c in session.calls if c.name in ("Write", "Bash")] == [
        "ok", "error", "denied", "denied",
    ]  # fmt: skip
    places: list[Session | Turn | Step] = [session, *session.turns, *session.steps]
    notes = [item for place in places for item in place.items if isinstance(item, Note)]
    assert {note.kind for note in notes} >= {
        *("prompt", "retry", "interrupt", "compaction", "rewind", "change", "fork")
    }
    summary = next(note for note in notes if note.kind == "compaction")
    assert dict(summary.details)["summary"].text
    again = [item for item in first.steps[1].items if isinstance(item, Said) and item.taken_back]
    assert [said.body.text for said in again] == ["The lock is ta"]
    assert any(item.pictures for t in session.turns for item in t.items if isinstance(item, Said))
    spent = sum(point.cost or 0 for point in session.points)
    assert spent == pytest.approx(sum(t.cost or 0 for t in session.turns))
    assert page(session) == page(folded(all_kinds))


SECRET = 'tr"ou<t>\n& fish-42'


def planted(value: Any, fits: Callable[[Any], bool]) -> Any:
    """The same with the secret in every text, value or key, that may have it."""
    match value:
        case str():
            return value + SECRET if fits(value + SECRET) else value
        case list() | tuple():
            out = list(value)

            def at(n: int) -> Callable[[Any], bool]:
                return lambda new: fits([*out[:n], new, *out[n + 1 :]])

            for n, item in enumerate(value):
                out[n] = planted(item, at(n))
            return out
        case dict():
            made = dict(value)

            def under(key: str) -> Callable[[Any], bool]:
                return lambda new: fits({**made, key: new})

            for key, item in value.items():
                made[key] = planted(item, under(key))
                if key not in ("type", "kind") and fits({**made, key + SECRET: made[key]}):
                    made[key + SECRET] = made[key]
            return made
        case _:
            return value


def decodes(value: Any) -> bool:
    try:
        msgspec.convert(value, KnownEntry)
    except msgspec.ValidationError:
        return False
    return True


def test_a_secret_in_any_text_of_any_entry_is_not_on_the_page(all_kinds: str) -> None:
    records = []
    for record in read_entries(all_kinds):
        assert not isinstance(record.entry, UnknownEntry)
        entry = msgspec.convert(planted(msgspec.to_builtins(record.entry), decodes), KnownEntry)
        records.append(msgspec.structs.replace(record, entry=entry))
    raw = b'{"kind":"k","x":"fish-42"}'.replace(b"fish-42", msgspec.json.encode(SECRET)[1:-1])
    records.append(Record(999, "e999", "", "", UnknownEntry(f"k{SECRET}", raw)))

    def blob(digest: str) -> bytes:
        data = read_blob(blobs_dir(all_kinds), digest.removesuffix(SECRET))
        return data if data.startswith(b"\x89PNG") else data + SECRET.encode()

    def fold_with(clean: Callable[[str], str]) -> str:
        return page(fold(records, clean=clean, blob=blob, price=lambda usage, model: 0.1))

    assert fold_with(str).count("fish-42") > 100
    cleaned = fold_with(lambda text: text.replace(SECRET, "[redacted]"))
    assert cleaned.count("[redacted]") > 100
    assert "fish-42" not in cleaned


# -- single facts --------------------------------------------------------------------------


def test_a_call_that_the_session_ended_in() -> None:
    use = ToolUse("c", "Bash", {"command": "make"})
    begun = told([TurnStarted(1), asks(1), replies(1, use), ToolIntended("c", "Bash")])
    assert (the_call(begun).begun, the_call(begun).status) == (True, None)
    assert begun.turns[0].stop_reason == ""
    assert "outcome unknown" in page(begun)
    assert "not run" in page(told([TurnStarted(1), asks(1), replies(1, use)]))


def test_an_input_that_was_changed_shows_both() -> None:
    use = ToolUse("c", "Bash", {"command": "rm x"})
    intended = ToolIntended("c", "Bash", input={"command": "rm -i x"})
    call = the_call(told(turn(1, asks(1), replies(1, use), intended)))
    assert call.about == "rm -i x"
    assert call.asked is not None
    assert "rm x" in call.asked.text


def test_a_long_result_comes_from_its_blob_up_to_a_limit() -> None:
    whole = "x" * LONGEST + "THE END"
    done = ToolFinished("c", (Text("clipped"),), "ok", spilled="d")
    entries = turn(1, asks(1), replies(1, ToolUse("c", "Bash", {})), done)
    session = told(entries, blob=lambda digest: whole.encode())
    call = the_call(session)
    assert (len(call.result.text), call.result.left_out) == (LONGEST, len("THE END"))
    assert f"… {len('THE END')} more characters" in page(session)
    assert the_call(told(entries)).result.text == "clipped"


def test_a_page_has_an_end() -> None:
    many = MOST // LONGEST + 3
    said = [replies(n, Text("x" * LONGEST)) for n in range(many)]
    session = told([TurnStarted(1), *(e for n, r in enumerate(said) for e in (asks(n), r))])
    lengths = [len(i.body.text) for s in session.steps for i in s.items if isinstance(i, Said)]
    assert lengths[0] == LONGEST
    assert lengths[-1] == SHORT


def test_rewinds_and_their_undoing() -> None:
    entries = [*turn(1), *turn(2), *turn(3)]  # 3 entries each
    back = [t.left_out for t in told([*entries, Rewound(3)]).turns]
    assert back == [False, True, True]
    undone = told([*entries, Rewound(3), Rewound(9)])
    assert [t.left_out for t in undone.turns] == [False, False, False]
    then = told([*entries, Rewound(3), *turn(4), Rewound(10)])
    assert [t.left_out for t in then.turns] == [False, True, True, True]


def test_a_step_that_was_tried_again_is_one_step() -> None:
    cut = replies(1, Text("ha"), complete=False)
    whole = replies(1, Text("whole"))
    entries = turn(1, asks(1), cut, Retried(1, 1, "cut", 0.5), asks(1, 2), whole)
    (step,) = told(entries).steps
    texts = [(i.body.text, i.taken_back) for i in step.items if isinstance(i, Said)]
    assert texts == [("ha", True), ("whole", False)]
    assert step.usage == Usage(20, 10)


def test_costs_are_the_turns_own() -> None:
    inside = (asks(1), replies(1), asks(2), replies(2))
    known = told(turn(1, *inside, cost=0.7), price=lambda usage, model: 0.25)
    assert [point.cost for point in known.points] == [0.25, pytest.approx(0.45)]
    unknown = told(turn(1, *inside), price=lambda usage, model: 0.25)
    assert [point.cost for point in unknown.points] == [None, None]
    assert "unknown" in page(unknown)


def test_numbers_that_occur_twice_get_names_of_their_own() -> None:
    session = told([*turn(1, asks(1)), *turn(1, asks(1), asks(2), asks(1))])
    anchors = [t.anchor for t in session.turns] + [s.anchor for s in session.steps]
    assert len(set(anchors)) == len(anchors) == 6
    assert page(session).count('id="turn-1"') == 1


KINDS = [
    *turn(1, asks(1), replies(1, Text("a"), ToolUse("c", "Edit", {"old_string": 1}))),
    *(ToolIntended("c", "Edit"), ToolFinished("c", (), "ok"), ToolFinished("no", (), "error")),
    *(Rewound(-5), Rewound(2), Rewound(99), Retried(7, 1, "e", -1.0)),
    UnknownEntry("new", b"\xff{"),
]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(KINDS), max_size=12))
def test_any_entries_in_any_order_make_a_page(entries: list[Entry]) -> None:
    assert page(told(entries)).endswith("</html>\n")


def test_an_empty_session_says_so() -> None:
    assert "Nothing was said" in page(told([]))
