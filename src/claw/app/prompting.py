"""The system prompt, and the record of what stands before a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from claw.app.opening import Opened
from claw.app.wishes import Wishes
from claw.config.load import Loaded
from claw.errors import SessionError
from claw.policy.hooks.declared import HookDeclaration
from claw.policy.hooks.scripts import script_digests
from claw.ports import (
    Blobs,
    Processes,
    Redactor,
)
from claw.prompts.environment import gather_environment
from claw.prompts.instructions import Discovered, discover_instructions
from claw.prompts.system import build_system_prompt, instructions_section
from claw.types.entries import (
    PromptInstalled,
)
from claw.types.tools import ToolSpec

__all__ = [
    "Reason",
    "SystemPrompt",
    "Told",
    "installed_of",
    "instructions_of",
    "kept",
    "section_kept",
    "system_prompt",
    "with_scripts",
]

Reason = Literal["start", "compaction", "model", "tools", "instructions"]


class SystemPrompt(msgspec.Struct, frozen=True):
    """``instructions`` is the section of the text about them, None where that is not known.

    ``notes`` are what a person should know of them.
    """

    text: str
    instructions: str | None = None
    notes: tuple[str, ...] = ()


class Told(msgspec.Struct):
    """The section about instructions that the prompt has now."""

    section: str | None


async def system_prompt(
    wishes: Wishes,
    loaded: Loaded,
    opened: Opened,
    redactor: Redactor,
    *,
    date: str,
    processes: Processes,
) -> SystemPrompt:
    """Built once a session: one that is resumed in its directory goes on with what it has.

    Without secrets: it is sent and kept.
    """
    lost: tuple[str, ...] = ()
    if opened.state.prompt is not None and not opened.opening:
        try:
            return SystemPrompt(opened.blobs.get(opened.state.prompt.system).decode())
        except SessionError as error:
            lost = (f"the session's system prompt is lost, so it is made anew: {error.message}",)
    found = instructions_of(loaded, opened.cwd)
    environment = await gather_environment(cwd=opened.cwd, date=date, processes=processes)
    prompt = build_system_prompt(
        environment=environment,
        instructions=found.instructions,
        append=wishes.append_system_prompt,
        override=wishes.system_prompt or "",
    )
    notes = (*lost, *found.notes)
    section = instructions_section(found.instructions)
    return SystemPrompt(redactor.clean(prompt), redactor.clean(section), notes)


def instructions_of(loaded: Loaded, cwd: str) -> Discovered:
    """The instruction files of a directory and of the user."""
    limit = loaded.settings.instructions.max_bytes
    return discover_instructions(
        cwd, user_dir=loaded.homes.config, **({"max_bytes": limit} if limit else {})
    )


def installed_of(
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
    rules, hooks = (kept(part, redactor) for part in parts)
    return PromptInstalled(
        system=blobs.put(_utf8(system)),
        tools=blobs.put(msgspec.json.encode(tools)),
        rules=blobs.put(rules),
        hooks=blobs.put(hooks),
        reason=reason,
    )


def section_kept(opened: Opened, section: str | None) -> str:
    """The digest of the section about instructions, blank for none."""
    if section is None:
        before = opened.state.prompt
        return before.instructions if before is not None else ""
    return opened.blobs.put(_utf8(section)) if section else ""


def kept(part: object, redactor: Redactor) -> bytes:
    """Rules or hooks as a session keeps them."""
    return redactor.clean(msgspec.json.encode(part).decode()).encode()


def with_scripts(hooks: Sequence[HookDeclaration], cwd: str, home: str) -> list[dict[str, Any]]:
    """Hooks as a session keeps them: with digests of the scripts that their commands name."""
    kept_hooks: list[dict[str, Any]] = msgspec.to_builtins(hooks)
    for hook in kept_hooks:
        if scripts := script_digests(hook["command"], cwd=cwd, home=home):
            hook["scripts"] = scripts
    return kept_hooks


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
