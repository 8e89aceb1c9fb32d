"""Token counts and what they tell of the provider's prompt cache."""

from __future__ import annotations

import msgspec

__all__ = ["PromptCacheEvent", "Usage"]


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one request, or a sum of several, in Anthropic's convention.

    ``input_tokens`` excludes what was read from or written to the prompt cache.
    ``estimated`` says that the server reported nothing and claw counted itself.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    estimated: bool = False

    @property
    def context_tokens(self) -> int:
        """What this exchange occupies of the window: all input figures and the output.

        Meaningful for a single request only; a sum of requests counts the
        history once for each of them.
        """
        return (
            self.input_tokens
            + self.cache_read_input_tokens
            + self.cache_creation_input_tokens
            + self.output_tokens
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            self.estimated or other.estimated,
        )


class PromptCacheEvent(msgspec.Struct, frozen=True):
    """The prompt cache answered with at least 2,000 tokens less than the time before.

    ``unexpected`` only where nothing on our side explains it; otherwise
    ``reason`` names what changed.
    """

    unexpected: bool
    reason: str
    previous_cache_read_input_tokens: int
    current_cache_read_input_tokens: int
    token_drop: int
