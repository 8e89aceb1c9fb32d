"""The places where an interrupt takes effect even if nothing there really waits."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator

__all__ = ["checkpoint"]


@types.coroutine
def _one_pass() -> Generator[None, None, None]:
    yield


async def checkpoint() -> None:
    """Let the event loop run once; a cancellation that is pending or was lost is raised here.

    An ``await`` that finds its answer ready does not suspend, so a cancelled task would
    run on through it; and a tool may have swallowed the cancellation. The loop stands
    here before every sample, call and wait.
    """
    await _one_pass()
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
