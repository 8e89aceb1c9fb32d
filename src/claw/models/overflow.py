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
    | longer\ than\ the\ maximum\ model\ length
    | when\ context\ the\ overflows
    | tokens\ in\ request\ more\ than\ max\ tokens
    | too\ many\ tokens:\ size\ limit\ exceeded
    | `inputs`\ (?:tokens\ \+\ `max_new_tokens`\ must\ be\ <=|must\ have\ less\ than)
    | (?:超过|超出|大于)[^。\n]{{0,20}}(?:上下文|最大输入|最大长度)
    | (?:上下文|输入)[^。\n]{{0,12}}(?:过长|超长|超限)
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
_PARTS = (
    r"(?is)maximum context length (?:is|of) (\d+) tokens.{0,80}?"
    r"\(([^()]*?)(\d+) (?:in|for) the (?:completion|output)\)"
)
_PARTS_OF_VLLM = (
    r"(?is)maximum context length is (\d+) tokens.{0,40}?requested (\d+) output tokens "
    r"and your prompt contains (at least )?(\d+) input tokens"
)
_CEILINGS = (
    r"(?i)max_tokens: \d+ > (\d+), which is the maximum allowed",
    r"(?i)supports at most (\d+) (?:completion|output) tokens",
)

_WORTHWHILE = 1024
"""Fewer output tokens than this are no room to work in: better make room in the context."""

_FULL = 0.9
"""Of a window that input takes: what is left is soon gone, whatever the output limit."""

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
    elif found := re.search(_PARTS, text):
        window, sent = int(found[1]), sum(map(int, re.findall(r"\d+", found[2])))
        fits = window - sent if sent < _FULL * window else None
    elif found := re.search(_PARTS_OF_VLLM, text):
        window, asked, sent = int(found[1]), int(found[2]), int(found[4])
        # It stops counting where it has seen enough: how much would fit is not known.
        room = asked // 2 if found[3] else window - sent
        fits = min(asked, room) if sent < _FULL * window else None
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
