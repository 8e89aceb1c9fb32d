"""``Recording``: a model that was asked once, and answers the same from then on.

::

    with Recording(Path(__file__).with_name("notes.json"), record=False) as model:
        async with Harness(tmp_path, model, files={"notes.md": "hello"}) as run:
            await run.turn("what do the notes say?")

With ``record`` it asks the model that claw itself would choose here (settings of the
home, keys of the environment) and writes the file when the test has passed. Without, it
plays the file, and fails where another thing is asked. In pytest the fixture
``recorded_model`` makes one, and ``--claw-record`` says which of the two it is.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from claw.app.configured import secrets_of
from claw.app.connecting import choose_model, connect
from claw.config.load import load_settings
from claw.errors import AuthenticationFailed, ConfigError, ModelError, ProtocolViolation
from claw.models.estimate import estimate_request
from claw.models.script_files import (
    SCHEMA,
    Asked,
    Line,
    Script,
    line_of,
    read_script,
    reply_of,
)
from claw.models.scripted import play, playback
from claw.policy.redact import KnownSecrets, known_secrets
from claw.ports import Blobs
from claw.sessions.blobs import MemoryBlobs
from claw.testing.asked import difference, new_in, summary
from claw.testing.flags import RECORD
from claw.types.events import AssistantEvent, MessageStop
from claw.types.messages import AssistantBlock, AssistantMessage
from claw.types.places import with_names
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.surrogates import mend
from claw.types.texts import each_text
from claw.types.usage import Usage

__all__ = ["Recording", "RecordingFailed", "replace_file"]

AGAIN = f"If that is meant, record it again: `pytest {RECORD}`."
NO_MODEL = (
    "Set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, ...), or name a model in CLAW_MODEL or in "
    "your settings. CLAW_MODEL=offline records the offline model."
)
VARIES = "${VARIES}"
T = TypeVar("T", Asked, Line)
Kept = Callable[[Line], Line]
"""What stands in the file for a reply."""


class RecordingFailed(AssertionError):
    """Something else was asked than was recorded, or nothing could be recorded."""


class Recording:
    """A ``ModelClient`` that records a model, or plays what was recorded, for one test.

    Texts that match one of the patterns ``varies`` (durations, dates, versions) may differ
    in requests. ``env`` is where the model is configured, the process's own by default.
    Paths of the workspace and the home stand in the file by name, and secrets not at all.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        record: bool = False,
        varies: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.path = Path(path)
        self.records = record
        self._varies = "|".join(f"(?:{_checked(pattern)})" for pattern in varies)
        self._env = dict(os.environ if env is None else env)
        self._source: _Recorded | _Recorder | None = None
        self._places: tuple[tuple[str, str], ...] = ()
        self._before: Request | None = None
        self._said: tuple[AssistantBlock, ...] = ()
        self._requests = 0
        self._failure: RecordingFailed | None = None
        self._lent = False

    def open(self) -> None:
        """Read the file, or find the model to ask. Raises ``ConfigError``."""
        if self.records:
            self._source = _Recorder(self.path, self._env)
        else:
            self._source = _Recorded(self.path, self._env, self._varies)

    @property
    def model(self) -> str:
        """The name that requests carry."""
        return self._opened.script.model or "scripted"

    @property
    def window(self) -> int | None:
        return self._opened.script.window

    def cost(self, usage: Usage, model: str) -> float | None:
        """As it was when the recording was made."""
        return self._opened.prices.get(usage)

    def enter(self, places: Iterable[tuple[str, str]], blobs: Blobs, stack: AsyncExitStack) -> None:
        """A conversation begins. ``places`` are its paths, each with its name (``CWD``, ...);
        the last of a name is the one to play. ``stack`` closes what was opened.

        Raises ``RecordingFailed`` while another conversation goes on: their requests would
        get mixed up.
        """
        if self._lent:
            raise RecordingFailed(
                f"{self.path.name} is lent to another session already: one recording, one session"
            )
        self._lent = True
        stack.callback(self._leave)
        self._places = tuple(places)
        self._opened.enter(blobs, stack)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        """The reply. Raises ``RecordingFailed`` for what was not recorded."""
        assert self._places, "a recording is for a `Harness` or for `claw_session`"
        self._requests += 1
        asked = self._kept(new_in(request, self._before, self._said))
        asked = _without(asked, self._varies)
        try:
            line = await self._opened.answer(request, asked, self._kept)
        except RecordingFailed as failure:
            self._failure = failure
            raise
        places = {name: path for path, name in self._places}
        reply = reply_of(str(self.path), self._requests - 1, line, places)
        played = playback(reply, self._requests, estimate_request(request))
        self._before = request
        self._said = assemble(played.events).blocks if played.events else ()
        async with aclosing(play(played)) as events:
            async for event in events:
                yield event

    def finish(self) -> None:
        """The test has passed: write what was recorded, or see that all of it was played.

        Raises ``RecordingFailed``, and ``ConfigError`` where the file cannot be written.
        """
        if self._failure is not None:
            raise self._failure
        self._opened.finish()

    def __enter__(self) -> Recording:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.finish()

    def _leave(self) -> None:
        self._lent = False

    @property
    def _opened(self) -> _Recorded | _Recorder:
        assert self._source is not None, "use the recording in `with`"
        return self._source

    def _kept(self, value: T) -> T:
        """As it stands in the file: no secrets, names for paths."""

        def change(text: str) -> str:
            return with_names(self._opened.secrets.clean(mend(text)), self._places)

        return msgspec.convert(each_text(msgspec.to_builtins(value), change), type(value))


