"""Colour for those who want it, and foreign text made harmless."""

from __future__ import annotations

import re

from claw.policy.display import visible

__all__ = ["Paint", "clip", "harmless", "human_seconds", "human_tokens", "one_line"]

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
# Everything that a terminal obeys instead of printing it, and what reorders text.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Paint:
    """Wraps text in SGR sequences, or does not."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, *styles: str) -> str:
        if not self.on or not text:
            return text
        codes = ";".join(_CODES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"


def harmless(text: str) -> str:
    """Prose as a terminal may get it: control characters are written out, the rest stays."""
    return _OBEYED.sub(lambda match: visible(match[0]), text.replace("\r\n", "\n"))


def one_line(text: str, width: int) -> str:
    """The first ``width`` characters of the text on one line, everything in it visible."""
    return clip(visible(" ".join(text[: 4 * width].split()), multiline=False), width)


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def human_seconds(seconds: float) -> str:
    """``3s``, ``2m 05s``, ``1h 02m``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def human_tokens(number: int) -> str:
    """``1 token``, ``950 tokens``, ``1.2k tokens``, ``3.4M tokens``."""
    if number == 1:
        return "1 token"
    if number < 1000:
        return f"{number} tokens"
    if number < 999_950:
        return f"{number / 1000:.1f}k tokens"
    return f"{number / 1_000_000:.1f}M tokens"
