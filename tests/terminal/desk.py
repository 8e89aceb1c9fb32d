"""A terminal with claw in it: what is typed, and what the screen shows."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pexpect
import pyte

from claw.testing.strict_server import ServerReply, StrictServer
from tests.cli.running import CLAW, Workplace

ROWS, COLUMNS = 40, 100


class Desk:
    """``see`` and friends wait for the screen; they fail with a picture of it."""

    def __init__(self, command: Sequence[str], place: Workplace, env: dict[str, str]) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.child = pexpect.spawn(
            command[0],
            list(command[1:]),
            cwd=str(place.work),
            env=place.env | env,
            dimensions=(ROWS, COLUMNS),
            timeout=20,
            echo=True,
        )
        self.child.delaybeforesend = None

    @classmethod
    def claw(cls, place: Workplace, *args: str, env: dict[str, str] | None = None) -> Desk:
        return cls([*CLAW, *args], place, env or {})

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def last_line(self) -> str:
        return self.text.rsplit("\n", 1)[-1]

    def type(self, text: str) -> float:
        """Returns when: ``time.monotonic()``."""
        self.child.send(text)
        return time.monotonic()

    def resize(self, columns: int) -> None:
        """Make the window narrower; what it shows is not reflowed."""
        self._screen.resize(ROWS, columns)
        self.child.setwinsize(ROWS, columns)

    def until(self, condition: Callable[[], bool], what: str, timeout: float = 15) -> float:
        """Wait until it holds; the time when it did."""
        end = time.monotonic() + timeout
        while True:
            self._read()
            if condition():
                return time.monotonic()
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not come; the screen:\n{self.text}")

    def see(self, text: str, timeout: float = 15) -> float:
        return self.until(lambda: text in self.text, f"{text!r}", timeout)

    def prompt(self, timeout: float = 15) -> float:
        """Wait until claw waits for a line."""
        ready = re.compile(r"^\S+ ❯$")
        return self.until(lambda: bool(ready.match(self.last_line)), "the prompt", timeout)

    def ended(self) -> int:
        """Wait until the program has ended; its exit code, negative for a signal."""
        self.until(lambda: not self.child.isalive(), "the end")
        self._read()
        self.child.close()
        if self.child.exitstatus is not None:
            return int(self.child.exitstatus)
        return -int(self.child.signalstatus or 0)

    def leave(self) -> None:
        if self.child.isalive():
            self.child.close(force=True)

    def _read(self) -> None:
        try:
            data = self.child.read_nonblocking(65536, 0.02)
        except pexpect.TIMEOUT:
            return
        except pexpect.EOF:
            time.sleep(0.01)
            return
        self.raw += data
        self._stream.feed(data)


class ServerBeside:
    """A ``StrictServer`` in a thread: the test waits for a screen meanwhile.

    Leaving raises what the server has to complain about.
    """

    def __init__(self, replies: Sequence[ServerReply]) -> None:
        self._replies = replies
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._serve)
        self._complaint: AssertionError | None = None
        self.server: StrictServer

    def __enter__(self) -> ServerBeside:
        self._thread.start()
        self._ready.wait(5)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(5)
        if kind is None and self._complaint is not None:
            raise self._complaint

    @property
    def env(self) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": self.server.base_url, "ANTHROPIC_API_KEY": "for-a-test"}

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        self.server = StrictServer(self._replies)
        try:
            async with self.server:
                self._ready.set()
                await self._stop.wait()
        except AssertionError as error:
            self._complaint = error


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
