"""Draws docs/terminal.svg, what a terminal showed while somebody typed into claw, and
docs/session.png, the page of a session that had everything in it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

from tests.browser.chromium import Chromium, find_chromium
from tests.viewing import everything, page_of

PROJECT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 92, 44  # characters
PAGE = (1100, 1000)  # pixels
# Written so that a search of this repository does not find it here.
ENGINE = """\
class Engine:
    def @(self, prompt):
        return self.loop(prompt)


def @(prompt):
    return Engine().@(prompt)
""".replace("@", "run_turn")
SAID = [
    ("where is run_turn defined?", "Done"),
    ('replace "Engine" with "Motor" in engine.py', "Approve this tool call"),
]
COLORS = {"brown": "yellow", "brightbrown": "bright_yellow", "default": None}


def show(folder: Path) -> pyte.Screen:
    """The screen after everything was said."""
    screen = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.Stream(screen)
    env = {
        "HOME": str(folder / "home"),
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    child = pexpect.spawn(
        sys.executable,
        ["-P", str(PROJECT / "src/claw/__main__.py")],
        cwd=str(folder / "demo"),
        env=env,
        dimensions=(HEIGHT, WIDTH),
        encoding="utf-8",
    )

    def read_until(text: str) -> None:
        deadline = time.monotonic() + 20
        while text not in "\n".join(screen.display):
            assert time.monotonic() < deadline, "\n".join(screen.display)
            try:
                stream.feed(child.read_nonblocking(4096, timeout=0.3))
            except pexpect.TIMEOUT:
                continue

    read_until("default ❯")
    for line, answer in SAID:
        child.send(line + "\r")
        read_until(answer)
        time.sleep(0.5)
        read_until(answer)
    child.close(force=True)
    return screen


def draw(screen: pyte.Screen, home: str) -> str:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=WIDTH, height=HEIGHT, file=nowhere, force_terminal=True
        )
        last = max(n for n, line in enumerate(screen.display) if line.strip())
        for number in range(last + 1):
            cells = [screen.buffer[number][column] for column in range(WIDTH)]
            text = Text()
            for style, run in groupby(cells, _style):  # runs, so that words stay whole
                text.append("".join(cell.data for cell in run).replace(home, "~"), style)
            text.rstrip()
            console.print(text, no_wrap=True, overflow="crop")
        svg = console.export_svg(title="claw")
    # No font from elsewhere: the reader's own will do.
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def _style(cell: pyte.screens.Char) -> Style:
    color = COLORS.get(cell.fg, cell.fg)
    if color is not None and len(color) == 6 and all(c in "0123456789abcdef" for c in color):
        color = f"#{color}"
    elif color is not None:
        color = color.replace("bright", "bright_").replace("__", "_")
    return Style(color=color, bold=cell.bold, italic=cell.italics, reverse=cell.reverse)


def photograph(program: str, folder: Path) -> None:
    """The top of the page."""
    source = page_of(asyncio.run(everything(folder / "session")))
    page = folder / "session.html"
    page.write_text(source.replace(str(folder / "session/workspace"), "~/leak"), encoding="utf-8")
    with Chromium(program, folder) as browser:
        tab = browser.open(page.as_uri(), width=PAGE[0], height=PAGE[1])
        tab.settle()
        tab.screenshot(PROJECT / "docs/session.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "demo").mkdir()
        (folder / "home").mkdir()
        (folder / "demo/engine.py").write_text(ENGINE)
        subprocess.run(["git", "init", "-q", str(folder / "demo")], check=True)
        svg = draw(show(folder), str(folder))
        (PROJECT / "docs/terminal.svg").write_text(svg, encoding="utf-8")
        print("docs/terminal.svg")
        if (program := find_chromium()) is None:
            print("docs/session.png is as it was: there is no chromium here")
            return
        photograph(program, folder)
        print("docs/session.png")


if __name__ == "__main__":
    main()
