"""The ports of a recorded turn: each gives what it gave then.

``Tape`` is the journal of such a turn. It compares what the runtime records with what was
recorded, entry by entry; so the place on the tape is where the runtime stands, and the
other ports look there for what comes next. *Perform* records nothing: what tools give is
found by their call.

How a call is known to ports that are not told of it (parsing, policy): by the very dict of
its input, which is the recording's own.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NoReturn

import msgspec

from claw.errors import ModelUnavailable, SessionError, ToolFailed
from claw.ports import FileContent, Redactor, Tool, ToolCall, ToolSet
from claw.recordings.record import (
    Call,
    Exchange,
    Take,
    calls_of,
    costs_of,
    exchange_at,
    fault_of,
    fired,
    halt_of,
    with_the_rest,
)
from claw.recordings.trajectory import Names
from claw.recordings.verify import (
    Difference,
    compare,
    first_message,
    ignored_in,
    missing,
    same_place,
)
from claw.types.effects import Effect, Facts, Observed, ReadPath, WritePath
from claw.types.entries import (
    Checkpointed,
    Compacted,
    Entry,
    Event,
    HookFinished,
    KnownEntry,
    PromptInstalled,
    ReplyReceived,
    Steered,
    StepRequested,
    Titled,
    ToolFinished,
    TurnEnded,
    UnknownEntry,
)
from claw.types.events import AssistantEvent
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.messages import Image, Message, ResultBlock, Text, ToolUse, text_of
from claw.types.permissions import Answer, Decision, PermissionMode, Question, Rule
from claw.types.request import Request
from claw.types.results import Failure
from claw.types.session import SessionState, TurnPoint
from claw.types.tools import ToolOutput, ToolSpec
from claw.types.transcript import Transcript
from claw.types.usage import Usage

__all__ = [
    "PlayedApprover",
    "PlayedBlobs",
    "PlayedClock",
    "PlayedCompactor",
    "PlayedHooks",
    "PlayedModel",
    "PlayedPolicy",
    "PlayedRedactor",
    "PlayedTools",
    "PlayedWorkspace",
    "Tape",
]

LEFT_OUT = "[a picture was left out: "
"""What the runtime puts in the place of a picture that nobody can send, up to the reason."""
SECRET = "[a file in which a secret stands]"
MARKS = r"\[redacted:[^\[\]\s]+\]"
MOST_DIFFERENCES = 100


class Tape:
    """Implements ``Journal`` over one recorded turn, and knows what stands where in it.

    ``settled`` are the calls that have results, ``current`` is the one that is looked at,
    ``edited_call`` the one whose input a person changed last. ``steer``, ``interrupt``,
    ``expire`` and ``change`` (for asides) are how the turn is reached from outside, ``sent``
    what its next request holds; whoever runs it fills them in, and lets its events come to
    ``emit``. With
    ``stops``, what comes after the first difference is not looked at any more.
    """

    def __init__(
        self,
        take: Take,
        *,
        names: Names = (),
        ignored: Collection[str] = (),
        stops: bool = True,
        show: Callable[[str], str | None] = lambda digest: None,
    ) -> None:
        self.take = take
        self.halt = halt_of(take)
        self.calls = calls_of(take)
        self.costs = costs_of(take)
        self.at = 0
        self.made: list[KnownEntry] = []
        self.settled: set[str] = set()
        self.differences: list[Difference] = []
        self.current: Call | None = None
        self.edited_call: Call | None = None
        self.steer: Callable[[str], None] = _nobody_listens
        self.interrupt: Callable[[], None] = _nobody
        self.expire: Callable[[], None] = _nobody
        self.change: Callable[[KnownEntry], None] = _nobody_changes
        self.sent: Callable[[], Sequence[Message]] = tuple
        self._names, self._ignored, self._stops, self._show = names, ignored, stops, show
        self._adopted: list[dict[str, Any]] = []
        self._asked_at = -1
        self._step = 0
        self._over = False
        self._halted = self._refused = False
        self._changing = False
        self._passed: set[int] = set()  # places whose asides have come
        self._inputs = {
            id(value): (call, stage)
            for call in self.calls.values()
            for stage, value in enumerate(_inputs(call))
            if value is not None
        }

    # -- the journal -------------------------------------------------------------

    def append(self, entry: Entry, *, sync: bool = False) -> int:
        if self._over or isinstance(entry, UnknownEntry):
            return len(self.made)
        if self._changing:
            self.made.append(entry)
            return len(self.made)
        if self.head is None and not self.take.whole:
            self._over = True  # the recording goes no further, wherever the turn stands
            return len(self.made)
        if isinstance(entry, Titled):
            self._titled(entry)
            return len(self.made)
        if not isinstance(entry, TurnEnded):
            self.refuse()
        if isinstance(entry, StepRequested):
            self._step = entry.step
        self._check(entry)
        self.made.append(entry)
        if isinstance(entry, ToolFinished):
            self.settled.add(entry.call_id)
        if not self._over:
            self._reached()
        return len(self.made)

    def emit(self, event: Event) -> None:
        """Once an entry counts, people change what they changed then: ``EventSink``."""
        if self._over or self._changing or self.at in self._passed:
            return
        self._passed.add(self.at)
        self._changing = True
        for entry in self.take.asides.get(self.at, ()):
            self.change(entry)
        self._changing = False

    def state_at(self, seq: int) -> SessionState:
        raise SessionError("a replay does not go back")

    def turns(self) -> tuple[TurnPoint, ...]:
        return ()

    def finish(self) -> None:
        """The turn is over: what was recorded and not made is a difference."""
        halted = self.halt is not None and self.halt.how == "end"
        if self.differences or halted:
            return
        title = self.take.title
        left = self.head or (None if title in self.made else title)
        if left is not None:
            self._differs(left, missing(left, None))

    def _titled(self, made: Titled) -> None:
        """The turn repeats the session's title before it ends."""
        recorded = self.take.title
        if recorded is None:
            self._differs(self.take.entries[-1], missing(self.take.entries[-1], made))
        elif found := compare(recorded, made, names=self._names, ignored=(), show=self._show):
            self._differs(recorded, found)
        self.made.append(made)

    def _check(self, made: KnownEntry) -> None:
        recorded = self.head
        if recorded is None:
            last = self.take.entries[-1]
            self._differs(last, ("after it", "nothing", _kind(made)))
            return
        if not same_place(recorded, made) and not self._stops:
            self._find_again(recorded, made)
            return
        if type(recorded) is not type(made):
            self._differs(recorded, missing(recorded, made))
            self.at += 1
            return
        ignored = ignored_in(recorded, self._ignored, differed=bool(self.differences))
        if found := compare(recorded, made, names=self._names, ignored=ignored, show=self._show):
            self._differs(recorded, self._message_in(recorded, made, found))
        self.at += 1

    def _message_in(
        self, recorded: KnownEntry, made: KnownEntry, found: tuple[str, str, str]
    ) -> tuple[str, str, str]:
        """Of a conversation that is another one, the message that is."""
        if not isinstance(recorded, StepRequested) or not isinstance(made, StepRequested):
            return found
        if found[0] != "digests.messages":
            return found
        return first_message(recorded.digests, made.digests, self.sent()) or found

    def _find_again(self, recorded: KnownEntry, made: KnownEntry) -> None:
        """Go on where the recording tells of the same; what was made is new if it never does."""
        self._differs(recorded, missing(recorded, made))
        for at in range(self.at, len(self.take.entries)):
            if same_place(self.take.entries[at], made):
                self.at = at + 1
                return
        if isinstance(made, StepRequested):
            self.at = len(self.take.entries)

    def _differs(self, recorded: KnownEntry, found: tuple[str, str, str]) -> None:
        field, expected, actual = found
        difference = Difference(
            self.take.start.turn,
            self._step,
            _kind(recorded),
            field,
            expected,
            actual,
            self._about(recorded),
        )
        if len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(difference)
        if self._stops:
            self._over = True
            self.interrupt()

    def _about(self, entry: KnownEntry) -> str:
        """The event of a hook and the call, where it is one's."""
        event = getattr(entry, "event", "")
        call = self.calls.get(getattr(entry, "call_id", ""))
        named = f"{call.use.name} {call.use.id}" if call is not None else ""
        return ", ".join(filter(None, (event, named)))

    def refuse(self) -> None:
        """Where nothing could be written then, nothing can now: once. Raises ``SessionError``."""
        end = self.take.end
        if not self._refused and self.at == self.take.lost_at and end is not None:
            self._refused = True
            failure = end.error or Failure("session", "")
            raise SessionError(failure.message, hint=failure.hint)

    # -- what comes next ---------------------------------------------------------

    @property
    def head(self) -> KnownEntry | None:
        entries = self.take.entries
        return entries[self.at] if self.at < len(entries) else None

    @property
    def halts_here(self) -> bool:
        return self.halt is not None and self.halt.at == self.at

    def halts(self, during: str) -> bool:
        """Whether the turn is ended from outside right now, while this goes on."""
        return self.halts_here and self.halt is not None and self.halt.during == during

    async def end_here(self) -> NoReturn:
        """End the turn from outside, and wait for it."""
        self._end()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable: nobody gives this future a value")

    async def before_hooks(self, payload: HookPayload) -> None:
        """Where the turn was ended while hooks ran, it is ended now."""
        await _pause()
        after_a_call = payload.event in ("PostToolUse", "PostToolUseFailure")
        if self.halts("tools" if after_a_call else "compacting"):
            await self.end_here()

    def _end(self) -> None:
        if self._halted or self.halt is None:
            return
        self._halted = True
        if self.halt.how == "time":
            self.expire()
            return
        self._over = self._over or self.halt.how == "end"
        self.interrupt()

    def _reached(self) -> None:
        if self.halts_here and self.halts("anything"):
            self._end()
        elif isinstance(self.head, Steered) and self.head.source == "user":
            self.steer(text_of(self.head.content))
        if isinstance(self.made[-1], StepRequested):
            self._asked_at = self.at - 1

    def exchange(self) -> Exchange:
        """The answer to the request that was recorded last."""
        if not isinstance(self.take.entries[self._asked_at], StepRequested) or self._asked_at < 0:
            return Exchange(error=ModelUnavailable("the recording has no more replies"))
        return exchange_at(self.take, self._asked_at, self.halt)

    def cost(self) -> float | None:
        """Of the reply that is about to be recorded."""
        return self.costs.get(self.at, self.costs.get(self.at + 1, 0.0))

    def call_of(self, input: dict[str, Any]) -> tuple[Call | None, int]:
        """Whose input this is, and whether it is the model's, a hook's or a person's."""
        found = self._inputs.get(id(input))
        if found is None:
            return self.current, 0
        self.current = found[0]
        return found

    def adopt(self, use: ToolUse, input: dict[str, Any]) -> None:
        """Take this dict for the input of a recorded call: its reply was decoded again."""
        self._adopted.append(input)  # its id stands for it
        if use.id in self.calls:
            self._inputs[id(input)] = (self.calls[use.id], 0)

    def blob_path(self, digest: str) -> str | None:
        """As the recorded results name it."""
        return next((p for p in self.blob_paths() if p.endswith(f"/{digest}")), None)

    def blob_paths(self) -> Iterator[str]:
        """The files that recorded results say their full text is in."""
        for entry in self.take.entries:
            if isinstance(entry, ToolFinished) and entry.spilled:
                found = re.search(rf"is in (.*/{entry.spilled})", text_of(entry.content))
                if found is not None:
                    yield found[1]


