"""Recordings: asked once, played from then on, and strict about what is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import claw
from claw.errors import (
    ConfigError,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
    ParameterRefused,
)
from claw.models.script_files import Line, line_of, read_script, reply_of
from claw.models.scripted import Fails, PlainReply, playback
from claw.testing import (
    Gate,
    Harness,
    Recording,
    RecordingFailed,
    ServerReply,
    StrictServer,
    answers,
    calls,
    conversation,
    cut,
    says,
    waits,
)
from claw.types.messages import Opaque, RedactedThinking, Text, Thinking, ToolUse
from claw.types.places import with_names, with_places
from claw.types.reply import Reply
from claw.types.usage import Usage

FILES = {"notes.md": "hello\nworld\n"}
OVERLOADED = answers(529, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}})


def configured(
    home: Path,
    url: str,
    dialect: str = "anthropic",
    *,
    header: str = "",
    window: int = 0,
    **more: Any,
) -> dict[str, str]:
    """A developer's home, with a model server in its settings; the environment for it."""
    (home / ".claw").mkdir(parents=True, exist_ok=True)
    base = url if dialect == "anthropic" else f"{url}/v1"
    provider: dict[str, Any] = {"dialect": dialect, "baseUrl": base, "apiKeyEnv": "MY_KEY"}
    provider |= {"headers": {"x-secret": header}} if header else {}
    provider |= {"contextWindow": window} if window else {}
    settings = {"providers": {"mine": provider}, "model": "mine/some-model", **more}
    (home / ".claw/settings.json").write_text(json.dumps(settings))
    return {"HOME": str(home), "MY_KEY": "value-of-my-key"}


async def recorded(
    folder: Path,
    script: Sequence[ServerReply],
    *,
    prompts: Sequence[str] = ("what do the notes say?",),
    dialect: str = "anthropic",
    extends: bool = True,
    **options: Any,
) -> tuple[Path, dict[str, Any]]:
    """A recording of this script, and the trajectory of the run that it was made in."""
    path = folder / "recordings/notes.json"
    async with StrictServer(script, extends=extends) as server:
        env = configured(folder / "developer", server.base_url, dialect)
        with Recording(path, record=True, env=env) as model:
            async with Harness(folder / "recording", model, **{"files": FILES, **options}) as run:
                for prompt in prompts:
                    await run.turn(prompt)
                return path, run.trajectory()


async def played(
    folder: Path,
    path: Path,
    *,
    prompts: Sequence[str] = ("what do the notes say?",),
    varies: Sequence[str] = (),
    **options: Any,
) -> dict[str, Any]:
    with Recording(path, varies=varies, env={}) as model:
        async with Harness(folder / "playing", model, **{"files": FILES, **options}) as run:
            for prompt in prompts:
                await run.turn(prompt)
            return run.trajectory()


def reads(folder: Path, name: str = "notes.md") -> Reply:
    """A call with a path of the machine in it."""
    path = str(folder / "recording/workspace" / name)
    return calls(("Read", {"file_path": path}), text="Let me look.", thinking="hm", signature="sg")


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
async def test_what_was_recorded_is_played_elsewhere_without_a_server(tmp_path, dialect):
    script: list[ServerReply] = [
        OVERLOADED,
        reads(tmp_path),
        says("They say hello."),
        says("You are welcome."),
    ]
    prompts = ("what do the notes say?", "thanks")
    path, made = await recorded(tmp_path, script, prompts=prompts, dialect=dialect)
    assert str(tmp_path) not in path.read_text()
    elsewhere = tmp_path / "else where"
    assert await played(elsewhere, path, prompts=prompts) == made
    kinds = [entry["kind"] for entry in made["entries"]]
    assert kinds.count("retried") == 1
    assert kinds.count("tool_finished") == 1
    assert [e["status"] for e in made["entries"] if e["kind"] == "tool_finished"] == ["ok"]


async def test_every_part_of_a_reply_is_kept(tmp_path):
    blocks = (
        Thinking("first", "signed"),
        RedactedThinking("scrambled"),
        Text("a"),
        Opaque("anthropic", {"type": "server_tool_use", "id": "s", "name": "x", "input": {}}),
        Text("b"),
        ToolUse("id-1", "Grep", {"pattern": "hello"}),
    )
    whole = Reply(blocks, "tool_use", Usage(5, 6, 7, 8))
    script: list[ServerReply] = [
        whole,
        cut(says("It sto")),
        says("It stops.", stop_reason="max_tokens"),
    ]
    path, made = await recorded(tmp_path, script)
    assert await played(tmp_path, path) == made
    first, second, third = (reply_of("", 0, line) for line in read_script(str(path)).replies)
    assert isinstance(first, Reply)
    assert (first.blocks, first.usage) == (blocks, Usage(5, 6, 7, 8))
    assert isinstance(second, Reply)
    assert (second.text, second.complete) == ("It sto", False)
    assert isinstance(third, Reply)
    assert third.stop_reason == "max_tokens"


