"""Entries: the durable facts of a session, one journal line each.

The list is closed: a new kind is a decision with a page of its own. The journal
adds the common fields (``v seq id parent at crc``), so the values here know
nothing of storage. ``Event`` is an entry or a delta: the one stream that the
journal, the terminal, printers and tracers all see.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from claw.types.effects import Effect, Execute, WritePath
from claw.types.events import Delta
from claw.types.hooks import HookOutcome, HookVerdict
from claw.types.messages import AssistantBlock, AssistantMessage, ResultBlock, UserBlock
from claw.types.permissions import Behavior, PermissionDenial, PermissionMode, Rule
from claw.types.results import Failure, StopReason
from claw.types.tools import CallStatus
from claw.types.usage import PromptCacheEvent, Usage

__all__ = [
    "SCHEMA",
    "Checkpointed",
    "Compacted",
    "DecisionMade",
    "Digests",
    "Entry",
    "Event",
    "HookFinished",
    "Interrupted",
    "Judged",
    "KnownEntry",
    "ModeChanged",
    "ModelChanged",
    "Origin",
    "PromptInstalled",
    "RecoveryFailed",
    "ReplyReceived",
    "Retried",
    "Rewound",
    "RuleAdded",
    "SessionStarted",
    "Stage",
    "Steered",
    "StepRequested",
    "Titled",
    "ToolFinished",
    "ToolIntended",
    "TurnEnded",
    "TurnStarted",
    "UnknownEntry",
    "UserMessaged",
]

SCHEMA = 1


class _Base(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True):
    pass


class SessionStarted(_Base, frozen=True, tag="session_started"):
    """``created`` is UTC, ISO 8601. ``forked_from`` is a session id."""

    session_id: str
    claw_version: str
    cwd: str
    created: str
    forked_from: str = ""
    schema: int = 0


class PromptInstalled(_Base, frozen=True, tag="prompt_installed"):
    """What stands before the conversation; each field is a blob's digest.

    ``instructions`` is the part of ``system`` that came from instruction files, if any.
    """

    system: str
    tools: str
    rules: str
    hooks: str
    reason: Literal["start", "compaction", "model", "tools", "instructions"]
    instructions: str = ""


Origin = Literal["user", "sdk", "acp", "internal", "subagent"]


class TurnStarted(_Base, frozen=True, tag="turn_started"):
    """``turn`` counts from 1. ``limits`` are those in force, by name, in their order.

    ``mode`` is the permission mode that the turn began with. ``denials`` were known before:
    of tools that the prompt was matched with, and that may not be called.
    """

    turn: int
    origin: Origin = "user"
    limits: dict[str, float] = {}
    mode: PermissionMode = "default"
    denials: tuple[PermissionDenial, ...] = ()


class UserMessaged(_Base, frozen=True, tag="user_message"):
    content: tuple[UserBlock, ...]


class Digests(msgspec.Struct, frozen=True):
    """Of a request's parts. ``messages`` is chained, so equal prefixes show.

    ``before`` are beginnings of the chain's values at the few messages before the last, so
    that the first that differs can be named.
    """

    system: str
    tools: str
    messages: str
    sampling: str
    before: tuple[str, ...] = ()


class StepRequested(_Base, frozen=True, tag="step_requested"):
    """``step`` counts the turn's steps from 1, ``attempt`` the tries of this one.

    ``model``, ``max_tokens`` and ``effort`` are what was asked for, as in ``Sampling``.
    """

    step: int
    model: str
    attempt: int
    digests: Digests
    max_tokens: int | None = None
    effort: str = ""


class Retried(_Base, frozen=True, tag="retried"):
    """``delay`` is in seconds. A reply of this step that came before is out of the transcript.

    ``fits`` is the output limit that the server would take, where the limit was the trouble.
    """

    step: int
    attempt: int
    error: str
    delay: float
    fits: int | None = None


class ReplyReceived(_Base, frozen=True, tag="reply_received"):
    """``step`` as in ``StepRequested``.

    ``model`` is who was asked, ``served_by`` the server's own name for it, where another.
    ``wire`` is the blob of the body's bytes, where they were recorded, without what HTTP
    wraps around them (headers, chunks, compression). ``wire_dialect`` names their decoder,
    ``wire_sizes`` the chunks in which they came, as ``claw.types.wire`` writes them.
    """

    step: int
    blocks: tuple[AssistantBlock, ...]
    stop_reason: str
    usage: Usage
    complete: bool
    model: str
    request_id: str = ""
    provider_metadata: dict[str, Any] = {}
    prompt_cache: PromptCacheEvent | None = None
    served_by: str = ""
    wire: str = ""
    wire_dialect: str = ""
    wire_sizes: str = ""

    @property
    def message(self) -> AssistantMessage:
        """As it stands in the transcript; a cut reply is known by its missing stop reason."""
        return AssistantMessage(
            self.blocks,
            model=self.model,
            stop_reason=self.stop_reason if self.complete else "",
            usage=self.usage,
            provider_metadata=self.provider_metadata,
        )


class HookFinished(_Base, frozen=True, tag="hook_finished"):
    """One hook that ran. The last one of a firing has what all of them came to, ``merged``."""

    event: str
    hook: str
    outcome: HookVerdict | Literal["error"]
    call_id: str = ""
    messages: tuple[str, ...] = ()
    exit_code: int | None = None
    ms: int = 0
    merged: HookOutcome | None = None


Judged = Behavior | Literal[""]


class DecisionMade(_Base, frozen=True, tag="decision_made"):
    """``asked``: a person was asked, and ``answer`` is what they said.

    ``input`` is what the call's input was changed to before the answer was yes. ``judged`` is
    what rules, mode and hooks came to before anybody was asked, blank where they did not: a
    hook had said no.
    """

    call_id: str
    decision: Behavior
    reason: str
    source: str
    asked: bool = False
    answer: str = ""
    input: dict[str, Any] | None = None
    judged: Judged = ""


class ToolIntended(_Base, frozen=True, tag="tool_intended"):
    """The call will run: the last word before it may have an effect.

    ``input`` only where a hook or a human changed it; None is the reply's own.
    """

    call_id: str
    name: str
    effects: tuple[Effect, ...] = ()
    input: dict[str, Any] | None = None

    @property
    def changes(self) -> bool:
        """Claims that something outside the session may be different afterwards."""
        return any(isinstance(effect, WritePath | Execute) for effect in self.effects)


class ToolFinished(_Base, frozen=True, tag="tool_finished"):
    """``spilled`` is the blob with the whole text where ``content`` was clipped.

    ``display`` is what a person was shown instead of the content, where it differs.
    The last ``added`` characters of the whole text are what hooks and people said of the
    call; ``omitted`` bytes of the tool's output were lost before.
    """

    call_id: str
    content: tuple[ResultBlock, ...]
    status: CallStatus
    ms: int = 0
    spilled: str = ""
    display: str = ""
    added: int = 0
    omitted: int = 0


class Checkpointed(_Base, frozen=True, tag="checkpointed"):
    """A file as it was before a call changed it, once a turn for each file.

    ``path`` is absolute, ``before`` a blob, None where there was no file. A rewind that
    puts files back keeps in the same way what it replaces; its ``call_id`` is empty.
    ``secret``: there was a file, but a secret stands in it, so it is not kept.
    """

    call_id: str
    path: str
    before: str | None
    mode: int = 0
    secret: bool = False


class Compacted(_Base, frozen=True, tag="compacted"):
    """The first ``kept_from`` messages are replaced by ``summary``, results by stubs.

    ``pruned`` maps the ids of calls whose results are not kept whole to what stands in
    their place. The running turn's request needs no mention: it always stays. ``dropped``
    names what is neither kept nor in the summary word for word. ``usage`` and ``cost``
    (US dollars, None where unknown) are those of the model that wrote the summary.
    A ``provisional`` one counts for good once a complete reply follows.
    """

    trigger: Literal["auto", "manual", "overflow"]
    removed_messages: int
    kept_from: int
    summary: tuple[UserBlock, ...]
    tokens_before: int
    tokens_after: int
    dropped: tuple[str, ...] = ()
    provisional: bool = False
    pruned: dict[str, str] = {}
    usage: Usage = Usage()
    cost: float | None = 0.0


class RecoveryFailed(_Base, frozen=True, tag="recovery_failed"):
    """The provisional compactions before this entry do not count."""

    rounds: int
    error: str


class Steered(_Base, frozen=True, tag="steered"):
    """A message that joined a running turn: from the user, or from a Stop hook."""

    content: tuple[UserBlock, ...]
    source: Literal["user", "hook", "runtime"] = "user"


Stage = Literal["start", "sampling", "tools", "waiting", "compacting"]


class Interrupted(_Base, frozen=True, tag="interrupted"):
    stage: Stage


class ModeChanged(_Base, frozen=True, tag="mode_changed"):
    mode: PermissionMode


class ModelChanged(_Base, frozen=True, tag="model_changed"):
    model: str


class RuleAdded(_Base, frozen=True, tag="rule_added"):
    rule: Rule


class Rewound(_Base, frozen=True, tag="rewound"):
    """The conversation goes on after entry ``to``; ``files`` were put back as well."""

    to: int
    files: bool = False


class Titled(_Base, frozen=True, tag="titled"):
    title: str


class TurnEnded(_Base, frozen=True, tag="turn_ended"):
    """``cost`` is in US dollars, None where a price is unknown.

    ``unheard`` is what the user said, without secrets, where it is no part of the
    conversation: a hook blocked it, or the turn was over before. ``digest`` is chained over
    the turn's entries, this one included, but for durations, raw bytes and this cost: by it a
    replay knows that what it was given is what was there.
    """

    turn: int
    stop_reason: StopReason
    iterations: int
    usage: Usage
    cost: float | None = None
    ms: int = 0
    error: Failure | None = None
    unheard: tuple[UserBlock, ...] = ()
    digest: str = ""


class UnknownEntry(msgspec.Struct, frozen=True):
    """An entry of a later claw: kept word for word, written back by copies."""

    kind: str
    raw: bytes


KnownEntry = (
    SessionStarted
    | PromptInstalled
    | TurnStarted
    | UserMessaged
    | StepRequested
    | Retried
    | ReplyReceived
    | HookFinished
    | DecisionMade
    | ToolIntended
    | ToolFinished
    | Checkpointed
    | Compacted
    | RecoveryFailed
    | Steered
    | Interrupted
    | ModeChanged
    | ModelChanged
    | RuleAdded
    | Rewound
    | Titled
    | TurnEnded
)
Entry = KnownEntry | UnknownEntry
Event = KnownEntry | Delta
