"""From a prompt to the commands and tools that it speaks of: ranked, pure, the same every time.

Nothing is run here. A prompt is taken apart into words (and pairs of characters, where a
script has no spaces); what is offered is found by the words of its name and description.
A word that few of them have counts for more.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from typing import Literal

import msgspec

from claw.types.commands import CommandSpec
from claw.types.tools import ToolSpec

__all__ = ["EXPLICIT", "Registry", "RoutedMatch", "explicit_command", "route_prompt"]

EXPLICIT = 100
"""The score of a command that the prompt calls by its name, with the slash."""
MOST_OTHERWISE = 99
IN_NAME, IN_TEXT = 3, 1
LONGEST_PROMPT = 20_000  # characters that are looked at

_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_STOP_WORDS = frozenset(
    re.split(
        r"\s+",
        "a about all also an and any are as at be been but by can could did do does for from had "
        "has have how i if in into is it its just let me my no not of on or our out please should "
        "so some than that the their them then there these they this those to up us very was we "
        "were what when where which who why will with would you your "
        "一下 这个 那个 什么 怎么 我们 你们 帮我 请问 可以 哪里 一个",
    )
)


class RoutedMatch(msgspec.Struct, frozen=True):
    """``score`` is 1 to 100; ``source`` says where the command or tool comes from."""

    kind: Literal["command", "tool"]
    name: str
    score: int
    source: str


class Registry(msgspec.Struct, frozen=True):
    """What there is to route to. ``words`` are others that people use for a tool, by its name."""

    name: Literal["builtin", "live"]
    commands: tuple[CommandSpec, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    words: dict[str, tuple[str, ...]] = {}

    @property
    def digest(self) -> str:
        """Of all that routing looks at, in whatever order it was given; 16 hex digits."""
        offered = (*self.commands, *self.tools)
        parts = [json.dumps(msgspec.to_builtins(part), sort_keys=True) for part in offered]
        parts.append(json.dumps(msgspec.to_builtins(self.words), sort_keys=True))
        return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


def explicit_command(prompt: str) -> tuple[str, str] | None:
    """Name and rest of a prompt that begins with ``/name``; None for any other one.

    A path such as ``/etc/hosts`` is no command.
    """
    match = re.match(r"\s*/([A-Za-z0-9][\w:.-]*)(?:\s+(.*))?$", prompt, re.DOTALL)
    return (match[1].lower(), (match[2] or "").strip()) if match else None


def route_prompt(prompt: str, registry: Registry, limit: int = 5) -> list[RoutedMatch]:
    """The best matches, at most ``limit``.

    First a command that is called explicitly, then the best command and the best tool, then
    the rest by score, kind and name. The order of the registry does not matter.
    """
    words = _words(prompt[:LONGEST_PROMPT])
    candidates = _candidates(registry)
    having = Counter(word for found in candidates for word in {*found.in_name, *found.in_text})
    matches = []
    for found in candidates:
        score = sum(
            (IN_NAME if word in found.in_name else IN_TEXT) * _rarity(having[word], len(candidates))
            for word in words & (found.in_name | found.in_text)
        )
        if score:
            matches.append(found.match(min(score, MOST_OTHERWISE)))
    return _ranked(matches, _called(prompt, registry))[: max(limit, 0)]


def _called(prompt: str, registry: Registry) -> RoutedMatch | None:
    called = explicit_command(prompt)
    if called is None:
        return None
    meant = [spec for spec in registry.commands if spec.name.lower() == called[0]]
    spec = min(meant, key=lambda spec: (spec.name, spec.source), default=None)
    return None if spec is None else RoutedMatch("command", spec.name, EXPLICIT, spec.source)


def _ranked(matches: list[RoutedMatch], explicit: RoutedMatch | None) -> list[RoutedMatch]:
    unique = {(match.kind, match.name, match.source): match for match in matches}
    if explicit is not None:
        unique.pop((explicit.kind, explicit.name, explicit.source), None)
    rest = sorted(unique.values(), key=lambda m: (-m.score, m.kind, m.name, m.source))
    first = [explicit] if explicit is not None else []
    for kind in ("command", "tool"):
        best = next((match for match in rest if match.kind == kind), None)
        if best is not None:
            first.append(best)
            rest.remove(best)
    return first + rest


class _Candidate(msgspec.Struct, frozen=True):
    kind: Literal["command", "tool"]
    name: str
    source: str
    in_name: frozenset[str]
    in_text: frozenset[str]

    def match(self, score: int) -> RoutedMatch:
        return RoutedMatch(self.kind, self.name, score, self.source)


def _candidates(registry: Registry) -> list[_Candidate]:
    commands = [
        _Candidate(
            "command",
            spec.name,
            spec.source,
            _name_words(spec.name),
            _words(" ".join((spec.description, *spec.words))),
        )
        for spec in registry.commands
    ]
    tools = [
        _Candidate(
            "tool",
            spec.name,
            _source_of(spec),
            _name_words(spec.name) | _words(" ".join(spec.aliases)),
            _words(" ".join((spec.description, *registry.words.get(spec.name, ())))),
        )
        for spec in registry.tools
    ]
    return commands + tools


def _source_of(spec: ToolSpec) -> str:
    """Tools of a server are called ``mcp__SERVER__TOOL``."""
    parts = spec.name.split("__")
    return f"mcp:{parts[1]}" if parts[0] == "mcp" and len(parts) > 2 else "builtin"


def _name_words(name: str) -> frozenset[str]:
    """The name as a whole, and the words that it is made of."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+", name)
    return _words(" ".join((name, *parts)))


def _words(text: str) -> frozenset[str]:
    """Words without case, stop words and the endings of a plural; pairs of CJK characters."""
    text = unicodedata.normalize("NFKC", text).casefold()
    found = {_stem(word) for word in re.findall(rf"[^\W{_CJK}]+", text)}
    for run in re.findall(rf"[{_CJK}]+", text):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(word for word in found - _STOP_WORDS if len(word) > 1)


def _stem(word: str) -> str:
    """``files`` and ``file``, ``searches`` and ``search`` are one word."""
    if word in _STOP_WORDS or len(word) < 4:
        return word
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _rarity(having: int, of: int) -> int:
    """1 for a word that most have; integers, so that no machine rounds differently."""
    return (of // having).bit_length()
