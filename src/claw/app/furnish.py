"""The composition root: where the house is furnished.

A front end says what it wishes for; ``furnish`` reads the settings, picks the
adapters, opens the session and hands out a ``ConversationRuntime``. Rooms get
plain arguments and know nothing of each other. The other files here are its parts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from claw.app.configured import (
    existing_directory,
    hooks_of,
    mode_of,
    options_of,
    policy_of,
    secrets_of,
    settings_of,
)
from claw.app.connecting import (
    about_the_model,
    about_the_wire,
    chain,
    choose_model,
    compaction_of,
    connect,
    fallbacks,
    refuse_unpriced,
    summarizer,
)
from claw.app.opening import open_session, places_of, workspace_of
from claw.app.prompting import (
    Reason,
    Told,
    installed_of,
    instructions_of,
    section_kept,
    system_prompt,
    with_scripts,
)
from claw.app.wishes import Lent, Wishes
from claw.compaction.compactor import PruningCompactor
from claw.compaction.plan import Estimates
from claw.compaction.summarize import Summarizer
from claw.config.load import Loaded
from claw.config.paths import home_directory
from claw.models.cache_watch import CacheWatch
from claw.models.estimate import estimate_request, estimate_tokens
from claw.models.fallback import FallbackModel, Link
from claw.models.registry import ModelChoice
from claw.policy.headless import HeadlessApprover
from claw.policy.hooks.runner import CommandHooks
from claw.policy.redact import KnownSecrets
from claw.ports import (
    Approver,
    Blobs,
    EventSink,
    ModelClient,
    Ports,
    Tool,
)
from claw.prompts.system import instructions_section, with_instructions
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.request import Prompt
from claw.sessions.record import Record, utc
from claw.tools.catalog import ToolList, builtin_tools
from claw.types.entries import (
    Event,
    KnownEntry,
    ModeChanged,
    PromptInstalled,
)
from claw.types.events import Notice
from claw.types.request import Sampling
from claw.types.results import TurnSummary
from claw.types.tools import ToolSpec
from claw.workspace.clock import SystemClock, SystemIds
from claw.workspace.disk import SystemDisk
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

__all__ = ["House", "furnish", "open_conversation", "refuse_loops", "run"]


WHERE = (
    "The messages themselves are kept in the session's journal, for the user to look at. Where a "
    "result names a file with its full text, that file can still be read."
)
"""What the model is told of messages that a compaction took away."""


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
    cwd = existing_directory(wishes.cwd)
    loaded = settings_of(wishes, cwd)
    lent_choice = ModelChoice("script", "lent", "lent")
    choice = lent_choice if lent.model is not None else choose_model(loaded, wishes.env)
    choices = (choice, *(() if lent.alone else fallbacks(choice, loaded, wishes.env)))
    clock, disk = lent.clock or SystemClock(), lent.disk or SystemDisk()
    ids = lent.ids or SystemIds()
    opened = open_session(wishes, loaded.homes.config, cwd, clock=clock, ids=ids, disk=disk)
    stack.callback(opened.close)
    processes = LocalProcesses(
        cwd,
        wishes.env,
        Guard(),
        added=loaded.settings.env,
        owns_process=wishes.origin != "sdk",  # a host program may have children of its own
    )
    stack.callback(processes.close)
    workspace = workspace_of(cwd, wishes, loaded, opened, disk)

    redactor = KnownSecrets(secrets_of(loaded, wishes.env))

    # The system prompt waits for git; what takes long to load is loaded meanwhile.
    system, links = await asyncio.gather(
        system_prompt(
            wishes, loaded, opened, redactor, date=utc(clock.now())[:10], processes=processes
        ),
        chain(
            choices,
            lent,
            partial(
                connect,
                opened.blobs,
                stack,
                at_once=wishes.at_once,
                record_wire=wishes.record_wire,
                places=places_of(wishes, cwd, opened.path),
            ),
        ),
    )
    if loaded.settings.limits.max_budget_usd is not None:
        refuse_unpriced(links)

    def tell(notice: Notice) -> None:
        runtime.tell(notice)

    def hidden(path: str) -> bool:
        return policy.hides(path)  # made below: rules are read with the tools' names at hand

    builtin = builtin_tools(workspace, processes, hidden=hidden)
    offered = [*builtin, *lent.tools]
    tools = ToolList(offered, only=wishes.tools)
    policy, rule_notices = policy_of(loaded, [tool.spec for tool in offered])
    hooks, hook_notices = hooks_of(loaded)
    mode = mode_of(loaded.settings.permissions.default_mode)

    def installed(text: str, reason: Reason) -> PromptInstalled:
        parts = (policy.rules, with_scripts(hooks, cwd, home_directory(wishes.env)))
        return replace(
            installed_of(opened.blobs, redactor, text, tools.specs(), parts, reason=reason),
            instructions=section_kept(opened, instructions.section),
        )

    instructions = Told(system.instructions)

    async def renew() -> tuple[Prompt, PromptInstalled] | None:
        before = runtime.prompt
        now = redactor.clean(instructions_section(instructions_of(loaded, cwd).instructions))
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
    writer = None if lent.alone else summarizer(loaded, wishes, opened.blobs, stack)
    if writer is not None and loaded.settings.limits.max_budget_usd is not None:
        refuse_unpriced([Link(writer.client, writer.model)])
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
                compaction_of(loaded, choice),
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
        options=options_of(wishes, loaded),
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
            *about_the_model(choice),
            *(about_the_wire(choices) if wishes.record_wire and lent.model is None else ()),
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

    refuse_loops()

    async def turn() -> TurnSummary:
        async with open_conversation(cwd, **options) as conversation:
            return await conversation.run_turn(prompt)

    return asyncio.run(turn())


def refuse_loops() -> None:
    """Raises ``RuntimeError`` in a running event loop: what follows has one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("an event loop runs here: use `claw.open`, or another thread")


class _Nobody:
    def emit(self, event: Event) -> None:
        """Nobody listens."""
