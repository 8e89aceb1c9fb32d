"""START HERE: every contact of the agent with the world, and what each promises.

The runtime knows values (``claw.types``) and these Protocols, nothing else. The
rooms implement them; ``claw.app`` puts the implementations together; tests,
replay and programs lend their own. Read this file, then ``runtime/turn.py``,
then ``runtime/tool_calls.py``: that is the product.

"Raises only X" and "never raises" are about errors: every ``async`` method lets a
cancellation through, after it has ended what it began.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

import msgspec

from claw.types.effects import Effect, Facts
from claw.types.entries import Compacted, Entry, Event
from claw.types.events import AssistantEvent
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.permissions import Answer, Decision, PermissionMode, Question, Rule
from claw.types.request import Request
from claw.types.session import SessionState, TurnPoint
from claw.types.tools import ToolOutput, ToolSpec
from claw.types.transcript import Transcript
from claw.types.usage import Usage

__all__ = [
    "Approver",
    "Blobs",
    "Clock",
    "Command",
    "Compactor",
    "Disk",
    "EventSink",
    "FileContent",
    "HookRunner",
    "Ids",
    "Journal",
    "ModelClient",
    "PermissionPolicy",
    "Ports",
    "ProcessResult",
    "Processes",
    "Redactor",
    "Tool",
    "ToolCall",
    "ToolSet",
    "Workspace",
]


class ModelClient(Protocol):
    """A model behind some wire."""

    @property
    def window(self) -> int | None:
        """The context window in tokens, None where unknown."""

    def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        """Yield the reply as it arrives; end with ``MessageStop`` unless the stream was cut.

        Raises only ``ModelError``: for errors before the first byte, error statuses
        and errors inside the stream. Repeats by itself nothing but a dead kept-alive
        connection before any byte came. Closing the iterator ends the exchange at once.
        """

    def cost(self, usage: Usage, model: str) -> float | None:
        """US dollars for one request, None where the price is unknown."""


class ToolCall(msgspec.Struct, frozen=True):
    """What a running tool is told of its call. ``progress`` shows output as it comes.

    Tools get files and processes where they are made, not here.
    """

    id: str
    progress: Callable[[str], None]


class Tool(Protocol):
    """One thing a model can do. ``args`` is whatever ``parse`` made of the input."""

    @property
    def spec(self) -> ToolSpec: ...

    def parse(self, input: dict[str, Any]) -> Any:
        """Arguments from a call's input. Raises ``ToolFailed`` naming what was wrong."""

    def effects(self, args: Any) -> tuple[Effect, ...]:
        """What ``run`` would touch; pure. Raises ``ToolFailed`` where that cannot be told."""

    def preview(self, args: Any) -> str:
        """What a person sees before saying yes, whole: the command, the diff.

        May read files; raises ``ToolFailed`` where ``run`` would.
        """

    async def run(self, args: Any, call: ToolCall) -> ToolOutput:
        """Do it. Raises only ``ToolFailed``; when cancelled, leaves nothing running."""


class ToolSet(Protocol):
    """The tools on offer, in a stable order."""

    def specs(self) -> tuple[ToolSpec, ...]: ...

    def get(self, name: str) -> Tool | None:
        """By name or alias, whatever the case."""


class FileContent(msgspec.Struct, frozen=True):
    """``digest`` is of the bytes; ``real`` the absolute path they came from."""

    data: bytes
    real: str
    digest: str
    mode: int


class Workspace(Protocol):
    """The only way to files. Raises only ``ToolFailed``, with a message for the model.

    Paths are absolute or relative to ``root``. What the policy allowed is checked
    again beneath the directory's descriptor when the file is opened.
    """

    @property
    def root(self) -> str: ...

    def observe(self, effects: Sequence[Effect]) -> Facts:
        """Add what the machine says of effects: real paths, inside or not, protected."""

    def probe(self) -> None:
        """Raise ``ToolFailed`` where the root is gone."""

    def read(self, path: str, *, limit: int) -> FileContent:
        """A regular file of at most ``limit`` bytes; devices, FIFOs and sockets never."""

    def peek(self, path: str, *, limit: int) -> FileContent | None:
        """As ``read``; None where nothing is."""

    def write(
        self, path: str, data: bytes, *, expect: str | None, mode: int | None = None
    ) -> FileContent:
        """Replace or create a file: old or new on disk, never half.

        ``expect`` is the digest of what is to be replaced, None for a file that
        must not exist yet; anything else there is refused. Links are kept, and the
        mode of what is replaced; ``mode`` is for a file that is created.
        """

    def remove(self, path: str, *, expect: str) -> None:
        """Delete a file whose digest is ``expect``; anything else there is refused."""

    def files(self, path: str, *, limit: int) -> Sequence[str]:
        """Regular files beneath ``path``, sorted, relative to the root."""


