"""What a front end asks for, and what it may bring along."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from claw.ports import (
    Clock,
    Disk,
    Ids,
    ModelClient,
    Tool,
)
from claw.types.entries import (
    Origin,
)

__all__ = ["Lent", "Wishes"]


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
