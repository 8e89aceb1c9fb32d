"""Output that was meant for a terminal, as plain text."""

from __future__ import annotations

import re

__all__ = ["plain_text"]

# ECMA-48: control sequences; control strings (OSC, DCS, SOS, PM, APC) to their
# terminator; escape sequences of two or three characters.
_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
)
_STRUCK_OVER = r"[^\n\x08]\x08"
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f]"


def plain_text(data: bytes) -> str:
    """Escapes stripped, progress lines collapsed to their last state, invalid bytes marked."""
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = re.sub(_ESCAPES, "", text)
    if "\r" in text:
        # A carriage return goes back to the line's start: what follows overwrites it.
        text = "\n".join(
            line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line
            for line in text.split("\n")
        )
    if "\x08" in text:
        text = re.sub(_STRUCK_OVER, "", text)
    return re.sub(_CONTROLS, "", text)
