"""Files are kept as they were, once a turn, before a call changes them."""

from __future__ import annotations

import os
from pathlib import Path

from claw.runtime.file_checkpoints import MOST_BYTES
from claw.testing import (
    FakeTool,
    FixedPolicy,
    Harness,
    MemoryBlobs,
    MemoryJournal,
    MemoryWorkspace,
    ScriptedModel,
    ScriptReply,
    calls,
    conversation,
    says,
)
from claw.types.effects import Execute, ReadPath, WritePath
from claw.types.entries import Checkpointed, ToolFinished, ToolIntended


def kept(journal: MemoryJournal) -> list[Checkpointed]:
    return [entry for entry in journal.entries if isinstance(entry, Checkpointed)]


async def test_a_file_is_kept_once_a_turn_before_the_call_starts() -> None:
    journal, blobs = MemoryJournal(), MemoryBlobs()
    change = FakeTool("Change", read_only=False, does=(WritePath("a.txt"), WritePath("new.txt")))
    script = [calls(("Change", {})), calls(("Change", {})), says("done")] * 2
    runtime = conversation(
        ScriptedModel(script),
        [change],
        journal=journal,
        blobs=blobs,
        workspace=MemoryWorkspace({"a.txt": "before"}),
    )
    await runtime.run_turn("one")
    await runtime.run_turn("two")
    found = kept(journal)
    assert [entry.path for entry in found] == ["/workspace/a.txt", "/workspace/new.txt"] * 2
    assert found[1].before is None
    assert found[0].before is not None
    assert blobs.get(found[0].before) == b"before"
    kinds = [type(entry) for entry in journal.entries]
    assert kinds.index(ToolIntended) < kinds.index(Checkpointed) < kinds.index(ToolFinished)


async def test_what_only_looks_or_may_not_run_keeps_nothing() -> None:
    journal = MemoryJournal()
    look = FakeTool("Look", does=(ReadPath("a.txt"),))
    shell = FakeTool("Shell", read_only=False, does=(Execute("rm a.txt"),))
    denied = FakeTool("Denied", read_only=False, does=(WritePath("a.txt"),))
    runtime = conversation(
        ScriptedModel([calls(("Look", {}), ("Shell", {}), ("Denied", {})), says("done")]),
        [look, shell, denied],
        journal=journal,
        policy=FixedPolicy({"Denied": "deny"}),
        workspace=MemoryWorkspace({"a.txt": "before"}),
    )
    await runtime.run_turn("go")
    assert kept(journal) == []
    assert denied.runs == 0


async def test_what_is_too_large_is_not_kept_and_the_call_goes_on() -> None:
    journal = MemoryJournal()
    change = FakeTool("Change", read_only=False, does=(WritePath("a.txt"),))
    runtime = conversation(
        ScriptedModel([calls(("Change", {})), says("done")]),
        [change],
        journal=journal,
        workspace=MemoryWorkspace({"a.txt": bytes(MOST_BYTES + 1)}),
    )
    summary = await runtime.run_turn("go")
    assert kept(journal) == []
    assert (change.runs, summary.stop_reason) == (1, "completed")


def writes(name: str) -> list[ScriptReply]:
    return [calls(("Write", {"file_path": name, "content": "new"})), says("done")]


async def test_a_link_is_kept_by_the_file_that_it_means(tmp_path: Path) -> None:
    script = [calls(("Read", {"file_path": "link"})), *writes("link")]
    async with Harness(tmp_path, script, files={"real.txt": "old"}, mode="acceptEdits") as run:
        link, real = run.workspace / "link", run.workspace / "real.txt"
        link.symlink_to("real.txt")
        await run.turn("go")
        assert real.read_text() == "new"
        (entry,) = [entry for entry in run.entries if isinstance(entry, Checkpointed)]
        assert entry.path == str(real.resolve())
        run.house.runtime.rewind(run.house.runtime.turns()[0].seq)
        assert real.read_text() == "old"
        assert os.readlink(link) == "real.txt"


async def test_what_lies_outside_is_kept_only_where_it_may_be_changed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    async with Harness(tmp_path, writes(str(outside)), mode="acceptEdits") as run:
        await run.turn("go")
        assert not any(isinstance(entry, Checkpointed) for entry in run.entries)
    async with Harness(
        tmp_path, writes(str(outside)), mode="bypassPermissions", session_id="another"
    ) as run:
        await run.turn("go")
        assert outside.read_text() == "new"
        run.house.runtime.rewind(run.house.runtime.turns()[0].seq)
        assert not outside.exists()
