"""What a prompt cache like Anthropic's would have given for a series of request bodies.

A model of https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching, as read in
November 2026: a prompt is tools, system prompt, messages, in this order; a
``cache_control`` on a block writes the prefix that ends there, unless it is shorter than
the model's minimum; a request reads the longest prefix that was written before and ends
at one of its marks or within 20 blocks before one. A change of the thinking parameters
invalidates the messages. No time passes: nothing is forgotten.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from claw.testing.prefix import unmarked
from claw.types.usage import Usage

__all__ = ["LOOKBACK", "MARKS", "CacheSimulator"]

MARKS = 4
"""Breakpoints that a request may have."""

LOOKBACK = 20
"""Blocks, the marked one included, in which a prefix written earlier is looked for."""

BYTES_PER_TOKEN = 4


class CacheSimulator:
    """``minimum`` is in tokens; four bytes of a block's JSON count as one."""

    def __init__(self, minimum: int = 1024) -> None:
        self._minimum = minimum
        self._written: set[bytes] = set()

    def send(self, body: Mapping[str, Any]) -> Usage:
        """What the input of this request would be billed as. Raises ``ValueError`` for a
        request with too many marks."""
        prefix, tokens = b"", 0.0
        prefixes: list[tuple[bytes, float]] = []
        marks: list[int] = []
        for place, (block, marked) in enumerate(_blocks(body)):
            prefix = hashlib.sha256(prefix + block).digest()
            tokens += len(block) / BYTES_PER_TOKEN
            prefixes.append((prefix, tokens))
            if marked:
                marks.append(place)
        if len(marks) > MARKS:
            raise ValueError(f"{len(marks)} breakpoints, more than {MARKS}")
        read = max((self._found(prefixes, mark) for mark in marks), default=0.0)
        long = [mark for mark in marks if prefixes[mark][1] >= self._minimum]
        self._written |= {prefixes[mark][0] for mark in long}
        cached = max([read, *(prefixes[mark][1] for mark in long)])
        return Usage(
            input_tokens=round(tokens) - round(cached),
            cache_read_input_tokens=round(read),
            cache_creation_input_tokens=round(cached) - round(read),
        )

    def _found(self, prefixes: list[tuple[bytes, float]], mark: int) -> float:
        """Tokens of the longest prefix that the cache holds for this mark."""
        for prefix, tokens in reversed(prefixes[max(0, mark - LOOKBACK + 1) : mark + 1]):
            if prefix in self._written:
                return tokens
        return 0.0


def _blocks(body: Mapping[str, Any]) -> Iterator[tuple[bytes, bool]]:
    """The prompt's blocks in the order in which the cache sees them, and which are marked."""
    system = body.get("system", ())
    fixed = [{"text": system}] if isinstance(system, str) else system
    for block in (*body.get("tools", ()), *fixed):
        yield _encoded(block), "cache_control" in block
    # Not a block: what the messages' part of the cache depends on besides.
    aside = [body.get(name) for name in ("thinking", "output_config", "tool_choice")]
    first = json.dumps(aside).encode() if any(aside) else b""
    for message in body["messages"]:
        content = message["content"]
        for block in [{"text": content}] if isinstance(content, str) else content:
            yield first + message["role"].encode() + _encoded(block), "cache_control" in block
            first = b""


def _encoded(block: Any) -> bytes:
    return json.dumps(unmarked(block), ensure_ascii=False).encode("utf-8", "replace")
