"""Going back: the conversation, the files, or both; and that this can be undone."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.errors import SessionError
from claw.models.anthropic.client import AnthropicClient
from claw.models.transport import HttpTransport
from claw.ports import ToolCall
from claw.runtime.conversation import ConversationRuntime
from claw.testing import (
    FakeTool,
    Gate,
    Harness,
    MemoryJournal,
    MemoryWorkspace,
    ScriptedModel,
    ScriptReply,
    StrictServer,
    calls,
    conversation,
    says,
    waits,
)
from claw.types.effects import Effect, WritePath
from claw.types.entries import Checkpointed, Rewound, TurnEnded
from claw.types.messages import text_of
from claw.types.request import Request
from claw.types.results import Restored
from claw.types.tools import ToolOutput
from claw.types.transcript import Transcript


def writes(name: str, content: str) -> ScriptReply:
    return calls(("Write", {"file_path": name, "content": content}))


def edits(name: str, old: str, new: str) -> list[ScriptReply]:
    edit = {"file_path": name, "old_string": old, "new_string": new}
    return [calls(("Read", {"file_path": name})), calls(("Edit", edit))]


def said(request: Request) -> str:
    return "\n".join(text_of(message.content) for message in request.messages)


def back_to(run: Harness, turn: int, **what: bool) -> Restored:
    runtime = run.house.runtime
    point = next(point for point in runtime.turns() if point.turn == turn)
    return runtime.rewind(point.seq, **what)


async def test_a_file_that_was_written_is_gone_again(tmp_path: Path) -> None:
    async with Harness(
        tmp_path, [says("hi"), writes("new.txt", "x"), says("done")], mode="acceptEdits"
    ) as run:
        await run.turn("one")
        await run.turn("two")
        new = run.workspace / "new.txt"
        assert new.exists()
        done = back_to(run, 2)
        assert not new.exists()
        assert done.files == (str(new.resolve()),)
        assert done.left == ()
        last = run.entries[-1]
        assert isinstance(last, Rewound)
        assert last.files
        assert said_now(run) == "one\nhi"


async def test_an_edited_file_has_its_bytes_and_mode_again(tmp_path: Path) -> None:
    script = [*edits("a.txt", "one", "three"), says("done")]
    async with Harness(tmp_path, script, files={"a.txt": b"one\ntwo\n"}, mode="acceptEdits") as run:
        file = run.workspace / "a.txt"
        file.chmod(0o750)
        await run.turn("change it")
        assert file.read_bytes() == b"three\ntwo\n"
        back_to(run, 1)
        assert file.read_bytes() == b"one\ntwo\n"
        assert file.stat().st_mode & 0o777 == 0o750


async def test_a_file_that_was_deleted_since_is_back_with_its_mode(tmp_path: Path) -> None:
    script = [*edits("a.txt", "one", "three"), says("done")]
    async with Harness(tmp_path, script, files={"a.txt": "one"}, mode="acceptEdits") as run:
        file = run.workspace / "a.txt"
        file.chmod(0o700)
        await run.turn("change it")
        file.unlink()
        back_to(run, 1)
        assert file.read_text() == "one"
        assert file.stat().st_mode & 0o777 == 0o700


async def test_what_a_person_changed_since_is_kept_and_comes_back(tmp_path: Path) -> None:
    script = [*edits("a.txt", "one", "three"), says("done"), says("more")]
    async with Harness(tmp_path, script, files={"a.txt": "one"}, mode="acceptEdits") as run:
        file = run.workspace / "a.txt"
        await run.turn("change it")
        file.write_text("by hand")
        done = back_to(run, 1)
        assert file.read_text() == "one"
        assert done.undo is not None
        again = run.house.runtime.rewind(done.undo)
        assert file.read_text() == "by hand"
        assert again.undo is not None
        assert "change it" in said_now(run)
        run.house.runtime.rewind(again.undo)
        assert file.read_text() == "one"
        assert said_now(run) == ""
        await run.turn("go on")


def said_now(run: Harness) -> str:
    return "\n".join(text_of(m.content) for m in run.house.runtime.state.transcript.messages)


async def test_only_the_conversation_leaves_the_files(tmp_path: Path) -> None:
    script = [writes("new.txt", "x"), says("done"), says("hello")]
    async with Harness(tmp_path, script, mode="acceptEdits") as run:
        await run.turn("the forgotten prompt")
        done = back_to(run, 1, files=False)
        assert done.files == ()
        assert (run.workspace / "new.txt").exists()
        await run.turn("anew")
        assert "forgotten" not in said(run.requests[-1])
        # The files can still be put back to before the turn that is no longer told.
        run.house.runtime.rewind(back_to(run, 2, files=False).undo or 0)
        run.house.runtime.rewind(2, conversation=False)
        assert not (run.workspace / "new.txt").exists()


async def test_only_the_files_leave_the_conversation(tmp_path: Path) -> None:
    script = [writes("new.txt", "x"), says("done"), says("hello")]
    async with Harness(tmp_path, script, mode="acceptEdits") as run:
        await run.turn("the remembered prompt")
        done = back_to(run, 1, conversation=False)
        assert not (run.workspace / "new.txt").exists()
        await run.turn("and now?")
        assert "remembered" in said(run.requests[-1])
        assert not any(isinstance(entry, Rewound) for entry in run.entries)
        assert done.undo is not None
        assert back_to(run, 2).undo is not None


async def test_rewinds_of_rewinds(tmp_path: Path) -> None:
    script: list[ScriptReply] = []
    for number in range(1, 5):
        script += [writes(f"{number}.txt", "x"), says(f"answer {number}")]
    async with Harness(tmp_path, [*script, says("end")], mode="acceptEdits") as run:
        there = lambda: sorted(path.name for path in run.workspace.iterdir())  # noqa: E731
        await run.turn("p1")
        await run.turn("p2")
        back_to(run, 2)
        assert there() == ["1.txt"]
        await run.turn("p3")
        await run.turn("p4")
        assert [point.turn for point in run.house.runtime.turns()] == [1, 3, 4]
        back_to(run, 3)
        back_to(run, 1)
        assert there() == []
        assert run.house.runtime.turns() == ()
        await run.turn("last")
        assert said(run.requests[-1]) == "last"
        assert run.house.runtime.state.turns == 5


async def test_it_is_the_same_in_a_new_process(tmp_path: Path) -> None:
    script = [writes("new.txt", "x"), says("done"), says("two")]
    async with Harness(tmp_path, script, mode="acceptEdits") as run:
        await run.turn("one")
        await run.turn("two")
    async with Harness(tmp_path, [], session="session", mode="acceptEdits") as run:
        assert [(p.turn, p.prompt) for p in run.house.runtime.turns()] == [(1, "one"), (2, "two")]
        done = back_to(run, 1)
        assert not (run.workspace / "new.txt").exists()
    async with Harness(tmp_path, [says("three")], session="session", mode="acceptEdits") as run:
        assert run.house.runtime.turns() == ()
        run.house.runtime.rewind(done.undo or 0)
        assert (run.workspace / "new.txt").read_text() == "x"
        await run.turn("three")
        assert said(run.requests[-1]).split("\n")[-1] == "three"
        assert "one" in said(run.requests[-1])


async def test_what_a_compaction_took_away_is_back(tmp_path: Path) -> None:
    script = [says(f"answer {number}\n{'word ' * 2_000}") for number in range(4)]
    async with Harness(tmp_path, [*script, says("after")], mode="acceptEdits") as run:
        for number in range(4):
            await run.turn(f"prompt {number}")
        done = await run.house.runtime.compact()
        assert done is not None
        assert "prompt 1" not in said_now(run).split("\n")
        back_to(run, 3)
        assert run.house.runtime.state.compactions == 0
        await run.turn("another")
        lines = [line for line in said(run.requests[-1]).split("\n") if "word" not in line]
        assert lines == ["prompt 0", "answer 0", "prompt 1", "answer 1", "another"]


async def test_a_provider_accepts_what_comes_next() -> None:
    transport = HttpTransport()
    look = FakeTool("Look")
    replies = [calls(("Look", {})), says("one"), calls(("Look", {})), says("two"), says("three")]
    async with StrictServer(replies, extends=False) as server:
        client = AnthropicClient(transport, base_url=server.base_url, api_key="k")
        runtime = conversation(client, [look])
        await runtime.run_turn("the first prompt")
        await runtime.run_turn("the second prompt")
        runtime.rewind(runtime.turns()[1].seq)
        await runtime.run_turn("the third prompt")
        body = str(server.requests[-1].body)
        await transport.aclose()
    assert "the first prompt" in body
    assert "the second prompt" not in body


async def test_it_is_refused_while_a_turn_runs() -> None:
    gate = Gate()
    runtime = conversation(ScriptedModel([waits(gate)]))
    task = asyncio.ensure_future(runtime.run_turn("go"))
    await gate.reached()
    with pytest.raises(RuntimeError):
        runtime.rewind(runtime.turns()[0].seq)
    runtime.interrupt()
    await task


async def test_a_journal_that_fails_changes_no_conversation() -> None:
    journal = MemoryJournal()
    runtime = conversation(ScriptedModel([says("one")]), journal=journal)
    await runtime.run_turn("go")
    before = runtime.state
    full = MemoryJournal(fail_at=len(journal.entries))
    full.entries = journal.entries
    failing = conversation(ScriptedModel([]), journal=full, state=before)
    with pytest.raises(SessionError):
        failing.rewind(failing.turns()[0].seq)
    assert failing.state.transcript == before.transcript


async def test_git_is_left_alone(tmp_path: Path) -> None:
    script = [*edits("a.txt", "one", "three"), writes("new.txt", "x"), says("done")]

    def git(*command: str) -> None:
        known = ["-c", "user.name=x", "-c", "user.email=x@y", "-C", str(tmp_path / "workspace")]
        subprocess.run(["git", *known, *command], check=True)

    async with Harness(tmp_path, script, files={"a.txt": "one"}, mode="acceptEdits") as run:
        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "first")
        (run.workspace / "staged.txt").write_text("staged")
        git("add", "staged.txt")
        before = snapshot(run.workspace / ".git")
        await run.turn("change")
        back_to(run, 1)
        assert snapshot(run.workspace / ".git") == before
        assert (run.workspace / "staged.txt").read_text() == "staged"


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


async def test_a_title_goes_on_record() -> None:
    runtime = conversation(ScriptedModel([]))
    runtime.rename("  a title ")
    assert runtime.state.title == "a title"
    with pytest.raises(ValueError, match="blank"):
        runtime.rename(" \n")


async def test_a_place_that_cannot_be_written_is_told_and_the_rest_put_back(tmp_path: Path) -> None:
    script = [writes("sub/a.txt", "x"), writes("b.txt", "y"), says("done")]
    async with Harness(tmp_path, script, mode="acceptEdits") as run:
        await run.turn("write")
        (run.workspace / "sub/a.txt").unlink()
        os.mkfifo(run.workspace / "sub/a.txt")
        done = back_to(run, 1)
        assert len(done.left) == 1
        assert "a.txt" in done.left[0]
        assert not (run.workspace / "b.txt").exists()
        kept = [entry for entry in run.entries if isinstance(entry, Checkpointed)]
        assert len(kept) == 3


async def test_a_turn_that_a_killed_process_left_open_can_be_gone_back_from() -> None:
    journal, workspace = MemoryJournal(), MemoryWorkspace()
    runtime = putting(workspace, [("a", "x")], journal=journal)
    await runtime.run_turn("go")
    cut = MemoryJournal()
    cut.entries = journal.entries[:-2]  # without the last reply and the end of the turn
    again = putting(workspace, [], journal=cut, state=cut.state_at(len(cut.entries)))
    again.rewind(again.turns()[0].seq)
    assert workspace.contents == {}
    assert not again.state.in_turn
    ended, _, rewound = cut.entries[-3:]
    assert isinstance(ended, TurnEnded)
    assert isinstance(rewound, Rewound)
    assert again.turns() == ()


class Put(FakeTool, kw_only=True, eq=False):
    """Writes ``content`` to ``path``, whatever was there."""

    workspace: MemoryWorkspace

    def effects(self, args: dict[str, Any]) -> tuple[Effect, ...]:
        return (WritePath(args["path"]),)

    async def run(self, args: dict[str, Any], call: ToolCall) -> ToolOutput:
        there = self.workspace.peek(args["path"], limit=100)
        expect = there.digest if there else None
        self.workspace.write(args["path"], args["content"].encode(), expect=expect)
        return ToolOutput.of("done")


def putting(
    workspace: MemoryWorkspace, writes: list[tuple[str, str]], **others: Any
) -> ConversationRuntime:
    script: list[ScriptReply] = []
    for path, content in writes:
        script += [calls(("Put", {"path": path, "content": content})), says("done")]
    return conversation(
        ScriptedModel(script),
        [Put("Put", read_only=False, workspace=workspace)],
        workspace=workspace,
        **others,
    )


NAMES = st.sampled_from("abc")
WRITES = st.tuples(st.just("write"), NAMES, st.sampled_from("12345"))
BY_HAND = st.tuples(st.just("hand"), NAMES, st.sampled_from(["", "6", "7"]))
BACK = st.tuples(st.just("back"), st.integers(0, 9), st.sampled_from(["both", "files", "undone"]))


@settings(deadline=None)
@given(st.lists(st.one_of(WRITES, WRITES, BACK), max_size=14))
def test_any_way_back_leads_to_the_files_and_words_of_that_time(
    steps: list[tuple[str, Any, str]],
) -> None:
    asyncio.run(go_back_and_forth(steps))


@settings(deadline=None)
@given(st.lists(st.one_of(WRITES, BY_HAND, BACK), max_size=14))
def test_any_rewind_can_be_undone_whatever_a_person_did(steps: list[tuple[str, Any, str]]) -> None:
    asyncio.run(go_back_and_forth(steps))


async def go_back_and_forth(steps: list[tuple[str, Any, str]]) -> None:
    """Where nobody changed a file by hand, a rewind leads to just the files of that time."""
    workspace = MemoryWorkspace()
    by_hand = any(kind == "hand" for kind, _, _ in steps)
    writes = [(name, what) for kind, name, what in steps if kind == "write"]
    runtime = putting(workspace, writes)
    before: dict[int, tuple[dict[str, bytes], Transcript]] = {}  # each turn
    for number, (kind, name, what) in enumerate(steps):
        now = (dict(workspace.contents), runtime.state.transcript)
        if kind == "write":
            before[runtime.state.turns + 1] = now
            await runtime.run_turn(f"step {number}")
        elif kind == "hand":
            workspace.contents.pop(f"/workspace/{name}", None)
            if what:
                workspace.contents[f"/workspace/{name}"] = what.encode()
        elif points := runtime.turns():
            point = points[name % len(points)]
            done = runtime.rewind(point.seq, conversation=what != "files")
            files, transcript = before[point.turn]
            assert by_hand or workspace.contents == files
            assert done.left == ()
            if what != "files":
                assert runtime.state.transcript == transcript
            if what == "undone" and done.undo is not None:
                runtime.rewind(done.undo)
                assert (workspace.contents, runtime.state.transcript) == now
