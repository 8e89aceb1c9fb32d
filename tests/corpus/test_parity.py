"""Scripted conversations of a predecessor, from outside: the command against a strict server.

Scenarios, files, replies and assertions are read from the case file; here stands only
what its names mean in our words.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from claw.models.scripted import says
from claw.testing.strict_server import Received, ServerReply, answers, sent
from claw.types.usage import Usage
from tests.cli.running import CLAW, Workplace
from tests.terminal.desk import Desk, ServerBeside

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[3] / "shared")
CASES = SHARED / "cases" / "parity_scenarios.json"
NOT_YET = {
    "plugin_tool_roundtrip": "there are no plugins yet",
}
OUR_NAMES = {"message": "result", "estimated_cost": "cost"}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_file(), reason=f"no outside scenarios at {CASES}"),
]


def the_file() -> dict[str, Any]:
    given: dict[str, Any] = json.loads(CASES.read_bytes())
    return given


def scenarios() -> list[Any]:
    if not CASES.is_file():
        return []
    found = []
    for scenario in the_file()["scenarios"]:
        reason = NOT_YET.get(scenario["name"])
        marks = [pytest.mark.skip(reason=reason)] if reason else []
        found.append(pytest.param(scenario, id=scenario["name"], marks=marks))
    return found


# --- the server's side


def tool_use_reply(calls: Sequence[tuple[str, Sequence[str]]]) -> ServerReply:
    """A Messages stream with exactly these pieces of input, each event a chunk of its own."""
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_parity",
                "type": "message",
                "role": "assistant",
                "model": "parity",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 1},
            },
        }
    ]
    for index, (name, pieces) in enumerate(calls):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for piece in pieces:
            delta = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events += [
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    ends = [len("".join(frames[:count]).encode()) for count in range(1, len(frames))]
    body = answers(200, "".join(frames), {"content-type": "text/event-stream"})
    return sent(body, at=ends, pause=0.002)


def results_in(body: Mapping[str, Any]) -> list[str]:
    """The texts of the tool results that a request sends back."""
    texts = []
    for block in body["messages"][-1]["content"]:
        if block["type"] == "tool_result":
            content = block["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            texts.append("".join(part["text"] for part in parts))
    return texts


def closing(template: str) -> ServerReply:
    """The last reply: the template, filled from our own results as the model reads them."""

    def reply(received: Received) -> Any:
        texts = results_in(received.body)
        together = "\n".join(texts)
        counted = re.search(r"(\d+) (?:match|occurrence)", together)
        values = {
            "content": texts[0],
            "filePath": together,
            "stdout": together,
            "output": together,
            "n": counted.group(1) if counted else "no",
        }
        return says(re.sub(r"<(\w+)>", lambda found: values[found.group(1)], template))

    return reply


def reply_for(spoken: Mapping[str, Any]) -> ServerReply:
    if "tool_use" in spoken:
        return tool_use_reply(spoken["tool_use"])
    text = spoken["text"]
    if "usage" in spoken:
        return says(text, usage=Usage(**spoken["usage"]))
    return closing(text) if "<" in text else says(text)


# --- our side


def arguments(scenario: Mapping[str, Any]) -> list[str]:
    words = []
    for word in the_file()["invocation"]["argv"]:
        if word.startswith("[--allowedTools"):  # there it names what is offered
            if scenario["tools_flag"]:
                words += ["--tools", scenario["tools_flag"]]
        elif not word.startswith("["):
            named = word.replace("<mode>", scenario["mode"])
            words.append(named.replace("<name>", scenario["name"]))
    return words


def environment(place: Workplace, url: str) -> dict[str, str]:
    config = place.home / "config"
    config.mkdir()
    given = the_file()["invocation"]["env_exactly"]
    env = {
        name: value.replace("<mock>", url).replace("<tmp>", str(place.home))
        for name, value in given.items()
    }
    return env | {"CLAW_CONFIG_HOME": str(config)}


def run_piped(place: Workplace, words: Sequence[str]) -> tuple[int, str]:
    ended = subprocess.run(
        [*CLAW, *words],
        cwd=place.work,
        env=place.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert b"Traceback" not in ended.stderr
    return ended.returncode, ended.stdout.decode()


def run_at_a_terminal(place: Workplace, words: Sequence[str], answer: str) -> tuple[int, str]:
    settings = {"permissions": {"ask": ["Bash"]}}
    (Path(place.env["CLAW_CONFIG_HOME"]) / "settings.json").write_text(json.dumps(settings))
    desk = Desk.claw(place, *words)
    try:
        desk.see("[y/N]:")
        desk.type(answer)
        code = desk.ended()
    finally:
        desk.leave()
    return code, desk.raw.decode().replace("\r\n", "\n")


# --- their assertions


def looked_up(result: Any, path: str) -> Any:
    for step in re.findall(r"\w+", path):
        result = result[int(step)] if step.isdigit() else result[OUR_NAMES.get(step, step)]
    return result


def holds(key: str, wanted: Any, result: Mapping[str, Any], shown: str, work: Path) -> bool:
    """Whether one assertion of the file holds; an assertion of no known form raises."""
    if key.startswith("file "):
        return bool((work / key.removeprefix("file ")).read_text() == wanted)
    if key == "absent":
        return not (work / wanted).exists()
    if inside := re.fullmatch(r"json\((.+)\)\.\w+", key):  # our outputs are text
        return wanted in looked_up(result, inside.group(1))
    if inside := re.fullmatch(r"len\((.+)\)", key):
        return bool(len(looked_up(result, inside.group(1))) == wanted)
    if key == "key present":
        return wanted in result
    if key.endswith(">="):
        return bool(looked_up(result, key[:-2]) >= wanted)
    if key.endswith("~"):
        text = shown if key == "stdout~" else looked_up(result, key[:-1])
        parts = [wanted] if isinstance(wanted, str) else wanted
        return all(part.replace("<abs workspace>", str(work)) in text for part in parts)
    if key == "estimated_cost startswith":  # theirs is a text, "$" and a number; ours the number
        return bool(result["cost"]["known"] and result["cost"]["usd"] > 0)
    if key.endswith(">"):
        return bool(looked_up(result, key[:-1]) > wanted)
    if key.endswith(".input"):
        return bool(looked_up(result, key) == json.loads(wanted))
    if re.fullmatch(r"[\w.\[\]]+", key):
        return bool(looked_up(result, key) == wanted)
    raise AssertionError(f"an assertion of no known form: {key}")


@pytest.mark.parametrize("scenario", scenarios())
def test_scenario(scenario: dict[str, Any], tmp_path: Path):
    place = Workplace(tmp_path)
    for name, content in scenario.get("files", {}).items():
        (place.work / name).write_text(content)
    with ServerBeside([reply_for(spoken) for spoken in scenario["mock"]]) as beside:
        place.env = environment(place, beside.server.base_url)
        words = arguments(scenario)
        if "stdin" in scenario:
            code, shown = run_at_a_terminal(place, words, scenario["stdin"])
        else:
            code, shown = run_piped(place, words)
    assert code == 0, shown
    result = json.loads([line for line in shown.splitlines() if line.startswith("{")][-1])
    assert "auto_compaction" in result

    asked = [request for request in beside.server.requests if request.path == "/v1/messages"]
    assert len(asked) == scenario["requests"]
    always = the_file()["mock"]["every_request_must_have"]
    assert all(request.body[key] == value for request in asked for key, value in always.items())

    for key, wanted in scenario["assert"].items():
        assert holds(key, wanted, result, shown, place.work), (key, wanted, result, shown)


def test_what_is_reported_as_large_is_compacted_before_the_next_request(tmp_path: Path):
    """The scenario sets no threshold and asks once; with one, the next turn compacts."""
    scenario = next(s for s in the_file()["scenarios"] if s["name"] == "auto_compact_triggered")
    reported = scenario["mock"][0]["usage"]["input_tokens"]
    place = Workplace(tmp_path)
    with ServerBeside([reply_for(scenario["mock"][0]), says("after it")]) as beside:
        place.env = environment(place, beside.server.base_url)
        words = [*arguments(scenario), "--auto-compact", str(reported - 10_000)]
        results = []
        for more in ([], ["--continue"]):
            code, shown = run_piped(place, [*words, *more])
            assert code == 0, shown
            results.append(json.loads(shown.splitlines()[-1]))
    first, second = results
    assert first["auto_compaction"] is None
    assert second["auto_compaction"]["removed_messages"] == 2
    assert second["auto_compaction"]["tokens_before"] >= reported
    assert second["auto_compaction"]["tokens_after"] < reported - 10_000
