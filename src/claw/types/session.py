"""``SessionState``: all that a session is, folded from its entries.

Nothing else holds state. A running conversation folds each entry right after it
was journalled; loading folds the same entries from disk; so the two are equal.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from claw.types.effects import WritePath
from claw.types.entries import (
    Checkpointed,
    Compacted,
    Entry,
    ModeChanged,
    ModelChanged,
    PromptInstalled,
    RecoveryFailed,
    ReplyReceived,
    Retried,
    RuleAdded,
    SessionStarted,
    Steered,
    Titled,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import AssistantMessage, Text, ToolResult, UserMessage
from claw.types.permissions import PermissionMode, Rule
from claw.types.tools import Todo
from claw.types.transcript import LEFT_OUT, Transcript
from claw.types.usage import Usage

__all__ = ["TODO_TOOL", "SessionState", "TurnPoint"]

TODO_TOOL = "TodoWrite"


class TurnPoint(msgspec.Struct, frozen=True):
    """A place that a conversation can go back to: right before a turn.

    ``seq`` is the entry before it, ``at`` when it began (UTC, ISO 8601, empty where unknown),
    ``prompt`` what the user said, ``files`` the absolute paths that the turn was to change.
    """

    turn: int
    seq: int
    at: str
    prompt: str
    files: tuple[str, ...] = ()


class SessionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """``context`` is the size of the conversation as the last request reported it, of its
    first ``measured`` messages; after a compaction, an estimate. ``floor`` is what it came
    to right after the last compaction, ``estimated`` until a request has reported it.
    ``usage`` is the session's sum.

    ``turns`` counts turns begun, ``in_turn`` says that the last has not ended;
    ``steps`` and ``turn_usage`` are of that turn, ``replied`` is the step whose reply
    was last put into the transcript, and ``touched`` says that a call
    of it was to change something. ``intended`` are calls that were
    to run and have no result yet; ``most_output`` is the output limit to stay below after
    a refusal, until the next compaction; ``checkpoints`` are files as they were before a
    turn changed them, those of the last turn from ``turn_checkpoints`` on;
    ``before_recovery`` is the conversation without the compactions that no complete reply
    has confirmed yet.
    """

    session_id: str = ""
    cwd: str = ""
    title: str = ""
    transcript: Transcript = Transcript()
    usage: Usage = Usage()
    context: Usage = Usage()
    measured: int = 0
    floor: Usage = Usage()
    mode: PermissionMode | None = None
    model: str = ""
    prompt: PromptInstalled | None = None
    turns: int = 0
    in_turn: bool = False
    steps: int = 0
    replied: int = 0
    touched: bool = False
    turn_usage: Usage = Usage()
    rules: tuple[Rule, ...] = ()
    todos: tuple[Todo, ...] = ()
    changed_files: tuple[str, ...] = ()
    checkpoints: tuple[Checkpointed, ...] = ()
    turn_checkpoints: int = 0
    intended: dict[str, ToolIntended] = {}
    before_recovery: Transcript | None = None
    compactions: int = 0
    most_output: int | None = None

    def fold(self, entry: Entry) -> SessionState:
        """The state after one more entry. Pure, total: unknown entries change nothing."""
        match entry:
            case UserMessaged():
                return self._said(lambda t: t.user(UserMessage(entry.content)))
            case Steered():
                return self._said(lambda t: t.user(UserMessage(entry.content), asks=False))
            case ReplyReceived():
                return self._replied(entry)
            case Retried():
                state = self._taken_back() if entry.step == self.replied else self
                if entry.fits is None:
                    return state
                # Lowered before: the input grew, and will again. Half lasts for some steps.
                most = entry.fits if state.most_output is None else max(1, entry.fits // 2)
                return replace(state, most_output=most)
            case ToolIntended():
                return replace(
                    self,
                    intended={**self.intended, entry.call_id: entry},
                    touched=self.touched or entry.changes,
                )
            case ToolFinished():
                return self._finished(entry)
            case TurnStarted():
                return replace(
                    self,
                    turns=entry.turn,
                    in_turn=True,
                    steps=0,
                    replied=0,
                    touched=False,
                    turn_usage=Usage(),
                    turn_checkpoints=len(self.checkpoints),
                )
            case Checkpointed():
                return replace(self, checkpoints=(*self.checkpoints, entry))
            case TurnEnded():
                state = self._without_recovery()
                transcript = state.transcript.close()
                return replace(state, in_turn=False, intended={}, transcript=transcript)
            case Compacted():
                return self._compacted(entry)
            case RecoveryFailed():
                return self._without_recovery()
            case SessionStarted():
                return replace(self, session_id=entry.session_id, cwd=entry.cwd)
            case PromptInstalled():
                return replace(self, prompt=entry)
            case ModeChanged():
                return replace(self, mode=entry.mode)
            case ModelChanged():
                return replace(self, model=entry.model)
            case RuleAdded():
                return replace(self, rules=(*self.rules, entry.rule))
            case Titled():
                return replace(self, title=entry.title)
            case _:
                return self

    def rewound_to(self, past: SessionState) -> SessionState:
        """The conversation as it was in ``past``; what the session spent and was allowed stays.

        For ``Rewound``, which a fold cannot do alone: it does not know the past.
        """
        past = past._without_recovery()
        return replace(
            self,
            transcript=past.transcript.close(),
            title=past.title,
            context=past.context,
            measured=past.measured,
            floor=past.floor,
            todos=past.todos,
            changed_files=past.changed_files,
            compactions=past.compactions,
            intended={},
            before_recovery=None,
        )

    def _said(self, change: Callable[[Transcript], Transcript]) -> SessionState:
        """Let something happen to the conversation, with and without a recovery."""
        before = self.before_recovery
        return replace(
            self,
            transcript=change(self.transcript),
            before_recovery=None if before is None else change(before),
        )

    def _replied(self, entry: ReplyReceived) -> SessionState:
        state = self._said(lambda t: _answered(t, entry.message))
        state = replace(
            state,
            usage=self.usage + entry.usage,
            turn_usage=self.turn_usage + entry.usage,
            steps=entry.step,
            replied=entry.step if entry.blocks else self.replied,
            before_recovery=None if entry.complete else state.before_recovery,
        )
        if not entry.usage.context_tokens:
            return state
        sent = replace(entry.usage, output_tokens=0, estimated=False)
        return replace(
            state,
            context=entry.usage,
            measured=len(state.transcript.closed) + (state.transcript.reply is not None),
            floor=sent if self.floor.estimated else self.floor,
        )

    def _taken_back(self) -> SessionState:
        state = self._said(Transcript.without_last_reply)
        measured = min(state.measured, len(state.transcript.closed))
        return replace(state, replied=0, measured=measured)

    def _finished(self, entry: ToolFinished) -> SessionState:
        waiting = {call.id: call for call in self.transcript.open_calls}
        if entry.call_id not in waiting:
            return self
        result = ToolResult(entry.call_id, entry.content, is_error=entry.status != "ok")
        intents = dict(self.intended)
        intent = intents.pop(entry.call_id, None)
        state = replace(self._said(lambda t: t.finish(result)), intended=intents)
        if intent is None or entry.status != "ok":
            return state
        written = [effect.path for effect in intent.effects if isinstance(effect, WritePath)]
        changed = tuple(dict.fromkeys((*self.changed_files, *written)))
        state = replace(state, changed_files=changed)
        if intent.name != TODO_TOOL:
            return state
        input = intent.input if intent.input is not None else waiting[entry.call_id].input
        try:
            todos = msgspec.convert(input.get("todos", ()), tuple[Todo, ...])
        except msgspec.ValidationError:  # written by a claw with other todos
            return state
        return replace(state, todos=todos)

    def _compacted(self, entry: Compacted) -> SessionState:
        summary = (*entry.summary, *_carried(self)) if entry.summary else ()
        transcript = self.transcript.compact(entry.kept_from, summary, entry.pruned)
        size = Usage(input_tokens=entry.tokens_after, estimated=True)
        before = self.before_recovery or self.transcript
        return replace(
            self,
            transcript=transcript,
            before_recovery=before if entry.provisional else self.before_recovery,
            compactions=self.compactions + 1,
            most_output=None,
            usage=self.usage + entry.usage,
            turn_usage=self.turn_usage + entry.usage,
            context=size,
            floor=size,
            measured=len(transcript.closed),
        )

    def _without_recovery(self) -> SessionState:
        """As if the compactions that nothing has confirmed had not been; their size is unknown."""
        if self.before_recovery is None:
            return self
        return replace(
            self,
            transcript=self.before_recovery,
            before_recovery=None,
            context=Usage(),
            floor=Usage(),
            measured=0,
        )


_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def _answered(transcript: Transcript, message: AssistantMessage) -> Transcript:
    """No provider lets a reply come first: where the question was lost, that is said."""
    if not transcript.closed and transcript.reply is None and message.content:
        transcript = transcript.user(UserMessage((Text(LEFT_OUT),)), asks=False)
    return transcript.assistant(message)


def _carried(state: SessionState) -> tuple[Text, ...]:
    """What a compaction keeps word for word, whatever its summary says of it."""
    todos = [f"{_MARKS[todo.status]} {todo.content}" for todo in state.todos]
    changed = list(state.changed_files)
    parts = [("Todo list", todos), ("Files changed in this session", changed)]
    text = "\n\n".join("\n".join([f"{name}:", *lines]) for name, lines in parts if lines)
    return (Text(text),) if text else ()
