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


async def test_no_secret_is_shown(place: Workplace):
    values = {
        "env": {"DB_PASSWORD": "short", "PLACE": "here", "USED_IN": "x my-own-key-1234 y"},
        "providers": {
            "own": {
                "dialect": "openai-chat",
                "baseUrl": "http://me:pass-word@127.0.0.1:1/v1",
                "headers": {"Authorization": "Bearer opaque-header"},
            }
        },
        "model": "own/x",
        "permissions": {"allow": ["Bash(curl -H my-own-key-1234)"]},
        "effort": "sk-ant-" + "abcdefghijkl" * 2,
    }
    settings(place, json.dumps(values))
    for command in (["config"], ["config", "--output-format", "json"], ["doctor"], ["models"]):
        ended = await place.run(*command, env={"SOME_API_KEY": "my-own-key-1234"})
        shown = ended.out + ended.err
        for secret in ("short", "my-own-key", "pass-word", "opaque-header", "abcdefghijkl"):
            assert secret not in shown, (command, secret)
        if command[0] == "config":
            assert "[redacted:DB_PASSWORD]" in shown
            assert '"here"' in shown


async def test_what_has_no_effect_is_told_once_everywhere(place: Workplace):
    file = settings(place, '{"mcpServers": {"x": {"command": "y"}}}')
    told = f"{file}:1: `mcpServers` is accepted, without effect yet"
    script = place.script("Hi.")
    for arguments in (["doctor"], ["config"], ["-p", "hi", "--model", script]):
        ended = await place.run(*arguments)
        assert ended.code == 0
        assert (ended.out + ended.err).count(told) == 1


async def test_a_sandbox_that_is_required_keeps_it_from_starting(place: Workplace):
    settings(place, '{"sandbox": {"mode": "required"}}')
    ended = await place.run("-p", "hi", "--model", place.script("Hi."))
    assert ended.code == 1
    assert "sandbox" in ended.err
    assert ended.out == ""
    assert (await place.run("doctor")).code == 1


async def test_a_model_that_nobody_knows(place: Workplace):
    ended = await place.run("-p", "hi", "--model", "nope")
    assert ended.code == 1
    assert "Did you mean" not in ended.err
    near = await place.run("-p", "hi", "--model", "opsu")
    assert "Did you mean `opus`?" in near.err
    near = await place.run("-p", "hi", "--model", "antropic/x")
    assert "Did you mean `anthropic/x`?" in near.err


async def test_a_refused_connection_is_called_so_at_once(place: Workplace):
    env = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "for-a-test"}
    ended = await place.run("-p", "hi", "--model", "opus", "--max-time", "1", env=env)
    first, *others = [line for line in ended.err.splitlines() if "trying again" in line]
    assert "connection refused" in first
    assert not any("refused" in line for line in others)


async def test_a_session_whose_last_turn_did_not_end(place: Workplace):
    call = {"calls": [{"name": "Bash", "input": {"command": "kill -9 $PPID; sleep 30"}}]}
    killed = await place.run("-p", "go", "--allowedTools", "Bash", "--model", place.script(call))
    assert killed.code == -9
    ended = await place.run("--continue", "-p", "and now?", "--model", place.script("On we go."))
    assert ended.out == "On we go.\n"
    assert ended.err.count("did not end") == 1
    again = await place.run("--continue", "-p", "more", "--model", place.script("Fine."))
    assert "did not end" not in again.err
