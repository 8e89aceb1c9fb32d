"""Whatever is cut, wherever and however often: what is left can be sent, and says what went."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from hypothesis import given, settings
from hypothesis import strategies as st

from claw.compaction.compactor import PruningCompactor
from claw.compaction.plan import Estimates
from claw.compaction.summarize import ATTEMPTS, MOST_REQUESTS, Summarizer
from claw.compaction.trigger import Policy
from claw.errors import ContextOverflow, ModelUnavailable
from claw.models.encode import encode_request
from claw.models.estimate import estimate_request, estimate_tokens
from claw.models.scripted import playback
from claw.testing import (
    ScriptReply,
    cut,
    fails,
    refuses,
    says,
    validate_anthropic,
    validate_chat,
    validate_request,
    validate_responses,
)
from claw.types.entries import (
    Compacted,
    KnownEntry,
    ReplyReceived,
    Steered,
    ToolFinished,
    TurnStarted,
    UserMessaged,
)
from claw.types.events import AssistantEvent
from claw.types.messages import (
    AssistantBlock,
    Image,
    ResultBlock,
    Text,
    ToolUse,
    UserMessage,
    text_of,
)
from claw.types.request import Request, Sampling
from claw.types.session import SessionState
from claw.types.transcript import Transcript
from claw.types.usage import Usage

CHECKS = {
    "anthropic": validate_anthropic,
    "openai-chat": validate_chat,
    "openai-responses": validate_responses,
}


def complaints(transcript: Transcript) -> list[str]:
    """What providers would have against sending it."""
    request = Request("s", transcript.messages, (), Sampling("m"))
    found = validate_request(request)
    for dialect, check in CHECKS.items():
        body = encode_request(
            dialect, request.messages, (), "s", model="m", max_tokens=100, blobs_get=lambda _: b"x"
        )
        found += check(body)
    return found


class Model:
    """Answers with the replies in turn, over and over; counts what it was asked."""

    window: int | None = None

    def __init__(self, replies: list[ScriptReply]) -> None:
        self.asked = 0
        self._replies = replies

    def cost(self, usage: Usage, model: str) -> float | None:
        return 0.0

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        assert not request.tools
        assert not validate_request(request)
        reply = self._replies[self.asked % len(self._replies)]
        self.asked += 1
        assert not callable(reply)
        played = playback(reply, self.asked, 10)
        for event in played.events:
            yield event
        if played.error is not None:
            raise played.error


TEXTS = st.sampled_from(
    ["go on", "Ünïcode 漢字 🦀", "> quoted\n--\n# Summary\n", "x" * 900, "\n \nz"]
)
RESULTS = st.sampled_from(["ok", "", "line\n" * 400, "# Summary", "漢" * 500])


@st.composite
def histories(draw: st.DrawFn) -> list[KnownEntry]:
    """Turns of a session, the last one perhaps in the middle of its steps."""
    entries: list[KnownEntry] = []
    number = 0
    for turn in range(1, draw(st.integers(1, 4)) + 1):
        entries += [TurnStarted(turn), UserMessaged((Text(f"ask {turn}: {draw(TEXTS)}"),))]
        for step in range(1, draw(st.integers(0, 4)) + 1):
            calls: list[ToolUse] = []
            for _ in range(draw(st.integers(0, 2))):
                number += 1
                path = draw(st.sampled_from(["a.py", "b.py"]))
                calls.append(ToolUse(f"c{number}", "Read", {"file_path": path}))
            blocks: tuple[AssistantBlock, ...] = (Text(f"step {step}"), *calls)
            entries.append(ReplyReceived(step, blocks, "tool_use", Usage(10, 5), True, "m"))
            for call in calls:
                shown = draw(RESULTS)
                content: tuple[ResultBlock, ...] = (Text(shown),)
                if shown == "ok":
                    content = (Image("image/png", "0" * 64),)
                failed = draw(st.booleans())
                entries.append(ToolFinished(call.id, content, "error" if failed else "ok"))
            steered = draw(st.booleans())
            if calls and steered:
                entries.append(Steered((Text("steer"),)))
    return entries


def folded(entries: list[KnownEntry], state: SessionState | None = None) -> SessionState:
    state = state or SessionState()
    for entry in entries:
        state = state.fold(entry)
    return state


ODD = st.builds(
    Compacted,
    trigger=st.just("auto"),
    removed_messages=st.integers(-3, 50),
    kept_from=st.integers(-5, 60),
    summary=st.lists(
        st.sampled_from([Text("notes"), Text(""), Text(" \n"), Image("image/png", "0" * 64)]),
        max_size=3,
    ).map(tuple),
    tokens_before=st.integers(0, 100),
    tokens_after=st.integers(0, 100),
    provisional=st.booleans(),
    pruned=st.dictionaries(
        st.sampled_from([f"c{n}" for n in range(20)]), st.sampled_from(["", "stub"]), max_size=5
    ),
)


@given(history=histories(), odd=st.lists(ODD, min_size=1, max_size=3), later=histories())
@settings(max_examples=200, deadline=None)
def test_any_entry_leaves_a_conversation_that_can_be_sent(
    history: list[KnownEntry], odd: list[Compacted], later: list[KnownEntry]
) -> None:
    state = folded(history)
    request = [m for m in state.transcript.messages if isinstance(m, UserMessage)]
    asked = state.transcript.messages[state.transcript.asked]
    assert asked in request
    for entry in odd:
        state = state.fold(entry)
        assert complaints(state.transcript) == []
        sent = "".join(text_of(m.content) for m in state.transcript.messages)
        assert sent.count(text_of(asked.content)) >= 1
    assert complaints(folded(_renamed(later, 9), state).transcript) == []


@given(history=histories(), keep=st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_every_cut_keeps_the_request_once(history: list[KnownEntry], keep: int) -> None:
    state = folded(history)
    asked = text_of(state.transcript.messages[state.transcript.asked].content)
    for cut_at in range(len(state.transcript.closed) + 1):
        cutting = Compacted("auto", 0, cut_at, (Text("notes"),), 0, 0)
        sent = [text_of(m.content) for m in state.fold(cutting).transcript.messages]
        assert "".join(sent).count(asked.split(":")[0]) >= 1
        assert sum(asked in text for text in sent) == 1


HOSTILE: list[ScriptReply] = [
    says("a fair summary of what was done"),
    says(""),
    says(" \n\t"),
    cut(says("half a summ")),
    refuses("no"),
    says("I'm sorry, I can't help with that."),
    says("longer than the input " * 3000),
    says("cut by the limit", stop_reason="max_tokens"),
    fails(ModelUnavailable("connection lost"), after=says("some")),
    fails(ContextOverflow("too long")),
]


@given(
    history=histories(),
    replies=st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4),
    keeps=st.lists(st.sampled_from([4, 2, 1, 0]), min_size=3, max_size=3),
    target=st.sampled_from([None, 50, 500]),
    more=histories(),
)
@settings(max_examples=150, deadline=None)
def test_chains_of_compactions_lose_nothing_in_silence(
    history: list[KnownEntry],
    replies: list[ScriptReply],
    keeps: list[int],
    target: int | None,
    more: list[KnownEntry],
) -> None:
    model = Model(replies)
    told: list[str] = []
    compactor = PruningCompactor(
        Policy(),
        Estimates(estimate_request, estimate_tokens),
        lambda notice: told.append(notice.text),
        summarizer=Summarizer(model, "m", estimate_tokens),
    )
    state = folded(history)
    for number, keep in enumerate(keeps):
        model.asked = 0
        before = state.transcript
        entry = asyncio.run(compactor.make_room(before, keep, target, "all of it"))
        assert model.asked <= MOST_REQUESTS
        if entry is None:
            assert model.asked == 0
            continue
        assert entry.tokens_after < entry.tokens_before
        state = state.fold(entry)
        assert complaints(state.transcript) == []
        _nothing_is_missing(before, state.transcript, entry)
        state = folded(_renamed(more, number), state)
    assert ATTEMPTS == 2


def _nothing_is_missing(before: Transcript, after: Transcript, entry: Compacted) -> None:
    """What the user said is still there, word for word, or is named as shortened."""
    sent = "\n".join(text_of(m.content) for m in after.messages)
    asked = text_of(before.messages[before.asked].content[before.notes :])
    assert sent.count(asked) == 1 if before.asked == 0 else sent.count(asked) >= 1
    for message in before.messages[1:]:
        if isinstance(message, UserMessage) and isinstance(message.content[0], Text):
            words = text_of(message.content)
            quoted = "\n".join(f"> {line}" for line in words.split("\n"))
            assert words in sent or quoted in sent or "request" in " ".join(entry.dropped)


def _renamed(entries: list[KnownEntry], salt: int) -> list[KnownEntry]:
    """The same turns with ids of their own."""
    renamed: list[KnownEntry] = []
    for entry in entries:
        match entry:
            case ReplyReceived():
                blocks = tuple(
                    ToolUse(f"{b.id}_{salt}", b.name, b.input) if isinstance(b, ToolUse) else b
                    for b in entry.blocks
                )
                renamed.append(
                    ReplyReceived(entry.step, blocks, "tool_use", entry.usage, True, "m")
                )
            case ToolFinished():
                renamed.append(ToolFinished(f"{entry.call_id}_{salt}", entry.content, entry.status))
            case _:
                renamed.append(entry)
    return renamed
