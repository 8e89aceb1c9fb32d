"""The installed command in a home and a workspace of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLAW = [sys.executable, "-P", "-m", "claw"]
KEPT = ("PATH", "PYTHONPATH", "TMPDIR")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as one JSON object on one line."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


class Workplace:
    """A directory to work in, a home beside it, and claw run in there."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.work = root / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.env = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.env |= {"HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm"}

    def script(self, *replies: object) -> str:
        """The name of a model that gives these replies."""
        path = self.home / "script.json"
        path.write_text(json.dumps(replies))
        return f"script:{path}"

    async def start(self, *args: str, **options: Any) -> asyncio.subprocess.Process:
        """Without stdin unless ``options`` say otherwise."""
        pipe = asyncio.subprocess.PIPE
        options = {"stdin": asyncio.subprocess.DEVNULL, "stdout": pipe, "stderr": pipe} | options
        env = self.env | options.pop("env", {})
        return await asyncio.create_subprocess_exec(
            *CLAW, *args, cwd=options.pop("cwd", self.work), env=env, **options
        )

    async def run(self, *args: str, stdin: str | None = None, **options: Any) -> Ended:
        if stdin is not None:
            options["stdin"] = asyncio.subprocess.PIPE
        process = await self.start(*args, **options)
        given = None if stdin is None else stdin.encode()
        out, err = await asyncio.wait_for(process.communicate(given), 30)
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())
