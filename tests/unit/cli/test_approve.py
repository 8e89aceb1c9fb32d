"""Questions on a terminal that a test holds the other end of."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator

import pytest

from claw.cli.approve import TerminalApprover
from claw.cli.screen import Screen
from claw.cli.terminal import Terminal
from claw.types.permissions import Answer, Question, Rule

PLAIN = Terminal(
    stdin=True,
    stdout=True,
    stderr=True,
    color_stdout=False,
    color_stderr=False,
    animated=False,
    pictures=False,
)
RULE = Rule("allow", "Bash", "ls -la")
QUESTION = Question("c1", "Bash", "ls -la\necho two", "it may change things", RULE)


class Watched(io.StringIO):
    """Tells when the question stands."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    def write(self, text: str) -> int:
        if text.endswith("[y/N]: "):
            self.asked.set()
        return super().write(text)


class Person:
    """Reads what is asked and types answers."""

    def __init__(self) -> None:
        self.keyboard, self.line = os.openpty()
        self.seen = Watched()
        self.approver = TerminalApprover(Screen(PLAIN, self.seen, self.seen), self.line)

    async def answers(self, typed: bytes, question: Question = QUESTION) -> Answer:
        task = asyncio.ensure_future(self.approver.ask(question))
        await self.seen.asked.wait()
        os.write(self.keyboard, typed)
        return await asyncio.wait_for(task, 5)


@pytest.fixture
def person() -> Iterator[Person]:
    person = Person()
    yield person
    os.close(person.keyboard)
    os.close(person.line)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (b"y\n", Answer(True)),
        (b"YES\n", Answer(True)),
        (b"a\n", Answer(True, rule=RULE)),
        (b"n\n", Answer(False, "denied by user approval prompt")),
        (b"\n", Answer(False, "denied by user approval prompt")),
        (b"\x04", Answer(False, "denied by user approval prompt")),
        (b"no  not that file \n", Answer(False, "denied by user approval prompt: not that file")),
        ("n nö\n".encode(), Answer(False, "denied by user approval prompt: nö")),
        (b"what?\ny please\ny\n", Answer(True)),
    ],
)
async def test_answers(person: Person, typed: bytes, answer: Answer):
    assert await person.answers(typed) == answer


async def test_the_question_shows_all_that_would_run(person: Person):
    long = "echo " + "x" * 5000 + "\x1b[1A\x08; rm -rf /"
    await person.answers(b"n\n", Question("c1", "Bash", long, "why"))
    shown = person.seen.getvalue()
    assert "Permission approval required" in shown
    assert "Approve this tool call? [y/N]: " in shown
    assert "x" * 5000 + r"\x1b[1A\x08; rm -rf /" in shown
    assert "\x1b" not in shown


async def test_no_rule_is_taken_where_none_was_offered(person: Person):
    question = Question("c1", "Bash", "ls", "why")
    answer = await person.answers(b"a\nn\n", question)
    assert answer == Answer(False, "denied by user approval prompt")


async def test_what_was_typed_before_is_no_answer(person: Person):
    os.write(person.keyboard, b"y\ny\n")
    answer = await person.answers(b"n\n")
    assert not answer.allow


async def test_it_can_be_cancelled_and_asks_again(person: Person):
    task = asyncio.ensure_future(person.approver.ask(QUESTION))
    await person.seen.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    person.seen.asked.clear()
    assert (await person.answers(b"y\n")).allow


async def test_a_terminal_that_goes_away_is_a_no():
    person = Person()
    task = asyncio.ensure_future(person.approver.ask(QUESTION))
    await person.seen.asked.wait()
    os.close(person.keyboard)
    assert not (await asyncio.wait_for(task, 5)).allow
    os.close(person.line)
