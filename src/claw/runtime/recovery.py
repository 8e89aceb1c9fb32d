"""What happens when a request does not fit the window, inside the same turn.

The ladder keeps the newest 4, 2, 1, 0 rounds besides the current request. A
rung that would remove nothing spends no request. The turn then goes on where it
was: the user's text is not sent twice and no finished call runs again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from claw.errors import ContextOverflow
from claw.ports import Compactor
from claw.runtime.recorder import Recorder
from claw.types.entries import RecoveryFailed
from claw.types.events import Notice
from claw.types.reply import Reply

__all__ = ["PRESERVE_SCHEDULE", "recover"]

PRESERVE_SCHEDULE = (4, 2, 1, 0)


async def recover(
    overflow: ContextOverflow,
    compactor: Compactor,
    log: Recorder,
    sample_again: Callable[[], Awaitable[Reply]],
) -> Reply:
    """Compact and sample until a reply comes.

    Raises the original overflow where no rung helps; then the compactions made
    here do not count and the session is as it was.
    """
    spent = 0
    for number, keep in enumerate(PRESERVE_SCHEDULE, 1):
        compaction = await compactor.make_room(log.state.transcript, keep, None, "")
        if compaction is None:
            continue
        log.tell(
            Notice(
                "recovery",
                "info",
                f"Auto-compacting session (round {number}/{len(PRESERVE_SCHEDULE)}, "
                f"preserving {keep} recent)...",
            )
        )
        log.record(replace(compaction, trigger="overflow", provisional=True))
        spent += 1
        try:
            return await sample_again()
        except ContextOverflow:
            continue
    if spent:
        log.record(RecoveryFailed(rounds=spent, error=overflow.message))
    raise overflow
