"""What happens when a request does not fit the window, inside the same turn.

The ladder keeps the newest 4, 2, 1, 0 rounds besides the current request. A
rung that would remove nothing spends no request. The turn then goes on where it
was: the user's text is not sent twice and no finished call runs again.
"""

from __future__ import annotations

import msgspec

from claw.errors import ContextOverflow
from claw.runtime.recorder import Recorder
from claw.runtime.room import RoomMaker
from claw.types.entries import RecoveryFailed, Retried
from claw.types.events import Notice

__all__ = ["PRESERVE_SCHEDULE", "Recovery"]

PRESERVE_SCHEDULE = (4, 2, 1, 0)


class Recovery(msgspec.Struct, eq=False):
    """The way down the ladder, for one turn. ``overflow`` is the one it began with, after
    ``before`` compactions of the session."""

    log: Recorder
    room: RoomMaker
    overflow: ContextOverflow | None = None
    rung: int = 0
    before: int = 0

    @property
    def spent(self) -> int:
        """Rounds that are on record, also one that was interrupted right after."""
        return self.log.state.compactions - self.before

    async def step_down(self, overflow: ContextOverflow, step: int) -> None:
        """Make room for another try at a step.

        Raises the first overflow where no rung is left that helps; then the compactions
        made here do not count and the conversation is as it was.
        """
        if self.overflow is None:
            self.overflow, self.before = overflow, self.log.state.compactions
        if self.log.state.replied == step:  # half a reply was heard before the error
            self.log.record(Retried(step, max(self.rung, 1), overflow.kind, 0.0))
        while self.rung < len(PRESERVE_SCHEDULE):
            keep = PRESERVE_SCHEDULE[self.rung]
            self.rung += 1
            text = (
                f"Auto-compacting session (round {self.rung}/{len(PRESERVE_SCHEDULE)}, "
                f"preserving {keep} recent)..."
            )
            notice = Notice("recovery", "warning", text)
            if await self.room.make("overflow", keep, None, before=notice):
                return
            if self.room.refused:
                break
        await self._fail(self.overflow)

    def reached(self) -> None:
        """A reply came: what was compacted on the way counts, and the ladder is whole again."""
        self.overflow, self.rung = None, 0

    def broken_off(self) -> None:
        """The turn ends on the way (a budget, Ctrl-C): what no reply has confirmed is undone."""
        if self.overflow is not None and self.log.state.before_recovery is not None:
            self.log.conclude(self._failed(self.overflow))

    async def _fail(self, overflow: ContextOverflow) -> None:
        if self.spent:
            self.log.record(self._failed(overflow))
            text = "Compacting did not help: the session is as it was before."
            self.log.tell(Notice("recovery", "warning", text))
        raise overflow

    def _failed(self, overflow: ContextOverflow) -> RecoveryFailed:
        """A server's words may quote what was sent to it: no secrets."""
        return RecoveryFailed(self.spent, self.room.ports.redactor.clean(overflow.message))
