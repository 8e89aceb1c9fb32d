"""What is known of models by name: windows, output limits, how they think, aliases.

Figures as the providers publish them, looked up in November 2026. Prices are not
in here. A model that is missing works all the same: its window is then unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

__all__ = [
    "ALIASES",
    "DEFAULT_MAX_TOKENS",
    "EFFORTS",
    "KNOWN",
    "ModelInfo",
    "canonical",
    "lookup",
    "same_model",
]

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


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How much a model may be asked to think, from nothing upwards."""


class ModelInfo(msgspec.Struct, frozen=True):
    """Tokens; None where unknown. ``thinking`` is how effort is asked for, ``efforts`` how much."""

    window: int | None = None
    max_output: int | None = None
    thinking: Literal["", "budget", "adaptive", "effort"] = ""
    efforts: tuple[str, ...] = ()

    @property
    def max_tokens(self) -> int:
        """The output limit to ask for where nobody chose one."""
        return min(DEFAULT_MAX_TOKENS, self.max_output or DEFAULT_MAX_TOKENS)

    def effort(self, wanted: str) -> str:
        """The nearest level that the model takes, not above ``wanted`` where there is one.

        Empty where it takes none or none is wanted. Only who wants ``none`` gets it. A
        model that is not in the catalogue is asked as one wishes.
        """
        if self == ModelInfo():
            return wanted
        taken = [level for level in EFFORTS if level in self.efforts]
        if wanted in taken or not wanted or not taken:
            return wanted if taken else ""
        taken = [level for level in taken if level != "none"]
        below = [level for level in taken if EFFORTS.index(level) < EFFORTS.index(wanted)]
        return (below or taken)[-1 if below else 0]


