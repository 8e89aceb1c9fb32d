"""What every adapter of a port must do, as test classes to inherit from.

Subclass a suite, name it ``Test...``, and say how an adapter is made; pytest with
``asyncio_mode = "auto"`` does the rest::

    class TestMemoryBlobs(BlobsSuite):
        def make(self) -> Blobs:
            return MemoryBlobs()

An adapter that needs a directory takes it in an autouse fixture of the subclass.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar, get_args

from claw.errors import ClawError, ModelError, ModelUnavailable, SessionError, ToolFailed
from claw.models.scripted import PlainReply, calls, cut, fails, refuses, says
from claw.ports import (
    Approver,
    Blobs,
    Clock,
    Command,
    Disk,
    HookRunner,
    Journal,
    ModelClient,
    Processes,
    Tool,
    ToolCall,
    ToolSet,
    Workspace,
)
from claw.types.effects import Effect, Execute, ReadPath, Remember, WritePath
from claw.types.entries import (
    Checkpointed,
    Entry,
    Interrupted,
    ReplyReceived,
    Rewound,
    Titled,
    ToolFinished,
    TurnStarted,
    UserMessaged,
)
from claw.types.events import AssistantEvent, MessageStop
from claw.types.hooks import HookEvent, HookOutcome, HookPayload
from claw.types.messages import Text, Thinking, ToolUse, UserMessage
from claw.types.permissions import Answer, Question
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.tools import ToolOutput, ToolSpec
from claw.types.usage import Usage

__all__ = [
    "ApproverSuite",
    "BlobsSuite",
    "ClockSuite",
    "DiskSuite",
    "HookRunnerSuite",
    "JournalSuite",
    "ModelClientSuite",
    "ProcessesSuite",
    "ThinkingSuite",
    "ToolSetSuite",
    "ToolSuite",
    "WorkspaceSuite",
    "a_request",
]

E = TypeVar("E", bound=BaseException)


def a_request(prompt: str = "hello", *, model: str = "test-model") -> Request:
    """A small request with one tool on offer."""
    look = ToolSpec("Look", "Looks at a thing.", {"type": "object", "properties": {}})
    return Request(
        "Be brief.", (UserMessage((Text(prompt),)),), (look,), Sampling(model, max_tokens=1000)
    )


class ModelClientSuite(ABC):
    """``open`` lends a client that will get these replies, over whatever wire it speaks."""

    @abstractmethod
    def open(self, replies: Sequence[PlainReply]) -> AbstractAsyncContextManager[ModelClient]: ...

    async def test_text_arrives_whole_and_ends_with_the_stop(self) -> None:
        text = "Grüße, 世界! " * 20
        async with self.open([says(text)]) as client:
            events = await _all(client.stream(a_request()))
        reply = assemble(events)
        assert (reply.text, reply.complete) == (text, True)
        assert reply.stop_reason in ("end_turn", "stop")  # one meaning, two dialects
        assert isinstance([e for e in events if not isinstance(e, Usage)][-1], MessageStop)

    async def test_calls_arrive_in_order_with_their_input(self) -> None:
        wanted = [("Look", {"at": 'a "b" \\ ü', "n": 1}), ("Look", {})]
        async with self.open([calls(*wanted, text="I look.")]) as client:
            reply = await _sample(client)
        assert [(call.name, call.input) for call in reply.tool_calls] == wanted
        assert (reply.text, reply.stop_reason) == ("I look.", "tool_use")
        assert len({call.id for call in reply.tool_calls}) == 2

    async def test_input_that_does_not_parse_is_kept_as_text(self) -> None:
        async with self.open([calls(ToolUse("x", "Look", {}, '{"at": '))]) as client:
            (call,) = (await _sample(client)).tool_calls
        assert (call.input, call.raw_input) == ({}, '{"at": ')

    async def test_usage_is_the_servers(self) -> None:
        usage = Usage(120, 7, cache_read_input_tokens=30)
        async with self.open([says("x", usage=usage)]) as client:
            reply = await _sample(client)
        assert reply.usage == usage

    async def test_a_refusal_is_a_stop_reason(self) -> None:
        async with self.open([refuses("No.")]) as client:
            assert (await _sample(client)).stop_reason == "refusal"

    async def test_a_cut_stream_ends_without_stop_and_without_error(self) -> None:
        async with self.open([cut("an answer that never ends", after=1)]) as client:
            reply = await _sample(client)
        assert not reply.complete
        assert reply.text
        assert "an answer that never ends".startswith(reply.text)

    async def test_an_error_before_the_first_byte_is_a_model_error(self) -> None:
        error = ModelUnavailable("overloaded", status=529, retry_after=3)
        async with self.open([fails(error)]) as client:
            raised = await _raises(ModelError, _all(client.stream(a_request())))
        assert isinstance(raised, ModelUnavailable)
        assert (raised.status, raised.retry_after, raised.advice) == (529, 3, "retry")

    async def test_an_error_inside_the_stream_is_a_model_error(self) -> None:
        error = ModelUnavailable("overloaded", status=529)
        async with self.open([fails(error, after="half an answer")]) as client:
            seen: list[AssistantEvent] = []

            async def read() -> None:
                async for event in client.stream(a_request()):
                    seen.append(event)

            await _raises(ModelError, read())
        assert assemble(seen).text == "half an answer"

    async def test_a_stream_can_be_left_and_the_client_used_again(self) -> None:
        async with self.open([says("a long answer " * 50), says("again")]) as client:
            left = client.stream(a_request())
            await anext(left)
            await left.aclose()
            assert (await _sample(client)).text == "again"


class ThinkingSuite(ModelClientSuite):
    """For dialects that carry signed thinking: it arrives byte for byte."""

    async def test_thinking_keeps_its_signature(self) -> None:
        thought = Thinking("first this,\nthen that", "c2lnbmF0dXJl+/==")
        async with self.open([says("x", thinking=thought.text, signature=thought.signature)]) as c:
            reply = await _sample(c)
        assert reply.blocks == (thought, Text("x"))


class JournalSuite(ABC):
    """``entries`` reads back what a journal holds, as a new process would."""

    @abstractmethod
    def make(self) -> Journal: ...

    @abstractmethod
    def entries(self, journal: Journal) -> Sequence[Entry]: ...

    def test_entries_come_back_in_order(self) -> None:
        journal = self.make()
        written: list[Entry] = [
            TurnStarted(1, limits={"steps": 5.0}),
            UserMessaged((Text("Grüße\n世界\u2028\x00"),)),
            ReplyReceived(
                1, (ToolUse("a", "Read", {"n": [1, None]}),), "tool_use", Usage(1, 2), True, "m"
            ),
            ToolFinished("a", (Text("ok"),), "ok", ms=3),
            Interrupted("tools"),
        ]
        for entry in written:
            journal.append(entry)
        assert list(self.entries(journal)) == written

    def test_a_synced_entry_is_an_entry(self) -> None:
        journal = self.make()
        journal.append(Titled("one"))
        journal.append(Titled("two"), sync=True)
        journal.append(Titled("three"))
        assert list(self.entries(journal)) == [Titled("one"), Titled("two"), Titled("three")]

    def test_each_entry_has_the_next_place(self) -> None:
        journal = self.make()
        assert [journal.append(Titled(name)) for name in ("one", "two", "three")] == [1, 2, 3]

    def test_the_past_can_be_asked_for(self) -> None:
        journal = self.make()
        places = [journal.append(Titled(name)) for name in ("one", "two", "three")]
        assert [journal.state_at(place).title for place in places] == ["one", "two", "three"]

    def test_what_was_rewound_was_not_said_also_twice_over(self) -> None:
        journal = self.make()
        for name in ("one", "two", "three"):
            journal.append(Titled(name))
        back = journal.append(Rewound(1))
        journal.append(Titled("four"))
        again = journal.append(Rewound(back))
        journal.append(Rewound(3))
        assert journal.state_at(back).title == journal.state_at(again).title == "one"
        assert journal.state_at(again + 1).title == "three"

    def test_turns_are_places_right_before_what_was_said(self) -> None:
        journal = self.make()
        assert journal.turns() == ()
        for number in (1, 2):
            before = journal.append(Titled(str(number)))
            journal.append(TurnStarted(number))
            journal.append(UserMessaged((Text(f"prompt {number}"),)))
            for path in ("/a", "/b", "/a"):
                journal.append(Checkpointed(f"call {number}", path, None))
            journal.append(Checkpointed("", "/c", None))
            point = journal.turns()[-1]
            assert (point.seq, point.turn, point.prompt) == (before, number, f"prompt {number}")
            assert point.files == ("/a", "/b")
            assert journal.state_at(point.seq).turns == number - 1
        journal.append(TurnStarted(3))  # a hook blocks the prompt
        assert [point.turn for point in journal.turns()] == [1, 2]

    def test_turns_that_were_rewound_are_no_places_until_that_is_undone(self) -> None:
        journal = self.make()

        def turn(number: int) -> None:
            journal.append(TurnStarted(number))
            journal.append(UserMessaged((Text("go"),)))

        def there() -> list[int]:
            return [point.turn for point in journal.turns()]

        journal.append(Titled("a session"))
        for number in (1, 2, 3):
            turn(number)
        undo = journal.append(Titled("so far"))
        journal.append(Rewound(journal.turns()[1].seq))
        assert there() == [1]
        turn(4)
        assert there() == [1, 4]
        back = journal.append(Rewound(undo))
        assert there() == [1, 2, 3]
        journal.append(Rewound(back - 1))
        assert there() == [1, 4]
        journal.append(Rewound(journal.turns()[0].seq))
        assert there() == []


class BlobsSuite(ABC):
    @abstractmethod
    def make(self) -> Blobs: ...

    def test_bytes_come_back(self) -> None:
        blobs = self.make()
        for data in (b"", b"\x00\xff\r\n", b"x" * 3_000_000):
            assert blobs.get(blobs.put(data)) == data

    def test_the_same_bytes_have_the_same_digest(self) -> None:
        blobs = self.make()
        assert blobs.put(b"a") == blobs.put(b"a") != blobs.put(b"b")

    def test_an_unknown_digest_is_a_session_error(self) -> None:
        known = self.make().put(b"known")
        for digest in ("0" * len(known), "", "../" * 3 + "etc/passwd"):
            _refuses(SessionError, self.make().get, digest)

    def test_a_path_holds_the_bytes(self) -> None:
        blobs = self.make()
        path = blobs.path(blobs.put(b"content"))
        if path is not None:
            assert Path(path).read_bytes() == b"content"


class DiskSuite(ABC):
    """``folder`` is an empty directory that the disk may use."""

    folder: str

    @abstractmethod
    def make(self) -> Disk: ...

    def test_what_was_written_is_there(self) -> None:
        disk = self.make()
        fd = disk.open(self._path("a"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        assert disk.write(fd, b"one") == 3
        assert disk.write(fd, memoryview(b"two")) == 3
        disk.chmod(fd, 0o600)
        disk.chown(fd, os.getuid(), os.getgid())
        disk.fsync(fd)
        disk.truncate(fd, 5)
        disk.close(fd)
        assert Path(self._path("a")).read_bytes() == b"onetw"
        assert os.stat(self._path("a")).st_mode & 0o777 == 0o600
        _refuses_system(OSError, disk.write, fd, b"closed")

    def test_files_change_their_names(self) -> None:
        disk = self.make()
        self._file(disk, "a", b"a")
        self._file(disk, "b", b"b")
        _refuses_system(FileExistsError, disk.link, self._path("a"), self._path("b"))
        disk.link(self._path("a"), self._path("c"))
        disk.rename(self._path("a"), self._path("b"))
        disk.unlink(self._path("c"))
        assert os.listdir(self.folder) == ["b"]
        assert Path(self._path("b")).read_bytes() == b"a"
        _refuses_system(FileNotFoundError, disk.rename, self._path("a"), self._path("b"))
        _refuses_system(FileNotFoundError, disk.unlink, self._path("a"))

    def test_directories_come_and_go(self) -> None:
        disk = self.make()
        disk.mkdir(self._path("d"), 0o700)
        _refuses_system(FileExistsError, disk.mkdir, self._path("d"))
        assert os.stat(self._path("d")).st_mode & 0o777 == 0o700
        disk.rmdir(self._path("d"))
        _refuses_system(FileNotFoundError, disk.rmdir, self._path("d"))

    def test_paths_may_start_at_an_open_directory(self) -> None:
        disk = self.make()
        folder = disk.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        disk.mkdir("d", dir_fd=folder)
        disk.close(disk.open("a", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        disk.link("a", "d/b", dir_fd=folder)
        disk.rename("a", "d/c", dir_fd=folder)
        disk.unlink("d/b", dir_fd=folder)
        disk.fsync(folder)
        disk.close(folder)
        assert os.listdir(self._path("d")) == ["c"]

    def test_one_holds_a_lock(self) -> None:
        disk = self.make()
        self._file(disk, "a", b"")
        first, second = (disk.open(self._path("a"), os.O_RDWR) for _ in range(2))
        disk.flock(first)
        _refuses_system(BlockingIOError, disk.flock, second)
        disk.close(first)
        disk.flock(second)
        disk.close(second)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _file(self, disk: Disk, name: str, data: bytes) -> None:
        fd = disk.open(self._path(name), os.O_WRONLY | os.O_CREAT)
        disk.write(fd, data)
        disk.close(fd)


class ClockSuite(ABC):
    """Waits at most a few hundredths of a second on a real clock."""

    @abstractmethod
    def make(self) -> Clock: ...

    async def test_sleep_moves_both_times(self) -> None:
        clock = self.make()
        before, since = clock.now(), clock.monotonic()
        await clock.sleep(0.02)
        assert clock.monotonic() - since >= 0.019
        assert clock.now() > before

    async def test_a_timeout_ends_what_takes_longer(self) -> None:
        clock = self.make()
        since = clock.monotonic()

        async def wait() -> None:
            async with clock.timeout(0.02):
                await clock.sleep(30)

        await _raises(TimeoutError, wait())
        assert clock.monotonic() - since < 30

    async def test_a_timeout_leaves_alone_what_is_quicker(self) -> None:
        clock = self.make()
        async with clock.timeout(30):
            await clock.sleep(0.01)
        async with clock.timeout(None):
            await clock.sleep(0.01)

    async def test_a_cancel_from_outside_stays_a_cancel(self) -> None:
        clock = self.make()
        entered = asyncio.Event()

        async def wait() -> None:
            async with clock.timeout(3600):
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(wait())
        await entered.wait()
        task.cancel()
        await _raises(asyncio.CancelledError, task)

    async def test_a_sleep_can_be_cancelled(self) -> None:
        clock = self.make()
        task = asyncio.create_task(clock.sleep(3600))
        task.cancel()
        await _raises(asyncio.CancelledError, task)

    def test_jitter_is_a_fraction(self) -> None:
        clock = self.make()
        assert all(0 <= clock.jitter() < 1 for _ in range(100))


class WorkspaceSuite(ABC):
    """``make`` gives a workspace with these files, by path relative to its root."""

    @abstractmethod
    def make(self, files: Mapping[str, bytes]) -> Workspace: ...

    def test_a_file_is_read_by_relative_and_absolute_path(self) -> None:
        workspace = self.make({"src/a.txt": b"one\r\n\xff"})
        content = workspace.read("src/a.txt", limit=100)
        assert content.data == b"one\r\n\xff"
        assert workspace.read(f"{workspace.root}/src/../src/a.txt", limit=100) == content

    def test_what_cannot_be_read_is_a_tool_failure(self) -> None:
        workspace = self.make({"src/a.txt": b"12345"})
        _refuses(ToolFailed, workspace.read, "nothing.txt", limit=100)
        _refuses(ToolFailed, workspace.read, "src", limit=100)
        _refuses(ToolFailed, workspace.read, "src/a.txt/b", limit=100)
        _refuses(ToolFailed, workspace.read, "src/a.txt", limit=4)
        assert workspace.read("src/a.txt", limit=5).data == b"12345"

    def test_a_new_file_is_created_with_its_directories(self) -> None:
        workspace = self.make({})
        written = workspace.write("new/deep/a.txt", b"new", expect=None)
        assert written.data == b"new"
        assert workspace.read("new/deep/a.txt", limit=10) == written

    def test_only_what_was_read_is_replaced(self) -> None:
        workspace = self.make({"a.txt": b"old"})
        old = workspace.read("a.txt", limit=10)
        _refuses(ToolFailed, workspace.write, "a.txt", b"new", expect=None)
        _refuses(ToolFailed, workspace.write, "a.txt", b"new", expect="0" * len(old.digest))
        _refuses(ToolFailed, workspace.write, "b.txt", b"new", expect=old.digest)
        assert workspace.read("a.txt", limit=10).data == b"old"
        new = workspace.write("a.txt", b"new", expect=old.digest)
        assert new.digest != old.digest
        assert workspace.read("a.txt", limit=10) == new

    def test_a_directory_is_not_written(self) -> None:
        workspace = self.make({"src/a.txt": b""})
        _refuses(ToolFailed, workspace.write, "src", b"x", expect=None)

    def test_files_are_sorted_relative_and_bounded(self) -> None:
        workspace = self.make({"b.txt": b"", "src/z.txt": b"", "src/a.txt": b""})
        assert list(workspace.files(".", limit=10)) == ["b.txt", "src/a.txt", "src/z.txt"]
        assert list(workspace.files("src", limit=10)) == ["src/a.txt", "src/z.txt"]
        assert len(workspace.files(".", limit=2)) == 2

    def test_effects_are_observed_in_order(self) -> None:
        workspace = self.make({"a.txt": b""})
        effects: list[Effect] = [
            ReadPath("a.txt"),
            WritePath("../outside.txt"),
            WritePath("new/file.txt"),
            WritePath(".git/config"),
            Execute("true"),
            Remember(),
        ]
        inside, outside, new, git, run, remember = workspace.observe(effects).observed
        assert [o.effect for o in (inside, outside, new, git, run, remember)] == effects
        assert (inside.inside, inside.relative) == (True, "a.txt")
        assert inside.real == workspace.read("a.txt", limit=1).real
        assert not outside.inside
        assert (new.inside, new.relative) == (True, "new/file.txt")
        assert git.protected

    def test_a_workspace_that_is_there_passes_the_probe(self) -> None:
        self.make({}).probe()


class ProcessesSuite(ABC):
    """Runs ``/bin/sh``."""

    @abstractmethod
    def make(self) -> Processes: ...

    async def _sh(self, script: str, **options: Any) -> Any:
        return await self.make().run(Command(("/bin/sh", "-c", script), **options))

    async def test_output_and_exit_code(self) -> None:
        result = await self._sh("printf out; printf err >&2; exit 3")
        assert (result.exit_code, result.ended) == (3, "exited")
        assert (result.stdout, result.stderr) == (b"out", b"err")

    async def test_streams_can_be_merged(self) -> None:
        result = await self._sh("printf a; printf b >&2; printf c", merge=True)
        assert (result.stdout, result.stderr) == (b"abc", b"")

    async def test_input_reaches_the_program_and_ends(self) -> None:
        data = b"line\n" * 100_000
        assert (await self._sh("cat", stdin=data)).stdout == data
        assert (await self._sh("cat")).stdout == b""

    async def test_the_environment_is_added_to(self) -> None:
        result = await self._sh('printf "%s" "$ADDED"; test -n "$PATH"', env={"ADDED": "yes"})
        assert (result.stdout, result.exit_code) == (b"yes", 0)

    async def test_a_death_by_signal_is_negative(self) -> None:
        assert (await self._sh("kill -TERM $$")).exit_code == -15

    async def test_a_program_that_is_not_there_is_a_result(self) -> None:
        result = await self.make().run(Command(("/nonexistent/program",)))
        assert result.ended == "not_started"
        assert result.exit_code is None
        assert result.error

    async def test_a_timeout_kills_and_keeps_the_output(self) -> None:
        result = await self._sh("printf begun; sleep 60", timeout=0.3)
        assert (result.ended, result.stdout) == ("timeout", b"begun")

    async def test_output_over_the_limit_loses_its_middle(self) -> None:
        script = "printf start; i=0; while [ $i -lt 200 ]; do printf 0123456789; i=$((i+1)); done"
        result = await self._sh(f"{script}; printf end", keep=100)
        assert result.stdout.startswith(b"start")
        assert result.stdout.endswith(b"end")
        assert result.omitted > 0
        assert len(result.stdout) <= 200

    async def test_output_is_shown_as_it_comes(self) -> None:
        shown: list[bytes] = []
        command = Command(("/bin/sh", "-c", "printf one; printf two"))
        result = await self.make().run(command, shown.append)
        assert b"".join(shown) == result.stdout == b"onetwo"

    async def test_a_cancel_leaves_nothing_running(self) -> None:
        shown: list[bytes] = []
        begun = asyncio.Event()

        def show(data: bytes) -> None:
            shown.append(data)
            if data.endswith(b"\n"):
                begun.set()

        # The child ignores TERM, too: only a kill of the whole group ends both.
        script = "trap '' TERM; sleep 60 & echo $$ $!; wait; sleep 60"
        run = self.make().run(Command(("/bin/sh", "-c", script)), show)
        task = asyncio.create_task(run)
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        await _raises(asyncio.CancelledError, task)
        for pid in b"".join(shown).split():
            assert await _is_gone(int(pid)), f"process {int(pid)} still runs"


class ToolSetSuite(ABC):
    @abstractmethod
    def make(self) -> ToolSet: ...

    def test_specs_are_the_same_every_time(self) -> None:
        assert self.make().specs() == self.make().specs()

    def test_every_tool_is_found_by_name_and_alias_in_any_case(self) -> None:
        tools = self.make()
        for spec in tools.specs():
            for name in (spec.name, *spec.aliases):
                for written in (name, name.lower(), name.upper()):
                    found = tools.get(written)
                    assert found is not None, f"{written} is not found"
                    assert found.spec == spec

    def test_names_are_unique(self) -> None:
        names = [n.lower() for s in self.make().specs() for n in {s.name, *s.aliases}]
        assert len(names) == len(set(names))

    def test_an_unknown_name_is_none(self) -> None:
        assert self.make().get("no such tool") is None
        assert self.make().get("") is None


class ToolSuite(ABC):
    """``good`` inputs run to an output, ``bad`` ones are refused by ``parse``."""

    good: Sequence[dict[str, Any]] = ()
    bad: Sequence[dict[str, Any]] = ()

    @abstractmethod
    def make(self) -> Tool: ...

    def test_the_spec_can_be_offered(self) -> None:
        spec = self.make().spec
        assert spec == self.make().spec
        assert spec.name.replace("_", "a").replace("-", "a").isalnum()
        assert len(spec.name) <= 64
        assert spec.description.strip()
        assert spec.input_schema.get("type") == "object"

    def test_effects_are_pure(self) -> None:
        tool = self.make()
        for input in self.good:
            args = tool.parse(input)
            assert tool.effects(args) == tool.effects(tool.parse(input))

    def test_a_preview_is_text(self) -> None:
        tool = self.make()
        for input in self.good:
            assert isinstance(tool.preview(tool.parse(input)), str)

    def test_bad_input_is_named(self) -> None:
        for input in self.bad:
            assert str(_refuses(ToolFailed, self.make().parse, input)).strip()

    async def test_a_run_gives_an_output(self) -> None:
        for at, input in enumerate(self.good):
            tool = self.make()
            output = await tool.run(tool.parse(input), ToolCall(f"call_{at}", lambda text: None))
            assert isinstance(output, ToolOutput)


class ApproverSuite(ABC):
    """``make`` gives an approver whose human, if there is one, answers at once."""

    @abstractmethod
    def make(self) -> Approver: ...

    async def test_a_question_gets_an_answer(self) -> None:
        answer = await self.make().ask(_question("call_1"))
        assert isinstance(answer, Answer)
        assert answer.allow or answer.reason or answer.asked

    async def test_a_question_can_be_taken_back(self) -> None:
        approver = self.make()
        task = asyncio.create_task(approver.ask(_question("call_1")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert isinstance(await approver.ask(_question("call_2")), Answer)


class HookRunnerSuite(ABC):
    @abstractmethod
    def make(self) -> HookRunner: ...

    async def test_every_event_has_an_outcome(self) -> None:
        hooks = self.make()
        events: tuple[HookEvent, ...] = get_args(HookEvent)
        for event in events:
            payload = HookPayload(event, "default", "Read", "call_1", {"tool_input": {"a": "ü"}})
            assert isinstance(await hooks.fire(payload), HookOutcome)


async def _all(stream: AsyncIterator[AssistantEvent]) -> list[AssistantEvent]:
    return [event async for event in stream]


async def _sample(client: ModelClient) -> Reply:
    return assemble(await _all(client.stream(a_request())))


async def _raises(kind: type[E], doing: Any) -> E:
    try:
        await doing
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def _refuses(kind: type[ClawError], do: Callable[..., Any], *given: Any, **named: Any) -> ClawError:
    try:
        do(*given, **named)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised for {given}")


def _refuses_system(kind: type[OSError], do: Callable[..., Any], *given: Any) -> None:
    try:
        do(*given)
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised for {given}")


def _question(call_id: str) -> Question:
    return Question(call_id, "Bash", "rm -r build", "asks in this mode")


async def _is_gone(pid: int) -> bool:
    """Not running within two seconds; a zombie that waits for init counts as gone."""
    for _ in range(100):
        if not _runs(pid):
            return True
        await asyncio.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except OSError:  # no /proc on this system, or another user's process
        return True
    return stat.rpartition(")")[2].split()[0] != "Z"
