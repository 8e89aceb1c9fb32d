"""``claw.replay``: run a recorded session again, and say where it goes another way.

The turns are run by the real runtime. Everything else is lent from the recording, but
for the parts that are asked for as of today (``live``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from claw.app.furnish import refuse_loops
from claw.app.today import Today
from claw.config.load import FROM_FLAG
from claw.engine.live import RUN, Live, LiveHooks, LiveTools, Part, Place
from claw.engine.structured import KIND
from claw.errors import ConfigError, SessionError, SessionNotFound
from claw.models.decode import decode_again
from claw.models.dialect import SPOKEN
from claw.policy.permissions import ModePolicy
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
from claw.recordings.trajectory import Names, entry_kind, longest_first
from claw.recordings.verify import Difference, Played, Replayed, missing, window
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.limits import Limit, MaxCost, MaxSteps, MaxTokens
from claw.runtime.request import Prompt
from claw.runtime.sample import output_limit
from claw.runtime.turn import TurnOptions
from claw.sessions.blobs import blobs_dir, digest_of, read_blob
from claw.sessions.folding import fold_records
from claw.sessions.load import read_edited, refuse_foreign
from claw.sessions.record import Record
from claw.types.entries import (
    Checkpointed,
    KnownEntry,
    ModeChanged,
    PromptInstalled,
    ReplyReceived,
    Rewound,
    RuleAdded,
    SessionStarted,
    StepRequested,
    Titled,
    ToolFinished,
)
from claw.types.events import AssistantEvent
from claw.types.permissions import Rule
from claw.types.request import Request, Sampling
from claw.types.results import Failure
from claw.types.session import SessionState
from claw.types.tools import ToolSpec
from claw.types.wire import cut

__all__ = ["Live", "Part", "replay", "replay_session"]

Decode = Callable[[str, Iterable[bytes], Request], Iterable[AssistantEvent]]
"""From a dialect, the chunks of a body and the request to events; raises ``ModelError``."""

REWORDED = frozenset({"digests", "digest"})
MOVED = frozenset({"digests", "digest", "spilled", "added"})
"""What tells of texts that name the workspace, which is another one for live tools and hooks."""


def replay(path: str | os.PathLike[str], live: Live | None = None) -> Replayed:
    """Run the session of a journal again; ``path`` is its file.

    Raises ``SessionError`` where it cannot be read, and ``ConfigError`` for parts that are
    to be today's and cannot be had. For scripts without an event loop.
    """
    refuse_loops()
    return asyncio.run(replay_session(os.fspath(path), live))


async def replay_session(
    path: str, live: Live | None = None, *, decode: Decode = decode_again
) -> Replayed:
    """As ``replay``, in an event loop. ``decode`` gets the recorded bytes of replies.

    A record that was changed under its checksum is replayed as it stands, to say what comes of
    it; where nothing does, that is damage as elsewhere: ``SessionCorrupt``.
    """
    refuse_foreign(path)
    records, edited = read_edited(path)
    if not records:
        raise SessionNotFound(f"no session begins in {path}: it is empty")
    if records[0].seq == 1 and not isinstance(records[0].entry, SessionStarted):
        raise SessionNotFound(f"{path} does not begin as a session does")
    with contextlib.ExitStack() as stack:
        run = _Replay(
            path, _unbroken(records), lost=len(records), live=live, stack=stack, decode=decode
        )
        try:
            report = await run.run()
        except SessionError as error:
            raise edited or error from error
    if edited and report.same:
        raise edited  # nothing comes of it, but it is not what was written
    return replace(report, edited=edited.line if edited else None)


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
        decode: Decode,
    ) -> None:
        self._path = path
        self._records = records
        self._live = live or Live()
        self._place: Place | None = None
        self._today: Today | None = None
        self._tools: ToolSet | None = None  # they remember what was read
        self._stack = stack
        self._decode = decode
        self._takes = takes_of(record.entry for record in records)
        self._early = lost > len(records)
        self._read = partial(read_blob, blobs_dir(path))
        self._state = SessionState()
        self._steps = 0
        self._played: list[Played] = []
        self._system: tuple[str, str] | None = None

    async def run(self) -> Replayed:
        differences: list[Difference] = []
        turns = 0
        whole = True  # the turn before
        for take in self._takes:
            if not whole and not take.goes_on_after_kill:
                break
            differences += self._between(take)
            if differences and not self._live.goes_on:
                self._played.append(Played(take.before, take.told, stopped=True))
                break
            if not take.entries:
                self._played.append(Played(take.before, (), ()))
                break
            whole = take.whole
            turns += 1
            self._arrive()
            differences += self._told_anew(take) if turns == 1 else []
            if differences and not self._live.goes_on:
                self._played.append(Played(take.before, take.told, stopped=True))
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
            missing_from=len(self._records) + 1 if self._early else None,
            live=tuple(sorted(self._live.parts)),
            stale=self._stale(),
            played=(*self._played, *self._not_played()),
            system=self._system,
        )

    def _not_played(self) -> Iterator[Played]:
        for take in self._takes[len(self._played) :]:
            yield Played(take.before, take.told)

    def _between(self, take: Take) -> list[Difference]:
        """What happened between turns is taken as it is, unless it belongs into a turn."""
        for entry in take.before:
            if isinstance(entry, PromptInstalled):
                for digest in filter(None, (entry.rules, entry.hooks, entry.instructions)):
                    self._read(digest)
        if any(isinstance(entry, Rewound) for entry in take.before):
            begins = take.entries[0] if take.entries else None
            self._state = fold_records(partial(self._until, begins))
        else:
            for entry in take.before:
                self._state = self._state.fold(entry)
        self._put_back(take)
        if (astray := take.astray) is None:
            return []
        return [Difference(self._state.turns, 0, entry_kind(astray), *missing(astray, None))]

    def _put_back(self, take: Take) -> None:
        """The files of a rewind between turns, in the copy that live parts work in.

        What they became was never written down by itself: it is what the next change found, or
        else what the first one found after the place that the rewind went back to.
        """
        kept = [entry for entry in take.before if isinstance(entry, Checkpointed)]
        if self._place is None or not kept:
            return
        paths = {entry.path for entry in kept}
        to = next((entry.to for entry in take.before if isinstance(entry, Rewound)), None)
        ended = next(r.seq for r in self._records if r.entry is take.before[-1])
        changes = [
            (record.seq, record.entry)
            for record in self._records
            if isinstance(record.entry, Checkpointed) and record.entry.path in paths
        ]
        later = (entry for seq, entry in changes if seq > ended)
        since = (entry for seq, entry in changes if to is not None and seq > to)
        self._place.restore((*later, *since), PlayedBlobs(self._read, _nowhere))

    def _until(self, end: object) -> Iterator[Record]:
        for record in self._records:
            if record.entry is end:
                return
            yield record

    async def _turn(self, take: Take) -> list[Difference]:
        if not take.asks:
            self._played.append(Played(take.before, take.told))
            self._state = _folded(self._state, take)
            values = ("a prompt", "none is left of it")
            return [Difference(take.start.turn, 0, "user_message", "content", *values)]
        for entry in take.entries:
            if isinstance(entry, ToolFinished) and entry.spilled:
                self._read(entry.spilled)  # what is damaged is an error, and no difference
        names = self._names(take)
        moved = bool(self._live.parts & RUN)
        ignored = MOVED if moved else REWORDED if self._anew else frozenset()
        tape = Tape(
            take,
            names=names,
            ignored=ignored,
            stops=not self._live.goes_on,
            show=self._show,
        )
        begun = self._state
        runtime = self._conversation(take, tape)
        with contextlib.suppress(RecordedFault):  # it is on record, as it was then
            await runtime.run_turn(take.prompt)
        tape.finish()
        stopped = bool(tape.differences) and not self._live.goes_on
        played = Played(take.before, take.told, tuple(tape.made), stopped, names, ignored)
        self._played.append(played)
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
        prompt = self._prompt(installed)
        self._system = (prompt.system, self._renewed(prompt).system)
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
                "policy": self._rules_of(installed) != found.kept_rules,
                "hooks": digest_of(found.kept_hooks) != installed.hooks,
                "prompt": found.instructions != self._section(installed),
            }
        except (ConfigError, SessionError):
            return ()
        return tuple(
            part for part, is_so in changed.items() if is_so and part not in self._live.parts
        )

    def _rules_of(self, installed: PromptInstalled) -> list[Rule]:
        """Those of settings: what a flag said then has not changed since."""
        rules = msgspec.json.decode(self._read(installed.rules), type=list[Rule])
        return [rule for rule in rules if not rule.source.startswith(FROM_FLAG)]

    def _flagged(self, installed: PromptInstalled | None) -> list[Rule]:
        if installed is None:
            return []
        rules = msgspec.json.decode(self._read(installed.rules), type=list[Rule])
        return [rule for rule in rules if rule.source.startswith(FROM_FLAG)]

    # -- the turn's ports ----------------------------------------------------------

    def _conversation(self, take: Take, tape: Tape) -> ConversationRuntime:
        ports, compactor, clock = self._ports(tape, self._bodies(take))
        runtime = ConversationRuntime(
            ports,
            state=self._state,
            prompt=self._renewed(self._prompt(self._state.prompt)),
            sampling=_sampling(take, self._state),
            mode=take.start.mode,
            options=_options(take),
            renew=compactor.renew,
        )
        tape.steer, tape.interrupt, tape.expire = runtime.steer, runtime.interrupt, clock.expire
        tape.change = partial(_change, runtime)
        tape.sent = lambda: runtime.state.transcript.messages
        return runtime

    def _ports(
        self, tape: Tape, bodies: Mapping[str, bytes]
    ) -> tuple[Ports, PlayedCompactor, PlayedClock]:
        blobs = PlayedBlobs(self._read, tape.blob_path)
        clock = PlayedClock()
        compactor = PlayedCompactor(tape, self._prompt)
        specs = self._prompt(self._state.prompt).tools
        ports = Ports(
            model=PlayedModel(tape, partial(self._decoded, bodies)),
            tools=PlayedTools(tape, specs, blobs),
            workspace=PlayedWorkspace(tape, self._state.cwd, blobs),
            policy=PlayedPolicy(tape),
            approver=PlayedApprover(tape),
            hooks=PlayedHooks(tape),
            redactor=PlayedRedactor(tape),
            journal=tape,
            blobs=blobs,
            compactor=compactor,
            sink=tape,
            clock=clock,
        )
        if self._place is not None and self._today is not None:
            ports = self._with_live(ports, tape, blobs, self._place, self._today)
        return ports, compactor, clock

    def _bodies(self, take: Take) -> dict[str, bytes]:
        """The bytes of complete replies, as far as they are still here, by digest.

        Raises ``SessionError`` for bytes and pictures that are damaged.
        """
        replies = [entry for entry in take.entries if isinstance(entry, ReplyReceived)]
        named = {*(reply.wire for reply in replies if reply.wire), *take.pictures}
        here = partial(os.path.join, blobs_dir(self._path))
        found = {name: self._read(name) for name in named if os.path.exists(here(name))}
        return {r.wire: found[r.wire] for r in replies if r.complete and r.wire in found}

    def _decoded(
        self, bodies: Mapping[str, bytes], reply: ReplyReceived, request: Request
    ) -> Iterable[AssistantEvent] | None:
        if reply.wire not in bodies or reply.wire_dialect not in SPOKEN:
            return None
        chunks = cut(bodies[reply.wire], reply.wire_sizes)
        return self._decode(reply.wire_dialect, chunks, request)

    def _with_live(
        self, ports: Ports, tape: Tape, blobs: PlayedBlobs, place: Place, found: Today
    ) -> Ports:
        parts = self._live.parts
        if parts & {"tools", "hooks"}:  # they may tell of secrets, as they may have then
            ports = replace(ports, redactor=PlayedRedactor(tape, found.redactor))
        if parts & {"tools", "policy"}:
            workspace = place.workspace()
            if self._tools is None:
                self._tools = place.tools(found, workspace)
            if "tools" in parts:
                paths = (self._state.cwd, place.root)
                only = workspace if place.copied else None
                ports = replace(
                    ports,
                    tools=LiveTools(tape, ports.tools, self._tools, paths, only),
                    workspace=workspace,
                )
            else:
                played = PlayedTools(tape, ports.tools.specs(), blobs, self._tools)
                ports = replace(ports, tools=played)
        if "policy" in parts:
            rules = (*found.policy.rules, *self._flagged(self._state.prompt))
            ports = replace(ports, policy=ModePolicy(rules))
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

    def _hook_commands(self) -> dict[str, str]:
        """Of then and of today, by their digests."""
        installed = self._state.prompt
        declared = [] if installed is None else [self._read(installed.hooks)]
        if self._today is not None:
            declared.append(self._today.kept_hooks)
        hooks = (hook for kept in declared for hook in msgspec.json.decode(kept))
        return {hook["digest"]: hook["command"] for hook in hooks}

    def _prompt(self, installed: PromptInstalled | None) -> Prompt:
        if installed is None:
            return Prompt("", ())
        specs = msgspec.json.decode(self._read(installed.tools), type=tuple[ToolSpec, ...])
        return Prompt(self._read(installed.system).decode(), specs)

    def _show(self, digest: str) -> str | None:
        if (command := self._hook_commands().get(digest)) is not None:
            return command
        try:
            return self._read(digest).decode("utf-8", "replace")
        except SessionError:
            return None


def _folded(state: SessionState, take: Take) -> SessionState:
    for entry in take.told:
        state = state.fold(entry)
    return state


def _sampling(take: Take, begun: SessionState) -> Sampling:
    """What the turn's requests begin with."""
    asked = [entry for entry in take.entries if isinstance(entry, StepRequested)]
    if not asked:
        return Sampling("nobody was asked")
    return Sampling(asked[0].model, _chosen_limit(take, asked, begun), asked[0].effort)


