"""The composition root: the one file that furnishes the house.

A front end says what it wishes for; ``furnish`` reads the settings, picks the
adapters, opens the session and hands out a ``ConversationRuntime``. Rooms get
plain arguments and know nothing of each other.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from claw.compaction.compactor import PruningCompactor
from claw.compaction.plan import Estimates
from claw.compaction.summarize import Summarizer
from claw.compaction.trigger import Policy
from claw.config.load import Loaded, load_settings
from claw.config.paths import home_directory
from claw.config.settings import Provider
from claw.errors import ConfigError, SessionError, SessionNotFound, ToolFailed, WrongUse
from claw.models.cache_watch import CacheWatch
from claw.models.catalog import lookup
from claw.models.estimate import estimate_request, estimate_tokens
from claw.models.fallback import FallbackModel, Link
from claw.models.offline.client import CONNECT_HINT, OfflineModel
from claw.models.registry import ModelChoice, Profile, build, resolve
from claw.models.script_files import load_script
from claw.models.scripted import ScriptedModel
from claw.models.transport import HttpTransport
from claw.policy.headless import HeadlessApprover
from claw.policy.hooks.declared import HookDeclaration, declare, matcher_problem
from claw.policy.hooks.runner import CommandHooks
from claw.policy.permissions import ModePolicy
from claw.policy.redact import SHORTEST, KnownSecrets, known_secrets
from claw.policy.rules import parse_rule
from claw.ports import (
    Approver,
    Blobs,
    Clock,
    Disk,
    EventSink,
    Ids,
    Journal,
    ModelClient,
    Ports,
    Processes,
    Redactor,
    Tool,
)
from claw.prompts.environment import gather_environment
from claw.prompts.instructions import Discovered, discover_instructions
from claw.prompts.system import build_system_prompt, instructions_section, with_instructions
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.limits import Limit, MaxCost, MaxSteps, MaxTokens
from claw.runtime.request import Prompt
from claw.runtime.turn import TurnOptions
from claw.sessions.blobs import MemoryBlobs, blobs_dir
from claw.sessions.directories import may_create, memory_only
from claw.sessions.fork import fork
from claw.sessions.index import find, session_path
from claw.sessions.journal import FileJournal, MemoryJournal
from claw.sessions.load import read_entries
from claw.sessions.record import Record, utc
from claw.tools.catalog import ToolList, builtin_tools
from claw.types.entries import (
    SCHEMA,
    Event,
    KnownEntry,
    ModeChanged,
    Origin,
    PromptInstalled,
    SessionStarted,
)
from claw.types.events import Notice
from claw.types.permissions import MODE_ALIASES, MODES, PermissionMode, Rule
from claw.types.request import Sampling
from claw.types.results import TurnSummary
from claw.types.session import SessionState
from claw.types.tools import ToolSpec
from claw.types.usage import Usage
from claw.version import __version__
from claw.workspace.clock import SystemClock, SystemIds
from claw.workspace.disk import SystemDisk
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

__all__ = [
    "House",
    "Lent",
    "Today",
    "Wishes",
    "choose_model",
    "connect",
    "furnish",
    "open_conversation",
    "profiles",
    "run",
    "secrets_of",
    "split_names",
    "today",
]


WHERE = (
    "The messages themselves are kept in the session's journal, for the user to look at. Where a "
    "result names a file with its full text, that file can still be read."
)
"""What the model is told of messages that a compaction took away."""

Reason = Literal["start", "compaction", "model", "tools", "instructions"]


class Wishes(msgspec.Struct, frozen=True):
    """What a front end asks for. None means: as the settings say.

    ``session`` is ``latest`` or a reference (id, prefix, path) to go on with; with ``fork``
    that goes on in a copy, which gets ``session_id`` or an id of its own;
    ``ephemeral`` keeps the session in memory only. ``tools`` is what is offered
    (names or aliases), ``allow`` and ``deny`` are rules. ``fallback`` names models to
    ask while ``model`` is not available. Times are in seconds. ``auto_compact`` is as
    ``compaction.threshold`` in the settings, 0 for never.
    ``at_once`` says that a turn follows without a person waiting at a prompt first.
    ``record_wire`` keeps the bytes of every reply in the session.
    """

    cwd: str = "."
    model: str | None = None
    fallback: tuple[str, ...] = ()
    mode: str | None = None
    session: str | None = None
    fork: bool = False
    session_id: str | None = None
    ephemeral: bool = False
    system_prompt: str | None = None
    append_system_prompt: str = ""
    tools: tuple[str, ...] | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    settings_file: str | None = None
    max_steps: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    auto_compact: float | None = None
    fail_on_denied: bool = False
    effort: str = ""
    origin: Origin = "user"
    at_once: bool = False
    record_wire: bool = False
    env: Mapping[str, str] = {}


class Lent(msgspec.Struct, frozen=True):
    """Parts that a test or a program brings along; None takes the real one.

    ``name`` is what requests call the lent model; with ``alone`` no other one is asked,
    whatever the settings name. ``tools`` are offered besides claw's own.
    """

    model: ModelClient | None = None
    name: str = "scripted"
    alone: bool = False
    clock: Clock | None = None
    ids: Ids | None = None
    disk: Disk | None = None
    tools: tuple[Tool, ...] = ()


class House(msgspec.Struct, frozen=True):
    """A furnished conversation and what a front end may want to know of it.

    ``notices`` are for the person, before the first turn. ``journal_path`` is
    None for a session in memory, ``blobs`` are the session's; ``records`` reads all that
    was put on record, and raises ``SessionError``.
    """

    runtime: ConversationRuntime
    choice: ModelChoice
    loaded: Loaded
    session_id: str
    journal_path: str | None
    blobs: Blobs
    records: Callable[[], Iterable[Record]]
    cwd: str
    tools: tuple[ToolSpec, ...]
    system: str
    new: bool
    notices: tuple[Notice, ...]
    stack: AsyncExitStack

    async def close(self) -> None:
        """End what runs and release everything, in the reverse order of its making."""
        await self.runtime.close()
        await self.stack.aclose()


async def furnish(
    wishes: Wishes,
    *,
    approver: Approver | None = None,
    sink: EventSink | None = None,
    lent: Lent | None = None,
) -> House:
    """Build everything for one session, new or resumed.

    Nothing is written before the first turn. Raises ``ConfigError`` and ``SessionError``.
    """
    stack = AsyncExitStack()
    try:
        return await _furnish(wishes, approver, sink, lent or Lent(), stack)
    except BaseException:
        await stack.aclose()
        raise


async def _furnish(
    wishes: Wishes,
    approver: Approver | None,
    sink: EventSink | None,
    lent: Lent,
    stack: AsyncExitStack,
) -> House:
    cwd = _existing_directory(wishes.cwd)
    loaded = _settings(wishes, cwd)
    lent_choice = ModelChoice("script", "lent", "lent")
    choice = lent_choice if lent.model is not None else choose_model(loaded, wishes.env)
    choices = (choice, *(() if lent.alone else _fallbacks(choice, loaded, wishes.env)))
    clock, disk = lent.clock or SystemClock(), lent.disk or SystemDisk()
    ids = lent.ids or SystemIds()
    opened = _open_session(wishes, loaded.homes.config, cwd, clock=clock, ids=ids, disk=disk)
    stack.callback(opened.close)
    processes = LocalProcesses(
        cwd,
        wishes.env,
        Guard(),
        added=loaded.settings.env,
        owns_process=wishes.origin != "sdk",  # a host program may have children of its own
    )
    stack.callback(processes.close)
    workspace = _workspace(cwd, wishes, loaded, opened, disk)

    # The system prompt waits for git; what takes long to load is loaded meanwhile.
    system, links = await asyncio.gather(
        _system_prompt(wishes, loaded, opened, date=utc(clock.now())[:10], processes=processes),
        _chain(
            choices,
            lent,
            partial(
                connect,
                opened.blobs,
                stack,
                at_once=wishes.at_once,
                record_wire=wishes.record_wire,
                places=_places(wishes, cwd, opened.path),
            ),
        ),
    )
    if loaded.settings.limits.max_budget_usd is not None:
        _refuse_unpriced(links)

    redactor = KnownSecrets(secrets_of(loaded, wishes.env))

    def tell(notice: Notice) -> None:
        runtime.tell(notice)

    def hidden(path: str) -> bool:
        return policy.hides(path)  # made below: rules are read with the tools' names at hand

    builtin = builtin_tools(workspace, processes, hidden=hidden)
    offered = [*builtin, *lent.tools]
    tools = ToolList(offered, only=wishes.tools)
    policy, rule_notices = _policy(loaded, [tool.spec for tool in offered])
    hooks, hook_notices = _hooks(loaded)
    mode = _mode(loaded.settings.permissions.default_mode)

    def installed(text: str, reason: Reason) -> PromptInstalled:
        parts = (policy.rules, hooks)
        return replace(
            _installed(opened.blobs, redactor, text, tools.specs(), parts, reason=reason),
            instructions=_section_kept(opened, instructions.section),
        )

    instructions = _Told(system.instructions)

    async def renew() -> tuple[Prompt, PromptInstalled] | None:
        before = runtime.prompt
        now = instructions_section(_found(loaded, cwd).instructions)
        text = with_instructions(before.system, instructions.section, now)
        instructions.section = now
        if text == before.system:
            return None
        return replace(before, system=text), installed(text, "compaction")

    def opening() -> list[KnownEntry]:
        entries = [*opened.opening]
        before, now = opened.state.prompt, installed(system.text, "start")
        if before is None:
            entries.append(now)
        elif replace(before, reason="start") != now:
            entries.append(replace(now, reason="tools"))
        if wishes.mode is not None and opened.state.mode not in (None, mode):
            entries.append(ModeChanged(mode))
        return entries

    model = links[0].client if len(links) == 1 else FallbackModel(links, tell)
    writer = None if lent.alone else _summarizer(loaded, wishes, opened.blobs, stack)
    if writer is not None and loaded.settings.limits.max_budget_usd is not None:
        _refuse_unpriced([Link(writer.client, writer.model)])
    if writer is None and choice.base_url:  # neither a script nor offline, nor lent
        writer = Summarizer(model, choice.model, estimate_tokens)
    runtime = ConversationRuntime(
        Ports(
            model=CacheWatch(model, clock),
            tools=tools,
            workspace=workspace,
            policy=policy,
            approver=approver or HeadlessApprover(),
            hooks=CommandHooks(
                hooks,
                processes,
                session_id=opened.session_id,
                transcript_path=opened.path or "",
                cwd=cwd,
                clock=clock,
                project_dir=loaded.homes.project,
                specs=tools.specs(),
            ),
            redactor=redactor,
            journal=opened.journal,
            blobs=opened.blobs,
            compactor=PruningCompactor(
                _compaction(loaded, choice),
                Estimates(estimate_request, estimate_tokens),
                tell,
                summarizer=writer,
                where=WHERE,
            ),
            sink=sink or _Nobody(),
            clock=clock,
        ),
        state=opened.state,
        opening=opening,
        prompt=Prompt(system.text, tools.specs()),
        sampling=Sampling(
            lent.name if choice.kind == "script" else choice.model,
            loaded.settings.max_output_tokens,
            loaded.settings.effort or "",
        ),
        mode=mode,
        options=_options(wishes, loaded),
        renew=renew,
    )
    return House(
        runtime=runtime,
        choice=choice,
        loaded=loaded,
        session_id=opened.session_id,
        journal_path=opened.path,
        blobs=opened.blobs,
        records=opened.records,
        cwd=cwd,
        tools=tools.specs(),
        system=system.text,
        new=opened.state.prompt is None,
        notices=(
            *(Notice("settings", "warning", str(problem)) for problem in loaded.problems),
            *(Notice("session", "info", note) for note in opened.told),
            *(Notice("session", "warning", note) for note in opened.notes),
            *(Notice("instructions", "warning", note) for note in system.notes),
            *rule_notices,
            *hook_notices,
            *_about_the_model(choice),
            *(_about_the_wire(choices) if wishes.record_wire and lent.model is None else ()),
        ),
        stack=stack,
    )


@asynccontextmanager
async def open_conversation(
    cwd: str = ".",
    *,
    model: str | ModelClient | None = None,
    permission_mode: str | None = None,
    session: str | None = None,
    approver: Approver | None = None,
    tools: tuple[Tool, ...] = (),
    settings: str | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncGenerator[ConversationRuntime, None]:
    """``claw.open``: a conversation for a program.

    ``model`` is a name or a client; ``session`` a reference to go on with;
    ``tools`` are offered besides claw's own; ``settings`` is a settings file.
    Without an ``approver``, what would be asked is denied.
    """
    named = model if isinstance(model, str) or model is None else None
    wishes = Wishes(
        cwd=cwd,
        model=named,
        mode=permission_mode,
        session=session,
        settings_file=settings,
        origin="sdk",
        env=dict(os.environ if env is None else env),
    )
    lent = Lent(model=None if isinstance(model, str) else model, tools=tools)
    house = await furnish(wishes, approver=approver, lent=lent)
    try:
        yield house.runtime
    finally:
        await house.close()


def run(prompt: str, cwd: str = ".", **options: Any) -> TurnSummary:
    """``claw.run``: one turn in a conversation of its own; ``options`` as for ``claw.open``.

    For scripts without an event loop; inside one, use ``claw.open``.
    """

    async def turn() -> TurnSummary:
        async with open_conversation(cwd, **options) as conversation:
            return await conversation.run_turn(prompt)

    return asyncio.run(turn())


class _Nobody:
    def emit(self, event: Event) -> None:
        """Nobody listens."""


# -- settings ------------------------------------------------------------------


def _existing_directory(path: str) -> str:
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise ConfigError(f"{path} is not a directory", hint="Name an existing one with `--cwd`.")
    return real


def _settings(wishes: Wishes, cwd: str) -> Loaded:
    flags: dict[str, Any] = {
        "model": wishes.model,
        "fallbackModel": ",".join(wishes.fallback) or None,
        "effort": wishes.effort or None,
        "permissions.defaultMode": wishes.mode,
        "permissions.allow": list(wishes.allow) or None,
        "permissions.deny": list(wishes.deny) or None,
        "permissions.additionalDirectories": list(wishes.add_dirs) or None,
        "limits.maxTurns": wishes.max_steps,
        "limits.maxBudgetTokens": wishes.max_tokens,
        "limits.maxBudgetUsd": wishes.max_usd,
        "limits.maxTime": wishes.max_seconds,
        "compaction.auto": None if wishes.auto_compact is None else wishes.auto_compact > 0,
        "compaction.threshold": wishes.auto_compact or None,
    }
    given = {key: value for key, value in flags.items() if value is not None}
    return load_settings(cwd=cwd, env=wishes.env, flags=given, settings_file=wishes.settings_file)


def _mode(setting: str | None) -> PermissionMode:
    named = MODE_ALIASES.get(setting or "default", setting or "default")
    return next(mode for mode in MODES if mode == named)


def _options(wishes: Wishes, loaded: Loaded) -> TurnOptions:
    """Where limits are listed: one line each."""
    limits = loaded.settings.limits
    listed: list[Limit] = [MaxSteps(limits.max_turns) if limits.max_turns else MaxSteps()]
    if limits.max_budget_tokens:
        listed.append(MaxTokens(limits.max_budget_tokens))
    if limits.max_budget_usd:
        listed.append(MaxCost(limits.max_budget_usd))
    return TurnOptions(
        limits=tuple(listed),
        max_seconds=limits.max_time,
        fail_on_denied=wishes.fail_on_denied,
        origin=wishes.origin,
    )


def _policy(loaded: Loaded, specs: Sequence[ToolSpec]) -> tuple[ModePolicy, list[Notice]]:
    rules: list[Rule] = []
    problems: list[Notice] = []
    for text in loaded.rules:
        parsed = parse_rule(text.text, text.behavior, text.source, specs)
        if isinstance(parsed, Rule):
            rules.append(parsed)
        elif parsed.behavior == "deny" and text.layer not in ("project", "project-local"):
            # Better no start than one without its fence; but a project cannot prevent one.
            raise ConfigError(str(parsed), hint="Correct the rule, or take it out.")
        else:
            problems.append(Notice("rule", "warning", str(parsed)))
    return ModePolicy(rules), problems


def _hooks(loaded: Loaded) -> tuple[tuple[HookDeclaration, ...], list[Notice]]:
    hooks: list[HookDeclaration] = []
    problems: list[Notice] = []
    for hook in loaded.hooks:
        if problem := matcher_problem(hook.matcher):
            problems.append(Notice("hook", "warning", f"{hook.source}: {problem}"))
        hooks.append(
            declare(
                hook.event,
                hook.command,
                matcher=hook.matcher,
                timeout=hook.timeout,
                on_failure=hook.on_failure,
                source=hook.source,
            )
        )
    return tuple(hooks), problems


# -- the model -----------------------------------------------------------------


def choose_model(loaded: Loaded, env: Mapping[str, str]) -> ModelChoice:
    """The model that settings and environment come to. Raises ``ConfigError``."""
    return resolve(loaded.settings.model, env=env, profiles=profiles(loaded))


def _fallbacks(
    choice: ModelChoice, loaded: Loaded, env: Mapping[str, str]
) -> tuple[ModelChoice, ...]:
    """Raises ``ConfigError`` for one that cannot be asked: it would be found out too late."""
    named = split_names(loaded.settings.fallback_model or "")
    others = [resolve(name, env=env, profiles=profiles(loaded)) for name in named]
    if any(other.kind == "offline" for other in others):
        raise ConfigError(
            "the offline model cannot stand in for another one",
            hint="Take it out of `--fallback-model` or `fallbackModel`.",
        )
    first = (choice.provider, choice.model)
    return tuple(other for other in others if (other.provider, other.model) != first)


def split_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def profiles(loaded: Loaded) -> dict[str, Profile]:
    """The model servers from the settings, by name."""
    return {name: _profile(given) for name, given in loaded.settings.providers.items()}


def secrets_of(loaded: Loaded, env: Mapping[str, str]) -> dict[str, str]:
    """What must not be shown or kept, value by name: of the environment and the settings."""
    found = known_secrets({**env, **loaded.settings.env})
    for name, provider in loaded.settings.providers.items():
        key = env.get(provider.api_key_env, "").strip() if provider.api_key_env else ""
        named = {provider.api_key_env: key} | {
            f"{name}.{k}": v for k, v in provider.headers.items()
        }
        found |= {k: v.strip() for k, v in named.items() if len(v.strip()) >= SHORTEST}
    return found


def _profile(given: Provider) -> Profile:
    return Profile(
        dialect=given.dialect,
        base_url=given.base_url,
        api_key_env=given.api_key_env,
        headers=given.headers,
        context_window=given.context_window,
        max_output=given.max_output,
        quirks=tuple(name for name, on in given.quirks.items() if on),
        tools=given.tools,
    )


async def _chain(
    choices: Sequence[ModelChoice], lent: Lent, client: Callable[[ModelChoice], ModelClient]
) -> tuple[Link, ...]:
    """The models to ask, in this order. A lent one stands for the first choice."""
    first = lent.model or client(choices[0])
    return (
        Link(first, choices[0].model),
        *(Link(client(choice), choice.model) for choice in choices[1:]),
    )


def _compaction(loaded: Loaded, choice: ModelChoice) -> Policy:
    settings = loaded.settings
    given = settings.compaction
    reserve = settings.max_output_tokens or lookup(choice.model).max_tokens
    if given.threshold is None:
        return Policy(given.auto, reserve=reserve)
    return Policy(given.auto, given.threshold, reserve)


def _summarizer(
    loaded: Loaded, wishes: Wishes, blobs: Blobs, stack: AsyncExitStack
) -> Summarizer | None:
    """Another model for summaries, where the settings name one. Raises ``ConfigError``."""
    if not (name := loaded.settings.compaction.model):
        return None
    choice = resolve(name, env=wishes.env, profiles=profiles(loaded))
    if choice.kind == "offline":
        return None
    client = connect(blobs, stack, choice)
    return Summarizer(client, choice.model, estimate_tokens)


def _refuse_unpriced(links: Sequence[Link]) -> None:
    for link in links:
        if link.client.cost(Usage(), link.model) is None:
            raise WrongUse(
                f"a budget in dollars needs a price, and that of `{link.model}` is not known",
                hint="Use `--max-budget-tokens`, or another model.",
            )


def connect(
    blobs: Blobs,
    stack: AsyncExitStack,
    choice: ModelChoice,
    *,
    at_once: bool = False,
    record_wire: bool = False,
    places: Mapping[str, str] | None = None,
) -> ModelClient:
    """A client for it, until ``stack`` is closed. ``blobs`` are those of its requests.

    ``record_wire`` as for ``build``, ``places`` as for ``load_script``. Raises ``ConfigError``.
    """
    match choice.kind:
        case "offline":
            return OfflineModel()
        case "script":
            return ScriptedModel(load_script(choice.model, places))
        case "chaos":
            raise ConfigError(
                "`chaos:` is for tests: wrap a client in `claw.testing.ChaosModel`",
                hint="Name a model, or `offline`.",
            )
        case _:
            transport = HttpTransport()
            stack.push_async_callback(transport.aclose)
            if at_once:
                transport.warm(choice.base_url)
            return build(choice, transport=transport, blobs_get=blobs.get, record_wire=record_wire)


def _places(wishes: Wishes, cwd: str, journal: str | None) -> dict[str, str]:
    """What the names in a recording stand for."""
    own = {"BLOBS": blobs_dir(journal)} if journal else {}
    return {"CWD": cwd, "HOME": home_directory(wishes.env), **own}


def _about_the_model(choice: ModelChoice) -> tuple[Notice, ...]:
    if choice.kind != "offline" or choice.named:
        return ()
    text = f"No model is configured: the offline model answers. {CONNECT_HINT}"
    return (Notice("offline", "info", text),)


def _about_the_wire(choices: Sequence[ModelChoice]) -> tuple[Notice, ...]:
    if any(choice.base_url for choice in choices):
        return ()
    text = "`--record-wire`: there is nothing to record, for this model sends no bytes."
    return (Notice("record_wire", "warning", text),)


# -- the session ---------------------------------------------------------------


class _Opened(msgspec.Struct, frozen=True):
    """``told`` and ``notes`` are for the person: what is good to know, and what is not well."""

    session_id: str
    cwd: str
    path: str | None
    journal: Journal
    blobs: Blobs
    records: Callable[[], Iterable[Record]]
    close: Callable[[], None]
    state: SessionState = SessionState()
    opening: tuple[KnownEntry, ...] = ()
    told: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _open_session(
    wishes: Wishes, home: str, cwd: str, *, clock: Clock, ids: Ids, disk: Disk
) -> _Opened:
    found = None if wishes.session is None else find(home, cwd, wishes.session)
    if found is not None and not wishes.fork:
        return _resume(found, cwd, clock, disk)
    session_id = wishes.session_id or ids.session()
    path = session_path(home, cwd, session_id)
    if os.path.lexists(path):
        raise SessionError(
            f"there is a session `{session_id}` already",
            hint=f"Go on with it: `--resume {session_id}`.",
        )
    if found is not None:
        fork(found, path, now=clock.now, disk=disk, claw_version=__version__)
        return _resume(path, cwd, clock, disk, told=_forked(found, session_id))
    started = SessionStarted(session_id, __version__, cwd, utc(clock.now()), schema=SCHEMA)
    notes: tuple[str, ...] = ()
    if not wishes.ephemeral and not may_create(os.path.dirname(path)):
        notes = (memory_only(home),)
    journal: MemoryJournal | FileJournal
    blobs: Blobs
    if wishes.ephemeral or notes:
        journal, blobs = MemoryJournal(now=clock.now), MemoryBlobs()
    else:
        journal = FileJournal(path, now=clock.now, disk=disk)
        blobs = journal.blobs
    return _Opened(
        session_id=session_id,
        cwd=cwd,
        path=path if isinstance(journal, FileJournal) else None,
        journal=journal,
        blobs=blobs,
        records=_records(journal),
        close=journal.close,
        opening=(started,),
        notes=notes,
    )


def _forked(original: str, session_id: str) -> str:
    name = os.path.basename(original).removesuffix(".jsonl")
    return f"This is session {session_id}, a copy of {name}."


def _records(journal: FileJournal | MemoryJournal) -> Callable[[], Iterable[Record]]:
    if isinstance(journal, MemoryJournal):
        return lambda: journal.records
    return lambda: read_entries(journal.path) if os.path.exists(journal.path) else ()


def _resume(path: str, cwd: str, clock: Clock, disk: Disk, *, told: str = "") -> _Opened:
    journal, loaded = FileJournal.continue_from(path, now=clock.now, disk=disk)
    state, notes = loaded.state, loaded.notes
    if not state.session_id:
        journal.close()
        raise SessionNotFound(f"{path} holds no session", hint="Start a new one.")
    opening: tuple[KnownEntry, ...] = ()
    if state.cwd not in ("", cwd):
        notes = (*notes, f"this session began in {state.cwd}; it goes on in {cwd}")
        at = utc(clock.now())
        opening = (SessionStarted(state.session_id, __version__, cwd, at, schema=SCHEMA),)
    return _Opened(
        session_id=state.session_id,
        cwd=cwd,
        path=path,
        journal=journal,
        blobs=journal.blobs,
        records=_records(journal),
        close=journal.close,
        state=state,
        opening=opening,
        told=(told,) if told else (),
        notes=notes,
    )


def _workspace(
    cwd: str, wishes: Wishes, loaded: Loaded, opened: _Opened, disk: Disk
) -> LocalWorkspace:
    """Results that were clipped name their blob: Read and Grep must reach it."""
    own = (blobs_dir(opened.path),) if opened.path else ()
    try:
        return LocalWorkspace(
            cwd,
            loaded.settings.permissions.additional_directories,
            own_dirs=own,
            home=home_directory(wishes.env),
            disk=disk,
        )
    except ToolFailed as error:
        raise ConfigError(error.message) from error


class _SystemPrompt(msgspec.Struct, frozen=True):
    """``instructions`` is the section of the text about them, None where that is not known.

    ``notes`` are what a person should know of them.
    """

    text: str
    instructions: str | None = None
    notes: tuple[str, ...] = ()


class _Told(msgspec.Struct):
    """The section about instructions that the prompt has now."""

    section: str | None


async def _system_prompt(
    wishes: Wishes, loaded: Loaded, opened: _Opened, *, date: str, processes: Processes
) -> _SystemPrompt:
    """Built once a session: one that is resumed in its directory goes on with what it has."""
    lost: tuple[str, ...] = ()
    if opened.state.prompt is not None and not opened.opening:
        try:
            return _SystemPrompt(opened.blobs.get(opened.state.prompt.system).decode())
        except SessionError as error:
            lost = (f"the session's system prompt is lost, so it is made anew: {error.message}",)
    found = _found(loaded, opened.cwd)
    environment = await gather_environment(cwd=opened.cwd, date=date, processes=processes)
    prompt = build_system_prompt(
        environment=environment,
        instructions=found.instructions,
        append=wishes.append_system_prompt,
        override=wishes.system_prompt or "",
    )
    notes = (*lost, *found.notes)
    return _SystemPrompt(prompt, instructions_section(found.instructions), notes)


def _found(loaded: Loaded, cwd: str) -> Discovered:
    limit = loaded.settings.instructions.max_bytes
    return discover_instructions(
        cwd, user_dir=loaded.homes.config, **({"max_bytes": limit} if limit else {})
    )


def _installed(
    blobs: Blobs,
    redactor: Redactor,
    system: str,
    tools: tuple[ToolSpec, ...],
    parts: tuple[object, object],
    *,
    reason: Reason,
) -> PromptInstalled:
    """What stands before the conversation, for the record."""
    # Rules and hook commands are the user's own text: a key may stand in one.
    kept = [_kept(part, redactor) for part in parts]
    return PromptInstalled(
        system=blobs.put(_utf8(system)),
        tools=blobs.put(msgspec.json.encode(tools)),
        rules=blobs.put(kept[0]),
        hooks=blobs.put(kept[1]),
        reason=reason,
    )


def _section_kept(opened: _Opened, section: str | None) -> str:
    """The digest of the section about instructions, blank for none."""
    if section is None:
        before = opened.state.prompt
        return before.instructions if before is not None else ""
    return opened.blobs.put(_utf8(section)) if section else ""


def _kept(part: object, redactor: Redactor) -> bytes:
    return redactor.clean(msgspec.json.encode(part).decode()).encode()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# -- today's parts, for a replay -------------------------------------------------


class Today(msgspec.Struct, frozen=True):
    """What the settings and files of a directory come to now.

    ``instructions`` is the section of the system prompt; ``kept_rules`` and ``kept_hooks``
    are as a session's record has them.
    """

    policy: ModePolicy
    hooks: tuple[HookDeclaration, ...]
    instructions: str
    kept_rules: bytes
    kept_hooks: bytes
    env: Mapping[str, str]
    homes: tuple[str, str]
    redactor: Redactor


def today(wishes: Wishes, specs: Sequence[ToolSpec]) -> Today:
    """Read them anew. Raises ``ConfigError``."""
    cwd = _existing_directory(wishes.cwd)
    loaded = _settings(wishes, cwd)
    policy, _ = _policy(loaded, specs)
    hooks, _ = _hooks(loaded)
    redactor = KnownSecrets(secrets_of(loaded, wishes.env))
    return Today(
        policy=policy,
        hooks=hooks,
        instructions=instructions_section(_found(loaded, cwd).instructions),
        kept_rules=_kept(policy.rules, redactor),
        kept_hooks=_kept(hooks, redactor),
        env=loaded.settings.env,
        homes=(loaded.homes.config, loaded.homes.project),
        redactor=redactor,
    )
