"""A long turn against a model with a small window, in every form of the command."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from claw.testing import Received, StrictServer, calls, says
from claw.testing.strict_server import AnyReply
from tests.cli.running import Ended, Workplace

REQUEST = "Read all of them, REQUEST-4711."
STEPS = 24
WINDOW = 8_000
DIALECTS = ("anthropic", "openai-chat", "openai-responses")


class Reader:
    """Reads a file a step, then answers; writes the summaries that it is asked for."""

    def __init__(self) -> None:
        self.summaries = 0
        self._step = itertools.count()

    def __call__(self, received: Received) -> AnyReply:
        if not received.body.get("tools"):
            self.summaries += 1
            return says("Some files were read, nothing was found.")
        if (number := next(self._step)) < STEPS:
            return calls(("Read", {"file_path": f"f{number}.txt"}))
        return says("All were read.")


def settings(dialect: str, url: str) -> str:
    base = url if dialect == "anthropic" else f"{url}/v1"
    return json.dumps({"providers": {"here": {"dialect": dialect, "baseUrl": base}}})


async def ran(place: Workplace, dialect: str, *words: str) -> tuple[Ended, StrictServer, Reader]:
    for number in range(STEPS):
        text = f"file {number}\n" + "nothing in this line\n" * 90
        (place.work / f"f{number}.txt").write_text(text)
    reader = Reader()
    server = StrictServer([reader] * 200, window=WINDOW, extends=False, check=False)
    async with server:
        given = ("--settings", settings(dialect, server.base_url), "--model", "here/some-model")
        ended = await place.run("-p", REQUEST, *given, *words)
    assert server.violations == []
    return ended, server, reader


def shown(server: StrictServer) -> str:
    return json.dumps(server.requests[-1].body)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_json(place: Workplace, dialect: str):
    ended, server, reader = await ran(place, dialect, "--output-format", "json")
    assert ended.code == 0, ended.err
    result: dict[str, Any] = ended.json
    assert (result["result"], result["subtype"]) == ("All were read.", "success")
    paths = [use["input"]["file_path"] for use in result["tool_uses"]]
    assert paths == [f"f{number}.txt" for number in range(STEPS)]
    assert len(result["tool_results"]) == STEPS
    assert result["auto_compaction"]["removed_messages"] > 0
    assert result["auto_compaction"]["tokens_after"] < result["auto_compaction"]["tokens_before"]
    assert shown(server).count(REQUEST) == 1
    assert reader.summaries > 0


async def test_text(place: Workplace):
    ended, server, _ = await ran(place, "openai-chat")
    assert ended.code == 0, ended.err
    assert ended.out == "All were read.\n"
    assert "Auto-compacting session (round 1/4, preserving 4 recent)..." in ended.err
    assert "[auto-compacted: removed " in ended.err
    assert shown(server).count(REQUEST) == 1


async def test_stream_json(place: Workplace):
    ended, _, _ = await ran(place, "openai-responses", "--output-format", "stream-json")
    assert ended.code == 0, ended.err
    assert ended.lines[-1]["result"] == "All were read."
    assert [line["type"] for line in ended.lines].count("assistant") == STEPS + 1


async def test_a_window_without_room_for_anything(place: Workplace):
    async with StrictServer([], window=50, extends=False) as server:
        given = ("--settings", settings("openai-chat", server.base_url), "--model", "here/m")
        ended = await place.run("-p", REQUEST, *given, "--output-format", "json")
    assert ended.code == 1
    assert ended.json["errors"][0]["kind"] == "context_overflow"
    assert len(server.requests) == 1


async def test_the_flag(place: Workplace):
    script = place.script(*[{"text": "word " * 4_000}] * 3)
    for number, words in enumerate([(), ("--continue",)]):
        flags = ("--model", script, "--auto-compact", "3000", "--output-format", "json")
        ended = await place.run("-p", f"ask {number}", *flags, *words)
        assert ended.code == 0, ended.err
        assert (ended.json["auto_compaction"] is not None) == (number == 1)
    ended = await place.run("-p", "x", "--auto-compact", "many")
    assert ended.code == 2
    flags = ("--model", script, "--auto-compact", "off", "--output-format", "json")
    ended = await place.run("-p", "y", "--continue", *flags)
    assert ended.json["auto_compaction"] is None
