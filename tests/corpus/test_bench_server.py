"""Whole turns of many calls, and faults in them, against a model server from outside."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from claw.sessions.load import load, read_entries
from claw.testing.validate import validate_request
from claw.types.entries import ReplyReceived, Retried, ToolFinished, ToolIntended, TurnEnded
from claw.types.request import Request, Sampling
from tests.cli.running import CLAW

pytest.importorskip("aiohttp", reason="the outside model server needs aiohttp")

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[3] / "shared")
SERVER = SHARED / "bench" / "fake_model_server.py"
PROMPT = "Run the checks. [bench-task]"
DIALECTS = ("anthropic", "chat")
Kind = TypeVar("Kind")

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not SERVER.is_file(), reason=f"no outside model server at {SERVER}"),
]


class BenchServer:
    """The server in a process of its own, and its control."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([sys.executable, str(SERVER), "--port", str(port)])
        end = time.monotonic() + 20
        while True:
            try:
                self.log()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.close()
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)

    def script(self, **fields: Any) -> None:
        data = json.dumps(fields).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/__reset", data, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()

    def log(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/__log", timeout=10) as answer:
            log: dict[str, Any] = json.loads(answer.read())
        return log

    @property
    def main_requests(self) -> int:
        return Counter(record["kind"] for record in self.log()["records"])["main"]


@pytest.fixture(scope="module")
def server() -> Iterator[BenchServer]:
    running = BenchServer()
    yield running
    running.close()


class Run:
    """One turn of the command with the server's script, in a place of its own."""

    def __init__(self, root: Path, server: BenchServer, dialect: str, *options: str) -> None:
        work, config = root / "work", root / "config"
        work.mkdir()
        config.mkdir()
        chat = dialect == "chat"
        provider = "OPENAI" if chat else "ANTHROPIC"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "CLAW_CONFIG_HOME": str(config),
            f"{provider}_API_KEY": "for-a-test",
            f"{provider}_BASE_URL": f"{server.url}/v1" if chat else server.url,
        }
        model = "openai/gpt-4.1" if chat else "claude-sonnet-4-5"
        mode = ("--permission-mode", "bypassPermissions")
        ended = subprocess.run(
            [*CLAW, "-p", PROMPT, "--model", model, *mode, *options],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            text=True,
        )
        self.code, self.out, self.err = ended.returncode, ended.stdout, ended.stderr
        assert "Traceback" not in self.err
        self.work = work
        (self.journal,) = (config / "sessions").glob("*/*.jsonl")
        self.entries = [record.entry for record in read_entries(str(self.journal))]

    @property
    def ran(self) -> list[str]:
        """What the commands of the script left, in the order they ran."""
        left = self.work / "ran"
        return left.read_text().splitlines() if left.exists() else []

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [entry for entry in self.entries if isinstance(entry, kind)]

    @property
    def end(self) -> TurnEnded:
        (end,) = self.of(TurnEnded)
        return end

    def assert_transcript_is_valid(self) -> None:
        messages = load(str(self.journal)).state.transcript.messages
        assert messages
        assert validate_request(Request("", messages, (), Sampling("any"))) == []


def assert_all_ran(run: Run, calls: int) -> None:
    """Every call of the script exactly once, in order, and the journal says so."""
    assert run.ran == [f"step-{number}" for number in range(1, calls + 1)]
    assert len(run.of(ToolIntended)) == calls
    assert [entry.status for entry in run.of(ToolFinished)] == ["ok"] * calls
    assert run.end.stop_reason == "completed"
    assert run.end.iterations == calls + 1
    run.assert_transcript_is_valid()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("calls", [1, 50, 200])
def test_a_turn_of_many_calls(server: BenchServer, tmp_path: Path, dialect: str, calls: int):
    server.script(n=calls, command="echo step-{i} >> ran")
    run = Run(tmp_path, server, dialect)
    assert run.code == 0, run.err
    assert run.out.endswith("DONE\n")
    assert server.log()["turns"] == calls + 1
    assert server.main_requests == calls + 1
    assert len(run.of(ReplyReceived)) == calls + 1
    assert run.of(Retried) == []
    assert_all_ran(run, calls)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_overload_is_tried_again(server: BenchServer, tmp_path: Path, dialect: str):
    faults = [{"at": 2, "kind": "529", "times": 2}]
    server.script(n=3, command="echo step-{i} >> ran", faults=faults)
    run = Run(tmp_path, server, dialect)
    assert run.code == 0, run.err
    assert run.out.endswith("DONE\n")
    assert [entry.step for entry in run.of(Retried)] == [2, 2]
    assert server.main_requests == 3 + 1 + 2
    assert_all_ran(run, 3)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_reply_is_asked_for_again_and_nothing_of_it_runs(
    server: BenchServer, tmp_path: Path, dialect: str
):
    faults = [{"at": 2, "kind": "cut", "times": 1}]
    server.script(n=3, command="echo step-{i} >> ran", faults=faults)
    run = Run(tmp_path, server, dialect)
    assert run.code == 0, run.err
    assert server.main_requests == 3 + 1 + 1
    assert len(run.of(Retried)) == 1
    assert sum(entry.complete for entry in run.of(ReplyReceived)) == 3 + 1
    assert_all_ran(run, 3)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_context_overflow_ends_the_turn(server: BenchServer, tmp_path: Path, dialect: str):
    faults = [{"at": 2, "kind": "context", "times": -1}]
    server.script(n=3, command="echo step-{i} >> ran", faults=faults)
    run = Run(tmp_path, server, dialect, "--output-format", "json")
    assert run.code == 1
    result = json.loads(run.out)
    assert (result["is_error"], result["subtype"]) == (True, "error_during_execution")
    assert result["stop_reason"] == run.end.stop_reason == "context_overflow"
    assert [error["kind"] for error in result["errors"]] == ["context_overflow"]
    assert run.ran == ["step-1"]
    run.assert_transcript_is_valid()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("at", [1, 2])
def test_a_refused_key_ends_the_turn(server: BenchServer, tmp_path: Path, dialect: str, at: int):
    faults = [{"at": at, "kind": "401", "times": -1}]
    server.script(n=3, command="echo step-{i} >> ran", faults=faults)
    run = Run(tmp_path, server, dialect, "--output-format", "json")
    assert run.code == 1
    result = json.loads(run.out)
    assert (result["is_error"], result["stop_reason"]) == (True, "error")
    assert [error["kind"] for error in result["errors"]] == ["authentication"]
    assert result["errors"][0]["hint"]
    assert run.of(Retried) == []
    assert server.main_requests == at
    assert len(run.ran) == at - 1
    run.assert_transcript_is_valid()
