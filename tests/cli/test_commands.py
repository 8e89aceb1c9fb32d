"""`claw config` and `claw doctor`."""

from __future__ import annotations

import json

from tests.cli.running import Workplace


def settings(place: Workplace, text: str) -> str:
    file = place.home / ".claw" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return str(file)


async def test_config_tells_where_a_value_is_from(place: Workplace):
    file = settings(place, '{\n  "model": "offline",\n  "limits": {"maxTurns": 7}\n}')
    ended = await place.run("config", "--output-format", "json", env={"CLAW_MODEL": "opus"})
    assert ended.code == 0
    shown = ended.json["settings"]
    assert shown["limits.maxTurns"] == {"value": 7, "source": f"{file}:3"}
    assert shown["model"] == {"value": "opus", "source": "environment CLAW_MODEL"}
    flagged = await place.run("--model", "x", "config", "--output-format", "json")
    assert flagged.json["settings"]["model"]["source"] == "flag --model"


async def test_config_as_text_with_its_problems(place: Workplace):
    file = settings(place, '{\n  "modle": "offline"\n}')
    ended = await place.run("config")
    assert ended.code == 0
    assert "limits.maxTurns" in ended.out
    assert f"warning: {file}:2" in ended.err
    assert "`model`" in ended.err


async def test_a_broken_settings_flag_is_an_error(place: Workplace):
    ended = await place.run("config", "--settings", "/no/such/file")
    assert ended.code == 1
    assert ended.err.startswith("error: ")


async def test_doctor_finds_what_is_needed_and_never_shows_a_key(place: Workplace):
    secret = "sk-ant-a-secret-for-this-test"
    ended = await place.run("doctor", "--output-format", "json", env={"ANTHROPIC_API_KEY": secret})
    assert ended.code == 0
    assert secret not in ended.out + ended.err
    found = {finding["name"]: finding for finding in ended.json["findings"]}
    assert ended.json["ok"] is True
    assert {"python", "ripgrep", "git", "terminal", "config home", "settings"} <= set(found)
    assert "credentials found" in found["model"]["text"]


async def test_doctor_without_a_key_names_the_offline_model(place: Workplace):
    ended = await place.run("doctor")
    assert ended.code == 0
    assert "offline" in ended.out
    assert "ANTHROPIC_API_KEY" in ended.out


async def test_doctor_fails_where_something_is_broken(place: Workplace):
    settings(place, json.dumps({"model": "claude-opus-5"}))
    ended = await place.run("doctor")
    assert ended.code == 1
    assert "broken" in ended.out