def _inputs(call: Call) -> tuple[dict[str, Any] | None, ...]:
    return call.use.input, call.hook.updated_input if call.hook else None, call.edited


def _kind(entry: KnownEntry) -> str:
    return str(entry.__struct_config__.tag)


def _nobody() -> None:
    """Nothing runs yet."""


def _nobody_listens(text: str) -> None:
    """Nothing runs yet."""


def _nobody_changes(entry: KnownEntry) -> None:
    """Nothing runs yet."""


async def _pause() -> None:
    """A place where an interrupt takes effect."""
    await asyncio.sleep(0)


# -- the ports -----------------------------------------------------------------------


Decode = Callable[[ReplyReceived, Request], Iterable[AssistantEvent] | None]
"""What a reply's recorded bytes are decoded to today; None where there are none."""


def _no_bytes(reply: ReplyReceived, request: Request) -> None:
    """The reply is played as it was recorded."""


class PlayedModel:
    """Implements ``ModelClient``. Complete replies go through ``decode``."""

    window: int | None = None

    def __init__(self, tape: Tape, decode: Decode = _no_bytes) -> None:
        self._tape, self._decode = tape, decode

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        await _pause()
        exchange = self._tape.exchange()
        for event in self._events(exchange, request):
            yield event
        if exchange.endless:
            await self._tape.end_here()
        if exchange.error is not None:
            raise exchange.error

    def _events(self, exchange: Exchange, request: Request) -> Iterable[AssistantEvent]:
        reply = exchange.reply
        decoded = None if reply is None else self._decode(reply, request)
        if reply is None or decoded is None:
            return exchange.events
        return self._adopted(reply, with_the_rest(reply, decoded))

    def _adopted(
        self, reply: ReplyReceived, events: Iterable[AssistantEvent]
    ) -> Iterator[AssistantEvent]:
        uses = (block for block in reply.blocks if isinstance(block, ToolUse))
        for event in events:
            if isinstance(event, ToolUse) and (use := next(uses, None)) is not None:
                self._tape.adopt(use, event.input)
            yield event

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._tape.cost()


