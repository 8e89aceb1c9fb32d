"""Texts by which servers say that a request does not fit.

Collected from the public documentation and error reports of the providers; a
text alone decides nothing that its status or type already decides, and
quotations are taken out first, since they may be the user's own words.

The patterns are compiled by the first error, not at the start of the program.
"""

from __future__ import annotations

import re

__all__ = ["limit_tokens", "output_that_fits", "says_overflow", "without_quotations"]

_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "input_too_long",
        "model_max_prompt_tokens_exceeded",
        "request_too_large",
        "1261",  # Zhipu: prompt exceeds max length
    }
)

_OTHER_CODES = frozenset(
    {
        "billing_error",
        "insufficient_quota",
        "invalid_value",
        "rate_limit_error",
        "rate_limit_exceeded",
        "string_above_max_length",
    }
)

_CONTEXT = (
    r"(?:context[\s_-]?(?:window|length|size|limit)|(?:max(?:imum)?|model)\scontext"
    r"|maximum\s(?:allowed\s)?(?:input|prompt)\s(?:length|tokens)|n_ctx)"
)

_OVERFLOW = rf"""(?ix)
    (?:prompt|input|conversation)\ (?:is\ |was\ )?too\ (?:long|large)
    | (?:exceed\w*|longer\ than|larger\ than|greater\ than|too\ large\ for|too\ long\ for)
      [^.\n]{{0,100}}{_CONTEXT}
    | {_CONTEXT}[^.\n]{{0,60}}exceed
    | maximum\ (?:context|prompt)\ length
    | (?:prompt|input)\ token\ count[^.\n]{{0,60}}exceed
    | (?:model|input)\ token\ limit
    | prompt\ exceeds\ max\ length
    | contextwindowexceeded
    | total\ length\ of\ all\ messages\ is\ too\ long
    | range\ of\ input\ length\ should\ be
    | reduce\ the\ length\ of\ (?:the\ messages|the\ input|the\ prompt|either\ one)
    | number\ of\ (?:input\ )?tokens[^.\n]{{0,40}}exceeds
    | no\ user\ query\ found\ in\ messages
    """

_NOT_OVERFLOW = (
    r"(?i)per[ -]minute|per[ -]day|\btpm\b|\brpm\b|rate limit|throttl|quota|billing|extra usage"
    r"|budget_tokens|string too long"
)

_LIMITS = (
    r"(?i)> *(\d[\d,]*) maximum",
    r"(?i)exceed context limit: \d+ \+ \d+ > (\d+)",
    r"(?i)maximum (?:context|prompt) length (?:is|of) (\d[\d,]*)",
    r"(?i)maximum context length:? \(?(\d[\d,]*)",
    r"(?i)context (?:length|size|window) (?:is |of )?\(?(\d[\d,]*)",
    r"(?i)token limit: (\d[\d,]*)",
    r"(?i)exceeds? the limit of (\d[\d,]*)",
    r"(?i)maximum number of tokens allowed \((\d[\d,]*)\)",
    r"(?i)n_ctx\"?: *(\d[\d,]*)",
    r"(?i)(\d[\d,]*) maximum context length",
)

_SUM = r"(?i)input length and .?max_tokens.? exceed context limit: (\d+) \+ (\d+) > (\d+)"
_ROOM = r"(?is)max_(?:completion_)?tokens.{0,40}too large: \d+.{0,120}?\(\d+ > (\d+) - (\d+)\)"
_CEILINGS = (
    r"(?i)max_tokens: \d+ > (\d+), which is the maximum allowed",
    r"(?i)supports at most (\d+) (?:completion|output) tokens",
)

_WORTHWHILE = 1024
"""Fewer output tokens than this are no room to work in: better make room in the context."""

_QUOTATION = r"(?s)(?<!\w)(['\"])(?!max_(?:completion_)?tokens\1)(?:(?!\1(?!\w)).)*(?:\1(?!\w)|$)"


def without_quotations(text: str) -> str:
    """The text without what stands in quotation marks: it may be anybody's words."""
    return re.sub(_QUOTATION, "", text[:2000])


def says_overflow(codes: tuple[str, ...], text: str) -> bool:
    """Whether an error means that the request is longer than the context window."""
    if any(code in _CODES for code in codes):
        return True
    if any(code in _OTHER_CODES for code in codes) or re.search(_NOT_OVERFLOW, text):
        return False
    return re.search(_OVERFLOW, text) is not None


def output_that_fits(text: str) -> int | None:
    """The ``max_tokens`` that would be accepted, where the error is about that alone."""
    fits = None
    if found := re.search(_SUM, text):
        fits = int(found[3]) - int(found[1])
    elif found := re.search(_ROOM, text):
        fits = int(found[1]) - int(found[2])
    else:
        for pattern in _CEILINGS:
            if found := re.search(pattern, text):
                fits = int(found[1])
    return fits if fits is not None and fits >= _WORTHWHILE else None


def limit_tokens(text: str) -> int | None:
    """The context window, where the error names it."""
    for pattern in _LIMITS:
        if found := re.search(pattern, text):
            return int(found[1].replace(",", ""))
    return None