_MILLION = 1_000_000
_SIMPLE = ("low", "medium", "high")
_XHIGH = (*_SIMPLE, "xhigh")
_MAX = (*_XHIGH, "max")
_TABLE: tuple[tuple[tuple[str, ...], ModelInfo], ...] = (
    # Anthropic: platform.claude.com, the pages of the models and of effort.
    (
        ("claude-fable-", "claude-mythos-", "claude-opus-5", "claude-sonnet-5"),
        ModelInfo(_MILLION, 128_000, "adaptive", _MAX),
    ),
    (("claude-haiku-5",), ModelInfo(_MILLION, 128_000, "adaptive", _SIMPLE)),
    (
        ("claude-opus-4-7", "claude-opus-4-8"),
        ModelInfo(_MILLION, 128_000, "adaptive", _MAX),
    ),
    (
        ("claude-opus-4-6", "claude-sonnet-4-6"),
        ModelInfo(_MILLION, 128_000, "adaptive", (*_SIMPLE, "max")),
    ),
    (
        ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"),
        ModelInfo(200_000, 64_000, "budget"),
    ),
    (("claude-opus-4",), ModelInfo(200_000, 32_000, "budget")),
    (("claude-sonnet-4", "claude-3-7-sonnet"), ModelInfo(200_000, 64_000, "budget")),
    (("claude-3-5",), ModelInfo(200_000, 8_192)),
    (("claude-3",), ModelInfo(200_000, 4_096)),
    # OpenAI: the pages of the models; the levels of effort also from its API's errors.
    (("gpt-oss",), ModelInfo(131_072, 131_072, "effort", _SIMPLE)),
    (("gpt-5-chat", "gpt-5.1-chat", "gpt-5.2-chat"), ModelInfo(128_000, 16_384)),
    (("gpt-6.1", "gpt-6.2"), ModelInfo(1_050_000, 128_000, "effort", _MAX)),
    (("gpt-6", "gpt-5.6"), ModelInfo(1_050_000, 128_000, "effort", ("none", *_MAX))),
    (("gpt-5.4-mini",), ModelInfo(400_000, 128_000, "effort", ("none", *_XHIGH))),
    (("gpt-5.4", "gpt-5.5"), ModelInfo(1_050_000, 128_000, "effort", ("none", *_XHIGH))),
    (
        ("gpt-5.1-codex-max", "gpt-5.2-codex", "gpt-5.3-codex"),
        ModelInfo(400_000, 128_000, "effort", _XHIGH),
    ),
    (("gpt-5-codex", "gpt-5.1-codex"), ModelInfo(400_000, 128_000, "effort", _SIMPLE)),
    (("gpt-5.2", "gpt-5.3"), ModelInfo(400_000, 128_000, "effort", ("none", *_XHIGH))),
    (("gpt-5.1",), ModelInfo(400_000, 128_000, "effort", ("none", *_SIMPLE))),
    (("gpt-5-pro",), ModelInfo(400_000, 272_000, "effort", ("high",))),
    (("gpt-5",), ModelInfo(400_000, 128_000, "effort", ("minimal", *_SIMPLE))),
    (("gpt-4.1",), ModelInfo(1_047_576, 32_768)),
    (("gpt-4o", "chatgpt-4o"), ModelInfo(128_000, 16_384)),
    (("o1", "o3", "o4-"), ModelInfo(200_000, 100_000, "effort", _SIMPLE)),
    # Google: ai.google.dev, the pages of the models.
    (("gemini-2.5", "gemini-3"), ModelInfo(1_048_576, 65_536, "effort", _SIMPLE)),
    # The makers' announcements and the lists of hosts and gateways, where these agree.
    (("deepseek-v4",), ModelInfo(_MILLION, 384_000, "effort", ("high", "max"))),
    (("grok-4.7",), ModelInfo(500_000, None, "effort", _XHIGH)),
    (("grok-4.5", "grok-4.6"), ModelInfo(500_000, None, "effort", _SIMPLE)),
    (("grok-4-fast", "grok-4.1-fast"), ModelInfo(2_000_000)),
    (("grok-4-0", "grok-code-fast"), ModelInfo(256_000)),
    (("kimi-k3",), ModelInfo(_MILLION)),
    (("kimi-k2.5", "kimi-k2.6", "kimi-k2.7"), ModelInfo(262_144)),
    (("glm-5.2", "glm-5.3"), ModelInfo(_MILLION, 131_072)),
    (("glm-5.1", "glm-4.6", "glm-4.7"), ModelInfo(200_000, 131_072)),
    (("qwen3-coder-plus", "qwen3-coder-flash"), ModelInfo(_MILLION, 65_536)),
    (("qwen3-max",), ModelInfo(262_144, 65_536)),
    (("mistral-large-2512", "devstral-2512"), ModelInfo(256_000)),
    (("llama-3.1", "llama-3.3"), ModelInfo(131_072)),
)
"""Beginnings of canonical names; the first that fits holds."""

_PATH = r"^.*/|^(?:[a-z]{2,6}\.)?(?:anthropic|openai|deepseek|moonshotai|zai|qwen)\."
_DATE = r"(?<=-4)-0$|(?:-v\d+(?::\d+)?)?$|[-@]20\d\d-?\d\d-?\d\d.*$|-latest$"


@lru_cache(maxsize=256)
def canonical(name: str) -> str:
    """A model's name without provider and date, for "is it the same model?"."""
    return re.sub(_DATE, "", re.sub(_PATH, "", name.strip().lower()), count=1)


def same_model(said_by: str, asked: str) -> bool:
    """Whether a message may get back what only its own model understands.

    A message that names no model is of the one that is asked.
    """
    return not said_by or not asked or canonical(said_by) == canonical(asked)


def lookup(name: str) -> ModelInfo:
    """What is known of a model; empty for an unknown one."""
    name = canonical(name).replace(".", "-") if "claude" in name else canonical(name)
    for beginnings, info in _TABLE:
        if name.startswith(beginnings):
            return info
    return ModelInfo()