async def test_the_price_and_the_window_are_those_of_the_recording(tmp_path):
    async with StrictServer([says("Hi.", usage=Usage(1000, 1000), model="claude-sonnet-4-5")]) as s:
        env = {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k" * 20}
        env |= {"ANTHROPIC_BASE_URL": s.base_url, "CLAW_MODEL": "claude-sonnet-4-5"}
        with Recording(tmp_path / "a.json", record=True, env=env) as model:
            async with Harness(tmp_path / "1", model, max_usd=5.0) as run:
                then = (await run.turn("hi")).cost
    with Recording(tmp_path / "a.json", env={}) as model:
        assert model.window == 200_000
        async with Harness(tmp_path / "2", model, max_usd=5.0) as run:
            now = (await run.turn("hi")).cost
    assert now == then
    assert now.usd == pytest.approx(0.018)


async def test_the_settings_of_the_developer_reach_the_server(tmp_path):
    async with StrictServer([says("Hi.")]) as server:
        env = configured(tmp_path / "home", server.base_url, maxOutputTokens=777)
        with Recording(tmp_path / "a.json", record=True, env=env) as model:
            async with Harness(tmp_path / "run", model) as run:
                await run.turn("hi")
        [received] = server.requests
    assert received.body["model"] == "some-model"
    assert received.body["max_tokens"] == 777
    assert received.headers["x-api-key"] == "value-of-my-key"


# -- what differs ----------------------------------------------------------------


@pytest.mark.no_replay("the test's own failure ended the turn")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"prompts": ("what do they say?",)},
            "request 1 is not the recorded one: the user's text differs\n"
            "- what do the notes say?\n+ what do they say?\n",
        ),
        (
            {"files": {"notes.md": "hello\nword\n"}},
            "request 2 is not the recorded one: the result of `Read`, call `call_1_1` differs\n"
            "  ${CWD}/notes.md\n       1\thello\n-      2\tworld\n+      2\tword\n",
        ),
        (
            {"files": {"other.md": ""}},
            "request 2 is not the recorded one: the error of `Read`, call `call_1_1` ('",
        ),
        (
            {"only": ("Read", "Edit")},
            "request 1 is not the recorded one: `Write`, `Glob`, `Grep`, `Bash`, `TodoWrite` are "
            "not offered any more\n",
        ),
        (
            {"prompts": ("what do the notes say?", "and now?")},
            "request 3 was not recorded: the user's text ('and now?')\n",
        ),
        (
            {"prompts": ("what do the notes say?",), "mode": "plan", "max_steps": 1},
            "1 of 2 recorded replies were never asked for; the next one answers the result of "
            "call `call_1_1` ('",
        ),
    ],
)
async def test_what_differs_is_said_in_words(tmp_path, change, words):
    path, _ = await recorded(tmp_path, [reads(tmp_path), says("They say hello.")])
    with pytest.raises(RecordingFailed) as caught:
        await played(tmp_path, path, **change)
    said = str(caught.value)
    assert words in said
    assert said.startswith("notes.json: ")
    assert said.endswith("If that is meant, record it again: `pytest --claw-record`.")


@pytest.mark.no_replay("the test's own failure ended the turn")
async def test_line_ends_are_a_difference_that_shows(tmp_path):
    path, _ = await recorded(tmp_path, [says("Hi.")], prompts=("a\nb",))
    with pytest.raises(RecordingFailed, match=r"'a\\nb'\n\+ 'a\\r\\nb'"):
        await played(tmp_path, path, prompts=("a\r\nb",))


@pytest.mark.no_replay("the test's own failure ended the turn")
async def test_a_difference_that_the_test_swallows_fails_it_at_the_end(tmp_path):
    path, _ = await recorded(tmp_path, [says("Hi.")])
    model = Recording(path, env={})
    model.open()
    async with Harness(tmp_path / "playing", model) as run:
        with pytest.raises(RecordingFailed):
            await run.turn("something else")
    with pytest.raises(RecordingFailed, match="the user's text differs"):
        model.finish()


