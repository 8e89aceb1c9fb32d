"""Markdown as HTML, for what people and models write; HTML in it stays text.

Headings, paragraphs, lists, quotes, fenced code, tables, rules; emphasis, code and
links. Nothing is loaded: a picture becomes a link. Links lead to http, https and mail
only. All patterns have bounds, so that no text takes longer than its length deserves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from claw.viewer.markup import Html, joined, plain, tag, text

__all__ = ["markdown"]

_DEEPEST = 6
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r"( {0,12})([-*+]|[0-9]{1,9}[.)])([ \t]{1,4})(?=\S)")
_DASHES = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_INLINE = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>.{1,500}?)(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\[\]]{0,300})\]\((?P<target>[^()\s]{1,1000}(?:\([^()\s]{0,200}\))?)\)"
    r"|<(?P<bare>https?://[^\s<>]{1,1000})>"
    r"|(?P<url>https?://[^\s<>\"'`\])]{1,1000})"
    r"|\*\*(?=\S)(?P<strong>.{1,300}?)(?<=\S)\*\*"
    r"|(?<!\*)\*(?=[^\s*])(?P<stressed>[^*]{1,300}?)(?<=\S)\*(?!\*)"
    r"|(?<!\w)_(?=[^\s_])(?P<slanted>[^_]{1,300}?)(?<=\S)_(?!\w)"
    r"|~~(?=\S)(?P<struck>.{1,300}?)(?<=\S)~~",
    re.DOTALL,
)
_TARGET = re.compile(r"(?:https?://[^\s]|mailto:[^\s])", re.IGNORECASE)
_AROUND = {"strong": "strong", "stressed": "em", "slanted": "em", "struck": "s"}


def markdown(source: str) -> Html:
    """The text as markup."""
    return _blocks(source.replace("\r\n", "\n").split("\n"), 0)


def _blocks(lines: Sequence[str], depth: int) -> Html:
    out: list[Html] = []
    at = 0
    while at < len(lines):
        made, at = _block(lines, at, depth)
        out.append(made)
    return joined(out)


def _block(lines: Sequence[str], at: int, depth: int) -> tuple[Html, int]:
    """The block that begins in line ``at``, and the line after it."""
    line = lines[at]
    if not line.strip():
        return Html(), at + 1
    if fence := _FENCE.match(line):
        return _code(lines, at, fence[1])
    if heading := _HEADING.match(line):
        level = min(6, len(heading[1]) + 3)  # below those of the page
        return tag(f"h{level}", _inline(heading[2].rstrip().rstrip("#").rstrip())), at + 1
    if _RULE.match(line):
        return tag("hr"), at + 1
    if depth < _DEEPEST:
        if _QUOTE.match(line):
            end = _while(lines, at, lambda each: bool(_QUOTE.match(each)))
            inner = [_QUOTE.sub("", each, count=1) for each in lines[at:end]]
            return tag("blockquote", _blocks(inner, depth + 1)), end
        if _ITEM.match(line):
            return _list(lines, at, depth)
    if (
        "|" in line
        and at + 1 < len(lines)
        and "-" in lines[at + 1]
        and _DASHES.match(lines[at + 1])
    ):
        return _table(lines, at)
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _begins(lines[end], depth):
        end += 1
    return tag("p", _inline("\n".join(lines[at:end]))), end


def _begins(line: str, depth: int) -> bool:
    """Claims that a line ends the paragraph before it."""
    starts = (_FENCE, _HEADING, _RULE) + ((_QUOTE, _ITEM) if depth < _DEEPEST else ())
    return any(pattern.match(line) for pattern in starts)


def _while(lines: Sequence[str], at: int, holds: Callable[[str], bool]) -> int:
    while at < len(lines) and holds(lines[at]):
        at += 1
    return at


def _code(lines: Sequence[str], at: int, fence: str) -> tuple[Html, int]:
    """To the closing fence, or to the end where none follows."""
    end = at + 1
    while end < len(lines) and not (
        lines[end].strip().startswith(fence) and not lines[end].strip(f" \t{fence[0]}")
    ):
        end += 1
    code = "\n".join(lines[at + 1 : end])
    return tag("pre", tag("code", code)), end + 1


def _list(lines: Sequence[str], at: int, depth: int) -> tuple[Html, int]:
    first = _ITEM.match(lines[at])
    assert first is not None
    ordered = first[2][0].isdigit()
    items: list[Html] = []
    while at < len(lines) and (item := _ITEM.match(lines[at])):
        if len(item[1]) > len(first[1]) + 1 or item[2][0].isdigit() != ordered:
            break
        width = len(item[0])
        inner = [lines[at][width:]]
        at += 1
        while at < len(lines) and _belongs(lines, at, len(item[1]) + 2, depth):
            inner.append(_outdented(lines[at], width))
            at += 1
        items.append(tag("li", _item(inner, depth)))
    start = first[2][:-1] if ordered and first[2][:-1] != "1" else None
    return tag("ol" if ordered else "ul", *items, start=start), at


def _belongs(lines: Sequence[str], at: int, indent: int, depth: int) -> bool:
    """Claims that a line goes on with the item above: indented, or the rest of its paragraph."""
    line = lines[at]
    if not line.strip():
        return at + 1 < len(lines) and lines[at + 1].startswith(" " * indent)
    return line.startswith(" " * indent) or (
        bool(lines[at - 1].strip()) and not _begins(line, depth)
    )


def _outdented(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip(" "))) :]


def _item(lines: list[str], depth: int) -> Html:
    box = re.match(r"\[([ xX])\][ \t]+", lines[0])
    mark = Html() if box is None else text("☐ " if box[1] == " " else "☑ ")
    if box is not None:
        lines = [lines[0][box.end() :], *lines[1:]]
    if not any(_begins(line, depth) or not line.strip() for line in lines):
        return joined([mark, _inline("\n".join(lines))])  # a short item: no paragraph of its own
    return joined([mark, _blocks(lines, depth + 1)])


def _table(lines: Sequence[str], at: int) -> tuple[Html, int]:
    end = _while(lines, at + 2, lambda line: "|" in line)
    head = tag("tr", *(tag("th", _inline(cell), scope="col") for cell in _cells(lines[at])))
    rows = [
        tag("tr", *(tag("td", _inline(c)) for c in _cells(line))) for line in lines[at + 2 : end]
    ]
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", table, class_="wide"), end


def _cells(line: str) -> list[str]:
    row = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row)]


def _inline(source: str, depth: int = 0) -> Html:
    if depth > _DEEPEST:
        return text(source)
    out: list[Html] = []
    done = 0
    for found in _INLINE.finditer(source):
        out += (text(source[done : found.start()]), _span(found, depth))
        done = found.end()
    return joined([*out, text(source[done:])])


def _span(found: re.Match[str], depth: int) -> Html:
    kind = found.lastgroup or ""
    match kind:
        case "escaped":
            return text(found[kind])
        case "code":
            code = found[kind]
            padded = code[0] == code[-1] == " " and code.strip() != ""
            return tag("code", code[1:-1] if padded else code)
        case "target":
            label = found["label"] or found["target"]
            return _link(found["target"], text(label)) or text(found[0])
        case "bare":
            return _link(found[kind], text(found[kind])) or text(found[0])
        case "url":
            url = found[kind].rstrip(".,:;!?*_")
            return joined([_link(url, text(url)) or text(url), text(found[kind][len(url) :])])
        case _:
            return tag(_AROUND[kind], _inline(found[kind], depth + 1))


def _link(target: str, label: Html) -> Html | None:
    """None for a scheme that a page should not lead to. Where it leads is shown on hovering."""
    if not _TARGET.match(target) or plain(target) != target:
        return None
    return tag("a", label, href=target, title=target, rel="noopener noreferrer", target="_blank")
