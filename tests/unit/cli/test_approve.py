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

    async def answers(
        self,
        typed: bytes,
        question: Question = QUESTION,
        *,
        then: bytes = b"",
        and_then: bytes = b"",
    ) -> Answer:
        """Type, and type again each time that the question is repeated."""
        task = asyncio.ensure_future(self.approver.ask(question))
        for keys in filter(None, (typed, then, and_then)):
            await asyncio.wait_for(self.seen.asked.wait(), 5)
            self.seen.asked.clear()
            os.write(self.keyboard, keys)
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
        (b"y.\n", Answer(True)),
        (b"Yes!\n", Answer(True)),
        (b"no, too dangerous\n", Answer(False, "denied by user approval prompt: too dangerous")),
        (
            b"n \x1b[200~see a.py\x1b[201~\n",
            Answer(False, "denied by user approval prompt: see a.py"),
        ),
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
    answer = await person.answers(b"a\n", question, then=b"n\n")
    assert answer == Answer(False, "denied by user approval prompt")


@pytest.mark.parametrize(
    "pasted",
    [
        b"some text I pasted\ny\n",
        b"y\ny\n",
        b"y\nand more",
        b"y\n\n",
        b"\x1b[200~y\n\x1b[201~",
        b"\x1b[200~y\x1b[201~\n",
        b"\x1b[200~text\ny\n",
        b"a\ne\n",
        b"y\x04",
        b"y please\n",
        b"what?\n",
    ],
)
async def test_what_was_pasted_or_is_unclear_allows_nothing(person: Person, pasted: bytes):
    answer = await person.answers(pasted, then=b"n too long\n")
    assert answer == Answer(False, "denied by user approval prompt: too long")
    shown = person.seen.getvalue()
    assert "press Enter" in shown
    assert shown.count("[y/N]: ") == 2


async def test_after_what_was_thrown_away_a_typed_answer_counts(person: Person):
    assert (await person.answers(b"some text\ny\n", then=b"y\n")).allow


async def test_a_paste_that_comes_slowly_is_one_paste(person: Person):
    answer = await person.answers(b"\x1b[200~some text\n", then=b"y\n", and_then=b"n\n")
    assert not answer.allow
    assert person.seen.getvalue().count("[y/N]: ") == 3


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