@pytest.mark.no_replay("the test's own failure ended the turn")
async def test_what_varies_may_differ(tmp_path):
    path, _ = await recorded(tmp_path, [says("Hi.")], prompts=("it took 0.31s",))
    await played(tmp_path, path, prompts=("it took 12.5s",), varies=(r"\d+\.\d+s", "x+y"))
    with pytest.raises(RecordingFailed, match=r"- it took \$\{VARIES\}\n\+ it took for ever"):
        await played(tmp_path / "2", path, prompts=("it took for ever",), varies=(r"\d+\.\d+s",))


async def test_a_reply_whose_request_was_taken_out_answers_whatever_is_asked(tmp_path):
    path = tmp_path / "by_hand.json"
    path.write_text('{"schema": 1, "replies": ["Hi.", {"text": "${CWD} and $${CWD}"}]}')
    made = await played(tmp_path, path, prompts=("one", "two"))
    texts = [e["blocks"][0]["text"] for e in made["entries"] if e["kind"] == "reply_received"]
    assert texts == ["Hi.", "${CWD} and ${CWD}"]


async def test_a_second_conversation_is_recorded_after_the_first(tmp_path):
    async def both(folder: Path, model: Recording) -> None:
        for name in ("one", "two"):
            async with Harness(folder / name, model) as run:
                await run.turn(f"I am {name}")

    path = tmp_path / "two.json"
    async with StrictServer([says("Hi, one."), says("Hi, two.")]) as server:
        env = configured(tmp_path / "home", server.base_url)
        with Recording(path, record=True, env=env) as model:
            await both(tmp_path / "a", model)
    with Recording(path, env={}) as model:
        await both(tmp_path / "b", model)
    second = read_script(str(path)).replies[1]
    assert isinstance(second, Line)
    assert second.request is not None
    assert second.request.anew


async def test_it_plays_as_a_script_too(tmp_path):
    path, _ = await recorded(tmp_path, [reads(tmp_path), says("They say hello.")])
    workspace, home = tmp_path / "elsewhere", tmp_path / "home"
    workspace.mkdir()
    (workspace / "notes.md").write_text("something else")
    env = {"HOME": str(home)}
    async with claw.open(str(workspace), model=f"script:{path}", env=env) as conversation:
        summary = await conversation.run_turn("what is there?")
    assert "something else" in repr(summary.tool_results)
    assert claw.final_assistant_text(summary) == "They say hello."


# -- when nothing is written -------------------------------------------------------


async def recording_of(
    folder: Path,
    path: Path,
    script: Sequence[ServerReply],
    use: Callable[[Harness], Awaitable[Any]],
) -> None:
    async with StrictServer(script, check=False) as server:
        env = configured(folder / "home", server.base_url)
        with Recording(path, record=True, env=env) as model:
            async with Harness(folder / "run", model) as run:
                await use(run)


async def test_a_test_that_fails_leaves_the_file_as_it_was(tmp_path):
    async def use(run: Harness) -> None:
        await run.turn("hi")
        raise ZeroDivisionError

    path = tmp_path / "a.json"
    path.write_text("as it was")
    with pytest.raises(ZeroDivisionError):
        await recording_of(tmp_path, path, [says("Hi.")], use)
    assert path.read_text() == "as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "home", "run"]


async def test_an_interrupt_cannot_be_recorded(tmp_path):
    gate = Gate()
    path = tmp_path / "a.json"

    async def use(run: Harness) -> None:
        turn = asyncio.ensure_future(run.turn("hi"))
        await gate.reached()
        run.house.runtime.interrupt()
        assert (await turn).stop_reason == "interrupted"

    with pytest.raises(RecordingFailed, match=r"request 1 was interrupted[\s\S]*`Gate`"):
        await recording_of(tmp_path, path, [waits(gate, says("a long answer"))], use)
    assert not path.exists()


@pytest.mark.no_replay("the test's own failure ended the turn")
async def test_a_key_that_is_refused_is_not_recorded(tmp_path):
    path = tmp_path / "a.json"
    refused = answers(401, {"type": "error", "error": {"type": "authentication_error"}})
    with pytest.raises(RecordingFailed, match=r"a\.json cannot be recorded: .*401"):
        await recording_of(tmp_path, path, [refused], lambda run: run.turn("hi"))
    assert not path.exists()


def test_without_a_model_there_is_nothing_to_record(tmp_path):
    with pytest.raises(ConfigError, match=r"no model is configured.*a\.json") as caught:
        Recording(tmp_path / "a.json", record=True, env={"HOME": str(tmp_path)}).open()
    assert "CLAW_MODEL=offline" in caught.value.hint


