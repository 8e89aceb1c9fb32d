"""From a prompt to a task: rules in English and Chinese, tried in order.

A rule is pieces of text of which the prompt must have one (none: any prompt), an
expression for the whole prompt, and a function that makes a task of its groups.
The pieces spare compiling most expressions, which is what takes time here.
No rule guesses: what none of them fits is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from claw.models.offline import chinese, english
from claw.models.offline.tasks import CreateFile, ReplaceText, RunCommand, RunTests, Task
from claw.models.offline.words import (
    CJK,
    QUOTED,
    Groups,
)

__all__ = ["is_chinese", "understand"]

Rule = tuple[str, str, Callable[[Groups], Task | None]]

LONGEST_PROMPT = 10_000  # characters; a longer one is material, not an order
LONGEST_QUESTION = 1_000
# An English opening makes an English prompt, also of one about files with Chinese names.
_ENGLISH = (
    r"\s*(?:please\s+|can\s+you\s+)?(?:show|read|open|view|cat|print|display|look|see|list|ls|find"
    r"|grep|rg|search|locate|create|make|write|put|save|touch|replace|change|rename|in|what|what's"
    r"|where|where's|who|how|which|run|execute|count|head|tail|first|last|lines?|explain|describe"
    r"|summari[sz]e|outline|wc|git)\s+(?!(?:一下|命令))"
)


def is_chinese(prompt: str) -> bool:
    """Whether to answer in Chinese: the words outside quotes are."""
    said = re.sub(QUOTED, "", prompt)
    return re.search(CJK, said) is not None and re.match(_ENGLISH, said, re.I) is None


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
    changes = isinstance(task, RunCommand | RunTests | ReplaceText | CreateFile)
    return None if task is None or changes else (task, True)


def _understand(prompt: str) -> Task | None:
    if len(prompt) > LONGEST_PROMPT:
        return None
    chinese_rules = (chinese.ACTIONS, chinese.QUESTIONS)
    english_rules = (english.ACTIONS, english.QUESTIONS)
    if re.search(CJK, prompt) is None:
        return _by(english_rules, prompt)
    # Words of the other language may be names.
    first, second = chinese_rules, english_rules
    if not is_chinese(prompt):
        first, second = second, first
    return _by(first, prompt) or _by(second, prompt)


def _by(rules: tuple[tuple[Rule, ...], tuple[Rule, ...]], prompt: str) -> Task | None:
    actions, questions = rules
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
    prompt = re.sub(r"^(?:你好|您好|嗨)[\s,!.\uff0c\uff01。]+(?=\S)", "", prompt)
    # These ask for help itself, or are a greeting and no more.
    if re.match(
        r"你(?:能|可以|会)(?:做|干)|(?:help|hello|hi|hey)(?:\s+(?:me|there))?\W*$", prompt, re.I
    ):
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
            # "what's in this folder" is about the folder itself.
            r"(?<!what's)(?<!what is)(?<!what are)(?<!files are)(?<!\bme)"
            r"\s+(?:in|of|across)\s+(?:this|the|my|our)(?:\s+(?:whole|entire|current))?\s+"
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
