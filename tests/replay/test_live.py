"""Today's rules, hooks, instructions and tools, judged against what happened."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.engine.replaying import Live, replay_session
from claw.errors import ConfigError
from claw.recordings.verify import Difference, Replayed
from claw.testing import Harness, calls, says
from claw.types.entries import Checkpointed
from tests.replay.recordings import changed, hooked, journal


def live(run: Harness, *parts: Any, **options: Any) -> Live:
    env = {"PATH": os.environ["PATH"], "HOME": str(run.home)}
    return Live(parts=frozenset(parts), env=env, **options)


async def judged(run: Harness, *parts: Any, **options: Any) -> Replayed:
    return await replay_session(str(journal(run)), live(run, *parts, **options))


def rewrite(run: Harness, settings: dict[str, Any]) -> None:
    (run.home / ".claw/settings.json").write_text(json.dumps(settings))


def only(report: Replayed) -> Difference:
    assert len(report.differences) == 1
    return report.differences[0]


SCRIPT: list[Any] = [
    calls(("Read", {"file_path": "a.txt"})),
    calls(("Bash", {"command": "cat a.txt"})),
    calls(("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
    says("done"),
]
FILES = {"a.txt": "one\n", "hook.sh": "echo 'mind the tests' >&2; exit 1", "AGENTS.md": "Be kind."}


@pytest.mark.parametrize("part", ["policy", "hooks", "prompt", "tools"])
async def test_what_has_not_changed_is_the_same(tmp_path: Path, part: str):
    settings = {"permissions": {"allow": ["Bash(*)", "Edit"]}, **hooked("PreToolUse", "Stop")}
    async with Harness(tmp_path, SCRIPT, files=FILES, settings=settings) as run:
        await run.turn("go")
        report = await judged(run, part)
        report.check()
        assert report.live == (part,)
        assert report.stale == ()
        assert (run.workspace / "a.txt").read_text() == "two\n"


async def test_a_new_rule_is_named_with_the_decision_it_changes(tmp_path: Path):
    async with Harness(tmp_path, SCRIPT, files=FILES, mode="bypassPermissions") as run:
        await run.turn("go")
        rewrite(run, {"permissions": {"deny": ["Bash(cat:*)"]}})
        first = only(await judged(run, "policy"))
        assert (first.turn, first.step, first.entry) == (1, 2, "decision_made")
        assert (first.field, first.expected, first.actual) == ("decision", "allow", "deny")
        report = await replay_session(str(journal(run)), live(run))
        assert report.same
        assert report.stale == ("policy",)


async def test_a_changed_hook_is_named_with_what_it_says(tmp_path: Path):
    options: Any = {"settings": hooked("PreToolUse"), "mode": "bypassPermissions"}
    async with Harness(tmp_path, SCRIPT, files=FILES, **options) as run:
        await run.turn("go")
        (run.workspace / "hook.sh").write_text("grep -q command && exit 2 || exit 1")
        first = only(await judged(run, "hooks"))
        assert (first.turn, first.entry) == (1, "hook_finished")
        rewrite(run, {})
        first = only(await judged(run, "hooks"))
        assert (first.expected, first.actual) == ("hook_finished", "decision_made")


async def test_another_command_of_a_hook_is_named_by_its_words(tmp_path: Path):
    options: Any = {"settings": hooked("PreToolUse"), "mode": "bypassPermissions"}
    files = {**FILES, "hook.sh": "exit 0"}
    async with Harness(tmp_path, SCRIPT, files=files, **options) as run:
        await run.turn("go")
        hook = {"hooks": [{"type": "command", "command": "sh  ./hook.sh"}]}
        rewrite(run, {"hooks": {"PreToolUse": [hook]}})
        first = only(await judged(run, "hooks"))
        assert (first.entry, first.field) == ("hook_finished", "hook")
        assert (first.expected, first.actual) == ("sh hook.sh", "sh  ./hook.sh")


async def test_a_hook_file_that_changed_is_stale(tmp_path: Path):
    options: Any = {"settings": hooked("PreToolUse"), "mode": "bypassPermissions"}
    async with Harness(tmp_path, SCRIPT, files=FILES, **options) as run:
        await run.turn("go")
        assert (await judged(run)).stale == ()
        (run.workspace / "hook.sh").write_text("exit 0")
        assert (await judged(run)).stale == ("hooks",)


async def test_a_question_of_today_is_a_difference_where_nobody_was_asked(tmp_path: Path):
    settings = {"permissions": {"allow": ["Bash(cat:*)"]}}
    script: list[Any] = [calls(("Bash", {"command": "cat a.txt"})), says("done")]
    async with Harness(tmp_path, script, files=FILES, settings=settings) as run:
        await run.turn("go")
        rewrite(run, {"permissions": {"ask": ["Bash(cat:*)"]}})
        first = only(await judged(run, "policy"))
        assert (first.step, first.entry, first.field) == (1, "decision_made", "judged")
        assert (first.expected, first.actual) == ("allow", "ask")


async def test_what_nobody_could_be_asked_is_decided_as_it_was(tmp_path: Path):
    script: list[Any] = [calls(("Bash", {"command": "cat a.txt"})), says("done")]
    async with Harness(tmp_path, script, files=FILES) as run:
        summary = await run.turn("go")
        assert summary.permission_denials
        (await judged(run, "policy")).check()
        rewrite(run, {"permissions": {"allow": ["Bash(cat:*)"]}})
        first = only(await judged(run, "policy"))
        assert (first.field, first.expected, first.actual) == ("decision", "deny", "allow")


async def test_changed_instructions_are_named(tmp_path: Path):
    async with Harness(tmp_path, SCRIPT, files=FILES, mode="bypassPermissions") as run:
        await run.turn("go")
        (run.workspace / "AGENTS.md").write_text("Be brief.")
        first = only(await judged(run, "prompt"))
        assert (first.turn, first.step) == (1, 0)
        assert (first.entry, first.field) == ("prompt_installed", "system")
        assert "Be kind." in first.expected
        assert "Be brief." in first.actual
        assert "-Be kind." in first.diff
        assert (await replay_session(str(journal(run)), live(run))).stale == ("prompt",)


async def test_tools_run_for_real_in_a_copy(tmp_path: Path):
    files = {**FILES, "count.sh": "ls | wc -l"}
    script: list[Any] = [calls(("Bash", {"command": "sh count.sh"})), says("done")]
    async with Harness(tmp_path, script, files=files, mode="bypassPermissions") as run:
        await run.turn("go")
        (await judged(run, "tools")).check()
        (run.workspace / "one-more").write_text("")
        first = only(await judged(run, "tools"))
        assert (first.turn, first.step) == (1, 1)
        assert (first.entry, first.field) == ("tool_finished", "content[0].text")


async def test_in_place_the_workspace_itself_is_changed(tmp_path: Path):
    script: list[Any] = [calls(("Bash", {"command": "echo x >> log"})), says("done")]
    async with Harness(tmp_path, script, mode="bypassPermissions") as run:
        await run.turn("go")
        (await judged(run, "tools")).check()
        assert (run.workspace / "log").read_text() == "x\n"
        (await judged(run, "tools", in_place=True)).check()
        assert (run.workspace / "log").read_text() == "x\nx\n"


async def test_what_differs_later_is_named_too_where_it_goes_on(tmp_path: Path):
    script: list[Any] = [
        *(calls(("Bash", {"command": f"echo {n}"})) for n in range(3)),
        says("done"),
    ]
    async with Harness(tmp_path, script, mode="bypassPermissions") as run:
        await run.turn("go")
        rewrite(run, {"permissions": {"deny": ["Bash(echo 0)", "Bash(echo 2)"]}})
        report = await judged(run, "policy", goes_on=True)
        decisions = [d.step for d in report.differences if d.entry == "decision_made"]
        assert decisions == [1, 3]
        assert report.steps == 4


async def test_nothing_is_left_of_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    async with Harness(tmp_path, SCRIPT, files=FILES, mode="bypassPermissions") as run:
        await run.turn("go")
        (await judged(run, "tools")).check()
    assert [*(tmp_path / "scratch").iterdir()] == []


async def test_secrets_that_tools_print_are_left_out_as_they_were(tmp_path: Path):
    script: list[Any] = [calls(("Bash", {"command": "echo $MY_API_KEY"})), says("done")]
    settings = {"env": {"MY_API_KEY": "tr0ub4dor-and-3"}}
    async with Harness(tmp_path, script, settings=settings, mode="bypassPermissions") as run:
        await run.turn("go")
        (await judged(run, "tools")).check()


@pytest.mark.parametrize("part", ["policy", "hooks", "prompt", "tools"])
async def test_a_file_with_a_secret_was_not_kept_and_is_not_missed(tmp_path: Path, part: str):
    settings = {"env": {"MY_API_KEY": "tr0ub4dor-and-3"}, **hooked("PreToolUse")}
    files = {**FILES, "a.txt": "one tr0ub4dor-and-3\n"}
    script = [SCRIPT[0], SCRIPT[2], says("done")]
    options: Any = {"files": files, "settings": settings, "mode": "bypassPermissions"}
    async with Harness(tmp_path, script, **options) as run:
        await run.turn("go")
        (kept,) = [entry for entry in run.entries if isinstance(entry, Checkpointed)]
        assert (kept.before, kept.secret) == (None, True)
        if part == "tools":  # as it was it is nowhere, so that somebody puts it back
            (run.workspace / "a.txt").write_text(files["a.txt"])
        (await judged(run, part)).check()


async def edited(folder: Path, path: str, **options: Any) -> Harness:
    script: list[Any] = [
        calls(("Read", {"file_path": path})),
        calls(("Edit", {"file_path": path, "old_string": "one", "new_string": "two"})),
        says("done"),
    ]
    async with Harness(folder, script, mode="bypassPermissions", **options) as run:
        await run.turn("go")
    return run


@pytest.mark.parametrize("where", ["link/out.txt", "{outside}/out.txt"])
async def test_live_tools_change_nothing_beside_the_copy(tmp_path: Path, where: str):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "out.txt").write_text("one\n")
    workspace = tmp_path / "run/workspace"
    workspace.mkdir(parents=True)
    (workspace / "link").symlink_to(outside)
    run = await edited(tmp_path / "run", where.format(outside=outside))
    assert (outside / "out.txt").read_text() == "two\n"
    (outside / "out.txt").write_text("one\n")
    report = await judged(run, "tools")
    assert (outside / "out.txt").read_text() == "one\n"
    assert only(report).entry == "tool_finished"


@pytest.mark.no_replay("the recording was changed")
async def test_a_path_of_a_journal_reaches_nothing_through_a_link(tmp_path: Path):
    run = await edited(tmp_path / "run", "a.txt", files={"a.txt": "one\n"})
    (tmp_path / "outside").mkdir()
    kept = tmp_path / "outside/kept.txt"
    kept.write_text("mine\n")
    (run.workspace / "link").symlink_to("../../outside")
    planted = str(run.workspace.resolve() / "link/kept.txt")
    path = changed(
        journal(run), lambda e: replace(e, path=planted) if isinstance(e, Checkpointed) else e
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(run.home)}
    await replay_session(str(path), Live(parts=frozenset({"hooks"}), env=env))
    assert kept.read_text() == "mine\n"


@pytest.mark.parametrize("in_place", [False, True])
async def test_no_other_directory_stands_for_the_workspace_unasked(tmp_path: Path, in_place: bool):
    run = await edited(tmp_path / "run", "a.txt", files={"a.txt": "one\n"})
    other = tmp_path / "other"
    run.workspace.rename(other)
    (other / "a.txt").write_text("one\n")
    with pytest.raises(ConfigError, match="does not exist here"):
        await judged(run, "tools", in_place=in_place)
    await judged(run, "tools", in_place=in_place, cwd=str(other))
    assert (other / "a.txt").read_text() == ("two\n" if in_place else "one\n")


async def test_the_whole_home_is_not_copied(tmp_path: Path):
    run = await edited(tmp_path / "run", "a.txt", files={"a.txt": "one\n"})
    env = {"PATH": os.environ["PATH"], "HOME": str(run.workspace)}
    with pytest.raises(ConfigError, match="too much for a copy"):
        await replay_session(str(journal(run)), Live(parts=frozenset({"hooks"}), env=env))


@pytest.mark.parametrize("conversation", [True, False])
async def test_files_that_a_rewind_put_back_are_put_back_in_the_copy(
    tmp_path: Path, conversation: bool
):
    def writes(text: str) -> Any:
        return calls(("Write", {"file_path": "new/a.txt", "content": text}))

    look = calls(("Bash", {"command": "cat new/a.txt; ls"}))
    script: list[Any] = [look, writes("one"), says("x"), look, writes("two"), look, says("y")]
    async with Harness(tmp_path, script, mode="bypassPermissions") as run:
        await run.turn("go")
        runtime = run.house.runtime
        runtime.rewind(runtime.turns()[0].seq, conversation=conversation)
        (run.workspace / "new").rmdir()
        await run.turn("on")
        (await judged(run, "tools")).check()


async def test_hooks_that_name_their_directory_are_the_same_in_the_copy(tmp_path: Path):
    files = {"hook.sh": "pwd", "a.txt": "one\n"}
    settings = hooked("UserPromptSubmit")
    async with Harness(tmp_path, SCRIPT, files=files, settings=settings) as run:
        await run.turn("go")
        for parts in (["hooks"], ["hooks", "policy"], ["hooks", "tools"]):
            (await judged(run, *parts)).check()
