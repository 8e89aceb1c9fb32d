"""`claw models`, budgets in dollars and models that stand in for another."""

from __future__ import annotations

import asyncio
import json

import pytest

from claw.cli.models_command import described
from claw.errors import AuthenticationFailed, ModelUnavailable
from claw.models.discovery import LocalServer
from claw.models.scripted import calls, fails, says
from claw.testing.strict_server import ServerReply, StrictServer
from claw.types.usage import Usage
from tests.cli.running import Workplace
from tests.terminal.desk import Desk

SECRET = "sk-a-secret-for-this-test"
BUSY = fails(ModelUnavailable("overloaded", status=529))
LOOK = calls(("Glob", {"pattern": "*"}), usage=Usage(1_000_000, 0))


def through(server: StrictServer) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": server.base_url}


# --- claw models


async def test_what_can_be_named_and_never_a_key(place: Workplace):
    profile = {"dialect": "openai-chat", "baseUrl": f"http://me:{SECRET}@box.example:1/v1"}
    (place.home / ".claw").mkdir()
    file = place.home / ".claw" / "settings.json"
    file.write_text(json.dumps({"providers": {"mine": profile | {"apiKeyEnv": "MY_KEY"}}}))
    env = {"ANTHROPIC_API_KEY": SECRET, "MY_KEY": SECRET}
    ended = await place.run("models", "--output-format", "json", env=env)
    assert ended.code == 0, ended.err
    assert SECRET not in ended.out + ended.err
    assert ended.json["aliases"]["opus"].startswith("claude-opus-")
    known = {provider["name"]: provider for provider in ended.json["providers"]}
    assert known["anthropic"]["credentials"] is True
    assert known["openai"]["credentials"] is False
    (mine,) = ended.json["profiles"]
    assert (mine["name"], mine["credentials"]) == ("mine", True)
    assert mine["address"] == "http://box.example:1"
    assert isinstance(ended.json["local_servers"], list)

    shown = await place.run("models", env=env)
    assert shown.code == 0
    assert SECRET not in shown.out + shown.err
    for word in ("Aliases", "credentials found", "set OPENAI_API_KEY", "Local servers", "mine"):
        assert word in shown.out
    assert "\x1b" not in shown.out
    assert "set AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY" in shown.out
    rows = [line.split()[0] for line in shown.out.splitlines() if line.startswith("  ")]
    assert {"ollama", "lmstudio"}.isdisjoint(rows)  # of those only what is there


def test_a_server_is_described_in_short():
    server = LocalServer("ollama", "http://127.0.0.1:11434/v1", tuple(f"m{n}" for n in range(9)))
    assert described(server) == (
        "ollama at http://127.0.0.1:11434/v1: m0, m1, m2, m3, m4 and 4 more"
    )
    assert described(LocalServer("vllm", "u", ())).endswith("no models")


async def test_its_help_says_how_a_model_is_named(place: Workplace):
    shown = (await place.run("models", "--help")).out
    for example in ("opus", "groq/openai/gpt-oss-120b", "ollama/qwen3", "PROFILE/MODEL", "offline"):
        assert f"  {example} " in shown


# --- which model


async def test_the_model_of_the_first_key_is_shown(place: Workplace):
    """Nobody named it, and it costs money."""
    keys = {"OPENAI_API_KEY": "another", "AZURE_OPENAI_API_KEY": "a third"}
    async with StrictServer([says("hello")]) as server:
        desk = Desk.claw(place, env=through(server) | keys)
        try:
            await asyncio.to_thread(desk.see, "claude-sonnet-5-5 - ")
        finally:
            desk.leave()
        ended = await place.run("-p", "x", "--output-format", "json", env=through(server) | keys)
    assert (ended.code, ended.json["model"]) == (0, "claude-sonnet-5-5")


async def test_a_misspelt_model_is_never_sent(place: Workplace):
    async with StrictServer([]) as server:
        key = {"ANTHROPIC_API_KEY": "test-key", "HTTPS_PROXY": server.base_url}
        ended = await place.run("-p", "x", "--model", "claude-sonet-5", env=key)
        assert server.requests == []
    assert (ended.code, ended.out) == (1, "")
    assert "`claude-sonnet-5`" in ended.err


# --- --max-budget-usd


async def test_a_cost_is_known_and_a_budget_ends_the_turn(place: Workplace):
    async with StrictServer([LOOK]) as server:
        ended = await place.run(
            *("-p", "x", "--output-format", "json", "--model", "claude-sonnet-5-5"),
            *("--max-budget-usd", "1.5"),
            env=through(server),
        )
    assert (ended.code, ended.json["subtype"]) == (3, "error_max_budget")
    assert ended.json["cost"] == {"usd": pytest.approx(2.0), "known": True}
    assert ended.json["total_cost_usd"] == pytest.approx(2.0)


