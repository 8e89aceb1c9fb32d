"""A key that tools print, however often and wherever it stands, is nowhere on disk."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from claw.recordings.trajectory import dumps
from claw.testing import Harness, StrictServer, answers, calls, says
from tests.cli.running import Workplace

KEY = "tr0ub4dor-and-3-horses"
SHAPED = "sk-ant-api03-" + "abcDEF0123" * 4
CAT = "cat key.txt"

# At every place modulo all that output is cut at: 20,000 and 8,000 characters, 64 KiB.
EVERYWHERE = """
i=0
while [ $i -lt 3000 ]; do i=$((i+1)); printf "%s%*s" "$MY_API_KEY" $((i % 89 + 1)) x; done
"""
MORE_THAN_IS_KEPT = 'yes "$MY_API_KEY" | head -n 420000'


@pytest.mark.parametrize(
    "command",
    ["echo $MY_API_KEY", CAT, f"{CAT} >&2; exit 3", EVERYWHERE, MORE_THAN_IS_KEPT, "ls"],
    ids=["variable", "file", "error", "everywhere", "more than is kept", "name"],
)
async def test_a_planted_key_is_in_no_journal_blob_or_log(tmp_path: Path, command: str) -> None:
    place = Workplace(tmp_path)
    settings = place.home / ".claw/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"env": {"MY_API_KEY": KEY}}))
    (place.work / "key.txt").write_text(f"key = {KEY}\n{SHAPED}\n" * 5000)
    (place.work / f"{KEY}.txt").write_text("x")
    script = place.script(
        {"calls": [{"name": "Bash", "input": {"command": command}}]},
        {"calls": [{"name": "Read", "input": {"file_path": "key.txt"}}]},
        {"calls": [{"name": "Grep", "input": {"pattern": "key", "output_mode": "content"}}]},
        {"calls": [{"name": "Glob", "input": {"pattern": "*"}}]},
        "Done.",
    )
    ended = await place.run(
        "-p", "go", "--permission-mode", "bypassPermissions", "--model", script, "--debug"
    )  # fmt: skip
    assert (ended.code, ended.out) == (0, "Done.\n"), ended.err
    kept = {p: p.read_bytes() for p in (place.home / ".claw").rglob("*") if p.is_file()}
    del kept[settings]
    assert any(path.parent.name.endswith(".blobs") for path in kept)
    assert any(path.parent.name == "logs" for path in kept)
    assert any(b"[redacted:MY_API_KEY]" in data for data in kept.values())
    for path, data in kept.items():
        for part in (KEY, KEY[:12], KEY[-12:], SHAPED[:24]):
            assert part.encode() not in data, f"{part} is in {path.name}"


HEADER = "correct-horse-battery"
TYPED = ("-p", "go", "--permission-mode", "bypassPermissions", "--debug")


@pytest.fixture
async def planted(place: Workplace) -> AsyncIterator[Workplace]:
    """A session with a server; a variable, a header, tool output and a file hold secrets.

    The server sends the header back in an error, once.
    """
    (place.work / "key.txt").write_text(f"key = {KEY}\n{SHAPED}\n{HEADER}\n" * 2000)
    script: list[Any] = [
        answers(529, {"type": "error", "error": {"type": "overloaded", "message": HEADER}}),
        calls(
            ("Bash", {"command": f"echo $MY_API_KEY; {CAT}"}), ("Read", {"file_path": "key.txt"})
        ),
        says("Done."),
    ]
    async with StrictServer(script) as server:
        provider: dict[str, Any] = {"dialect": "anthropic", "baseUrl": server.base_url}
        provider |= {"apiKeyEnv": "MY_API_KEY", "headers": {"X-Password": HEADER}}
        settings = place.home / ".claw/settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"providers": {"here": provider}}))
        place.env["MY_API_KEY"] = KEY
        ended = await place.run(*TYPED, "--record-wire", "--model", "here/model")
        assert (ended.code, ended.out) == (0, "Done.\n"), ended.err
        assert server.requests[-1].headers["x-password"] == HEADER
        assert_clean(ended.out + ended.err)
        yield place


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def assert_clean(text: str) -> None:
    for secret in (KEY, KEY[:12], KEY[-12:], SHAPED[:24], HEADER, HEADER[:12], HEADER[-12:]):
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text


async def test_no_planted_secret_is_kept(planted: Workplace) -> None:
    kept = [p for p in (planted.home / ".claw").rglob("*") if p.is_file()]
    kept.remove(planted.home / ".claw/settings.json")
    assert {path.parent.name for path in kept} >= {"logs"}
    for path in kept:
        assert_clean(path.read_bytes().decode("utf-8", "replace"))


@pytest.mark.parametrize("form", ["html", "markdown", "jsonl", "atif"])
async def test_no_planted_secret_is_exported(planted: Workplace, form: str) -> None:
    ended = await planted.run("export", "latest", "--format", form)
    assert ended.code == 0
    assert "redacted" in ended.out
    assert_clean(ended.out + ended.err)


@pytest.mark.parametrize("form", ["text", "json"])
async def test_no_planted_secret_is_told_by_a_replay(planted: Workplace, form: str) -> None:
    for live in ((), ("--live", "tools", "--on-divergence", "continue")):
        (planted.work / "key.txt").write_text(f"another key = {KEY}\n{SHAPED}\n{HEADER}\n")
        ended = await planted.run("replay", "latest", *live, "--output-format", form)
        assert ended.code == (5 if live else 0), ended.err
        assert_clean(ended.out + ended.err)


@pytest.mark.parametrize("command", ["turn-loop", "bootstrap", "flush-transcript"])
async def test_no_planted_secret_is_told_by_the_engine(planted: Workplace, command: str) -> None:
    args = [command, "show key.txt", "--output-format", "json"]
    args += ["--persist"] if command == "turn-loop" else []
    ended = await planted.run(*args)
    assert ended.code == 0, ended.err
    assert_clean(ended.out + ended.err)
    for path in planted.home.glob(".claw/sessions/*/*.jsonl"):
        assert_clean(path.read_text())


async def test_no_planted_secret_is_in_a_golden_file(tmp_path: Path) -> None:
    script: list[Any] = [calls(("Read", {"file_path": "key.txt"})), says("done")]
    files = {"key.txt": f"{KEY}\n{SHAPED}\n"}
    settings = {"env": {"MY_API_KEY": KEY}}
    async with Harness(tmp_path, script, files=files, settings=settings) as run:
        await run.turn("go")
        assert "redacted" in dumps(run.trajectory())
        assert_clean(dumps(run.trajectory()))
