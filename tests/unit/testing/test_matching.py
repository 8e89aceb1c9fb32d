"""Contracts: what holds of a run whoever the model is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.errors import ConfigError
from claw.testing import Contract, Harness, ScriptedModel, calls, cut, says
from claw.testing.matching import broken, load_contract, structure

LOOK = ("Read", {"file_path": "a.txt"})
CHANGE = ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
RUN = ("Bash", {"command": "rm a.txt"})


async def a_run(folder: Path, *script: Any, cost: float | None = None) -> dict[str, Any]:
    model = ScriptedModel([*script, says("done")], cost_usd=cost)
    async with Harness(folder, model, files={"a.txt": "one\n"}) as run:
        await run.turn("do it")
        return run.trajectory()


def sources(record: dict[str, Any]) -> list[str]:
    return [e["source"] for e in record["entries"] if e["kind"] == "decision_made"]


@pytest.mark.parametrize(
    ("contract", "problems"),
    [
        (Contract(), []),
        (Contract(must_call=("Read", "Edit"), never_call=("Write",)), []),
        (Contract(must_call=("Grep", "Read")), ["`Grep` was not called"]),
        (Contract(never_call=("Bash",)), ["`Bash` was called"]),  # though it was denied
        (Contract(before=(("Read", "Edit"), ("Read", "Bash"))), []),
        (Contract(before=(("Edit", "Read"),)), ["`Edit` was not called before `Read`"]),
        (Contract(before=(("Read", "Write"),)), []),  # neither is wrong where the second is not
        (Contract(before=(("Write", "Read"),)), ["`Write` was not called before `Read`"]),
        (Contract(must_call=("read_file",), never_call=("bash",)), ["`Bash` was called"]),
        (Contract(max_steps=4), []),
        (Contract(max_steps=3), ["it took 4 steps, more than 3"]),
        (
            Contract(must_call=("Grep",), max_steps=1),
            ["`Grep` was not called", "it took 4 steps, more than 1"],
        ),
    ],
)
async def test_what_does_not_hold_is_named(tmp_path, contract, problems):
    record = await a_run(tmp_path, calls(LOOK), calls(CHANGE), calls(RUN))
    assert broken(record, contract) == problems


async def test_the_cost_of_all_turns_counts(tmp_path):
    model = ScriptedModel([calls(LOOK), says("one"), says("two")], cost_usd=0.01)
    async with Harness(tmp_path, model, files={"a.txt": ""}) as run:
        await run.turn("first")
        await run.turn("second")
        record = run.trajectory()
    assert broken(record, Contract(max_usd=0.04)) == []
    assert broken(record, Contract(max_usd=0.02)) == ["it cost $0.0300, more than $0.0200"]


async def test_an_unknown_cost_does_not_pass_for_a_low_one(tmp_path):
    record = await a_run(tmp_path, calls(LOOK))
    assert broken(record, Contract(max_usd=1000.0)) == ["the cost is not known"]


async def test_a_call_in_a_reply_that_was_asked_for_again_does_not_count(tmp_path):
    record = await a_run(tmp_path, cut(calls(RUN)), calls(LOOK))
    contract = Contract(must_call=("Read",), never_call=("Bash",), max_steps=2)
    assert broken(record, contract) == []


async def test_the_structure_ignores_wording(tmp_path):
    one = await a_run(tmp_path / "1", calls(LOOK, text="Let me look."))
    two = await a_run(tmp_path / "2", calls(LOOK, text="I shall read it."))
    other = await a_run(tmp_path / "3", calls(("Read", {"file_path": "b.txt"})))
    assert one != two
    assert structure(one) == structure(two) != structure(other)


@pytest.mark.parametrize("match", ["exact", "structure"])
async def test_the_denial_of_a_hook_is_the_same_on_every_machine(tmp_path, match):
    records = []
    for machine in ("1", "another-with-a-name-that-makes-the-command-too-long-to-show"):
        folder = tmp_path / machine
        folder.mkdir()
        guard = folder / "guard.py"
        guard.write_text("import sys; print('not here', file=sys.stderr); sys.exit(2)")
        hook = {"type": "command", "command": f"{sys.executable} {guard}"}
        settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
        async with Harness(folder, [calls(RUN), says("I see.")], settings=settings) as run:
            await run.turn("do it")
            record = run.trajectory()
        records.append(record if match == "exact" else structure(record))
    assert records[0] == records[1]
    place = " (${HOME}/.claw/settings.json:1)" if match == "exact" else ""
    assert sources(records[0]) == [f"hook{place}"]


@pytest.mark.parametrize("rule", ["Bash", "Bash(rm:*)"])
async def test_the_structure_names_a_rule_without_its_place(tmp_path, rule):
    settings = {"permissions": {"deny": [rule]}}
    async with Harness(tmp_path, [calls(RUN), says("I see.")], settings=settings) as run:
        await run.turn("do it")
        record = run.trajectory()
    assert sources(record) == [f"{rule} (${{HOME}}/.claw/settings.json:1)"]
    assert sources(structure(record)) == [rule]


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("mode:default", "mode:default"),
        ("Bash(echo (x))", "Bash(echo (x))"),  # a rule without a place
        ("Bash(echo (x)) (/a (b)/settings.json:7)", "Bash(echo (x))"),
    ],
)
def test_only_a_place_is_taken_from_a_source(source, kept):
    entry = {"kind": "decision_made", "decision": "deny", "source": source}
    assert sources(structure({"schema": 1, "entries": [entry]})) == [kept]


def test_a_contract_is_read_whole(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"must_call": ["Read"], "before": [["Read", "Edit"]], "max_usd": 0.5}')
    wanted = Contract(must_call=("Read",), before=(("Read", "Edit"),), max_usd=0.5)
    assert load_contract(path) == wanted == replace(wanted)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"must_cal": ["Grep"]}', r"a\.json: .*unknown field `must_cal`"),
        (
            b'{"max_steps": "two"}',
            r"a\.json: Expected `int | null`, got `str` - at `\$\.max_steps`",
        ),
        (b'{"before": [["Read"]]}', r"a\.json: Expected `array` of length 2.*\$\.before\[0\]"),
        (b'["Read"]', r"a\.json: Expected `object`"),
        (b'{"max_steps": ', r"a\.json: Input data was truncated"),
        (b"", r"a\.json: Input data was truncated"),
        (b'{"must_call": ["\xff"]}', r"a\.json: "),
        (b"{}", r"a\.json: the contract demands nothing"),
    ],
)
def test_a_contract_that_cannot_be_used_is_named(tmp_path, content, complaint):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_contract(path)
    assert "must_call, never_call, before, max_steps, max_usd" in caught.value.hint


def test_a_contract_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the contract .*a\.json: No such file"):
        load_contract(tmp_path / "a.json")


@pytest.mark.parametrize(
    "contract",
    [
        Contract(must_call=("Raed",)),
        Contract(never_call=("Bash(git push:*)",)),
        Contract(before=(("Read", "Edt"),)),
    ],
)
async def test_a_name_of_no_tool_demands_nothing(tmp_path, contract):
    record = await a_run(tmp_path, calls(LOOK))
    with pytest.raises(ConfigError, match="no tool is called") as caught:
        broken(record, contract)
    assert "Read, Write, Edit" in caught.value.hint
    assert ("looks like a rule" in caught.value.hint) == bool(contract.never_call)