class PlayedTools:
    """Implements ``ToolSet``: the recorded ``specs``. ``real`` ones say what they would touch."""

    def __init__(
        self,
        tape: Tape,
        specs: Sequence[ToolSpec],
        blobs: PlayedBlobs,
        real: ToolSet | None = None,
    ) -> None:
        self._specs = tuple(specs)
        self._tools = {
            name.lower(): _PlayedTool(tape, spec, blobs, real.get(spec.name) if real else None)
            for spec in reversed(self._specs)
            for name in (*spec.aliases, spec.name)
        }

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name.lower())


class _Args(msgspec.Struct, frozen=True):
    call: Call | None
    input: dict[str, Any]


class _PlayedTool:
    def __init__(self, tape: Tape, spec: ToolSpec, blobs: PlayedBlobs, real: Tool | None) -> None:
        self.spec = spec
        self._tape, self._blobs, self._real = tape, blobs, real

    def parse(self, input: dict[str, Any]) -> _Args:
        call, stage = self._tape.call_of(input)
        if call is not None and call.broken == stage:
            raise ToolFailed(text_of(call.finished.content) if call.finished is not None else "")
        return _Args(call, input)

    def effects(self, args: _Args) -> tuple[Effect, ...]:
        if args.call is not None and args.call.intended is not None:
            return args.call.intended.effects
        return self._real.effects(self._real.parse(args.input)) if self._real else ()

    def preview(self, args: _Args) -> str:
        return ""

    async def run(self, args: _Args, call: ToolCall) -> ToolOutput:
        await _pause()
        recorded = self._tape.calls.get(call.id)
        if self._tape.halts("tools"):
            await self._tape.end_here()
        if recorded is None or recorded.intended is None:
            raise ToolFailed("the recording has no result of this call")
        if recorded.finished is None:  # the recording ends before: only its hooks may be told
            return ToolOutput.of("", is_error=recorded.failed)
        done = recorded.finished
        return ToolOutput(
            self._content(done),
            display=done.display,
            is_error=done.status == "error" and not recorded.objected,
            omitted=done.omitted,
        )

    def _content(self, done: ToolFinished) -> tuple[ResultBlock, ...]:
        """As the tool gave it: whole, and without what hooks and people said of it."""
        text, blocks = "", list(done.content)
        if blocks and isinstance(first := blocks[0], Text):
            text, blocks = first.text, blocks[1:]
        if done.spilled:
            text = self._blobs.get(done.spilled).decode()
        text = text[: len(text) - done.added]
        rest = [_unseen(block) if isinstance(block, Text) else block for block in blocks]
        return (Text(text), *rest)


