"""The places where an interrupt takes effect even if nothing there really waits."""

from __future__ import annotations

import types
from collections.abc import Generator

__all__ = ["checkpoint"]


@types.coroutine
def checkpoint() -> Generator[None, None, None]:
    """Let the event loop run once: a pending cancellation is raised here.

    An ``await`` that finds its answer ready does not suspend, so a cancelled task would
    run on through it. The loop stands here before every sample, call and wait.
    """
    yield
