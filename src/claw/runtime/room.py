"""Compact the conversation: the hooks are asked first, and the prompt is made anew after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
from msgspec.structs import replace

from claw.ports import Ports
from claw.runtime.firing import fire
from claw.runtime.recorder import Recorder
from claw.runtime.request import Prompt
from claw.runtime.sample import Sampler
from claw.types.entries import Compacted, PromptInstalled
from claw.types.events import Notice, Status
from claw.types.hooks import HookPayload
from claw.types.permissions import PermissionMode

__all__ = ["Renew", "RoomMaker"]

Renew = Callable[[], Awaitable[tuple[Prompt, PromptInstalled] | None]]
"""Makes the prompt anew; None where it is still the same."""


class RoomMaker(msgspec.Struct, eq=False):
    """Compacts one conversation. ``mode`` is the one in force, for the hooks."""

    ports: Ports
    log: Recorder
    sampler: Sampler
    renew: Renew
    mode: Callable[[], PermissionMode]
    refused: bool = False

    def due(self, window: int | None) -> int | None:
        """The size to come down to before the next request, None while it fits.

        Not asked for again in a turn after a hook has said no.
        """
        request, state = self.sampler.request(), self.log.state
        target = self.ports.compactor.target(request, state, window)
        return None if self.refused else target

    async def make(
        self,
        trigger: Literal["auto", "manual", "overflow"],
        keep: int,
        target: int | None,
        focus: str = "",
        *,
        before: Notice | None = None,
    ) -> Compacted | None:
        """Compact, on record; None where nothing can go, or a hook forbids it."""
        self.log.tell(Status("compacting"))
        fields = {"trigger": "manual" if trigger == "manual" else "auto"}
        payload = HookPayload(
            "PreCompact",
            self.mode(),
            subject=fields["trigger"],
            fields={**fields, "custom_instructions": focus},
        )
        outcome = await fire(self.ports.hooks, self.ports.redactor, self.log, payload)
        if outcome.verdict != "passed" or outcome.stop is not None:
            self.refused = True
            reason = outcome.stop or outcome.reason or "a hook said no"
            self.log.tell(Notice("compaction", "warning", f"Not compacted: {reason}"))
            return None
        heed = "\n".join(text for text in (focus, *outcome.context) if text.strip())
        transcript = self.log.state.transcript
        entry = await self.ports.compactor.make_room(transcript, keep, target, heed)
        if entry is None:
            return None
        if before is not None:
            self.log.tell(before)
        entry = replace(entry, trigger=trigger, provisional=trigger == "overflow")
        self.log.record(entry)
        self.sampler.charge(entry.cost)
        if trigger == "auto":
            self.log.tell(Notice("compaction", "info", _told(entry)))
        await self._renew_prompt()
        return entry

    async def _renew_prompt(self) -> None:
        if (renewed := await self.renew()) is not None:
            prompt, installed = renewed
            self.log.record(installed)
            self.sampler.prompt = prompt


def _told(entry: Compacted) -> str:
    sizes = f"{entry.tokens_before:,} -> about {entry.tokens_after:,} tokens"
    left_out = f"; left out: {', '.join(entry.dropped)}" if entry.dropped else ""
    return f"Made room in the conversation: {sizes}{left_out}"
