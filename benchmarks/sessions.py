"""What sessions cost: loading, listing, appending, disk; and two writers side by side.

    .venv/bin/python benchmarks/sessions.py [--messages 10000] [--mib 100] [--sessions 1000]

Each row has its target, and a floor: the least that a program in this language can do
for the same end. Loading and writing run in processes of their own.

load          fold a journal of so many messages: s, and the largest resident size, MiB
              floor: read its lines and parse each with `json`
list          summaries of so many sessions, every tenth damaged: ms
              floor: read the first and last 64 KiB of each
append        one entry of 2 kB, 95th percentile, ms; floor: `os.write` of as many bytes
append sync   the same with `sync`; floor: `os.write` and `os.fsync`
disk          bytes written for a session of steps, over 1.2 x content + 1 kB a step
two writers   10,000 appends each to two sessions at once: entries lost
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from claw.sessions.index import list_sessions, session_path
from claw.sessions.journal import FileJournal
from claw.sessions.load import load
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
from claw.types.messages import Text, ToolUse
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk

APPENDS = 10_000


def journal(path: str) -> FileJournal:
    return FileJournal(path, now=time.time, disk=SystemDisk())


def opening(id: str) -> list[Entry]:
    started = SessionStarted(id, "0", "/w", "2026-11-30T14:20:00.000Z", schema=1)
    return [started, TurnStarted(1), UserMessaged((Text("Look at all of it."),))]


def steps(count: int, size: int) -> Iterator[Entry]:
    """Two messages a step, with so many characters in each."""
    digests = Digests(*(os.urandom(32).hex() for _ in range(4)))
    for n in range(1, count + 1):
        text = os.urandom(size // 2).hex()
        call = ToolUse(f"call_{n}", "Bash", {"command": text[: size // 2]})
        yield StepRequested(n, "m", 1, digests)
        yield ReplyReceived(n, (Text(text[size // 2 :]), call), "tool_use", Usage(9, 9), True, "m")
        yield DecisionMade(call.id, "allow", "bypassPermissions allows it", "mode")
        yield ToolIntended(call.id, "Bash")
        yield ToolFinished(call.id, (Text(os.urandom(size // 2).hex()),), "ok", ms=12)
    yield TurnEnded(1, "completed", count, Usage(9, 9))


def write(path: str, entries: Iterator[Entry]) -> int:
    """Returns the size of the file."""
    writer = journal(path)
    for entry in opening(os.path.basename(path).removesuffix(".jsonl")):
        writer.append(entry)
    for entry in entries:
        writer.append(entry)
    writer.close()
    return os.path.getsize(path)


def in_process(name: str, path: str) -> dict[str, float]:
    """Seconds and MiB of a load in a process of its own."""
    command = [sys.executable, __file__, "--child", name, path]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(found)
    return result


def child(name: str, path: str) -> None:
    began = time.perf_counter()
    kept: Any
    if name == "append":
        writer = journal(path)
        for n in range(APPENDS):
            writer.append(UserMessaged((Text(f"{n}"),)))
        writer.close()
        return
    if name == "load":
        kept = load(path)
    else:
        with open(path, "rb") as file:
            kept = [json.loads(line) for line in file]
    took = time.perf_counter() - began
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"s": round(took, 2), "MiB": round(size)}))
    del kept


def p95(do: Callable[[], object], count: int) -> float:
    """Milliseconds."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        do()
        taken.append((time.perf_counter() - began) * 1000)
    return round(statistics.quantiles(taken, n=20)[-1], 3)


def loading(folder: Path, messages: int, mib: int) -> list[tuple[str, str, object, object]]:
    path = str(folder / "long.jsonl")
    write(path, steps(messages // 2, mib * 1024 * 1024 // messages))
    found, floor = in_process("load", path), in_process("floor", path)
    what = f"{messages:,} messages, {os.path.getsize(path) / 1024 / 1024:.0f} MiB"
    return [
        (f"load, s ({what})", "< 2", found["s"], floor["s"]),
        ("load, MiB", "< 400", found["MiB"], floor["MiB"]),
    ]


def listing(folder: Path, count: int) -> tuple[str, str, object, object]:
    home = str(folder)
    paths = [session_path(home, "/w", f"s{n}") for n in range(count)]
    for n, path in enumerate(paths):
        write(path, steps(10 + n % 20, 4000))
        if n % 10 == 0:
            content = Path(path).read_bytes()
            Path(path).write_bytes(b"\xff" * 50 + content if n % 20 else content[:-700] + b"?\n")

    def ends() -> None:
        for path in paths:
            with open(path, "rb") as file:
                file.read(64 * 1024)
                file.seek(max(0, os.path.getsize(path) - 64 * 1024))
                file.read()

    times = {}
    for name, do in (("list", lambda: list_sessions(home, "/w")), ("floor", ends)):
        do()
        began = time.perf_counter()
        do()
        times[name] = round((time.perf_counter() - began) * 1000)
    listed = list_sessions(home, "/w")
    damaged = sum(bool(summary.problem) for summary in listed)
    return f"list, ms ({len(listed):,}, {damaged} damaged)", "< 300", times["list"], times["floor"]


def appending(folder: Path, *, sync: bool) -> tuple[str, str, object, object]:
    writer = journal(str(folder / f"append-{sync}.jsonl"))
    entry = ToolFinished("call_1", (Text("x" * 2000),), "ok")
    fd = os.open(folder / f"floor-{sync}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    line = b"x" * 2150

    def floor() -> None:
        os.write(fd, line)
        if sync:
            os.fsync(fd)

    count = 300 if sync else 5000
    found = p95(lambda: writer.append(entry, sync=sync), count), p95(floor, count)
    writer.close()
    os.close(fd)
    return f"append{' sync' if sync else ''}, p95 ms", "< 5", *found


def growth(folder: Path) -> tuple[str, str, object, object]:
    count, size = 1000, 5000
    path = str(folder / "growth.jsonl")
    written = write(path, steps(count, size))
    content = 2 * count * size
    allowed = 1.2 * content + 1000 * count
    return (
        "disk, written / allowed",
        "<= 1",
        round(written / allowed, 2),
        round(content / allowed, 2),
    )


def two_writers(folder: Path) -> tuple[str, str, object, object]:
    paths = [str(folder / f"writer{n}.jsonl") for n in range(2)]
    command = [sys.executable, __file__, "--child", "append"]
    writers = [subprocess.Popen([*command, path]) for path in paths]
    codes = [writer.wait() for writer in writers]
    lost = sum(APPENDS - load(path).records for path in paths)
    return f"two writers, lost of {2 * APPENDS:,}", "0", lost + sum(map(abs, codes)), 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--mib", type=int, default=100)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(*args.child)
        return
    folder = Path(tempfile.mkdtemp(prefix="claw-bench-"))
    try:
        rows = [
            *loading(folder, args.messages, args.mib),
            listing(folder, args.sessions),
            appending(folder, sync=False),
            appending(folder, sync=True),
            growth(folder),
            two_writers(folder),
        ]
    finally:
        shutil.rmtree(folder)
    print("| what | target | claw | floor |")
    print("| --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
