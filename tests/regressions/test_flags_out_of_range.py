"""Values of flags that make no sense are wrong usage, and quoted in short."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import Workplace


@pytest.mark.parametrize(
    "args",
    ["--max-time nan", "--max-time inf", "--max-time 1e999", "--max-time 0", "--tools Nope"],
)
async def test_wrong_usage(place: Workplace, args: str):
    model = place.script("never")
    ended = await place.run("-p", "hi", "--model", model, *args.split())
    assert (ended.code, ended.out) == (2, "")
    in_json = await place.run(
        *("-p", "hi", "--output-format", "json", "--model", model, *args.split())
    )
    assert in_json.code == 2
    assert in_json.json["errors"][0]["kind"] == "usage"


@pytest.mark.parametrize("name", ["--session-id", "--resume", "--settings", "--model", "--cwd"])
async def test_what_is_quoted_is_bounded(place: Workplace, name: str):
    given = "x" * 5000
    ended = await place.run("-p", "hi", "--output-format", "json", name, given)
    assert ended.code == 1
    assert len(ended.err) < 3500
    assert len(ended.json["errors"][0]["message"]) < 1200


@pytest.mark.parametrize("given", ["", "[]", "/", '{"permissions": {"deny": "Bash"}}'])
async def test_settings_that_are_none(place: Workplace, given: str):
    model = place.script("never")
    ended = await place.run(
        *("-p", "hi", "--output-format", "json", "--model", model, "--settings", given)
    )
    assert ended.code == 1
    assert ended.json["errors"][0]["kind"] == "config"
    assert "fault in claw" not in ended.err


async def test_a_project_cannot_keep_claw_from_starting(place: Workplace):
    folder = place.work / ".claw"
    (folder / "settings.json").mkdir(parents=True)
    (folder / "settings.local.json").write_text(
        json.dumps({"permissions": {"deny": ["NoSuchTool", "Bash(", "Edit"]}})
    )
    (place.work / "CLAUDE.md").symlink_to("/etc/passwd")
    ended = await place.run("-p", "hi", "--model", place.script("an answer"))
    assert (ended.code, ended.out) == (0, "an answer\n")
    for told in ("settings.json: it is a directory", "NoSuchTool", "CLAUDE.md is left out"):
        assert told in ended.err
