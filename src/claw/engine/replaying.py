"""``claw.replay``: run a recorded session again, and say where it goes another way.

The turns are run by the real runtime. Everything else is lent from the recording, but
for the parts that are asked for as of today (``live``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
from msgspec.structs import replace

from claw.app import Today
from claw.engine.live import Live, LiveHooks, LiveTools, Part, Place
from claw.errors import ConfigError, SessionError
from claw.ports import Ports, ToolSet
from claw.prompts.system import with_instructions
from claw.recordings.play import (
    PlayedApprover,
    PlayedBlobs,
    PlayedClock,
    PlayedCompactor,
    PlayedHooks,
    PlayedModel,
    PlayedPolicy,
    PlayedRedactor,
    PlayedTools,
    PlayedWorkspace,
    Tape,
)
from claw.recordings.record import RecordedFault, Take, takes_of
from claw.recordings.trajectory import Names, longest_first
from claw.recordings.verify import Difference, Replayed, window
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.limits import Limit, MaxCost, MaxSteps, MaxTokens
from claw.runtime.request import Prompt
from claw.runtime.turn import TurnOptions
from claw.sessions.blobs import blobs_dir, digest_of, read_blob
from claw.sessions.folding import fold_records
from claw.sessions.load import read_entries
from claw.sessions.record import Record
from claw.types.entries import Event, PromptInstalled, Rewound, StepRequested
from claw.types.request import Sampling
from claw.types.session import SessionState
from claw.types.tools import ToolSpec

__all__ = ["Live", "Part", "replay", "replay_session"]

REWORDED = frozenset({"digests"})
MOVED = frozenset({"digests", "spilled", "added"})
"""What tells of texts that name the workspace, which is another one for live tools."""


def replay(path: str | os.PathLike[str], live: Live | None = None) -> Replayed:
    """Run the session of a journal again; ``path`` is its file.

    Raises ``SessionError`` where it cannot be read, and ``ConfigError`` for parts that are
    to be today's and cannot be had. For scripts without an event loop.
    """
    return asyncio.run(replay_session(os.fspath(path), live))


async def replay_session(path: str, live: Live | None = None) -> Replayed:
    """As ``replay``, in an event loop."""
    records = [*read_entries(path)]
    with contextlib.ExitStack() as stack:
        run = _Replay(path, _unbroken(records), lost=len(records), live=live, stack=stack)
        return await run.run()


def _unbroken(records: Iterable[Record]) -> list[Record]:
    """Up to the first that is missing: what follows was made from what nobody knows."""
    found: list[Record] = []
    for record in records:
        if record.seq != len(found) + 1:
            break
        found.append(record)
    return found


class _Replay:
    """``live`` None asks this machine for nothing at all, not even for what is stale."""

    def __init__(
        self,
        path: str,
        records: list[Record],
        *,
        lost: int,
        live: Live | None,
        stack: contextlib.ExitStack,
    ) -> None:
        self._path = path
        self._records = records
        self._live = live or Live()
        self._place: Place | None = None
        self._today: Today | None = None
        self._tools: ToolSet | None = None  # they remember what was read
        self._stack = stack
        self._takes = takes_of(record.entry for record in records)
        self._early = lost > len(records)
        self._read = partial(read_blob, blobs_dir(path))
        self._state = SessionState()
        self._steps = 0

    async def run(self) -> Replayed:
        differences: list[Difference] = []
        turns = 0
        whole = True  # the turn before
        for take in self._takes:
            if not whole and not take.goes_on_after_kill:
                break
            self._between(take)
            if not take.entries:
                break
            whole = take.whole
            turns += 1
            self._arrive()
            differences += self._told_anew(take) if turns == 1 else []
            if differences and not self._live.goes_on:
                break
            differences += await self._turn(take)
            if differences and not self._live.goes_on:
                break
        return Replayed(
            session_id=self._state.session_id,
            turns=turns,
            steps=self._steps,
            differences=tuple(differences),
            ended_early=self._early or not whole,
            live=tuple(sorted(self._live.parts)),
            stale=self._stale(),
        )

    def _between(self, take: Take) -> None:
        """What happened between turns is taken as it is."""
        if any(isinstance(entry, Rewound) for entry in take.before):
            begins = take.entries[0] if take.entries else None
            self._state = fold_records(partial(self._until, begins))
            return
        for entry in take.before:
            self._state = self._state.fold(entry)

    def _until(self, end: object) -> Iterator[Record]:
        for record in self._records:
            if record.entry is end:
                return
            yield record

    async def _turn(self, take: Take) -> list[Difference]:
        tape = Tape(
            take,
            names=self._names(take),
            ignored=MOVED if "tools" in self._live.parts else REWORDED if self._anew else (),
            stops=not self._live.goes_on,
            show=self._show,
        )
        begun = self._state
        runtime = self._conversation(take, tape)
        with contextlib.suppress(RecordedFault):  # it is on record, as it was then
            await runtime.run_turn(take.prompt)
        tape.finish()
        self._steps += len({e.step for e in tape.made if isinstance(e, StepRequested)})
        self._state = runtime.state if take.whole else _folded(begun, take)
        return tape.differences

    # -- what is today's -----------------------------------------------------------

    @property
    def _anew(self) -> bool:
        return "prompt" in self._live.parts

    def _arrive(self) -> None:
        """Once the session is known: where it works, and what stands there now."""
        if self._place is not None or not self._live.parts:
            return
        self._place = place = Place(self._live, self._state.cwd, self._stack)
        self._today = place.today(self._prompt(self._state.prompt).tools)
        place.restore((r.entry for r in self._records), PlayedBlobs(self._read, _nowhere))

    def _names(self, take: Take) -> Names:
        """One name for the workspace, wherever it is."""
        if self._place is None:
            return ()
        places = (self._state.cwd, self._place.source, self._place.root)
        blobs = {os.path.dirname(p): "${BLOBS}" for p in Tape(take).blob_paths()}
        return longest_first({**dict.fromkeys(places, "${CWD}"), **blobs})

    def _told_anew(self, take: Take) -> list[Difference]:
        """The system prompt with today's instruction files, against the recorded one."""
        installed = self._state.prompt
        if not self._anew or self._today is None or installed is None:
            return []
        recorded = self._section(installed)
        if recorded == self._today.instructions:
            return []
        values = window(recorded, self._today.instructions)
        return [Difference(take.start.turn, 0, "prompt_installed", "system", *values)]

    def _section(self, installed: PromptInstalled) -> str:
        return self._read(installed.instructions).decode() if installed.instructions else ""

    def _stale(self) -> tuple[str, ...]:
        """Parts that have changed since, where nobody asked for today's."""
        installed = self._state.prompt
        if not self._live.env or installed is None or not os.path.isdir(self._state.cwd):
            return ()
        try:
            specs = self._prompt(installed).tools
            found = Place(Live(env=self._live.env), self._state.cwd, self._stack).today(specs)
            changed = {
                "policy": digest_of(found.kept_rules) != installed.rules,
                "hooks": digest_of(found.kept_hooks) != installed.hooks,
                "prompt": found.instructions != self._section(installed),
            }
        except (ConfigError, SessionError):
            return ()
        return tuple(
            part for part, is_so in changed.items() if is_so and part not in self._live.parts
        )

    # -- the turn's ports ----------------------------------------------------------

    def _conversation(self, take: Take, tape: Tape) -> ConversationRuntime:
        ports, compactor, clock = self._ports(tape)
        runtime = ConversationRuntime(
            ports,
            state=self._state,
            prompt=self._renewed(self._prompt(self._state.prompt)),
            sampling=_sampling(take),
            mode=take.start.mode,
            options=_options(take),
            renew=compactor.renew,
        )
        tape.steer, tape.interrupt, tape.expire = runtime.steer, runtime.interrupt, clock.expire
        return runtime

    def _ports(self, tape: Tape) -> tuple[Ports, PlayedCompactor, PlayedClock]:
        blobs = PlayedBlobs(self._read, tape.blob_path)
        clock = PlayedClock()
        compactor = PlayedCompactor(tape, self._prompt)
        specs = self._prompt(self._state.prompt).tools
        ports = Ports(
            model=PlayedModel(tape),
            tools=PlayedTools(tape, specs, blobs),
            workspace=PlayedWorkspace(tape, self._state.cwd, blobs),
            policy=PlayedPolicy(tape),
            approver=PlayedApprover(tape),
            hooks=PlayedHooks(tape),
            redactor=PlayedRedactor(),
            journal=tape,
            blobs=blobs,
            compactor=compactor,
            sink=_Nobody(),
            clock=clock,
        )
        if self._place is not None and self._today is not None:
            ports = self._with_live(ports, tape, blobs, self._place, self._today)
        return ports, compactor, clock

    def _with_live(
        self, ports: Ports, tape: Tape, blobs: PlayedBlobs, place: Place, found: Today
    ) -> Ports:
        parts = self._live.parts
        if parts & {"tools", "policy"}:
            workspace = place.workspace()
            if self._tools is None:
                self._tools = place.tools(found, workspace)
            if "tools" in parts:
                paths = (self._state.cwd, place.root)
                ports = replace(
                    ports,
                    tools=LiveTools(tape, ports.tools, self._tools, paths),
                    workspace=workspace,
                )
            else:
                played = PlayedTools(tape, ports.tools.specs(), blobs, self._tools)
                ports = replace(ports, tools=played)
        if "policy" in parts:
            ports = replace(ports, policy=found.policy)
        if "hooks" in parts:
            hooks = place.hooks(found, self._state.session_id, self._path, ports.tools.specs())
            ports = replace(ports, hooks=LiveHooks(tape, hooks))
        return ports

    def _renewed(self, prompt: Prompt) -> Prompt:
        if not self._anew or self._today is None or self._state.prompt is None:
            return prompt
        before = self._section(self._state.prompt)
        return replace(
            prompt, system=with_instructions(prompt.system, before, self._today.instructions)
        )

    def _prompt(self, installed: PromptInstalled | None) -> Prompt:
        if installed is None:
            return Prompt("", ())
        specs = msgspec.json.decode(self._read(installed.tools), type=tuple[ToolSpec, ...])
        return Prompt(self._read(installed.system).decode(), specs)

    def _show(self, digest: str) -> str | None:
        try:
            return self._read(digest).decode("utf-8", "replace")
        except SessionError:
            return None