class Command(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program to run. ``timeout`` in seconds; ``keep`` bytes of output at each end.

    ``env`` is added to an environment without keys. ``cwd`` None is the workspace.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    env: dict[str, str] = {}
    stdin: bytes = b""
    timeout: float | None = None
    keep: int = 4 * 1024 * 1024
    merge: bool = False


class ProcessResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """``exit_code`` is negative for a signal. ``omitted`` bytes were left out of ``stdout``.

    ``ended`` says how: by itself, killed at the timeout, or never started.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes = b""
    omitted: int = 0
    ended: Literal["exited", "timeout", "not_started"] = "exited"
    error: str = ""


class Processes(Protocol):
    """The only way to processes: each its own session, killed as a group, never left behind."""

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        """Run to the end. Never raises for what the program does; when cancelled, kills first."""


class PermissionPolicy(Protocol):
    def judge(
        self, spec: ToolSpec, facts: Facts, mode: PermissionMode, added: Sequence[Rule]
    ) -> Decision:
        """Allow, ask or deny, with the rule or mode that decided; pure.

        ``added`` are the rules that the user accepted in this session.
        """

    def offer(self, spec: ToolSpec, facts: Facts) -> Rule | None:
        """The rule that "yes, for this session" would add; None where none fits."""


class Approver(Protocol):
    async def ask(self, question: Question) -> Answer:
        """The human. May be slow; cancel-safe. With nobody there: a denial that says so."""


class HookRunner(Protocol):
    async def fire(self, payload: HookPayload) -> HookOutcome:
        """Run the hooks of an event. Never raises: a timeout or crash is an outcome."""


class Redactor(Protocol):
    def clean(self, text: str) -> str:
        """The text without secrets: the same text for the same secrets, always."""


class Journal(Protocol):
    def append(self, entry: Entry, *, sync: bool = False) -> int:
        """Survives kill -9 when it returns; with ``sync``, power loss. Raises ``SessionError``.

        Returns the entry's place, counted from 1: what ``Rewound.to`` names.
        """

    def state_at(self, seq: int) -> SessionState:
        """The state as it was right after entry ``seq``. Raises ``SessionError``."""

    def turns(self) -> tuple[TurnPoint, ...]:
        """Where the conversation can go back to, the oldest first. Raises ``SessionError``.

        Turns that a ``Rewound`` took away are not among them, nor those without a prompt.
        """


class Blobs(Protocol):
    """Bytes by content, readable by the session's own tools."""

    def put(self, data: bytes) -> str:
        """Store and return the digest. Raises ``SessionError``."""

    def get(self, digest: str) -> bytes:
        """Raises ``SessionError`` for an unknown digest."""

    def path(self, digest: str) -> str | None:
        """Where Read and Grep find it; None where blobs live in memory."""


class Disk(Protocol):
    """The system calls that change files, so that a test can let the n-th one fail.

    All state is written through it: journals, blobs, claw's own directories, the files
    that tools edit. Each method is the call of its name in ``os`` or ``fcntl`` and
    raises ``OSError`` as that does. With ``dir_fd``, paths start at that open directory.
    Reading needs no port.
    """

    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        """A descriptor; the caller adds ``O_CLOEXEC``."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """How many bytes were written, which may be fewer than were given."""

    def fsync(self, fd: int) -> None: ...

    def truncate(self, fd: int, size: int) -> None: ...

    def chmod(self, fd: int, mode: int) -> None: ...

    def chown(self, fd: int, uid: int, gid: int) -> None: ...

    def flock(self, fd: int) -> None:
        """Take the exclusive lock now. Raises ``BlockingIOError`` where somebody holds it."""

    def close(self, fd: int) -> None:
        """The descriptor is gone afterwards, also where this raises."""

    def rename(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        """Takes the place of what is at ``target``."""

    def link(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        """Raises ``FileExistsError`` where ``target`` is taken."""

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None: ...

    def mkdir(self, path: str, mode: int = 0o700, *, dir_fd: int | None = None) -> None: ...

    def rmdir(self, path: str) -> None: ...


class Compactor(Protocol):
    """Replaces old context by a summary."""

    def target(self, request: Request, state: SessionState, window: int | None) -> int | None:
        """The size that the messages must come down to, None while the request fits.

        In estimated tokens, for ``make_room`` to be called with. ``state`` says what the
        last request reported and what was added since; ``window`` is in tokens, where the
        model or an overflow has told it.
        """

    async def make_room(
        self, transcript: Transcript, keep_rounds: int, target_tokens: int | None, focus: str
    ) -> Compacted | None:
        """The entry that makes room and explains it; None where nothing would go.

        The newest ``keep_rounds`` rounds stay, fewer where the target takes it; the
        request that is worked on always does. ``focus`` is what a summary is to heed.
        Never raises for what a model does. Sizes are counted with what the last
        ``target`` saw.
        """


class EventSink(Protocol):
    def emit(self, event: Event) -> None:
        """In order; never blocks the loop for long; never raises."""


class Clock(Protocol):
    """Time, so that replay and tests can lend their own."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """Cancels its body after ``seconds`` and raises ``TimeoutError``; None waits for ever."""

    def jitter(self) -> float:
        """In [0, 1)."""


class Ids(Protocol):
    def session(self) -> str:
        """A new session id; sorts by time. Every other id derives from a position."""


class Ports(msgspec.Struct, frozen=True):
    """All that a conversation is given; ``claw.app`` fills it in."""

    model: ModelClient
    tools: ToolSet
    workspace: Workspace
    policy: PermissionPolicy
    approver: Approver
    hooks: HookRunner
    redactor: Redactor
    journal: Journal
    blobs: Blobs
    compactor: Compactor
    sink: EventSink
    clock: Clock
