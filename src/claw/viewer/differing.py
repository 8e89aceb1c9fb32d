"""Two texts side by side, with what differs marked: by lines, and in them by words.

Each difference is marked by a sign and an underline besides its colour. A page has a bound
for all the work of finding them; past it a text is marked from where it begins to differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

from claw.viewer.markup import Html, joined, tag

__all__ = ["LONGEST", "Differ"]

LONGEST = 20_000
"""Characters of one text that are shown, from shortly before the first difference."""
SHORT = 2_000
"""The same once the page holds ``MOST`` characters of them."""
MOST = 2_000_000
MOST_LINES = 600  # of one text
BEFORE = 400  # characters
NEAR = 3  # equal lines that stay before and after others
WORK = 4_000_000  # of a page: pairs of lines or words that are looked at
AT_ONCE = 400_000
ALIKE = 0.3  # words of two lines that are equal, for it to be worth to mark the others

_Block = tuple[bool, Sequence[str], Sequence[str]]
"""Whether both are equal, and what stands on either side."""


class Differ:
    """Counts what a page holds. ``clean`` takes the secrets out of a text."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._work = WORK
        self._room = MOST

    def sides(self, old: str | None, new: str | None) -> Html:
        """A grid of two columns, recorded and replayed; None is nothing at all."""
        if old is None or new is None:
            return _row(self._whole(old, "-"), self._whole(new, "+"))
        before, old, new, (old_rest, new_rest) = self._around(self._clean(old), self._clean(new))
        blocks = self._blocks(old.split("\n"), new.split("\n"))
        rows = [_same(f"⋯ {before:,} characters before are the same")] if before else []
        rows += self._rows(blocks)
        if old_rest or new_rest:
            rows.append(_row(_more(old_rest), _more(new_rest)))
        return joined(rows)

    def _whole(self, text: str | None, sign: str) -> Html:
        if text is None:
            return tag("p", "nothing", class_="nothing")
        text = self._clean(text)
        kept = _beginning(text[: self._take(len(text))])
        lines = [(sign, tag("span", line)) for line in kept.split("\n")]
        return joined([_lines(lines), _more(len(text) - len(kept))])

    def _around(self, old: str, new: str) -> tuple[int, str, str, tuple[int, int]]:
        """Both cut to what lies around their first difference, and what was cut off."""
        longest = self._take(max(len(old), len(new)))
        begin = 0
        if any(len(text) > longest or text.count("\n") >= MOST_LINES for text in (old, new)):
            begin = max(0, _common(old, new) - BEFORE)
            begin = old.find("\n", begin, begin + BEFORE) + 1 or begin
        shown = [_beginning(text[begin : begin + longest]) for text in (old, new)]
        rest = len(old) - begin - len(shown[0]), len(new) - begin - len(shown[1])
        return begin, shown[0], shown[1], (max(0, rest[0]), max(0, rest[1]))

    def _take(self, wanted: int) -> int:
        taken = min(wanted, LONGEST if self._room > 0 else SHORT)
        self._room -= 2 * taken
        return taken

    def _blocks(self, old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
        """In order, equal ones and others in turn."""
        first = 0
        while first < min(len(old), len(new)) and old[first] == new[first]:
            first += 1
        last = 0
        while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
            last += 1
        if first:
            yield True, old[:first], new[:first]
        yield from self._middle(old[first : len(old) - last], new[first : len(new) - last])
        if last:
            yield True, old[-last:], new[-last:]

    def _middle(self, old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
        work = len(old) * len(new)
        if not work or work > min(AT_ONCE, self._work):
            if old or new:
                yield False, old, new
            return
        self._work -= work
        for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            yield what == "equal", old[a:b], new[c:d]

    def _rows(self, blocks: Iterator[_Block]) -> Iterator[Html]:
        found = [*blocks]
        for at, (equal, old, new) in enumerate(found):
            if not equal:
                yield self._changed(old, new)
                continue
            head = old[:NEAR] if at > 0 else ()
            tail = old[-NEAR:] if at < len(found) - 1 else ()
            if len(old) <= len(head) + len(tail) + 1:
                yield _equal(old)
                continue
            yield _equal(head)
            yield _same(f"⋯ {len(old) - len(head) - len(tail):,} lines are the same")
            yield _equal(tail)

    def _changed(self, old: Sequence[str], new: Sequence[str]) -> Html:
        left: list[tuple[str, Html]] = []
        right: list[tuple[str, Html]] = []
        for before, after in zip(old, new, strict=False):
            marked = self._words(before, after)
            left.append(("-", marked[0]))
            right.append(("+", marked[1]))
        left += [("-", _mark("del", line)) for line in old[len(left) :]]
        right += [("+", _mark("ins", line)) for line in new[len(right) :]]
        return _row(_lines(left), _lines(right))

    def _words(self, old: str, new: str) -> tuple[Html, Html]:
        pattern = r"\w+|\s+|[^\w\s]"
        blocks = [*self._blocks(re.findall(pattern, old), re.findall(pattern, new))]
        equal = sum(len("".join(before).strip()) for same, before, _ in blocks if same)
        if equal < ALIKE * min(len(old), len(new)):
            return _mark("del", old), _mark("ins", new)
        left, right = [], []
        for same, before, after in blocks:
            left.append(tag("span", "".join(before)) if same else _mark("del", "".join(before)))
            right.append(tag("span", "".join(after)) if same else _mark("ins", "".join(after)))
        return joined(left), joined(right)


def _beginning(text: str) -> str:
    """As many lines as are shown."""
    lines = text.split("\n", MOST_LINES)
    return text if len(lines) <= MOST_LINES else text[: -len(lines[-1]) - 1]


def _common(old: str, new: str) -> int:
    """How many characters are the same at the beginning."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _mark(name: str, text: str) -> Html:
    return tag(name, text) if text else Html()


def _equal(lines: Sequence[str]) -> Html:
    if not lines:
        return Html()
    both = _lines([(" ", tag("span", line)) for line in lines])
    return tag("div", both, both, class_="pair equal")


def _lines(lines: Sequence[tuple[str, Html]]) -> Html:
    """Each with its sign before it; nothing where there are none."""
    if not lines:
        return tag("p", class_="blank")
    kinds = {"+": "line added", "-": "line removed", " ": "line"}
    shown = (
        tag("span", tag("span", sign, class_="sign"), line, "\n", class_=kinds[sign])
        for sign, line in lines
    )
    return tag("pre", *shown)


def _row(left: Html, right: Html) -> Html:
    return tag("div", left, right, class_="pair")


def _same(text: str) -> Html:
    return tag("p", text, class_="skipped")


def _more(left_out: int) -> Html:
    if not left_out:
        return Html()
    return tag("p", f"… {left_out:,} more characters", class_="more")