def _folded(state: SessionState, take: Take) -> SessionState:
    for entry in take.entries:
        state = state.fold(entry)
    return state


def _sampling(take: Take) -> Sampling:
    """What the turn's requests begin with: retries and calls that were cut change the limit."""
    asked = [entry for entry in take.entries if isinstance(entry, StepRequested)]
    if not asked:
        return Sampling("nobody was asked")
    limited = all(entry.max_tokens is not None for entry in asked)
    first = asked[0]
    return Sampling(first.model, first.max_tokens if limited else None, first.effort)


def _options(take: Take) -> TurnOptions:
    limits = take.start.limits
    listed = [made for name, value in limits.items() if (made := _limit(name, value))]
    end = take.end
    return TurnOptions(
        limits=tuple(listed),
        max_seconds=limits.get("max_time"),
        fail_on_denied=end is not None and end.stop_reason == "permission_denied",
        origin=take.start.origin,
    )


def _limit(name: str, value: float) -> Limit | None:
    match name:
        case "max_turns":
            return MaxSteps(int(value))
        case "max_budget_tokens" | "session_budget_tokens":
            return MaxTokens(int(value), name)
        case "max_budget_usd" | "session_budget_usd":
            return MaxCost(value, name)
    return None


def _nowhere(digest: str) -> str | None:
    return None


class _Nobody:
    def emit(self, event: Event) -> None:
        """Nobody listens."""
