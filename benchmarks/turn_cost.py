"""What claw costs around the model: start, each tool call, exit, memory.

Drives claw and the floor agent (the least that can be called an agent) against the
same scripted server on 127.0.0.1, in turns, so that a busy spell falls on both.

    .venv/bin/python benchmarks/turn_cost.py [--rounds 5] [--calls 1 50 200]

The server and the floor come from the bench folder (``$CLAW_SHARED/bench``, or
``../shared/bench`` beside the project).

first    from the start of the process to the arrival of the first request, ms
call     from the last byte of an answer with a tool call to the arrival of the next
         request, ms: median over the run; early and late are its first and last ten
exit     from the last byte of the last answer to the end of the process, ms
rss      largest resident size of the process, MiB
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
BENCH = Path(os.environ.get("CLAW_SHARED", PROJECT.parent / "shared")) / "bench"
PROMPT = "[bench-task] Run the commands you are asked to run, one at a time."


class Server:
    """The scripted model server, as a child process."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        command = [sys.executable, str(BENCH / "fake_model_server.py"), "--port", str(port)]
        self._process = subprocess.Popen(command)
        for _ in range(100):
            try:
                self.call("/__log")
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise SystemExit("the scripted server did not start (is aiohttp installed?)")

    def call(self, path: str, data: dict[str, Any] | None = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers)
        with self._opener.open(request, timeout=30) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


@dataclass
class Figures:
    first: float
    calls: list[float]
    exit: float
    rss: float


def run(argv: list[str], env: dict[str, str], cwd: Path, server: Server, calls: int) -> Figures:
    """One process, start to end; it must succeed and make all its calls."""
    server.call("/__reset", {"n": calls})
    began = time.monotonic()
    with subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as process:
        _, status, spent = os.wait4(process.pid, 0)
        ended = time.monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
    log = server.call("/__log")
    main = [record for record in log["records"] if record["kind"] == "main"]
    if process.returncode != 0 or log["turns"] != calls + 1:
        raise SystemExit(f"{argv[:3]}: exit {process.returncode}, {log['turns']} turns")
    return Figures(
        first=(main[0]["t"] - began) * 1000,
        calls=[r["since_main"] * 1000 for r in main if r["since_main"] is not None],
        exit=(ended - main[-1]["end"]) * 1000,
        rss=spent.ru_maxrss / 1024,
    )


def agents(server: Server, home: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    bare = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "NO_COLOR": "1"}
    claw = [sys.executable, "-m", "claw", "-p", PROMPT, "--permission-mode", "bypassPermissions"]
    claw += ["--output-format", "stream-json", "--model"]
    anthropic = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-fake-key"}
    chat = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-fake-key"}
    floor = [sys.executable, str(BENCH / "floor_agent.py"), server.url, PROMPT]
    return {
        "floor": (floor, bare),
        "claw": ([*claw, "claude-sonnet-4-5"], bare | anthropic),
        "claw-chat": ([*claw, "openai/gpt-4.1"], bare | chat),
    }


def mid(values: list[float]) -> float:
    return round(statistics.median(values), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, nargs="+", default=[1, 50, 200])
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    args = parser.parse_args()
    if not BENCH.is_dir():
        raise SystemExit(f"no bench folder at {BENCH}: set CLAW_SHARED")
    folder = Path(tempfile.mkdtemp(prefix="claw-bench-"))
    repo = folder / "repo"
    repo.mkdir()
    (repo / "README.md").write_text("# Sample\n")
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    server = Server()
    rows: dict[tuple[str, int], list[Figures]] = {}
    try:
        table = agents(server, folder)
        for argv, env in table.values():  # once, so that byte code and page cache are warm
            run(argv, env, repo, server, 1)
        for calls in args.calls:
            for number in range(args.rounds):
                print(f"\rN={calls} round {number + 1}/{args.rounds} ", end="", file=sys.stderr)
                for name, (argv, env) in table.items():
                    rows.setdefault((name, calls), []).append(run(argv, env, repo, server, calls))
    finally:
        server.stop()
        shutil.rmtree(folder)
    print(file=sys.stderr)
    report = [
        {
            "agent": name,
            "N": calls,
            "first": mid([f.first for f in runs]),
            "call": mid([mid(f.calls) for f in runs]),
            "early": mid([mid(f.calls[:10]) for f in runs]),
            "late": mid([mid(f.calls[-10:]) for f in runs]),
            "exit": mid([f.exit for f in runs]),
            "rss": mid([f.rss for f in runs]),
        }
        for (name, calls), runs in rows.items()
    ]
    if args.json:
        print(json.dumps(report, indent=1))
        return
    columns = list(report[0])
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    for row in report:
        print("| " + " | ".join(str(row[column]) for column in columns) + " |")


if __name__ == "__main__":
    main()