def _unseen(told: Text) -> Image:
    """The picture in whose place this text stands: nobody will find it, for the same reason."""
    return Image("image/png", told.text)


class PlayedWorkspace:
    """Implements ``Workspace``, as far as a runtime asks: paths are text, and nothing is there.

    What a call changed is found again as it was recorded before the call.
    """

    def __init__(self, tape: Tape, cwd: str, blobs: PlayedBlobs) -> None:
        self._tape, self._cwd, self._blobs = tape, cwd, blobs

    @property
    def root(self) -> str:
        return self._cwd

    def observe(self, effects: Sequence[Effect]) -> Facts:
        call = self._tape.current
        kept = [entry.path for entry in call.kept] if call is not None else []
        direct = {self._real(e.path) for e in effects if isinstance(e, WritePath)}
        linked = [path for path in kept if path not in direct]
        return Facts(tuple(self._observed(effect, kept, linked) for effect in effects))

    def _observed(self, effect: Effect, kept: list[str], linked: list[str]) -> Observed:
        if not isinstance(effect, ReadPath | WritePath):
            return Observed(effect)
        real = self._real(effect.path)
        if isinstance(effect, WritePath) and real not in kept and linked:
            real = linked.pop(0)  # it led there by a link
        inside = real == self._cwd or real.startswith(self._cwd.rstrip("/") + "/")
        return Observed(effect, real, posixpath.relpath(real, self._cwd) if inside else "", inside)

    def _real(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._cwd, path))

    def probe(self) -> None:
        """It is always there."""

    def peek(self, path: str, *, limit: int) -> FileContent | None:
        head = self._tape.head
        if isinstance(head, ToolFinished) and head.status == "not_run":
            self._tape.refuse()
        if not isinstance(head, Checkpointed) or head.path != path:
            raise ToolFailed("nothing was kept of it")
        if head.secret:
            return FileContent(SECRET.encode(), path, "", 0)
        if head.before is None:
            return None
        return FileContent(self._blobs.get(head.before), path, head.before, head.mode)

    def read(self, path: str, *, limit: int) -> FileContent:
        raise ToolFailed("a replay reads no files")

    def write(
        self, path: str, data: bytes, *, expect: str | None, mode: int | None = None
    ) -> FileContent:
        raise ToolFailed("a replay writes no files")

    def remove(self, path: str, *, expect: str) -> None:
        raise ToolFailed("a replay removes no files")

    def files(self, path: str, *, limit: int) -> Sequence[str]:
        return ()


