"""Sessions for the page: real runs with a scripted model, of everything that can happen."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from claw.errors import ModelUnavailable, SessionError
from claw.models.prices import cost
from claw.models.scripted import Gate, ScriptedModel, ScriptReply, calls, cut, fails, says, waits
from claw.sessions.blobs import FileBlobs, blobs_dir, read_blob
from claw.sessions.load import read_entries
from claw.sessions.record import Record
from claw.testing.clock import FakeClock
from claw.testing.doubles import ScriptedApprover
from claw.testing.harness import Harness
from claw.types.entries import (
    DecisionMade,
    Digests,
    Entry,
    ReplyReceived,
    SessionStarted,
    StepRequested,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import Image, Text, ToolUse
from claw.types.permissions import Answer, Rule
from claw.types.usage import Usage
from claw.viewer.fold import fold
from claw.viewer.page import page
from claw.viewer.story import Session
from claw.workspace.disk import SystemDisk

MODEL = "claude-opus-5-5"

HOSTILE = (
    "</script><script>window.owned = 1</script>"
    '<img src=x onerror="window.owned = 2"><svg onload="window.owned = 3">'
    '"><a href="javascript:window.owned = 4" id="bait">x</a>'
    "[click](javascript:window.owned=5) [data](data:text/html,<script>window.owned=6</script>)"
    "<iframe srcdoc='<script>parent.owned = 7</script>'></iframe><style>*{display:none}</style>"
    "<!-- ]]> <base href='http://127.0.0.1:9/'> ![beacon](http://127.0.0.1:9/beacon.png)"
    "\x1b]8;;http://127.0.0.1:9\x07\x1b[31mred\x1b[0m \u202egnp.exe\u202c \u2066x\u2069 \x00 \ufeff"
)

ANSWER = """\
## What I found

The lock is taken **twice**: once in `session.py`, once in `journal.py`. The second one is
*never* released when the first fails.

| file | line | what |
|---|---|---|
| `session.py` | 12 | takes it |
| `journal.py` | 40 | takes it again |

1. Release in a `finally`.
2. Test it:

   ```python
   with lock:
       assert not other.acquire(blocking=False)
   ```

- [x] read both files
- [ ] run the tests

> See <https://docs.python.org/3/library/contextlib.html> for `ExitStack`.
"""

SESSION_PY = """\
import threading

lock = threading.Lock()


def begin(journal):
    lock.acquire()
    journal.open()
    lock.release()


def end(journal):
    journal.close()
