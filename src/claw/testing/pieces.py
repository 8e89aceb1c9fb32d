"""A conversation out of doubles: the runtime alone, with nothing real around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from claw.errors import ToolFailed
from claw.ports import Approver, Blobs, HookRunner, Journal, ModelClient, Ports, Tool, ToolCall
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.request import Prompt
from claw.runtime.turn import TurnOptions
from claw.testing.checked_model import CheckedModel
from claw.testing.clock import FakeClock
from claw.testing.doubles import (
    AllowAll,
    MemoryBlobs,
    MemoryJournal,
    MemoryWorkspace,
    NoCompactor,
    NoHooks,
    NoRedactor,
    RecordingSink,
    ToolList,
)
from claw.types.effects import Effect, Facts
from claw.types.permissions import Behavior, Decision, PermissionMode, Rule
from claw.types.request import Sampling
from claw.types.session import SessionState
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["FakeTool", "FixedPolicy", "conversation"]


class FixedPolicy:
    """Decides by the tool's name alone: ``behaviors`` by name, ``otherwise`` for the rest.

    ``by_default`` as in ``Decision``: whether a hook's allow may lift an ask.
    """

    def __init__(
        self,
        behaviors: Mapping[str, Behavior] | None = None,
        *,
        otherwise: Behavior = "allow",
        by_default: bool = True,
    ) -> None:
        self._behaviors = dict(behaviors or {})
        self._otherwise = otherwise
        self._by_default = by_default

    def judge(
        self, spec: ToolSpec, facts: Facts, mode: PermissionMode, added: Sequence[Rule]
    ) -> Decision:
        if any(rule.tool == spec.name for rule in added):
            return Decision("allow", "accepted before", "session")
        behavior = self._behaviors.get(spec.name, self._otherwise)
        return Decision(behavior, f"{spec.name}: {behavior}", f"mode:{mode}", self._by_default)

    def offer(self, spec: ToolSpec, facts: Facts) -> Rule | None:
        return Rule("allow", spec.name, source="session")


class FakeTool(msgspec.Struct, eq=False):
    """A tool that answers ``text``, or fails with it, and counts its runs.

    ``takes`` seconds of the clock in ``clock``, if there is one. Its input is
    anything with the keys in ``required``.
    """

    name: str
    text: str = "done"
    fails: bool = False
    read_only: bool = True
    does: tuple[Effect, ...] = ()
    required: tuple[str, ...] = ()
    clock: FakeClock | None = None
    takes: float = 0.0
    runs: int = 0

    @property
    def spec(self) -> ToolSpec:
        schema = {"type": "object", "properties": {key: {} for key in self.required}}
        return ToolSpec(self.name, f"The tool {self.name}.", schema, read_only=self.read_only)

    def parse(self, input: dict[str, Any]) -> dict[str, Any]:
        missing = [key for key in self.required if key not in input]
        if missing:
            raise ToolFailed(f"`{self.name}` needs {', '.join(missing)}")
        return input

    def effects(self, args: dict[str, Any]) -> tuple[Effect, ...]:
        return self.does

    def preview(self, args: dict[str, Any]) -> str:
        return f"{self.name} {args}"

    async def run(self, args: dict[str, Any], call: ToolCall) -> ToolOutput:
        self.runs += 1
        call.progress("working")
        if self.clock is not None:
            await self.clock.sleep(self.takes)
        if self.fails:
            raise ToolFailed(self.text)
        return ToolOutput.of(self.text)


def conversation(
    model: ModelClient,
    tools: Sequence[Tool] = (),
    *,
    journal: Journal | None = None,
    hooks: HookRunner | None = None,
    approver: Approver | None = None,
    blobs: Blobs | None = None,
    sink: RecordingSink | None = None,
    clock: FakeClock | None = None,
    state: SessionState | None = None,
    mode: PermissionMode = "default",
    options: TurnOptions | None = None,
    sampling: Sampling | None = None,
    **others: Any,
) -> ConversationRuntime:
    """A conversation over doubles; ``others`` are ports by name (``policy=``, ``compactor=``).

    Its requests are checked as by ``CheckedModel``.
    """
    checked = CheckedModel(model)
    ports = {
        "model": checked,
        "tools": ToolList(tools),
        "workspace": MemoryWorkspace(),
        "policy": FixedPolicy(),
        "approver": approver or AllowAll(),
        "hooks": hooks or NoHooks(),
        "redactor": NoRedactor(),
        "journal": journal or MemoryJournal(),
        "blobs": blobs or MemoryBlobs(),
        "compactor": NoCompactor(),
        "sink": sink or RecordingSink(),
        "clock": clock or FakeClock(),
    }
    built = Ports(**{**ports, **others})
    runtime = ConversationRuntime(
        built,
        state=state or SessionState(),
        prompt=Prompt("You are a test.", built.tools.specs()),
        sampling=sampling or Sampling("scripted"),
        mode=mode,
        options=options or TurnOptions(),
    )
    runtime.listen(checked.heard)
    return runtime
