"""Calls that came as text: the server did not know how its model writes them; pure.

A server without the right tool parser hands out the model's own notation as the text of
its answer. Known are the notations of the larger open model families. A text that only
speaks of such a call, in prose or in a code block, is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

__all__ = ["unparsed_call"]

_BAR = r"[|｜]"  # DeepSeek's tokens have a full-width one
_TOKENS = (
    r"\[TOOL_CALLS\]",  # Mistral
    r"<\|python_tag\|>",  # Llama
    rf"<{_BAR}tool[▁_]calls?(?:[▁_]section)?[▁_]begin{_BAR}>",  # DeepSeek, Kimi
    rf"<{_BAR}DSML{_BAR}",  # DeepSeek
    r"<\|tool_calls?\|>",  # Granite, Phi
    r"<\|START_ACTION\|>",  # Command
    r"<\|channel\|>commentary",  # gpt-oss
)
"""No words of any language: wherever they stand."""

_TAGS = (
    r"<(?:\w+:)?tool_calls?>",  # Qwen, Hermes, GLM, MiniMax
    r"<(?:\w+:)?function_calls?\b|<invoke name=",  # Anthropic's XML, Grok
    r"<function=",  # Llama, Qwen Coder
    r"```tool_(?:code|call)\b",  # Gemma
)
"""At the beginning of a line."""

_NAME_BEFORE = (
    r'(?:"(?:tool_|function_)?(?:name|tool|function)"\s*:\s*"|\bname="|<function=|functions\.|\bto='
    r"|[>\]]\s*|```tool_(?:code|call)\s*|\bprint\()"
)
_NAME_AFTER = r"(?![\w-])"
_ENDS = ("}", "]", ">", ")", "```")
_NEAR = 400
"""Characters after the mark in which the name stands."""

_NAMES = ("name", "tool", "tool_name", "function")
_INPUTS = ("arguments", "parameters", "input", "args")
_BESIDE = frozenset({"id", "type", *_NAMES, *_INPUTS})


def unparsed_call(text: str, offered: Collection[str]) -> str:
    """The name of the tool that a reply without calls meant to call, blank for none.

    ``text`` is the whole reply, ``offered`` are the tools' names. Words may lead to the
    call; nothing follows it.
    """
    text = text.strip()
    if not offered or not text.endswith(_ENDS):
        return ""
    return _marked(text, offered) or _bare(text, offered)


def _marked(text: str, offered: Collection[str]) -> str:
    """In the notation of a model, outside of code blocks and quoted code."""
    names = "|".join(map(re.escape, sorted(offered, key=len, reverse=True)))
    marks = rf"{'|'.join(_TOKENS)}|^[ \t]*(?:{'|'.join(_TAGS)})"
    ticks = seen = 0
    for mark in re.finditer(marks, text, re.MULTILINE):
        at = mark.start()
        ticks, seen = ticks + text.count("`", seen, at), at
        named = re.search(rf"{_NAME_BEFORE}({names}){_NAME_AFTER}", text[at : at + _NEAR])
        if named and not ticks % 2:
            return named[1]
    return ""


def _bare(text: str, offered: Collection[str]) -> str:
    """As nothing but its JSON."""
    if text.startswith("```"):
        text = text[3:-3].removeprefix("json")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return ""
    return _called(value[0] if isinstance(value, list) and value else value, offered)


def _called(value: Any, offered: Collection[str]) -> str:
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if key in value), None)
    given = next((value[key] for key in _INPUTS if key in value), None)
    is_call = isinstance(given, dict | str) and value.keys() <= _BESIDE
    return name if is_call and isinstance(name, str) and name in offered else ""
