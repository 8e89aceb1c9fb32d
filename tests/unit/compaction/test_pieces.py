"""The pure parts: when, where to cut, what to leave out, and what notes say."""

from __future__ import annotations

import pytest

from claw.compaction.cut import cut_keeping, removed_by, round_starts
from claw.compaction.digest import digest
from claw.compaction.notes import Notes, fit_requests, parse, render
from claw.compaction.prune import stubs
from claw.compaction.trigger import Policy, is_due, limit_of, look_at, may_be_due
from claw.models.estimate import estimate_request, estimate_tokens
from claw.types.messages import AssistantMessage, Image, Text, ToolUse
from claw.types.request import Request, Sampling
from claw.types.session import SessionState
from claw.types.tools import ToolSpec
from claw.types.transcript import Transcript
from claw.types.usage import Usage
from tests.unit.compaction.building import a_turn, asks, read, step

SPEC = ToolSpec("Read", "Reads a file.", {"type": "object"})


# -- when ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "window", "limit"),
    [
        (0.8, 200_000, 134_400),  # of what is left beside 32,000 for the answer
        (80, 200_000, 134_400),
        (50_000, 200_000, 50_000),
        (500_000, 200_000, 168_000),
        (50_000, None, 50_000),
        (0.8, None, None),
        (1, 8_000, 6_000),  # at most a fourth of the window is reserved
    ],
)
def test_the_limit(threshold: float, window: int | None, limit: int | None) -> None:
    assert limit_of(Policy(threshold=threshold), window) == limit


def looked(state: SessionState, added: str, *, window: int | None = None, system: str = "s"):
    transcript = state.transcript.user(asks(added)) if added else state.transcript
    request = Request(system, transcript.messages, (SPEC,), Sampling("m"))
    return look_at(request, state, window, Policy(), estimate_request), request


def reported(usage: Usage, text: str = "a question") -> SessionState:
    transcript = Transcript().user(asks(text)).assistant(AssistantMessage((Text("an answer"),)))
    return SessionState(transcript=transcript, context=usage, measured=2)


def test_what_was_added_since_the_report_is_counted() -> None:
    look, _ = looked(reported(Usage(60_000)), "word " * 48_000)
    assert look.live > 110_000


def test_a_report_larger_than_the_window_is_not_believed() -> None:
    look, _ = looked(reported(Usage(300_000)), "", window=200_000)
    assert look.live < 1_000


def test_without_a_report_all_is_estimated() -> None:
    look, _ = looked(reported(Usage()), "", system="word " * 4_000)
    assert look.live >= look.fixed > 4_000


def test_estimates_are_scaled_by_the_last_report_within_reason() -> None:
    text = "word " * 4_000  # 5,000 tokens by estimate
    assert 1.4 < looked(reported(Usage(7_500), text), "")[0].scale < 1.6
    assert looked(reported(Usage(500_000), text), "")[0].scale == 2.0
    assert looked(reported(Usage(10), text), "")[0].scale == 0.5


def test_a_cheap_look_is_enough_while_there_is_room() -> None:
    state = reported(Usage(1_000))
    _, request = looked(state, "short")
    assert not may_be_due(request, state, None, 50_000, estimate_request)
    assert may_be_due(request, reported(Usage(49_999)), None, 50_000, estimate_request)


def test_one_crossing_is_one_compaction() -> None:
    look, _ = looked(reported(Usage(60_000)), "")
    assert is_due(look, SessionState(), 50_000)
    assert not is_due(look, SessionState(floor=Usage(58_000)), 50_000)
    assert is_due(look, SessionState(floor=Usage(20_000)), 50_000)


# -- where -----------------------------------------------------------------------------


def a_session() -> Transcript:
    """Question and answer; a turn of two steps; a running turn of one."""
    transcript = Transcript().user(asks("one")).assistant(AssistantMessage((Text("first"),)))
    transcript = step(transcript.user(asks("two")), read(1), "r1")
    transcript = step(transcript, read(2), "r2").assistant(AssistantMessage((Text("second"),)))
    return step(transcript.user(asks("three")), read(3), "r3")


def test_rounds() -> None:
    transcript = a_session()
    starts = round_starts(transcript)
    assert starts == [0, 2, 5, 7, 9]
    assert [cut_keeping(transcript, keep) for keep in range(7)] == [11, 9, 7, 5, 2, 0, 0]


def test_the_request_is_never_among_what_goes() -> None:
    transcript = a_session()
    gone = removed_by(transcript, cut_keeping(transcript, 0))
    assert asks("three") not in gone
    assert asks("one") in gone
    assert len(gone) == 10


