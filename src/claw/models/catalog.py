"""What is known of models by name: windows, output limits, how they think, aliases.

Figures as the providers publish them, looked up in November 2026. Prices are not
in here. A model that is missing works all the same: its window is then unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

__all__ = ["ALIASES", "DEFAULT_MAX_TOKENS", "KNOWN", "ModelInfo", "canonical", "lookup"]

DEFAULT_MAX_TOKENS = 32_000
"""Room for one long file; more only makes a request that nearly fits be refused."""

ALIASES = {
    "fable": "claude-fable-5-2",
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
}

KNOWN = (
    "claude-fable-5-2",
    "claude-haiku-4-5",
    "claude-haiku-5-5",
    "claude-opus-4-5",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-sonnet-4-5",
    "claude-sonnet-4-6",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "gpt-4.1",
    "gpt-4.1-mini",
    "gpt-4o",
    "gpt-5",
    "gpt-5-mini",
    "gpt-5.4",
    "gpt-5.5",
    "gpt-5.6-sol",
    "gpt-6-astra",
    "gpt-6-luna",
    "gpt-6-sol",
    "o3",
    "o4-mini",
)
"""Names to suggest when somebody misspells one."""


class ModelInfo(msgspec.Struct, frozen=True):
    """Tokens; None where unknown. ``thinking`` is how effort is asked for."""

    window: int | None = None
    max_output: int | None = None
    thinking: Literal["", "budget", "adaptive", "effort"] = ""

    @property
    def max_tokens(self) -> int:
        """The output limit to ask for where nobody chose one."""
        return min(DEFAULT_MAX_TOKENS, self.max_output or DEFAULT_MAX_TOKENS)


_MILLION = 1_000_000
_TABLE: tuple[tuple[tuple[str, ...], ModelInfo], ...] = (
    (("claude-fable-", "claude-mythos-"), ModelInfo(_MILLION, 128_000, "adaptive")),
    (
        ("claude-opus-5", "claude-sonnet-5", "claude-haiku-5"),
        ModelInfo(_MILLION, 128_000, "adaptive"),
    ),
    (
        ("claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-4-6"),
        ModelInfo(200_000, 128_000, "adaptive"),
    ),
    (
        ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"),
        ModelInfo(200_000, 64_000, "budget"),
    ),
    (("claude-opus-4",), ModelInfo(200_000, 32_000, "budget")),
    (("claude-sonnet-4", "claude-3-7-sonnet"), ModelInfo(200_000, 64_000, "budget")),
    (("claude-3-5",), ModelInfo(200_000, 8_192)),
    (("claude-3",), ModelInfo(200_000, 4_096)),
    (("gpt-5-chat", "gpt-5.1-chat", "gpt-5.2-chat"), ModelInfo(128_000, 16_384)),
    (
        ("gpt-6", "gpt-5.4", "gpt-5.5", "gpt-5.6"),
        ModelInfo(1_050_000, 128_000, "effort"),
    ),
    (("gpt-5",), ModelInfo(400_000, 128_000, "effort")),
    (("gpt-4.1",), ModelInfo(1_047_576, 32_768)),
    (("gpt-4o", "chatgpt-4o"), ModelInfo(128_000, 16_384)),
    (("o1", "o3", "o4-"), ModelInfo(200_000, 100_000, "effort")),
)
"""Beginnings of canonical names; the first that fits holds."""

_PATH = r"^.*/|^(?:[a-z]{2,4}\.)?anthropic\."
_DATE = r"(?:-v\d+(?::\d+)?)?$|[-@]20\d\d-?\d\d-?\d\d.*$|-latest$"


@lru_cache(maxsize=256)
def canonical(name: str) -> str:
    """A model's name without provider and date, for "is it the same model?"."""
    return re.sub(_DATE, "", re.sub(_PATH, "", name.strip().lower()), count=1)


def lookup(name: str) -> ModelInfo:
    """What is known of a model; empty for an unknown one."""
    name = canonical(name).replace(".", "-") if "claude" in name else canonical(name)
    for beginnings, info in _TABLE:
        if name.startswith(beginnings):
            return info
    return ModelInfo()
