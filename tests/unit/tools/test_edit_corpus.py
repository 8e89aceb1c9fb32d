"""Real edits from public repositories come out byte for byte; those that must not fit do not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw.errors import ToolFailed
from claw.ports import ToolCall
from claw.testing.doubles import MemoryWorkspace
from claw.tools.edit import Edit
from claw.tools.ledger import ReadLedger

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[4] / "shared")
CASES = SHARED / "cases"

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_dir(), reason=f"the corpora are not at {CASES}"),
]


def cases(name: str) -> Iterator[dict[str, Any]]:
    with (CASES / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


async def after(before: bytes, edits: list[dict[str, Any]]) -> bytes:
    workspace = MemoryWorkspace({"f": before})
    tool = Edit(workspace, ReadLedger())
    for edit in edits:
        given = {"path": "f", "old_str": edit["old"], "new_str": edit["new"]}
        args = tool.parse({**given, "replace_all": edit.get("replace_all", False)})
        await tool.run(args, ToolCall("x", lambda text: None))
    return workspace.read("f", limit=100_000_000).data


@pytest.mark.parametrize("name", ["edits.jsonl", "edits_derived.jsonl"])
async def test_real_edits(name: str) -> None:
    done = 0
    for case in cases(name):
        encoding = case["encoding"]
        if encoding == "latin-1":  # refused: see test_edit.py
            continue
        before = case["file_before"].encode(encoding)
        assert await after(before, case["edits"]) == case["file_after"].encode(encoding), case["id"]
        done += 1
    assert done


async def test_edits_that_must_be_refused() -> None:
    for case in cases("edits_negative.jsonl"):
        with pytest.raises(ToolFailed):
            await after(case["file_before"].encode(), [case["edit"]])
