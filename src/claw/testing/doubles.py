"""The ports in memory: small, honest, and checked by the same suites as the real ones."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import Callable, Mapping, Sequence

from claw.errors import SessionError, ToolFailed
from claw.ports import FileContent, Tool
from claw.sessions.folding import fold_records, turn_points
from claw.sessions.record import Record
from claw.types.effects import Effect, Facts, Observed, ReadPath, WritePath
from claw.types.entries import Compacted, Entry, Event
from claw.types.hooks import HookEvent, HookOutcome, HookPayload
from claw.types.permissions import Answer, Question
from claw.types.request import Request
from claw.types.session import SessionState, TurnPoint
from claw.types.tools import ToolSpec
from claw.types.transcript import Transcript

__all__ = [
    "AllowAll",
    "FakeHooks",
    "MemoryBlobs",
    "MemoryJournal",
    "MemoryWorkspace",
    "NoCompactor",
    "NoHooks",
    "NoRedactor",
    "RecordingSink",
    "ScriptedApprover",
    "ToolList",
]


class MemoryJournal:
    """Keeps ``entries``; ``synced`` is how many of them power loss would spare.

    With ``fail_at`` n, the n-th append (from 0) and all after it raise ``SessionError``.
    """

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.entries: list[Entry] = []
        self.synced = 0
        self._fail_at = fail_at

    def append(self, entry: Entry, *, sync: bool = False) -> int:
        if self._fail_at is not None and len(self.entries) >= self._fail_at:
            raise SessionError("the journal cannot be written (scripted)")
        self.entries.append(entry)
        if sync:
            self.synced = len(self.entries)
        return len(self.entries)

    def state_at(self, seq: int) -> SessionState:
        return fold_records(lambda: self._records()[:seq])

    def turns(self) -> tuple[TurnPoint, ...]:
        return turn_points(self._records())

    def _records(self) -> list[Record]:
        return [Record(n, f"e{n}", "", "", entry) for n, entry in enumerate(self.entries, 1)]


class MemoryBlobs:
    """Blobs in a dict, ``stored``, by SHA-256 in hexadecimal."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = _digest(data)
        self.stored[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        if digest not in self.stored:
            raise SessionError(f"no blob {digest}")
        return self.stored[digest]

    def path(self, digest: str) -> str | None:
        return None


class RecordingSink:
    """Keeps the ``events`` of a turn."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


class AllowAll:
    """Says yes to everything and remembers the ``questions``."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(True)


class ScriptedApprover:
    """Gives ``answers`` in order; a question too many is an ``AssertionError``."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.questions: list[Question] = []
        self._answers = list(answers)

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        await asyncio.sleep(0)
        if not self._answers:
            raise AssertionError(f"unexpected question {len(self.questions)}: {question!r}")
        return self._answers.pop(0)


class NoHooks:
    """No hooks are configured."""

    async def fire(self, payload: HookPayload) -> HookOutcome:
        return HookOutcome()


class FakeHooks:
    """An outcome for each event, or a function from the payload to one; else ``passed``.

    ``fired`` are the payloads, in order.
    """

    def __init__(
        self, outcomes: Mapping[HookEvent, HookOutcome | Callable[[HookPayload], HookOutcome]]
    ) -> None:
        self.fired: list[HookPayload] = []
        self._outcomes = dict(outcomes)

    async def fire(self, payload: HookPayload) -> HookOutcome:
        self.fired.append(payload)
        await asyncio.sleep(0)
        outcome = self._outcomes.get(payload.event, HookOutcome())
        return outcome(payload) if callable(outcome) else outcome


class NoRedactor:
    """There are no secrets."""

    def clean(self, text: str) -> str:
        return text


class NoCompactor:
    """Never finds that anything must go, and never makes room."""

    def target(self, request: Request, state: SessionState, window: int | None) -> int | None:
        return None

    async def make_room(
        self, transcript: Transcript, keep_rounds: int, target_tokens: int | None, focus: str
    ) -> Compacted | None:
        return None


class MemoryWorkspace:
    """Files in a dict, ``contents``: absolute path -> bytes. No links, no directories of its own.

    Made from paths relative to ``root``. While ``gone`` is true, the root does not exist.
    """

    def __init__(
        self, files: Mapping[str, bytes | str] | None = None, *, root: str = "/workspace"
    ) -> None:
        self.gone = False
        self._root = root
        self.contents = {
            self._real(path): data.encode() if isinstance(data, str) else data
            for path, data in (files or {}).items()
        }

    @property
    def root(self) -> str:
        return self._root

    def observe(self, effects: Sequence[Effect]) -> Facts:
        return Facts(tuple(self._observe(effect) for effect in effects))

    def probe(self) -> None:
        if self.gone:
            raise ToolFailed(f"the workspace {self._root} does not exist any more")

    def read(self, path: str, *, limit: int) -> FileContent:
        self.probe()
        real = self._real(path)
        data = self.contents.get(real)
        if data is None:
            kind = "is a directory" if self._is_directory(real) else "does not exist"
            raise ToolFailed(f"{path} {kind}")
        if len(data) > limit:
            raise ToolFailed(f"{path} has {len(data)} bytes, more than the limit of {limit}")
        return FileContent(data, real, _digest(data), 0o644)

    def peek(self, path: str, *, limit: int) -> FileContent | None:
        return self.read(path, limit=limit) if self._real(path) in self.contents else None

    def write(
        self, path: str, data: bytes, *, expect: str | None, mode: int | None = None
    ) -> FileContent:
        self.probe()
        real = self._real(path)
        if self._is_directory(real):
            raise ToolFailed(f"{path} is a directory")
        there = self.contents.get(real)
        found = None if there is None else _digest(there)
        if found != expect:
            state = "does not exist" if there is None else "is not what was read before"
            raise ToolFailed(f"{path} {state}; read it again")
        self.contents[real] = data
        return FileContent(data, real, _digest(data), mode or 0o644)

    def remove(self, path: str, *, expect: str) -> None:
        real = self._real(path)
        if self.read(path, limit=len(self.contents.get(real, b""))).digest != expect:
            raise ToolFailed(f"{path} is not what was read before; read it again")
        del self.contents[real]

    def files(self, path: str, *, limit: int) -> Sequence[str]:
        self.probe()
        top = self._real(path)
        beneath = (f for f in self.contents if f == top or _is_inside(f, top))
        return sorted(posixpath.relpath(f, self._root) for f in beneath)[:limit]

    def _observe(self, effect: Effect) -> Observed:
        if not isinstance(effect, ReadPath | WritePath):
            return Observed(effect)
        real = self._real(effect.path)
        inside = real == self._root or _is_inside(real, self._root)
        relative = posixpath.relpath(real, self._root) if inside else ""
        protected = "belongs to git" if ".git" in real.split("/") else ""
        return Observed(effect, real, relative, inside, protected)

    def _real(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._root, path))

    def _is_directory(self, real: str) -> bool:
        return real == self._root or any(_is_inside(f, real) for f in self.contents)


class ToolList:
    """A ``ToolSet`` of these tools, in this order."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools = tuple(tools)
        self._by_name = {
            name.lower(): tool
            for tool in reversed(self._tools)  # the first of two of a name wins
            for name in (*tool.spec.aliases, tool.spec.name)
        }

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools)

    def get(self, name: str) -> Tool | None:
        return self._by_name.get(name.lower())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_inside(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
