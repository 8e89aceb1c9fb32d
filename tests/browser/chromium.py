"""Headless Chromium, driven over a pipe: no port, no server, no driver besides it.

https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Chromium", "Tab", "find_chromium"]

PATIENCE = 60.0  # seconds
STARTS = 3
"""Chromium itself now and then dies while it starts, on a loaded machine."""
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
)


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """``with Chromium(program, folder) as browser: tab = browser.open(url)``."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Chromium:
        self._start(STARTS)
        return self

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def restart(self) -> None:
        """Another one, where this one has died."""
        self._end()
        self._start(STARTS)

    def _start(self, tries: int) -> None:
        """Until it answers."""
        self._launch()
        try:
            self.call("Browser.getVersion")
        except (OSError, AssertionError) as error:
            self._end()
            said = self._complaints.read_text(errors="replace")[-2_000:]
            if tries == 1:
                raise RuntimeError(f"chromium does not start: {said}") from error
            self._start(tries - 1)

    def _launch(self) -> None:
        self._buffer = b""
        self._folder.mkdir(exist_ok=True)
        data = tempfile.mkdtemp(dir=self._folder)
        self._complaints = Path(data) / "stderr"
        reads, self._write = os.pipe()
        self._read, writes = os.pipe()
        quiet = subprocess.DEVNULL
        # The protocol's ends are descriptors 3 and 4 of the browser.
        shell = f'exec "$0" "$@" 3<&{reads} 4>&{writes}'
        command = [self._program, *_FLAGS, f"--user-data-dir={data}", "about:blank"]
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                ["bash", "-c", shell, *command],
                pass_fds=(reads, writes),
                env={**os.environ, "HOME": data},
                stdin=quiet,
                stdout=quiet,
                stderr=complaints,
                start_new_session=True,
            )
        os.close(reads)
        os.close(writes)

    def _end(self) -> None:
        """Of one that may hang or be gone."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.alive:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        self._end()

    def open(
        self,
        url: str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        script: bool = True,
    ) -> Tab:
        """A new tab, watched from before it loads, in a window of so many CSS pixels."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        if not script:
            tab.call("Emulation.setScriptExecutionDisabled", value=True)
        tab.go(url)
        return tab

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """The result of one command; what happens meanwhile goes to ``events``."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def receive(self) -> dict[str, Any]:
        """The next message; an event is kept as well."""
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            assert data, "the browser says nothing"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message


class Tab:
    """One page. ``complaints`` and ``requests`` are of all its life."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def go(self, url: str) -> None:
        """Load, to the end."""
        seen = len(self._browser.events)
        self.call("Page.navigate", url=url)
        while not any(
            event["method"] == "Page.loadEventFired" and event.get("sessionId") == self._session
            for event in self._browser.events[seen:]
        ):
            self._browser.receive()

    def run(self, expression: str) -> Any:
        """The value of some JavaScript; a promise is waited for."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, *keys: str) -> None:
        """Keys by name, ``j``, ``Tab``, ``Enter``; a longer word that is no key is typed."""
        for key in keys:
            if len(key) > 1 and key not in _CODES:
                self.press(*key)
                continue
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            info: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": _CODES.get(key, 0)}
            down = {"type": "keyDown" if text else "rawKeyDown", "text": text}
            self.call("Input.dispatchKeyEvent", **info, **down)
            self.call("Input.dispatchKeyEvent", **info, type="keyUp")

    def forget(self) -> None:
        """What was complained of so far."""
        self._browser.events.clear()

    def close(self) -> None:
        self.call("Page.close")

    def settle(self) -> None:
        """Until what was asked for has been drawn, with the search's delay."""
        self.run(
            "new Promise(r => setTimeout(() => requestAnimationFrame("
            "() => requestAnimationFrame(r)), 200))"
        )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings of the console, refusals of the policy, uncaught exceptions."""
        out = []
        for event in self._mine():
            params = event["params"]
            match event["method"]:
                case "Runtime.exceptionThrown":
                    out.append(str(params["exceptionDetails"]))
                case "Runtime.consoleAPICalled":
                    out.append(str(params["args"]))
                case "Log.entryAdded":
                    out.append(params["entry"]["text"])
        return out

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked, but for those that the page's policy refused.

        Pictures inside of the page are no requests.
        """
        asked = {}
        for event in self._mine():
            params = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                asked[params["requestId"]] = params["request"]["url"]
            elif (
                event["method"] == "Network.loadingFailed" and params.get("blockedReason") == "csp"
            ):
                del asked[params["requestId"]]
        return [url for url in asked.values() if not url.startswith("data:")]

    def _mine(self) -> list[dict[str, Any]]:
        self.run("0")  # what happened before has been told by now
        return [e for e in self._browser.events if e.get("sessionId") == self._session]


_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32}