async def test_the_offline_model_is_recorded_where_it_was_named(tmp_path):
    path = tmp_path / "a.json"
    env = {"HOME": str(tmp_path), "CLAW_MODEL": "offline"}
    with Recording(path, record=True, env=env) as model:
        async with Harness(tmp_path / "run", model, files=FILES) as run:
            await run.turn("read notes.md")
            made = run.trajectory()
    assert await played(tmp_path, path, prompts=("read notes.md",)) == made


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"schema": 2, "answers": []}', "recorded by a newer claw: its schema is 2"),
        ('{"schema": 1, "replies": [{"request": {"x": 1}}]}', r"unknown field `x`.*replies\[0\]"),
        ('{"schema": 1, "replies": ', r"a\.json:1:26: not JSON"),
        ("", r"a\.json:1:1: not JSON"),
    ],
)
def test_a_file_that_cannot_be_played(tmp_path, text, complaint):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        Recording(path, env={}).open()
    assert caught.value.hint


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(ConfigError, match="there is no recording") as caught:
        Recording(tmp_path / "a.json", env={}).open()
    assert "--claw-record" in caught.value.hint


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    env = {"HOME": str(tmp_path), "CLAW_MODEL": "offline"}
    model = Recording(tmp_path / "file/a.json", record=True, env=env)
    model.open()
    with pytest.raises(ConfigError, match=r"cannot write .*a\.json"):
        model.finish()


# -- secrets and places ------------------------------------------------------------


async def test_a_planted_secret_is_nowhere_in_the_recording(tmp_path):
    """In the environment, a header, a file that is read, a prompt, a reply and its input."""
    header, shaped = "value-of-a-header", "ghp_" + "a1B2" * 9
    files = {"notes.md": f"key: value-of-my-key\nheader: {header}\ntoken: {shaped}\n"}
    inner = ("Grep", {"pattern": "value-of-my-key", shaped: header})
    script = [reads(tmp_path), calls(inner, text=f"It is {shaped}", thinking=header), says("Done.")]
    path = tmp_path / "a.json"
    async with StrictServer(script) as server:
        env = configured(tmp_path / "home", server.base_url, header=header)
        with Recording(path, record=True, env=env) as model:
            async with Harness(tmp_path / "recording", model, files=files) as run:
                await run.turn(f"with {shaped} and value-of-my-key")
    text = path.read_text()
    for secret in ("value-of-my-key", header, shaped):
        assert secret not in text
    assert "[redacted:MY_KEY]" in text


async def test_a_secret_of_this_environment_is_no_difference(tmp_path):
    path, _ = await recorded(tmp_path, [says("Hi.")], prompts=("use value-of-my-key",))
    with Recording(path, env={"MY_KEY": "value-of-my-key", "API_TOKEN": "use value"}) as model:
        async with Harness(tmp_path / "playing", model) as run:
            await run.turn("use value-of-my-key")


places = st.sampled_from(["/tmp/x", "/tmp/x/home", "/tmp/x/home/.claw/s.blobs", "CWD", "x"])
texts = st.lists(st.sampled_from(["$", "{", "}", "${CWD}", "$${HOME}", "${X}", "a"]) | places)


@given(texts.map("".join))
def test_any_text_comes_back_from_the_names(text):
    here = {"CWD": "/tmp/x", "HOME": "/tmp/x/home", "BLOBS": "/tmp/x/home/.claw/s.blobs"}
    named = with_names(text, [(path, name) for name, path in here.items()])
    assert with_places(named, here) == text


def test_places_are_named_and_found_elsewhere():
    named = with_names("/a/b/c and /a/b$HOME", [("/a/b", "CWD"), ("/a", "HOME")])
    assert named == "${CWD}/c and ${CWD}$HOME"
    assert with_places(named, {"CWD": "/z"}) == "/z/c and /z$HOME"
    assert with_places(named, {}) == named


