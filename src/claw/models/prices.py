"""List prices of models, and what a request costs by them.

US dollars per million tokens, standard processing, as looked up on 30 November 2026:
Anthropic's and OpenAI's from the providers' documentation (pricing and model pages)
and from dated transcriptions of it (release notes of cost meters that name the page
and the day); Mistral's, Moonshot's and xAI's older ones from such
transcriptions only. A cache write is the one that lasts five minutes (OpenAI: thirty).

Not in here, and so unknown: what could not be found for certain; prices of an
introductory period (Gemini 3's Flash, GPT-5.6 Sol) or by the hour (DeepSeek); names that
move from one model to the next (``mistral-large-latest``); open models that every host
sells at its own price (gpt-oss). Nor does a list price hold where somebody else sells a
model, or serves one of the same name: whoever asks says what is sold at list price.
"""

from __future__ import annotations

import msgspec

from claw.models.catalog import canonical
from claw.types.usage import Usage

__all__ = ["Price", "Rates", "cost", "price_of"]

MILLION = 1_000_000


class Rates(msgspec.Struct, frozen=True):
    """US dollars per million tokens. Who sells no cache charges its input as input."""

    input: float
    output: float
    cache_read: float
    cache_write: float


class Price(msgspec.Struct, frozen=True):
    """``long`` holds for the whole request where its input is above ``long_above`` tokens."""

    rates: Rates
    long_above: int = 0
    long: Rates | None = None


def _claude(input: float, output: float, cache_read: float) -> Price:
    return Price(Rates(input, output, cache_read, input * 1.25))


def _gpt(input: float, output: float, cache_read: float) -> Price:
    """Of models that write to the cache for nothing, and cost the same at any length."""
    return Price(Rates(input, output, cache_read, input))


def _long_gpt(input: float, output: float, cache_read: float, cache_write: float) -> Price:
    """Above 272,000 tokens of input: twice the input's prices, 1.5 times the output's."""
    return Price(
        Rates(input, output, cache_read, cache_write),
        272_000,
        Rates(input * 2, output * 1.5, cache_read * 2, cache_write * 2),
    )


def _twice(input: float, output: float, cache_read: float, above: int) -> Price:
    """Everything costs twice as much for a long request."""
    return Price(
        Rates(input, output, cache_read, input),
        above,
        Rates(input * 2, output * 2, cache_read * 2, input * 2),
    )


_PRICES = {
    "claude-fable-5-2": _claude(8, 40, 0.20),
    "claude-fable-5-1": _claude(10, 50, 0.25),
    "claude-fable-5": _claude(10, 50, 1),
    "claude-opus-5-5": _claude(4, 20, 0.20),
    "claude-opus-5": _claude(5, 25, 0.50),
    "claude-opus-4-8": _claude(5, 25, 0.50),
    "claude-opus-4-7": _claude(5, 25, 0.50),
    "claude-opus-4-6": _claude(5, 25, 0.50),
    "claude-opus-4-5": _claude(5, 25, 0.50),
    "claude-opus-4-1": _claude(15, 75, 1.50),
    "claude-sonnet-5-5": _claude(2, 10, 0.10),
    "claude-sonnet-5": _claude(2, 10, 0.20),
    "claude-sonnet-4-6": _claude(3, 15, 0.30),
    "claude-sonnet-4-5": _claude(3, 15, 0.30),
    "claude-haiku-5-5": Price(
        Rates(0.10, 0.50, 0.01, 0.125), 100_000, Rates(0.50, 2.50, 0.05, 0.625)
    ),
    "claude-haiku-4-5": _claude(1, 5, 0.10),
    "gpt-6.2-sol": _long_gpt(2, 10, 0.10, 2.50),
    "gpt-6.1-sol": _long_gpt(2, 10, 0.10, 2.50),
    "gpt-6-astra": _long_gpt(10, 50, 1, 12.50),
    "gpt-6-sol": _long_gpt(2, 10, 0.20, 2.50),
    "gpt-6-luna": _long_gpt(0.10, 0.50, 0.01, 0.125),
    "gpt-5.6-terra": _long_gpt(2, 12, 0.20, 2.50),
    "gpt-5.6-luna": _long_gpt(0.20, 1.20, 0.02, 0.25),
    "gpt-5.5": _long_gpt(5, 30, 0.50, 5),
    "gpt-5.4": _long_gpt(2.50, 15, 0.25, 2.50),
    "gpt-5.4-mini": _gpt(0.75, 4.50, 0.075),
    "gpt-5.2": _gpt(1.75, 14, 0.175),
    "gpt-5.1": _gpt(1.25, 10, 0.125),
    "gpt-5": _gpt(1.25, 10, 0.125),
    "gpt-5-mini": _gpt(0.25, 2, 0.025),
    "gpt-5-nano": _gpt(0.05, 0.40, 0.005),
    "gpt-4.1": _gpt(2, 8, 0.50),
    "gpt-4.1-mini": _gpt(0.40, 1.60, 0.10),
    "gpt-4.1-nano": _gpt(0.10, 0.40, 0.025),
    "gpt-4o": _gpt(2.50, 10, 1.25),
    "gpt-4o-mini": _gpt(0.15, 0.60, 0.075),
    "o3": _gpt(2, 8, 0.50),
    "o4-mini": _gpt(1.10, 4.40, 0.275),
    "grok-4.7": _twice(2, 6, 0.50, 199_999),
    "grok-4.6": _twice(2, 6, 0.50, 199_999),
    "grok-4": _twice(3, 15, 0.75, 128_000),
    "kimi-k3": Price(Rates(3, 15, 0.30, 3)),
    "mistral-large-2512": Price(Rates(0.50, 1.50, 0.50, 0.50)),
    "devstral-2512": Price(Rates(0.40, 2, 0.40, 0.40)),
}
"""By canonical name, and only by the whole of it: a variant may cost ten times as much."""


def price_of(model: str) -> Price | None:
    """What a model costs, None where that is not known."""
    name = canonical(model)
    return _PRICES.get(name.replace(".", "-") if "claude" in name else name)


def cost(usage: Usage, model: str, sells: tuple[str, ...] = ("",)) -> float | None:
    """US dollars for one request, None where the price is unknown.

    ``sells`` are beginnings of the names that cost their list price where it was made.
    """
    price = price_of(model) if canonical(model).startswith(sells) else None
    if price is None:
        return None
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    rates = price.rates
    if price.long is not None and usage.input_tokens + read + written > price.long_above:
        rates = price.long
    dollars = (
        usage.input_tokens * rates.input
        + usage.output_tokens * rates.output
        + read * rates.cache_read
        + written * rates.cache_write
    )
    return dollars / MILLION