class PlayedPolicy:
    """Implements ``PermissionPolicy``: what was decided for the call that is looked at."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def judge(
        self, spec: ToolSpec, facts: Facts, mode: PermissionMode, added: Sequence[Rule]
    ) -> Decision:
        call = self._tape.current
        if call is None or (call.decision is None and call.broken != 2):
            return Decision("ask", "nothing was decided", "recording")
        if call.decision is None:
            return Decision("ask", "", "")
        decision = call.decision
        judged = decision.judged or decision.decision
        behavior = decision.decision if self._was_edited(call) else judged
        return Decision(behavior, decision.reason, decision.source)

    def offer(self, spec: ToolSpec, facts: Facts) -> Rule | None:
        return None

    def _was_edited(self, call: Call) -> bool:
        """Whether the person has spoken, and this is the second look."""
        return self._tape.edited_call is call


class PlayedApprover:
    """Implements ``Approver``: the answers that people gave.

    A call that nobody was asked about gets what was decided.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def ask(self, question: Question) -> Answer:
        await _pause()
        call = self._tape.calls.get(question.call_id)
        if call is None:
            return Answer(False, "the recording has no answer", asked=False)
        if call.use.id in self._tape.settled:  # the model goes round in circles: go on?
            return Answer(not isinstance(self._tape.head, TurnEnded))
        if call.edited is not None:
            self._tape.edited_call = call
        decision = call.decision
        if decision is None and call.broken is None and (fault := fault_of(self._tape.take)):
            raise fault
        if decision is None:
            return Answer(call.broken == 2, input=call.edited)
        return Answer(
            decision.answer == "yes" if decision.asked else decision.decision == "allow",
            decision.reason,
            call.rule,
            call.edited,
            asked=decision.asked,
        )