class _Recorded:
    """What a file holds, reply by reply."""

    def __init__(self, path: Path, env: Mapping[str, str], varies: str) -> None:
        if not path.is_file():
            raise ConfigError(
                f"there is no recording {path}",
                hint=f"Run this test once with `{RECORD}`: it asks your model and writes the file.",
            )
        self.script = read_script(str(path))
        self.secrets = KnownSecrets(_marked(path.read_text(encoding="utf-8"), env))
        self.prices = _prices(self.script.replies)
        self._name = path.name
        self._varies = varies
        self._requests = 0
        self._tools: tuple[str, ...] | None = None

    def enter(self, blobs: Blobs, stack: AsyncExitStack) -> None:
        """Nothing is needed to play."""

    async def answer(self, request: Request, asked: Asked, kept: Kept) -> Line:
        self._requests += 1
        if self._requests > len(self.script.replies):
            raise RecordingFailed(
                f"{self._name}: request {self._requests} was not recorded: "
                f"{_summary(asked)}\n{AGAIN}"
            )
        line = self.script.replies[self._requests - 1]
        if isinstance(line, str):
            return Line(text=line)
        if line.request is not None:
            self._compare(line.request, asked, request)
        return line

    def _compare(self, recorded: Asked, asked: Asked, request: Request) -> None:
        self._tools = recorded.tools or self._tools
        expected = _without(replace(recorded, tools=self._tools), self._varies)
        if found := difference(expected, asked, _calls(request)):
            raise RecordingFailed(
                f"{self._name}: request {self._requests} is not the recorded one: {found}\n{AGAIN}"
            )

    def finish(self) -> None:
        left = self.script.replies[self._requests :]
        if left:
            first = left[0].request if isinstance(left[0], Line) else None
            raise RecordingFailed(
                f"{self._name}: {len(left)} of {len(self.script.replies)} recorded replies were "
                f"never asked for; the next one answers {_summary(first)}\n{AGAIN}"
            )


