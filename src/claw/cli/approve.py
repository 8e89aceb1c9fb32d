"""``TerminalApprover``: shows exactly what would run and asks whether it may."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys

from claw.cli.screen import Screen
from claw.cli.style import Paint
from claw.cli.terminal import Terminal, forget_typed, typing_shown
from claw.cli.typed import Answers, Entered
from claw.policy.display import visible
from claw.types.entries import Event, ReplyReceived
from claw.types.permissions import Answer, Question

__all__ = ["DENIED", "TerminalApprover", "terminal_to_ask_on"]

DENIED = "denied by user approval prompt"
QUESTION = "Approve this tool call? [y/N]: "
# A word, what may stand behind it, and more words.
_ANSWER = re.compile(r"([a-z]*)[.,;:!]*(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


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

    What was typed before the question is thrown away, so is what comes with a line
    that is no answer, and nothing that was pasted allows anything. The end of input is
    a no, and cancelling ends the wait at once.
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
        screen = self._screen
        with screen.held(), typing_shown(self._fd), screen.pastes_marked():
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
        answers = Answers(self._fd)
        self._screen.ask(QUESTION)
        while (entered := await answers.next()) is not None:
            word, rest = _word(entered.text)
            if word in ("", "n", "no") and entered.alone and (word or not rest):
                return _denial(rest)
            if entered.typed and not rest:
                if word in ("y", "yes"):
                    return Answer(allow=True)
                if word in ("a", "always") and question.offered is not None:
                    return Answer(allow=True, rule=question.offered)
                if word in ("e", "edit") and editable:
                    return None
            self._screen.say(_again(entered, question, editable=editable))
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
        say = self._screen.say
        say(f"Why it asks: {visible(question.reason, multiline=False)}", "dim")
        answers = ["y = yes, once"]
        if question.offered is not None:
            rule = visible(str(question.offered), multiline=False)
            answers.append(f"a = yes, and allow `{rule}` for this session")
        answers.append("n [reason] = no, and tell the model why")
        if editable:
            answers.append("e = edit the command, then run it")
        for answer in answers:
            say(f"  {answer}", "dim")
        say("  Press Enter after the letter; Enter alone is a no.", "dim")


def _denial(words: str) -> Answer:
    return Answer(allow=False, reason=f"{DENIED}: {words}" if words else DENIED)


def _word(text: str) -> tuple[str, str]:
    """The answer, in lower case, and what follows it; all of a text that is none follows."""
    found = _ANSWER.fullmatch(text)
    return (found[1].lower(), found[2] or "") if found else ("", text)


def _again(entered: Entered, question: Question, *, editable: bool) -> str:
    letters = ["y"]
    letters += ["a"] if question.offered is not None else []
    letters += ["e"] if editable else []
    listed = f"{', '.join(letters)} or n"
    what = "That is no clear answer." if entered.typed else "What is pasted is no answer."
    return f"{what} Type {listed}, and press Enter."


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
