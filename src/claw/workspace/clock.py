"""The machine's own time and identity."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AbstractAsyncContextManager

__all__ = ["SystemClock", "SystemIds"]


class SystemClock:
    """``ports.Clock`` on the running event loop."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)

    def jitter(self) -> float:
        return int.from_bytes(os.urandom(4), "big") / 2**32


class SystemIds:
    """``ports.Ids``: UTC to the second and 24 random bits, as ``20261130-142501-a1b2c3``."""

    def session(self) -> str:
        return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
