"""``SessionState``: all that a session is, folded from its entries.

Nothing else holds state. A running conversation folds each entry right after it
was journalled; loading folds the same entries from disk; so the two are equal.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from claw.types.effects import WritePath
from claw.types.entries import (
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
from claw.types.messages import Text, ToolResult, UserMessage
from claw.types.permissions import PermissionMode, Rule
from claw.types.tools import Todo
from claw.types.transcript import OUTCOME_UNKNOWN, Transcript
from claw.types.usage import Usage

__all__ = ["TODO_TOOL", "SessionState"]

TODO_TOOL = "TodoWrite"


class SessionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """``context`` is the last request's usage; ``usage`` the session's sum.

    ``turns`` counts turns begun, ``in_turn`` says that the last has not ended;
    ``steps`` and ``turn_usage`` are of that turn, ``replied`` is the step whose reply
    was last put into the transcript, and ``touched`` says that a call
    of it was to change something. ``intended`` are calls that were
    to run and have no result yet; ``before_recovery`` is the transcript to go back
    to if a recovery fails.
    """

    session_id: str = ""
    cwd: str = ""
    title: str = ""
    transcript: Transcript = Transcript()
    usage: Usage = Usage()
    context: Usage = Usage()
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
    intended: dict[str, ToolIntended] = {}
    before_recovery: Transcript | None = None
    compactions: int = 0

    def fold(self, entry: Entry) -> SessionState:
        """The state after one more entry. Pure, total: unknown entries change nothing."""
        match entry:
            case UserMessaged() | Steered():
                return replace(self, transcript=self.transcript.user(UserMessage(entry.content)))
            case ReplyReceived():
                return self._replied(entry)
            case Retried() if entry.step == self.replied:
                return replace(self, transcript=self.transcript.without_last_reply(), replied=0)
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
                )
            case TurnEnded():
                return replace(
                    self,
                    in_turn=False,
                    intended={},
                    before_recovery=None,
                    transcript=self.transcript.close(),
                )
            case Compacted():
                return self._compacted(entry)
            case RecoveryFailed():
                return replace(
                    self,
                    transcript=self.before_recovery or self.transcript,
                    before_recovery=None,
                )
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

    def _replied(self, entry: ReplyReceived) -> SessionState:
        return replace(
            self,
            transcript=self.transcript.assistant(entry.message),
            usage=self.usage + entry.usage,
            turn_usage=self.turn_usage + entry.usage,
            steps=entry.step,
            replied=entry.step if entry.blocks else self.replied,
            context=entry.usage if entry.usage.context_tokens else self.context,
            before_recovery=None,
        )

    def _finished(self, entry: ToolFinished) -> SessionState:
        waiting = {call.id: call for call in self.transcript.open_calls}
        if entry.call_id not in waiting:
            return self
        transcript = self.transcript
        result = ToolResult(entry.call_id, entry.content, is_error=entry.status != "ok")
        while (due := transcript.open_calls[0].id) != entry.call_id:  # its entry was lost
            transcript = transcript.settle(ToolResult(due, (Text(OUTCOME_UNKNOWN),), is_error=True))
        intents = dict(self.intended)
        intent = intents.pop(entry.call_id, None)
        state = replace(self, transcript=transcript.settle(result), intended=intents)
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
        kept = self.transcript.closed[entry.kept_from :]
        before = self.before_recovery or self.transcript
        return replace(
            self,
            transcript=Transcript(
                (UserMessage(entry.summary), *kept), self.transcript.reply, self.transcript.results
            ),
            before_recovery=before if entry.provisional else None,
            compactions=self.compactions + 1,
            context=Usage(input_tokens=entry.tokens_after, estimated=True),
        )
