"""HTML in which foreign text can only ever be text.

``tag`` escapes every plain string that it is given; only what ``tag`` made goes in as
it stands. So nobody who builds a page can forget to escape.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

__all__ = ["Html", "joined", "plain", "tag", "text"]

_VOID = frozenset({"br", "hr", "img", "input", "meta", "wbr"})

# What moves a cursor, hides, or reorders other text: C0 and C1 controls but tab and newline,
# bidirectional controls (https://www.unicode.org/reports/tr9/), zero-width and tag characters,
# and what is no character at all. The joiners U+200C and U+200D stay: scripts and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\uffff\U000e0000-\U000e007f\ud800-\udfff]"
)


class Html(str):
    """Markup as it stands."""

    __slots__ = ()


def text(value: str) -> Html:
    """Foreign text as markup: escaped, and with everything in it visible."""
    if isinstance(value, Html):
        return value
    escaped = html.escape(value.replace("\r\n", "\n"), quote=False)
    return Html(_UNSEEN.sub(_mark, escaped))


def plain(value: str) -> str:
    """The same without markup, for an attribute or a title: not escaped yet."""
    return _UNSEEN.sub(lambda found: _name(found[0]), value.replace("\r\n", "\n"))


def tag(name: str, /, *children: str | None, **attributes: str | int | bool | None) -> Html:
    """``<name attributes>children</name>``; None and False are left out.

    Attributes are written ``class_`` and ``aria_label`` where Python wants it so.
    """
    given = "".join(
        _attribute(key, value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    inner = "".join(text(child) for child in children if child is not None)
    return Html(f"<{name}{given}>{inner}</{name}>")


def joined(parts: Iterable[Html]) -> Html:
    """One after the other."""
    return Html("".join(parts))


def _attribute(key: str, value: str | int | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(plain(str(value)))}"'


def _mark(found: re.Match[str]) -> str:
    return f'<span class="unseen">{_name(found[0])}</span>'


def _name(char: str) -> str:
    """``␛`` for the controls that have a picture of their own, else ``U+202E``."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"U+{code:04X}"