"""


class PricedModel(ScriptedModel):
    """Costs what ``MODEL`` does."""

    def cost(self, usage: Usage, model: str) -> float | None:
        return cost(usage, MODEL)


def folded(path: str, clean: Callable[[str], str] = str) -> Session:
    """The session of a journal, as the command line has it folded."""

    def blob(digest: str) -> bytes | None:
        try:
            return read_blob(blobs_dir(path), digest)
        except SessionError:
            return None

    return fold(
        read_entries(path), clean=clean, blob=blob, price=lambda usage, _: cost(usage, MODEL)
    )


def page_of(path: str) -> str:
    return page(folded(path))


def used(input: int, read: int = 0, written: int = 0, output: int = 180) -> Usage:
    return Usage(input, output, read, written)


def picture(width: int = 96, height: int = 48) -> bytes:
    """A PNG with a gradient."""
    rows = b"".join(
        b"\0" + bytes(v for x in range(width) for v in (60 + x, 90 + 2 * y, 180))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


HOOKS = {
    "PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo looked at it"}]},
        {
            "matcher": "Write",
            "hooks": [{"type": "command", "command": "echo 'no files in etc' >&2; exit 2"}],
        },
    ],
    "PostToolUse": [
        {"matcher": "Edit", "hooks": [{"type": "command", "command": "echo formatted"}]}
    ],
}


async def everything(folder: Path) -> str:
    """The path of a session with every kind of entry but what damage makes."""
    await _first(folder)
    async with Harness(
        folder, PricedModel([says("The copy goes its own way.")]), session="latest", fork=True
    ) as run:
        await run.turn("And in the copy?")
        path = run.house.journal_path
    assert path is not None
    return path


async def _first(folder: Path) -> None:
    edit = {
        "file_path": "session.py",
        "old_string": "    lock.acquire()\n    journal.open()\n    lock.release()\n",
        "new_string": "    with lock:\n        journal.open()\n",
    }
    todo = {"todos": [{"content": "release the lock", "status": "in_progress"}]}
    gate = Gate()
    script: list[ScriptReply] = [
        fails(ModelUnavailable("overloaded")),
        calls(
            ("Grep", {"pattern": "lock", "path": "."}),
            ("Read", {"file_path": "session.py"}),
            ("Read", {"file_path": "shot.png"}),
            text="I look for the lock first.",
            thinking="Where is the lock taken? There may be two places.\n\n- session\n- journal",
            signature="s",
            usage=used(2_400, 0, 11_000),
            model=MODEL,
        ),
        cut("The lock is ta"),
        calls(
            ("Edit", edit),
            ("TodoWrite", todo),
            text="It is not released where `open` fails.",
            usage=used(900, 11_000, 2_100, 420),
            model=MODEL,
        ),
        calls(
            ("Bash", {"command": "seq 1 4000", "description": "count"}),
            ("Bash", {"command": "ls /nowhere-at-all"}),
            ("Write", {"file_path": "etc.conf", "content": "a = 1\nb = 2\n"}),
            ("Bash", {"command": "rm -rf build"}),
            usage=used(800, 13_100, 1_800, 350),
            model=MODEL,
        ),
        says(ANSWER, usage=used(700, 14_900, 9_000, 640), model=MODEL),
        waits(gate, says("This takes long", model=MODEL), after=2),
        says("After the summary.", usage=used(300, 2_000, 2_500, 90), model=MODEL),
        says("A way that is left again.", usage=used(400, 4_500, 300, 60), model=MODEL),
        says("I see a gradient.", usage=used(900, 4_500, 600, 20), model=MODEL),
        says("Another way.", usage=used(420, 4_500, 310, 60), model=MODEL),
    ]
    approver = ScriptedApprover(
        [
            Answer(True, rule=Rule("allow", "Edit", source="session")),
            Answer(True),
            Answer(True),
            Answer(False, reason="keep the build"),
        ]
    )
    clock = FakeClock()
    async with Harness(
        folder,
        PricedModel(script),
        files={"session.py": SESSION_PY, "journal.py": "lock = None\n", "shot.png": picture()},
        settings={"hooks": HOOKS},
        approver=approver,
        clock=clock,
    ) as run:
        runtime = run.house.runtime
        await run.turn("Where is the session lock taken?\n\nFix it if it leaks, and **test** it.")
        slow = asyncio.ensure_future(run.turn("Now tell me everything about locks."))
        await gate.reached()
        clock.advance(31)
        runtime.interrupt()
        await slow
        clock.advance(95)
        runtime.rename("The lock that leaked")
        await runtime.compact("the lock")
        runtime.set_mode("acceptEdits")
        await run.turn("Go on.")
        await run.turn("Try it this way.")
        runtime.rewind(runtime.turns()[-1].seq)
        clock.advance(240)
        path = run.house.journal_path
        assert path is not None
        shot = FileBlobs(blobs_dir(path), SystemDisk()).put(picture())
        await runtime.run_turn((Text("What is in this?"), Image("image/png", shot)))
        await run.turn("Try it another way.")


async def hostile(folder: Path) -> str:
    """The path of a session in which everything that can be foreign is."""
    script: list[ScriptReply] = [
        calls(
            ("Read", {"file_path": "a.txt"}),
            ("Bash", {"command": f"cat a.txt #{HOSTILE}".replace("\0", "")}),
            ("Edit", {"file_path": "a.txt", "old_string": HOSTILE, "new_string": HOSTILE + "x"}),
            (HOSTILE, {HOSTILE: HOSTILE}),
            text=HOSTILE,
            thinking=HOSTILE,
            signature="s",
            model=HOSTILE,
        ),
        says(
            f"# {HOSTILE}\n\n- {HOSTILE}\n\n```\n{HOSTILE}\n```\n\n| {HOSTILE} | b |\n|-|-|\n| c |"
        ),
    ]
    async with Harness(folder, script, files={"a.txt": HOSTILE}, mode="bypassPermissions") as run:
        await run.turn(HOSTILE)
        run.house.runtime.rename(HOSTILE)
        path = run.house.journal_path
    assert path is not None
    return path


def many(entries: int) -> list[Record]:
    """So many records, five to a step, in turns of 20 steps."""
    digests = Digests("0" * 64, "0" * 64, "0" * 64, "0" * 64)
    made: list[Entry] = [SessionStarted("many", "0", "/work", "2026-01-01T00:00:00.000Z")]
    turn = step = 0
    while len(made) < entries:
        if step % 20 == 0:
            turn += 1
            made += (TurnStarted(turn), UserMessaged((Text(f"Part {turn} of the work."),)))
        step += 1
        n = (step - 1) % 20 + 1
        usage = used(300, 900 * (step % 60), 900)
        edit = {"file_path": f"f{n}.py", "old_string": SESSION_PY[:90], "new_string": SESSION_PY}
        use = ToolUse(f"c{step}", *(("Edit", edit) if n % 4 == 0 else ("Read", {"path": f"f{n}"})))
        made += (
            StepRequested(n, MODEL, 1, digests),
            ReplyReceived(n, (Text(ANSWER), use), "tool_use", usage, True, MODEL),
            DecisionMade(use.id, "allow", "it reads", "mode:default"),
            ToolIntended(use.id, use.name),
            ToolFinished(use.id, (Text(SESSION_PY * 4),), "ok", ms=12),
        )
        if n == 20:
            made.append(TurnEnded(turn, "completed", 20, usage, 0.5, ms=60_000))
    at = "2026-01-01T{:02}:{:02}:{:02}.000Z".format
    return [
        Record(n, f"e{n}", "", at(n // 3600, n // 60 % 60, n % 60), entry)
        for n, entry in enumerate(made[:entries], 1)
    ]


def page_of_many(entries: int) -> str:
    """The page of ``many``."""

    def price(usage: Usage, model: str) -> float | None:
        return cost(usage, model)

    return page(fold(many(entries), clean=str, blob=lambda digest: None, price=price))