class _Recorder:
    """The model that is configured here, and what it has answered so far."""

    def __init__(self, path: Path, env: Mapping[str, str]) -> None:
        self._path = path
        self._loaded = load_settings(cwd=str(path.parent), env=env)
        self._choice = choose_model(self._loaded, env)
        if self._choice.kind == "offline" and not self._choice.named:
            raise ConfigError(
                f"no model is configured that could be recorded in {path.name}", hint=NO_MODEL
            )
        self._client = connect(MemoryBlobs(), AsyncExitStack(), self._choice)
        self.script = Script(SCHEMA, self._choice.model, self._client.window)
        self.secrets = KnownSecrets(secrets_of(self._loaded, env))
        free = self._client.cost(Usage(), self._choice.model)
        self.prices = {} if free is None else {Usage(): free}
        self._requests = 0
        self._interrupted = 0
        self._tools: tuple[str, ...] | None = None

    def enter(self, blobs: Blobs, stack: AsyncExitStack) -> None:
        self._client = connect(blobs, stack, self._choice)

    async def answer(self, request: Request, asked: Asked, kept: Kept) -> Line:
        self._requests += 1
        reply, error = await self._ask(request)
        price = self._price(reply)
        if price is not None:
            self.prices[reply.usage] = price
        line = kept(replace(line_of(reply, error), usd=price))
        line = replace(line, request=self._without_same_tools(asked))
        self.script = replace(self.script, replies=(*self.script.replies, line))
        return line

    async def _ask(self, request: Request) -> tuple[Reply, ModelError | None]:
        settings, wanted = self._loaded.settings, request.sampling
        sampling = Sampling(
            self._choice.model,
            wanted.max_tokens or settings.max_output_tokens,
            wanted.effort or settings.effort or "",
        )
        events: list[AssistantEvent] = []
        try:
            async with aclosing(self._client.stream(replace(request, sampling=sampling))) as stream:
                async for event in stream:
                    events.append(event)
        except AuthenticationFailed as error:
            raise RecordingFailed(
                f"{self._path.name} cannot be recorded: {error.message}\n{error.hint}"
            ) from error
        except ModelError as error:
            return _reply(e for e in events if not isinstance(e, MessageStop))[0], error
        except asyncio.CancelledError:
            self._interrupted = self._requests
            raise
        return _reply(events)

    def _price(self, reply: Reply) -> float | None:
        if reply.usage == Usage():
            return None
        price = self._client.cost(reply.usage, reply.model or self._choice.model)
        return self._client.cost(reply.usage, self._choice.model) if price is None else price

    def _without_same_tools(self, asked: Asked) -> Asked:
        before, self._tools = self._tools, asked.tools
        return replace(asked, tools=None) if asked.tools == before else asked

    def finish(self) -> None:
        if self._interrupted:
            raise RecordingFailed(
                f"{self._path.name} was not written: request {self._interrupted} was interrupted, "
                "which cannot be played at the same place\n"
                "Test interrupts with a script: `waits` and a `Gate`."
            )
        text = json.dumps(msgspec.to_builtins(self.script), ensure_ascii=False, indent=1)
        replace_file(self._path, text + "\n")


def _checked(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"`varies`: {pattern!r} is no regular expression: {error}") from error
    return pattern


def _without(asked: Asked, varies: str) -> Asked:
    if not varies:
        return asked
    plain = each_text(msgspec.to_builtins(asked), lambda text: re.sub(varies, VARIES, text))
    return msgspec.convert(plain, Asked)


def _reply(events: Iterable[AssistantEvent]) -> tuple[Reply, ModelError | None]:
    heard = tuple(events)
    try:
        return (assemble(heard) if heard else Reply()), None
    except ProtocolViolation as error:
        return Reply(), error


def _prices(lines: Iterable[str | Line]) -> dict[Usage, float]:
    found = {
        line.usage: line.usd for line in lines if isinstance(line, Line) and line.usd is not None
    }
    return {Usage(): 0.0, **found} if found else {}


def _marked(text: str, env: Mapping[str, str]) -> dict[str, str]:
    """The secrets of this environment that were taken out of a recording."""
    marks = set(re.findall(r"\[redacted:([^\]\s]+)\]", text))
    return {name: value for name, value in known_secrets(env).items() if name in marks}


def _calls(request: Request) -> dict[str, str]:
    return {
        call.id: call.name
        for message in request.messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }


def _summary(asked: Asked | None) -> str:
    return "anything" if asked is None else summary(asked)


def replace_file(path: Path, text: str) -> None:
    """Write it whole, or not at all. Raises ``ConfigError``."""
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