def _chosen_limit(take: Take, asked: Sequence[StepRequested], begun: SessionState) -> int | None:
    """The output limit that somebody chose: retries, and calls that were cut, change it."""
    if any(entry.max_tokens is None for entry in asked):
        return None
    limits = (None, *sorted({entry.max_tokens for entry in asked if entry.max_tokens}))
    return next((n for n in limits if _explains(n, take, begun)), asked[0].max_tokens)


def _explains(chosen: int | None, take: Take, state: SessionState) -> bool:
    """Claims that every request of the turn would have the limit that it has."""
    for entry in take.told:
        if isinstance(entry, StepRequested) and entry.max_tokens != output_limit(chosen, state):
            return False
        state = state.fold(entry)
    return True


def _options(take: Take) -> TurnOptions:
    limits = take.start.limits
    listed = [made for name, value in limits.items() if (made := _limit(name, value))]
    end = take.end
    return TurnOptions(
        limits=tuple(listed),
        max_seconds=limits.get("max_time"),
        fail_on_denied=end is not None and end.stop_reason == "permission_denied",
        origin=take.start.origin,
        verdict=partial(_verdict, take),
        denials=take.start.denials,
    )


def _verdict(take: Take) -> Failure | None:
    """What was wrong with the last answer, by a schema that is not on record."""
    error = take.end.error if take.end is not None else None
    return error if error is not None and error.kind == KIND else None


def _change(runtime: ConversationRuntime, entry: KnownEntry) -> None:
    match entry:
        case ModeChanged(mode=mode):
            runtime.set_mode(mode)
        case Titled(title=title):
            runtime.rename(title)
        case RuleAdded(rule=rule):
            runtime.add_rule(rule)


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
