"""``TerminalApprover``: shows exactly what would run and asks whether it may."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing

from claw.cli.screen import Screen
from claw.cli.style import Paint
from claw.cli.terminal import Terminal, forget_typed, typing_shown
from claw.policy.display import visible
from claw.types.entries import Event, ReplyReceived
from claw.types.permissions import Answer, Question

__all__ = ["DENIED", "TerminalApprover", "terminal_to_ask_on"]

DENIED = "denied by user approval prompt"
QUESTION = "Approve this tool call? [y/N]: "
_LONGEST_LINE = 64 * 1024  # bytes


def terminal_to_ask_on(terminal: Terminal) -> int | None:
    """A descriptor to read answers from, None where nobody would see the question.

    That is stdin, or the controlling terminal where stdin is a pipe.
    """
    if not terminal.stderr:
        return None
    if terminal.stdin:
        return 0
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None


class TerminalApprover:
    """``ports.Approver`` on a terminal: questions on stderr, answers from ``fd``.

    What was typed before the question is thrown away, the end of input is a no,
    and cancelling ends the wait at once.
    """

    def __init__(self, screen: Screen, fd: int) -> None:
        self._screen = screen
        self._fd = fd
        self._inputs: dict[str, dict[str, object]] = {}

    def emit(self, event: Event) -> None:
        """Remember what is called with what: a command can be edited before it is run."""
        if isinstance(event, ReplyReceived):
            self._inputs = {call.id: call.input for call in event.message.tool_calls}

    async def ask(self, question: Question) -> Answer:
        input = self._inputs.get(question.call_id, {})
        command = input.get("command") if self._fd == 0 else None
        if command != question.detail:  # a hook changed it: an edit would undo that
            command = None
        with self._screen.held(), typing_shown(self._fd):
            self._show(question, editable=isinstance(command, str))
            forget_typed(self._fd)
            try:
                answer = await self._answer(question, editable=isinstance(command, str))
                if answer is None and isinstance(command, str):
                    edited = await _edited(command)
                    return Answer(allow=True, input={**input, "command": edited})
            except asyncio.CancelledError:
                self._screen.line()
                raise
        return answer or _denial("")

    async def _answer(self, question: Question, *, editable: bool) -> Answer | None:
        """None for "edit"."""
        async with aclosing(_lines(self._fd)) as lines:
            self._screen.ask(QUESTION)
            async for line in lines:
                word, _, rest = line.strip().partition(" ")
                match word.lower():
                    case "y" | "yes" if not rest:
                        return Answer(allow=True)
                    case "a" | "always" if not rest and question.offered is not None:
                        return Answer(allow=True, rule=question.offered)
                    case "e" | "edit" if not rest and editable:
                        return None
                    case "" | "n" | "no":
                        return _denial(rest.strip())
                self._screen.line("Please answer with one of the letters above.")
                self._screen.ask(QUESTION)
        self._screen.line()  # the end of input stands where an answer would
        return _denial("")

    def _show(self, question: Question, *, editable: bool) -> None:
        paint, line = self._screen.paint, self._screen.line
        self._screen.gap()
        tool = visible(question.tool, multiline=False)
        line(paint("Permission approval required", "bold", "yellow") + f": {paint(tool, 'bold')}")
        for row in visible(question.detail).split("\n"):
            line(f"  {_colored(row, paint)}")
        line(paint(f"Why it asks: {visible(question.reason, multiline=False)}", "dim"))
        answers = ["y = yes, once"]
        if question.offered is not None:
            rule = visible(str(question.offered), multiline=False)
            answers.append(f"a = yes, and allow `{rule}` for this session")
        answers.append("n [reason] = no, and tell the model why")
        if editable:
            answers.append("e = edit the command, then run it")
        for answer in answers:
            line(paint(f"  {answer}", "dim"))


def _denial(words: str) -> Answer:
    return Answer(allow=False, reason=f"{DENIED}: {words}" if words else DENIED)


def _colored(row: str, paint: Paint) -> str:
    """Green and red for the lines of a diff."""
    if row.startswith("+") and not row.startswith("+++"):
        return paint(row, "green")
    if row.startswith("-") and not row.startswith("---"):
        return paint(row, "red")
    return row


async def _edited(command: str) -> str:
    """The command as the person left it; Ctrl-C is the same as anywhere, the end of input too."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import create_output

    keys = KeyBindings()

    @keys.add("c-c")
    @keys.add("c-d")
    def _(event: KeyPressEvent) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    session: PromptSession[str] = PromptSession(
        "Command: ", key_bindings=keys, output=create_output(sys.stderr)
    )
    return await session.prompt_async(
        default=command, handle_sigint=False, set_exception_handler=False
    )


async def _lines(fd: int) -> AsyncGenerator[str, None]:
    """Lines as they are entered, until the end of input. No thread: cancelling leaves none."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        while True:
            await ready.wait()
            ready.clear()
            try:
                data = os.read(fd, _LONGEST_LINE)
            except OSError:  # the terminal is gone
                return
            if not data:
                return
            yield data.decode(errors="replace")
    finally:
        loop.remove_reader(fd)