def test_a_request_that_nothing_followed_stays_where_it_is() -> None:
    transcript = a_session().assistant(AssistantMessage((Text("third"),))).user(asks("four"))
    assert cut_keeping(transcript, 0) == len(transcript.closed) - 1


# -- what to leave out -----------------------------------------------------------------


def kinds(transcript: Transcript, before: int | None = None) -> list[tuple[str, str]]:
    end = len(transcript.closed) if before is None else before
    found = stubs(transcript.closed, end, estimate_tokens)
    return [(stub.call_id, stub.kind) for stub in found]


def test_the_least_missed_go_first() -> None:
    transcript = Transcript().user(asks("go"))
    transcript = step(transcript, ToolUse("c0", "Bash", {"command": "make"}), "built " * 300)
    transcript = step(transcript, read(1), "old " * 100)
    transcript = step(transcript, ToolUse("c2", "Look", {"at": 1}), Image("image/png", "0" * 64))
    transcript = step(transcript, ToolUse("c3", "Grep", {"pattern": "x"}), "same " * 60)
    transcript = step(transcript, ToolUse("c4", "Grep", {"pattern": "x"}), "same " * 60)
    transcript = step(transcript, read(5), "new " * 100)
    assert kinds(transcript) == [
        ("c1", "read"),
        ("c3", "repeated"),
        ("c2", "image"),
        ("c0", "output"),
    ]
    assert kinds(transcript, 5) == [("c1", "read"), ("c0", "output")]


def test_a_failed_read_replaces_nothing() -> None:
    transcript = step(Transcript().user(asks("go")), read(1), "text " * 30)
    transcript = step(transcript, read(2), "File not found " * 5, is_error=True)
    assert kinds(transcript) == []


def test_a_stub_says_what_it_was_and_where_it_is() -> None:
    spilled = "head " * 300 + "[... 9 lines / 9 bytes omitted; the full text is in /b/77 ...]"
    transcript = step(Transcript().user(asks("go")), read(1, "src/big.py"), spilled)
    (stub,) = stubs(transcript.closed, 3, estimate_tokens)
    assert "Read: src/big.py" in stub.text
    assert "/b/77" in stub.text
    assert kinds(transcript.compact(0, (), {"c1": stub.text})) == []


# -- what notes say --------------------------------------------------------------------

HARD = "> quoted\n--\n# Summary\n\n# Where the full text is\n(2 older ones are left out.)"


@pytest.mark.parametrize("lost", [0, 7])
@pytest.mark.parametrize("requests", [(), ("one",), ("one\n\ntwo", HARD, "  indented ")])
def test_notes_are_read_back(requests: tuple[str, ...], lost: int) -> None:
    notes = Notes("Did this.\n\n- and that", requests, lost)
    assert parse(render(notes, "in the journal")) == notes


def test_a_summary_that_quotes_the_headings_confuses_nobody() -> None:
    notes = Notes(render(Notes("inner", ("asked",)), ""), ("outer",))
    again = parse(render(notes, ""))
    assert again is not None
    assert again.requests == ("outer",)
    assert "inner" in again.summary


def test_other_texts_are_no_notes() -> None:
    assert parse("hello") is None
    assert parse("") is None


def test_the_newest_requests_stay_and_the_others_are_named() -> None:
    long = "long " * 400
    notes, dropped = fit_requests(Notes("", ("first", long, "last")), 200, estimate_tokens)
    assert notes.requests[-1] == "last"
    assert "characters left out" in notes.requests[-2]
    assert notes.lost == 1
    assert dropped[0].startswith("the middle of a request: long")
    assert dropped[1] == "1 earlier request"


def test_requests_that_fit_are_all_kept() -> None:
    notes = Notes("", ("a", "b", "c"))
    assert fit_requests(notes, 100, estimate_tokens) == (notes, ())


def test_a_digest_tells_commands_and_failures() -> None:
    transcript = Transcript().user(asks("go"))
    call = ToolUse("c1", "Bash", {"command": "pytest -q"})
    transcript = step(transcript, call, "1 failed\nExit code 1", is_error=True)
    text, left_out = digest(transcript.closed, "It began.", 500, estimate_tokens)
    assert text.startswith("It began.")
    assert "- Bash: pytest -q -> failed: 1 failed ... Exit code 1" in text
    assert left_out == ()


def test_a_digest_is_bounded_and_says_what_it_leaves_out() -> None:
    transcript = a_turn(200, size=10)
    text, left_out = digest(transcript.closed, "before " * 500, 300, estimate_tokens)
    assert estimate_tokens(text) < 400
    assert "file199.py" in text
    assert left_out[0] == "a part of the earlier summary"
    assert "steps" in left_out[1]