# -- the format --------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
blocks = st.one_of(
    st.builds(Text, words.filter(bool)),
    st.builds(Thinking, words.filter(bool), words),
    st.builds(RedactedThinking, words),
    st.builds(ToolUse, words, words, st.dictionaries(words, st.integers()), st.none() | words),
    st.builds(Opaque, words, st.dictionaries(words, st.integers())),
)
usages = st.builds(Usage, st.integers(0, 9), st.integers(0, 9), estimated=st.booleans())
replies = st.builds(
    Reply,
    blocks=st.lists(blocks, max_size=4).map(tuple),
    stop_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens", "odd", ""]),
    usage=usages,
    model=words,
    request_id=words,
    provider_metadata=st.dictionaries(words, words, max_size=1),
)
errors = st.one_of(
    st.builds(ModelError, words, hint=words, provider=words),
    st.builds(ModelUnavailable, words, status=st.integers(400, 599), retry_after=st.floats(0, 9)),
    st.builds(ContextOverflow, words, limit_tokens=st.none() | st.integers()),
    st.builds(OutputLimitTooHigh, words, max_tokens=st.integers(1, 99)),
    st.builds(ParameterRefused, words, parameter=words),
)


def through_a_file(line: Line) -> PlainReply:
    text = json.dumps(msgspec.to_builtins(line))
    return reply_of("file", 0, msgspec.convert(json.loads(text), Line))


@given(replies, st.booleans())
def test_any_reply_is_read_as_it_was_written(reply, complete):
    made = reply if complete else replace(reply, complete=False, stop_reason="")
    assert through_a_file(line_of(made)) == made


@given(replies, errors)
def test_any_error_is_read_as_it_was_written(reply, error):
    heard = replace(reply, complete=False, stop_reason="", model="m", request_id="r")
    read = through_a_file(line_of(heard, error))
    assert isinstance(read, Fails)
    assert type(read.error) is type(error)
    lent = {"model": "m", "request_id": "r"}  # an error without its own has the reply's
    said = {} if error.message else {"message": read.error.message}
    assert vars(read.error) == {**vars(error), **lent, **said}
    if heard.blocks:
        assert read.reply == heard
        assert playback(read, 1, 0).error is read.error


# -- what else goes into requests --------------------------------------------------


async def test_the_place_of_a_long_result_is_named(tmp_path):
    files = {"notes.md": "".join(f"line {n} {'x' * 60}\n" for n in range(3000))}
    script = [calls(("Bash", {"command": "cat notes.md"})), says("Long.")]
    path, made = await recorded(tmp_path, script, files=files, mode="bypassPermissions")
    assert "${BLOBS}/" in path.read_text()
    assert await played(tmp_path, path, files=files, mode="bypassPermissions") == made


async def test_a_conversation_that_was_compacted_is_recorded(tmp_path):
    sized = [says(f"Answer {n}.", usage=Usage(100_000 * n, 10)) for n in range(1, 4)]
    script = [*sized, says("A summary of it."), says("The end.")]
    prompts = tuple(f"question {n} {'long ' * 2000}" for n in range(1, 5))
    path = tmp_path / "a.json"
    async with StrictServer(script, extends=False, check=False) as server:
        env = configured(tmp_path / "home", server.base_url, window=200_000)
        with Recording(path, record=True, env=env) as model:
            async with Harness(tmp_path / "1", model, auto_compact=0.5) as run:
                for prompt in prompts:
                    await run.turn(prompt)
                made = run.trajectory()
    assert "compacted" in [entry["kind"] for entry in made["entries"]]
    assert '"anew": true' in path.read_text()
    now = await played(tmp_path, path, prompts=prompts, files={}, auto_compact=0.5)
    assert now == made


async def test_a_session_in_memory_is_recorded(tmp_path):
    path = tmp_path / "a.json"
    env = {"HOME": str(tmp_path), "CLAW_MODEL": "offline"}
    for record in (True, False):
        with Recording(path, record=record, env=env) as model:
            async with Harness(tmp_path / str(record), model, files=FILES, ephemeral=True) as run:
                assert (await run.turn("read notes.md")).iterations == 2


async def test_two_sessions_at_a_time_do_not_share_a_recording(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"schema": 1, "replies": ["Hi."]}')
    with Recording(path) as model:
        async with Harness(tmp_path / "1", model) as run:
            with pytest.raises(RecordingFailed, match=r"a\.json .* one recording, one session"):
                await Harness(tmp_path / "2", model).__aenter__()
            assert (await run.turn("hello")).iterations == 1


def test_a_pattern_that_is_none_is_named():
    with pytest.raises(ConfigError, match=r"`varies`: '\(' is no regular expression"):
        Recording("a.json", varies=["fine", "("])


async def test_it_is_lent_to_a_harness_only(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"schema": 1, "replies": ["Hi."]}')
    with pytest.raises(AssertionError, match="use the recording in `with`"):
        _ = Recording(path).model
    model = Recording(path)
    model.open()
    with pytest.raises(AssertionError, match="is for a `Harness` or for `claw_session`"):
        await conversation(model).run_turn("hi")
