"""What was said and done in a session, from its records: for people to read later."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from claw.cli.render.activity import headline
from claw.cli.render.calls import Calls
from claw.cli.style import Paint, harmless
from claw.cli.times import local_time, world_time
from claw.sessions.record import Record
from claw.types.entries import (
    Compacted,
    Interrupted,
    ModeChanged,
    ModelChanged,
    ReplyReceived,
    Retried,
    Rewound,
    SessionStarted,
    Steered,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import Image, ToolUse, UserBlock, text_of
from claw.types.results import Failure

__all__ = ["Passage", "as_markdown", "as_text", "story"]

_RESULT_LINES = 6


class Passage(msgspec.Struct, frozen=True):
    """One thing that happened. ``turn`` and ``at`` belong to a turn's beginning, ``call``
    and ``status`` to a call, whose result is the text."""

    kind: Literal["turn", "user", "assistant", "call", "note"]
    text: str = ""
    turn: int = 0
    at: str = ""
    call: ToolUse | None = None
    status: str = ""


def story(records: Iterable[Record]) -> Iterator[Passage]:
    """In order, also what was taken back by a rewind later; raises what ``records`` raises."""
    teller = _Teller()
    for record in records:
        yield from teller.tell(record)
    yield from teller.rest()


def as_text(passages: Iterable[Passage], paint: Paint) -> Iterator[str]:
    """Lines for a terminal or a pager; results in short."""
    for passage in passages:
        match passage:
            case Passage(kind="turn"):
                head = f"Turn {passage.turn}, {local_time(passage.at)}".rstrip(", ")
                yield from ("", paint(head, "bold"))
            case Passage(kind="user"):
                yield ""
                yield from (paint(f"> {line}", "cyan") for line in _lines(passage.text))
            case Passage(kind="assistant"):
                yield ""
                yield from _lines(passage.text)
            case Passage(kind="note"):
                yield from ("", *(paint(f"-- {line}", "dim") for line in _lines(passage.text)))
            case Passage(call=ToolUse() as call):
                name, about = headline(call, 100)
                color = "green" if passage.status == "ok" else "red"
                yield f"\n* {paint(name, 'bold')} {about} {paint(f'[{passage.status}]', color)}"
                lines = [line for line in _lines(passage.text) if line.strip()]
                yield from (paint(f"  | {line}", "dim") for line in lines[:_RESULT_LINES])
                if len(lines) > _RESULT_LINES:
                    yield paint(f"  | ... {len(lines) - _RESULT_LINES} more lines", "dim")


def as_markdown(passages: Iterable[Passage]) -> Iterator[str]:
    """Paragraphs of a document in Markdown, with calls and their results whole."""
    for passage in passages:
        match passage:
            case Passage(kind="turn"):
                yield f"## Turn {passage.turn}\n\n_{world_time(passage.at)}_"
            case Passage(kind="user"):
                yield "\n".join(f"> {line}".rstrip() for line in _lines(passage.text))
            case Passage(kind="assistant"):
                yield harmless(passage.text)
            case Passage(kind="note"):
                yield f"_{harmless(passage.text)}_"
            case Passage(call=ToolUse() as call):
                input = json.dumps(call.input, ensure_ascii=False, indent=1)
                yield f"### {harmless(call.name)}: {passage.status}"
                yield _fenced(harmless(input), "json")
                if passage.text.strip():
                    yield _fenced(harmless(passage.text), "")


class _Teller:
    """Holds back what a later record may change: a reply that is sampled again, a call."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._open: dict[str, ToolUse] = {}
        self._begun: set[str] = set()  # calls that were to run
        self._reply: ReplyReceived | None = None
        self._turns: list[tuple[int, int]] = []  # place and number

    def tell(self, record: Record) -> Iterator[Passage]:
        entry = record.entry
        if self._reply is not None:
            if not (isinstance(entry, Retried) and entry.step == self._reply.step):
                yield from self._answer(self._reply)
            self._reply = None
        match entry:
            case ReplyReceived():
                self._calls.emit(entry)
                self._reply = entry
            case ToolIntended():
                self._calls.emit(entry)
                self._begun.add(entry.call_id)
            case ToolFinished(call_id=id) if id in self._open:
                yield Passage(
                    "call",
                    entry.display or text_of(entry.content),
                    call=self._calls.get(id) or self._open[id],
                    status=entry.status.replace("_", " "),
                )
                del self._open[id]
            case TurnStarted():
                yield from self.rest()
                self._turns.append((record.seq, entry.turn))
                yield Passage("turn", turn=entry.turn, at=record.at)
            case UserMessaged() | Steered(source="user"):
                yield Passage("user", _said(entry.content))
            case TurnEnded(unheard=content) if content:
                yield Passage("user", _said(content))
                yield Passage("note", _unheard(entry))
            case Rewound():
                yield Passage("note", self._rewound(entry))
            case _ if text := _note(entry):
                yield Passage("note", text)

    def rest(self) -> Iterator[Passage]:
        """What nothing came after."""
        if self._reply is not None:
            yield from self._answer(self._reply)
            self._reply = None
        for call in self._open.values():
            status = "outcome unknown" if call.id in self._begun else "not run"
            yield Passage("call", call=self._calls.get(call.id) or call, status=status)
        self._open = {}

    def _answer(self, reply: ReplyReceived) -> Iterator[Passage]:
        self._open = {call.id: call for call in reply.message.tool_calls}
        self._begun = set()
        if (text := text_of(reply.blocks)).strip():
            yield Passage("assistant", text.strip("\n"))

    def _rewound(self, entry: Rewound) -> str:
        turn = next((number for seq, number in self._turns if seq > entry.to), 0)
        what = "conversation and files" if entry.files else "conversation"
        if not turn:
            return f"a rewind was undone ({what})"
        return f"went back to before turn {turn} ({what}): what stands above since then is left out"


def _note(entry: object) -> str:
    """What to tell of an entry that nobody said; blank for nothing."""
    match entry:
        case Steered():
            return f"a {'hook' if entry.source == 'hook' else 'reminder'}: {_said(entry.content)}"
        case Compacted():
            return f"compacted: {entry.removed_messages} messages were replaced by a summary"
        case Interrupted():
            return "interrupted"
        case TurnEnded(error=Failure(message=why)):
            return f"the turn ended: {why or entry.stop_reason.replace('_', ' ')}"
        case TurnEnded(stop_reason=reason) if reason not in ("completed", "interrupted"):
            return f"the turn ended: {reason.replace('_', ' ')}"
        case ModeChanged():
            return f"the permission mode is {entry.mode}"
        case ModelChanged():
            return f"the model is {entry.model}"
        case SessionStarted(forked_from=original) if original:
            return f"from here on this is session {entry.session_id}, a copy of {original}"
        case _:
            return ""


def _unheard(ended: TurnEnded) -> str:
    told = _note(ended)
    return f"this did not enter the conversation; {told}" if told else "this was not heard"


def _said(content: tuple[UserBlock, ...]) -> str:
    pictures = [f"[{block.media_type}]" for block in content if isinstance(block, Image)]
    return "\n".join([text_of(content), *pictures]).strip("\n")


def _lines(text: str) -> list[str]:
    return harmless(text).split("\n")


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
