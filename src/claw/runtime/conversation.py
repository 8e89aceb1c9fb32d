"""``ConversationRuntime``: the live object over a session.

It owns what outlives a turn (the recorder, the prompt, steering input, the
learned window) and runs one turn at a time, each as a task of its own, so that
``interrupt`` can reach whatever the turn is waiting for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from claw.errors import ClawError, SessionUnhealthy
from claw.ports import EventSink, Ports, Redactor
from claw.runtime.file_checkpoints import put_back
from claw.runtime.recorder import Recorder
from claw.runtime.recovery import Recovery
from claw.runtime.request import Digester, Prompt
from claw.runtime.room import Renew, RoomMaker
from claw.runtime.sample import Sampler
from claw.runtime.summary import summarize
from claw.runtime.tool_calls import ToolRunner, settle_open
from claw.runtime.turn import Turn, TurnOptions
from claw.types.effects import Facts
from claw.types.entries import (
    Compacted,
    Event,
    KnownEntry,
    ModeChanged,
    RuleAdded,
    Titled,
    TurnEnded,
)
from claw.types.events import Delta
from claw.types.messages import Text, UserBlock
from claw.types.permissions import Decision, PermissionMode, Rule
from claw.types.request import Sampling
from claw.types.results import Failure, Restored, TurnSummary
from claw.types.session import SessionState, TurnPoint
from claw.types.surrogates import mend, whole
from claw.types.tools import ToolSpec

__all__ = ["ConversationRuntime"]

_CONTENT = tuple[UserBlock, ...]
MANUALLY_KEPT = 1
"""Rounds that stay when a person has the conversation compacted."""


class ConversationRuntime:
    """Runs turns over a session. ``claw.open`` builds one and closes it.

    Events of every turn reach ``ports.sink`` and whoever ``listen``s, in order.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        state: SessionState,
        opening: Callable[[], Sequence[KnownEntry]] = tuple,
        prompt: Prompt,
        sampling: Sampling,
        mode: PermissionMode,
        options: TurnOptions,
        renew: Renew | None = None,
    ) -> None:
        """What ``opening`` makes is recorded before the first turn: a session that is
        opened and never used leaves nothing behind. ``renew`` is asked at a compaction
        for what now stands before the conversation; without it, that stays."""
        ports = replace(ports, redactor=_Mending(ports.redactor))
        self._ports = ports
        self._listeners: list[Callable[[Event], None]] = []
        self._told = _FanOut(ports.sink, self._listeners)
        self._log = Recorder(ports.journal, self._told, state)
        self._opening: Callable[[], Sequence[KnownEntry]] | None = opening
        self._options = options
        self._inbox: deque[str] = deque()
        self._task: asyncio.Task[Any] | None = None
        self._turn: Turn | None = None
        self._probed_at = 0
        self._window: int | None = None
        self._runner = ToolRunner(ports, self._log, mode)
        self._sampler = Sampler(
            ports.model,
            self._log,
            ports.clock,
            ports.redactor,
            ports.blobs,
            prompt,
            sampling,
            Digester(),
        )
        self._room = RoomMaker(
            ports, self._log, self._sampler, renew or _unchanged, lambda: self.mode
        )

    @property
    def state(self) -> SessionState:
        return self._log.state

    @property
    def mode(self) -> PermissionMode:
        return self._runner.mode

    @property
    def model(self) -> str:
        """The name that requests carry."""
        return self._sampler.sampling.model

    @property
    def prompt(self) -> Prompt:
        """What stands before the conversation now."""
        return self._sampler.prompt

    @property
    def options(self) -> TurnOptions:
        """Those of a turn that is given none of its own."""
        return self._options

    @property
    def busy(self) -> bool:
        return self._task is not None

    def judge(self, spec: ToolSpec) -> Decision:
        """What policy says of a call of which nothing is known but the tool."""
        return self._ports.policy.judge(spec, Facts(), self.mode, self.state.rules)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with every event from now on; the result stops that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(self, delta: Delta) -> None:
        """Show something to whoever listens; nothing remembers it."""
        self._log.tell(delta)

    def steer(self, text: str) -> None:
        """Say something to a running turn: the model sees it before its next response."""
        self._inbox.append(mend(text))

    def interrupt(self) -> None:
        """End the running turn or compaction as soon as may be; without one, do nothing."""
        if self._turn is not None and not self._turn.begun:
            self._turn.stopped_early = True  # a task cancelled before it runs never would
        elif self._task is not None:
            self._task.cancel()

    def set_mode(self, mode: PermissionMode) -> None:
        """Change the permission mode, from the next call on."""
        self._note(ModeChanged(whole(mode, PermissionMode)))

    def add_rule(self, rule: Rule) -> None:
        """Let a rule hold for the rest of the session, from the next call on."""
        self._note(RuleAdded(whole(rule, Rule)))

    def rename(self, title: str) -> None:
        """Give the session a title. Raises ``ValueError`` for a blank one, ``SessionError``."""
        if not title.strip():
            raise ValueError("the title is blank")
        self._note(Titled(mend(title).strip()))

    def turns(self) -> tuple[TurnPoint, ...]:
        """Where ``rewind`` can go back to, the oldest first. Raises ``SessionError``."""
        return self._ports.journal.turns()

    def rewind(self, to: int, *, conversation: bool = True, files: bool = True) -> Restored:
        """Go back to how it was after entry ``to``: a ``TurnPoint.seq``, a ``Restored.undo``.

        ``files`` are those that calls of Write and Edit changed since; what is replaced is
        kept, so that this can be undone. What the session spent and was allowed stays. Raises
        ``RuntimeError`` while a turn runs, ``SessionError`` where it cannot be put on record.
        """
        if self._task is not None:
            raise RuntimeError("a turn is running; interrupt() it")
        self._open()
        past = self._ports.journal.state_at(to)
        kept = len(self.state.checkpoints)
        done, left = put_back(self._ports, self._log, past) if files else ([], [])
        recorded = len(self.state.checkpoints) - kept
        if conversation:
            self._log.rewound(to, past, files=files)
            recorded += 1
        undo = self._log.place - recorded if recorded else None
        return Restored(tuple(done), tuple(left), undo)

    async def run_turn(
        self, prompt: str | tuple[UserBlock, ...], *, options: TurnOptions | None = None
    ) -> TurnSummary:
        """Run one turn to its end. What goes wrong inside it is in the summary.

        Raises ``SessionUnhealthy`` before anything is stored when a compacted
        session's tools or workspace do not answer, ``SessionError`` when the turn
        cannot even be begun on record, ``ValueError`` for an empty prompt and
        ``RuntimeError`` while another turn runs.
        """
        content = whole((Text(prompt),) if isinstance(prompt, str) else prompt, _CONTENT)
        if not any(not isinstance(b, Text) or b.text.strip() for b in content):
            raise ValueError("the prompt is empty")
        if self._task is not None:
            raise RuntimeError("a turn is running; steer() or interrupt() it")
        self._probe()
        self._open()
        turn = Turn(
            ports=self._ports,
            log=self._log,
            sampler=self._sampler,
            runner=self._runner,
            room=self._room,
            recovery=Recovery(self._log, self._room),
            options=options or self._options,
            inbox=self._inbox,
            window=self._window,
        )
        entries: list[KnownEntry] = []
        forget = self.listen(lambda e: entries.append(e) if isinstance(e, KnownEntry) else None)
        waited = self._sampler.api_seconds
        self._turn = turn
        self._task = asyncio.ensure_future(turn.run(content))
        try:
            await self._finish(self._task)
        finally:
            self._task = self._turn = None
            self._window = turn.window
            forget()
        self._told.check()
        return summarize(entries, self.state.usage, self._sampler.api_seconds - waited)

    async def compact(self, focus: str = "") -> Compacted | None:
        """Put a summary in place of what came before; ``focus`` is what it is to heed.

        None where there is nothing to compact, a hook forbids it, or ``interrupt`` ended
        it. Raises ``RuntimeError`` while a turn runs, ``SessionError`` where it cannot be
        put on record.
        """
        if self._task is not None:
            raise RuntimeError("a turn is running; interrupt() it")
        if not self.state.transcript.closed:
            return None
        self._open()
        self._room.refused = False
        self._room.due(self._window or self._ports.model.window)
        task = asyncio.ensure_future(self._room.make("manual", MANUALLY_KEPT, None, mend(focus)))
        self._task = task
        try:
            await self._finish(task)
        finally:
            self._task = None
        self._told.check()
        return None if task.cancelled() else task.result()

    async def stream_turn(self, prompt: str | tuple[UserBlock, ...]) -> AsyncGenerator[Event, None]:
        """The same turn as an iterator of its events; leaving it early interrupts the turn.

        A ``break`` alone does not leave it until Python closes the iterator: wrap it in
        ``contextlib.aclosing``, or call ``interrupt`` and read on to the end.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        forget = self.listen(queue.put_nowait)
        task = asyncio.ensure_future(self.run_turn(prompt))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            await task
        finally:
            forget()
            if not task.done():
                self.interrupt()
                await asyncio.wait([task])

    async def close(self) -> None:
        """Interrupt what runs, and wait until it has ended. Idempotent."""
        if self._task is not None:
            self.interrupt()
            await asyncio.wait([self._task])

    async def _finish(self, task: asyncio.Task[Any]) -> None:
        """Wait for the turn; when the waiter is cancelled, the turn is, and ends first."""
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            self.interrupt()
            await asyncio.wait([task])
            raise
        if not task.cancelled():  # an interrupt that came when all was done changes nothing
            task.result()

    def _note(self, entry: ModeChanged | RuleAdded | Titled) -> None:
        """Put on record what somebody changes, also while a turn runs."""
        if self._task is None:
            self._open()
        self._log.record(entry)
        if self._task is None:
            self._told.check()

    def _open(self) -> None:
        """Put the session on record, and end honestly what a killed process left open."""
        if self._opening is not None:
            for entry in self._opening():
                self._log.record(entry)
            self._opening = None
        settle_open(self._log, started=None)
        if self.state.in_turn:
            self._log.record(
                TurnEnded(
                    turn=self.state.turns,
                    stop_reason="interrupted",
                    iterations=self.state.steps,
                    usage=self.state.turn_usage,
                    error=Failure("killed", "the process ended during this turn"),
                )
            )

    def _probe(self) -> None:
        """A session that was compacted must have tools and a workspace that answer."""
        if self.state.compactions == self._probed_at or not self.state.transcript.closed:
            return
        try:
            for spec in self._ports.tools.specs():
                if self._ports.tools.get(spec.name) is None:
                    raise SessionUnhealthy(f"the tool `{spec.name}` does not answer")
            self._ports.workspace.probe()
        except ClawError as error:
            raise SessionUnhealthy(
                f"this session cannot go on: {error.message}",
                hint="Start a new one with `/session new`, or run claw without --continue.",
            ) from error
        self._probed_at = self.state.compactions


class _Mending:
    """Implements ``Redactor``: what is no text (half a character) goes first.

    All that comes from tools, hooks and servers passes here before it is looked at.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def clean(self, text: str) -> str:
        return self._redactor.clean(mend(text))


async def _unchanged() -> None:
    """Nothing else stands before the conversation than before."""


class _FanOut:
    """One stream, many subscribers, none of them known to the loop.

    What one of them raises breaks off nothing that runs. The first such error is kept, for
    ``check`` to raise when that has ended.
    """

    def __init__(self, first: EventSink, listeners: list[Callable[[Event], None]]) -> None:
        self._first = first
        self._listeners = listeners
        self._failure: Exception | None = None

    def emit(self, event: Event) -> None:
        self._first.emit(event)
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:
                self._failure = self._failure or error

    def check(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
