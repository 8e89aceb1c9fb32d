"""A search program that ended badly looked like one that found nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from claw.errors import ToolFailed
from claw.ports import Command, ProcessResult
from claw.tools.query import Query
from claw.tools.ripgrep import Ripgrep


class EndsAs:
    """``Processes`` in which every command ends the same way."""

    def __init__(self, result: ProcessResult) -> None:
        self.result = result

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        return self.result


def search(root: Path, result: ProcessResult) -> Ripgrep:
    return Ripgrep("/usr/bin/rg", str(root), EndsAs(result), lambda path: False)


BAD = [
    (ProcessResult(2, b"", b"rg: regex parse error"), "regex parse error"),
    (ProcessResult(2, b""), "exit code 2"),
    (ProcessResult(7, b""), "exit code 7"),
    (ProcessResult(126, b"", b"cannot execute"), "cannot execute"),
    (ProcessResult(-9, b""), "signal 9"),
    (ProcessResult(-15, b"", ended="timeout"), "Narrow the search"),
]


@pytest.mark.parametrize(("result", "said"), BAD)
async def test_without_output_it_is_an_error(
    tmp_path: Path, result: ProcessResult, said: str
) -> None:
    searcher = search(tmp_path, result)
    with pytest.raises(ToolFailed, match=said):
        await searcher.files(".", lambda path: True)
    with pytest.raises(ToolFailed, match=said):
        await searcher.lines(Query("x", ".", "content"))


@pytest.mark.parametrize("code", [2, 7, -9])
async def test_what_was_found_is_kept_and_said_to_be_incomplete(tmp_path: Path, code: int) -> None:
    searcher = search(tmp_path, ProcessResult(code, b"a.py\0", b""))
    found = await searcher.files(".", lambda path: True)
    assert [hit.path for hit in found.hits] == ["a.py"]
    assert "incomplete" in found.notes[0]


@pytest.mark.parametrize("code", [0, 1])
async def test_no_match_is_no_error(tmp_path: Path, code: int) -> None:
    found = await search(tmp_path, ProcessResult(code, b"")).files(".", lambda path: True)
    assert (found.hits, found.notes) == ([], [])
