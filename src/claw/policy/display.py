"""``visible``: foreign text as characters that a terminal can only print.

Nothing is left out: what could move the cursor, change colours, hide, reorder or
imitate other text is written as an escape, padding as its length.

Sources: ECMA-48 for C0, C1 and escape sequences; Unicode general categories;
https://www.unicode.org/reports/tr9/ for the bidirectional controls.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["visible"]

SUSPICIOUS = re.compile(r"[^\n\t\x20-\x7e]")
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Letters and marks that print as nothing, or across the letter before them; and
# full-width and foreign forms of the characters that separate commands.
LOOKALIKES = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
            *range(0x0334, 0x0339),
            *range(0x20D2, 0x20F1),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE0E),
            *range(0xE0100, 0xE01F0),
            *(0x037E, 0xFF04, 0xFF06, 0xFF1B, 0xFF1C, 0xFF1E, 0xFF40, 0xFF5C),
        ),
    )
)
MARKS_IN_A_ROW = 2
WIDEST_GAP = 20  # columns
WIDEST_INDENT = 40
TAB = 8
BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){4,}")
GAP = re.compile(r"(^)?[ \t]{3,}", re.MULTILINE)


def visible(text: str, *, multiline: bool = True) -> str:
    """The text with everything visible; ``multiline`` keeps tabs and newlines.

    Gaps of more than 20 columns (40 where a line begins) and more than three blank
    lines become ``<N spaces>`` and ``<N blank lines>``.
    """
    if SUSPICIOUS.search(text):
        text = _escaped(text)
    if not multiline:
        text = text.replace("\n", r"\n").replace("\t", r"\t")
    text = BLANK_LINES.sub(lambda m: f"\n<{m[0].count(chr(10)) - 1} blank lines>\n", text)
    return GAP.sub(_gap, text)


def _escaped(text: str) -> str:
    out, marks = [], 0
    for char in text:
        if char in "\n\t" or " " <= char <= "~":
            marks = 0
            out.append(char)
            continue
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        hidden = category in HIDDEN_CATEGORIES or char in LOOKALIKES or marks > MARKS_IN_A_ROW
        out.append(_escape(char) if hidden else char)
    return "".join(out)


def _escape(char: str) -> str:
    code = ord(char)
    if char == "\0":
        return r"\0"
    if char == "\r":
        return r"\r"
    if code < 0xA0:
        return rf"\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as Python keeps it
        return rf"\x{code - 0xDC00:02x}"
    return f"<U+{code:04X}>"


def _gap(match: re.Match[str]) -> str:
    width = sum(TAB if char == "\t" else 1 for char in match[0])
    if width <= (WIDEST_GAP if match[1] is None else WIDEST_INDENT):
        return match[0]
    tabs = match[0].count("\t")
    what = f"{tabs} tabs" if tabs == len(match[0]) else f"{len(match[0])} spaces"
    return f"<{what}>"