async def test_a_budget_without_a_price_is_refused_before_anything_is_sent(place: Workplace):
    async with StrictServer([]) as server:
        for args in (
            ["--model", "local-model"],
            ["--model", "sonnet", "--fallback-model", "local-model"],
        ):
            ended = await place.run(
                *("-p", "x", "--output-format", "json", "--max-budget-usd", "1", *args),
                env=through(server),
            )
            assert ended.code == 2
            assert "local-model" in ended.json["errors"][0]["message"]
            assert ended.json["subtype"] == "error_before_turn"
        local = {"ANTHROPIC_BASE_URL": server.base_url}  # no key: nobody bills for it
        paid = ("--model", "claude-sonnet-5-5", "--max-budget-usd", "1")
        assert (await place.run("-p", "x", *paid, env=local)).code == 2
        assert server.requests == []
    (place.home / ".claw").mkdir(exist_ok=True)
    (place.home / ".claw" / "settings.json").write_text('{"limits": {"maxBudgetUsd": 1}}')
    assert (await place.run("-p", "x", "--model", place.script("hi"))).code == 2
    assert (await place.run("-p", "help", "--model", "offline")).code == 0


# --- --fallback-model


async def test_another_model_answers_visibly(place: Workplace):
    async with StrictServer([BUSY, says("hello", usage=Usage(100_000, 0))]) as server:
        ended = await place.run(
            *("-p", "x", "--output-format", "json"),
            *("--model", "claude-opus-5-5", "--fallback-model", "claude-haiku-4-5"),
            env=through(server),
        )
        asked = [request.body["model"] for request in server.requests]
    assert ended.code == 0, ended.err
    assert asked == ["claude-opus-5-5", "claude-haiku-4-5"]
    assert (ended.json["result"], ended.json["model"]) == ("hello", "claude-haiku-4-5")
    assert ended.json["cost"] == {"usd": pytest.approx(0.1), "known": True}
    assert "warning:" in ended.err
    assert "`claude-haiku-4-5` is asked instead" in ended.err


async def test_a_whole_session_with_a_model_that_stands_in(place: Workplace):
    """Who answered is on record; nobody gets another model's thinking; the first returns."""
    flags = ("--model", "claude-opus-5-5", "--fallback-model", "claude-haiku-4-5")
    replies: list[ServerReply] = [
        calls(("Glob", {"pattern": "*"}), thinking="hm", signature="opus"),
        BUSY,
        calls(("Glob", {"pattern": "a*"}), thinking="so", signature="haiku"),
        says("from the other one"),
        says("back again"),
    ]
    async with StrictServer(replies) as server:
        for prompt in (("-p", "x"), ("-c", "-p", "go on")):
            ended = await place.run(*prompt, *flags, env=through(server))
            assert ended.code == 0, ended.err
        bodies = [request.body for request in server.requests]
    names = [body["model"].split("-")[1] for body in bodies]
    assert names == ["opus", "opus", "haiku", "haiku", "opus"]
    for name, body in zip(names, bodies, strict=True):
        other = {"opus": "haiku", "haiku": "opus"}[name]
        assert f'"signature": "{other}"' not in json.dumps(body["messages"])
    assert '"signature": "haiku"' in json.dumps(bodies[3]["messages"])
    assert '"signature": "opus"' in json.dumps(bodies[4]["messages"])
    (journal,) = (place.home / ".claw" / "sessions").glob("*/*.jsonl")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    who = [e["model"] for e in entries if e["kind"] in ("reply_received", "model_changed")]
    haiku, opus = "claude-haiku-4-5", "claude-opus-5-5"
    assert who == [opus, haiku, haiku, haiku, opus, opus]


async def test_where_no_model_answers_the_reasons_are_told(place: Workplace):
    quota = fails(ModelUnavailable("come back tomorrow", status=429, retry_after=90_000.0))
    async with StrictServer([BUSY, quota]) as server:
        args = ("--model", "opus", "--fallback-model", "haiku")
        ended = await place.run("-p", "x", *args, env=through(server))
    assert ended.code == 1
    assert "come back tomorrow" in ended.err
    assert "`claude-opus-5-5`: overloaded" in ended.err


async def test_a_wrong_key_is_not_covered_up(place: Workplace):
    async with StrictServer([fails(AuthenticationFailed("no such key", status=401))]) as server:
        args = ("--model", "opus", "--fallback-model", "haiku")
        ended = await place.run("-p", "x", *args, env=through(server))
    assert (ended.code, ended.out) == (1, "")
    assert "no such key" in ended.err


async def test_settings_name_it_too(place: Workplace):
    (place.home / ".claw").mkdir()
    (place.home / ".claw" / "settings.json").write_text('{"fallbackModel": "opus, haiku"}')
    async with StrictServer([BUSY, says("hello")]) as server:
        ended = await place.run("-p", "x", "--model", "opus", env=through(server))
        asked = [request.body["model"] for request in server.requests]
    assert (ended.code, ended.out) == (0, "hello\n")
    assert [name.startswith("claude-haiku") for name in asked] == [False, True]


@pytest.mark.parametrize("name", ["offline", "nonsense", "deepseek-chat"])
async def test_one_that_could_not_be_asked_is_refused_at_the_start(place: Workplace, name: str):
    ended = await place.run("-p", "x", "--model", place.script("hi"), "--fallback-model", name)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ")
