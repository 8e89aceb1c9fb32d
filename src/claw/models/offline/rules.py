"""From a prompt to a task: rules in English and Chinese, tried in order.

A rule is pieces of text of which the prompt must have one (none: any prompt), an
expression for the whole prompt, and a function that makes a task of its groups.
The pieces spare compiling most expressions, which is what takes time here.
No rule guesses: what none of them fits is not understood.
"""

from __future__ import annotations

import re

from claw.models.offline import chinese, english
from claw.models.offline.tasks import CreateFile, ReplaceText, RunCommand, Task
from claw.models.offline.words import (
    CJK,
    QUOTED,
)

__all__ = ["is_chinese", "understand"]

LONGEST_PROMPT = 10_000  # characters; a longer one is material, not an order
LONGEST_QUESTION = 1_000


def is_chinese(prompt: str) -> bool:
    """Whether to answer in Chinese: the words outside quotes are."""
    return re.search(CJK, re.sub(QUOTED, "", prompt)) is not None


def understand(prompt: str) -> tuple[Task, bool] | None:
    """The task in a prompt, None where no rule fits.

    The flag says that only the first sentence was understood; then the task
    changes nothing.
    """
    whole = re.sub(r"\s*\[turn \d+\]\s*$", "", prompt.strip()).strip()
    task = _understand(whole)
    if task is not None:
        return task, False
    first = re.match(r"(.+?[^.?？!！。\s])(?:[?？!！。]+|\.(?=\s)|\n)\s*(?=\S)", whole, re.DOTALL)
    task = _understand(first[1]) if first else None
    changes = isinstance(task, RunCommand | ReplaceText | CreateFile)
    return None if task is None or changes else (task, True)


def _understand(prompt: str) -> Task | None:
    in_chinese = is_chinese(prompt)
    actions = chinese.ACTIONS if in_chinese else english.ACTIONS
    questions = chinese.QUESTIONS if in_chinese else english.QUESTIONS
    if len(prompt) > LONGEST_PROMPT:
        return None
    polite = _without_politeness(prompt)
    bare = _bare(polite)
    # What changes things keeps its closing marks: they may belong to a text or command.
    asks = questions if len(bare) <= LONGEST_QUESTION else ()
    for text, tried in ((polite, actions), (bare, asks)):
        lowered = text.lower()
        for pieces, expression, make in tried:
            if not any(piece in lowered for piece in pieces.split("|")):
                continue
            match = re.fullmatch(expression, text, re.IGNORECASE | re.DOTALL)
            task = make({k: v for k, v in match.groupdict().items() if v}) if match else None
            if task is not None:
                return task
    return None


def _without_politeness(prompt: str) -> str:
    # These ask for help itself.
    if re.match(r"你(?:能|可以|会)(?:做|干)|help\W*$", prompt, re.I):
        return prompt
    in_english = (
        r"(?:(?:hey|hi|hello|please|pls|now|then|ok|okay|also|just|(?:can|could|would|will)\s+you"
        r"|i\s+(?:want|need)(?:\s+you)?\s+to|i(?:'d|\s+would)\s+like(?:\s+you)?\s+to|let's|let\s+me"
        r"|help\s+me(?:\s+to)?|go\s+ahead\s+and|do\s+you\s+know)\b[\s,]*)+(?=\S)"
    )
    in_chinese = (
        r"(?:请问|请你|请|麻烦你|麻烦|帮我|帮忙|给我|能不能|能否|可不可以|可以|你能|我想要|我想"
        r"|我要|告诉我|那么|然后|现在)+[\s,\uff0c]*(?=\S)"
    )
    opening = re.match(f"{in_english}|{in_chinese}", prompt, re.I)
    return prompt[opening.end() :] if opening else prompt


def _bare(prompt: str) -> str:
    """Without closing marks, thanks, and "in this repository"."""
    text = prompt
    while True:
        shorter = re.sub(r"[\s?？!！。…,\uff0c;\uff1b:\uff1a]+$", "", text)
        shorter = re.sub(r"(?<=[\w`\"')])\.$", "", shorter)
        shorter = re.sub(
            r"(?:[\s,]+(?:please|pls|thanks|thank\s+you|for\s+me)|(?:谢谢你?|好吗|吗|呢|吧|一下))$",
            "",
            shorter,
            flags=re.I,
        )
        shorter = re.sub(
            r"\s+(?:in|of|across)\s+(?:this|the|my|our)(?:\s+(?:whole|entire))?\s+"
            r"(?:project|repo|repository|code\s?base|code|workspace|directory|folder)$",
            "",
            shorter,
            flags=re.I,
        )
        shorter = re.sub(
            r"^(?:在)?(?:这个|本|当前|整个)(?:项目|仓库|代码库|目录)(?:里面|里|中|下)(?:的)?[,\uff0c]?",
            "",
            shorter,
        )
        if shorter == text:
            return text
        text = shorter