class PlayedHooks:
    """Implements ``HookRunner``: what hooks said, where any ran."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def fire(self, payload: HookPayload) -> HookOutcome:
        await self._tape.before_hooks(payload)
        return fired(self._tape.take.entries, self._tape.at, payload.event, payload.call_id)


class PlayedCompactor:
    """Implements ``Compactor``, and makes the prompt anew: as and where it was done."""

    def __init__(self, tape: Tape, prompt: Callable[[PromptInstalled], Any]) -> None:
        self._tape, self._prompt = tape, prompt

    def target(self, request: Request, state: SessionState, window: int | None) -> int | None:
        head = self._tape.head
        hook = isinstance(head, HookFinished) and head.event == "PreCompact"
        auto = isinstance(head, Compacted) and head.trigger == "auto"
        return 1 if hook or auto or self._tape.halts("compacting") else None

    async def make_room(
        self, transcript: Transcript, keep_rounds: int, target_tokens: int | None, focus: str
    ) -> Compacted | None:
        await self._wait()
        return self._tape.head if isinstance(self._tape.head, Compacted) else None

    async def renew(self) -> tuple[Any, PromptInstalled] | None:
        await self._wait()
        head = self._tape.head
        return (self._prompt(head), head) if isinstance(head, PromptInstalled) else None

    async def _wait(self) -> None:
        await _pause()
        if self._tape.halts("compacting"):
            await self._tape.end_here()


class PlayedBlobs:
    """Implements ``Blobs``: those of the recording, which ``read`` gets, and new ones in memory."""

    def __init__(self, read: Callable[[str], bytes], path: Callable[[str], str | None]) -> None:
        self._read, self._path = read, path
        self._new: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._new[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        if digest.startswith(LEFT_OUT):
            raise SessionError(digest.removeprefix(LEFT_OUT).removesuffix("]"))
        return self._new[digest] if digest in self._new else self._read(digest)

    def path(self, digest: str) -> str | None:
        return self._path(digest)


class PlayedRedactor:
    """Implements ``Redactor``: what was recorded is clean; what is made anew is for ``today``.

    Some results quote what the model said, which stays as it is: there the marks of the
    recorded result tell what was a secret then.
    """

    def __init__(self, tape: Tape, today: Redactor | None = None) -> None:
        self._tape, self._today = tape, today

    def clean(self, text: str) -> str:
        if text == SECRET:
            return ""
        head = self._tape.head
        if isinstance(head, ToolFinished) and text != head.display:
            for recorded in _parts_of(text_of(head.content)):
                if recorded != text and _fits(text, re.split(MARKS, recorded)):
                    return recorded
        return text if self._today is None else self._today.clean(text)


def _parts_of(result: str) -> tuple[str, ...]:
    """It, and what it was before hooks had their say."""
    return result, re.split(r"\n\nHook feedback(?: \(error\))?:\n", result)[0]


def _fits(text: str, around: Sequence[str]) -> bool:
    """Claims that these pieces stand in the text from end to end, with something between them."""
    if len(around) < 2 or not text.startswith(around[0]) or not text.endswith(around[-1]):
        return False
    at = len(around[0])
    for piece in around[1:-1]:
        found = text.find(piece, at + 1)
        if found < 0:
            return False
        at = found + len(piece)
    return at < len(text) - len(around[-1])


class PlayedClock:
    """Implements ``Clock``: no time passes, and nobody waits. ``expire`` ends the turn's time."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None

    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    def jitter(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await _pause()

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        return self._timeout()

    def expire(self) -> None:
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def _timeout(self) -> AsyncIterator[None]:
        async with asyncio.timeout(None) as self._scope:
            yield
