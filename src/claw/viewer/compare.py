"""The page of a replay: what was recorded on the left, what was replayed on the right.

What is the same is folded away. What differs says in which fields, and shows both values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from claw.types.entries import PromptInstalled
from claw.types.usage import Usage
from claw.viewer.differing import Differ
from claw.viewer.items import anchor, badge, details, icon, item, time
from claw.viewer.markup import Html, joined, tag
from claw.viewer.shell import document, keys, toolbar
from claw.viewer.sides import Comparison, Pair, Row, Stage, State, compared, kind
from claw.viewer.story import Call
from claw.viewer.texts import Texts

__all__ = ["Verdict", "comparison"]

T = TypeVar("T")

MOST_COLUMNS = 400
MOST_FIELDS = 12  # of one row that are shown
AROUND = 1  # rows that are the same and stay in sight, before and after one that differs
_ICONS: dict[State, str] = {"same": "=", "follows": "≈", "differs": "≠", "unreached": "◌"}
_WORDS: dict[State, str] = {
    "same": "same",
    "follows": "follows from what differs before",
    "differs": "differs",
    "unreached": "not replayed",
}
_BLOBS = ("system", "tools", "rules", "hooks", "instructions")
_DIGESTS = {
    "digests.system": "The system prompt of the request is another one.",
    "digests.tools": "The tools that were offered with the request are others.",
    "digests.messages": (
        "The conversation that was sent is another one, though no entry before differs: a text of "
        "the recording was changed since, or this claw builds its requests in another way."
    ),
    "digests.sampling": "The model, its limit or its effort in the request are others.",
}


class Verdict(msgspec.Struct, frozen=True):
    """What came of the replay. ``first`` names the first difference, blank where there is none.

    ``expected`` and ``actual`` are its values. ``live`` are the parts that were today's,
    ``stale`` those that have changed since. ``stopped``: nothing was replayed after ``first``.
    ``edited`` is the first line of the recording that was changed under its checksum.
    """

    turns: int
    steps: int
    live: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    ended_early: bool = False
    edited: int | None = None
    stopped: bool = False
    first: str = ""
    expected: str = ""
    actual: str = ""


def comparison(
    pairs: Sequence[Pair],
    verdict: Verdict,
    *,
    clean: Callable[[str], str],
    blob: Callable[[str], bytes | None],
    price: Callable[[Usage, str], float | None],
) -> str:
    """The whole document. ``clean``, ``blob`` and ``price`` are those of ``fold``."""
    found = compared(pairs, clean=clean, blob=blob, price=price)
    drawn = _Drawn(found, Texts(clean, blob), Differ(clean))
    title = found.session.title or f"session {found.session.id}"
    return document(
        f"replay of {title}",
        tag("a", "To the comparison", href="#timeline", class_="skip"),
        _header(found, verdict, title, pairs, clean),
        toolbar("comparison"),
        _strip(found, drawn.anchors),
        tag("div", drawn.contents(), drawn.main(), class_="columns"),
        keys(("j / k", "next, previous difference"), ("o, Enter", "open or close what it shows")),
        styles=("page.css", "compare.css"),
    )


# -- the head of the page ------------------------------------------------------------------


def _header(
    found: Comparison,
    verdict: Verdict,
    title: str,
    pairs: Sequence[Pair],
    clean: Callable[[str], str],
) -> Html:
    session = found.session
    facts = (
        ("session", session.id),
        ("directory", session.cwd),
        ("recorded", time(session.created)),
        ("claw", session.version),
        ("as of today", ", ".join(verdict.live) or "nothing: all was lent from the recording"),
    )
    listed = [tag("div", tag("dt", n), tag("dd", tag("bdi", v))) for n, v in facts if v]
    return tag(
        "header",
        tag("h1", tag("small", "Replay of"), " ", tag("bdi", title)),
        _verdict(verdict, found, clean),
        tag("dl", *listed, class_="facts"),
        *(tag("p", icon("•"), note, class_="note") for note in _remarks(verdict)),
        tag("dl", *_totals(verdict, found, pairs), class_="totals", aria_label="Totals"),
    )


def _verdict(verdict: Verdict, found: Comparison, clean: Callable[[str], str]) -> Html:
    if not verdict.first:
        return tag("p", icon("="), "The same as the recording", class_="verdict good")
    old, new = clean(verdict.expected), clean(verdict.actual)
    short = 0 < len(old + new) <= 120 and "\n" not in old + new
    values = [": ", tag("del", old), " → ", tag("ins", new)] if short else []
    where = tag("bdi", clean(verdict.first))
    if any(stage.state == "differs" for stage in found.stages):
        where = tag("a", where, href="#difference-1")
    return tag(
        "div",
        tag("p", icon("≠"), "Differs from the recording"),
        tag("p", "First at ", where, *values, class_="first"),
        class_="verdict bad",
    )


def _remarks(verdict: Verdict) -> Iterator[Html]:
    if verdict.stopped:
        flag = tag("code", "--on-divergence continue")
        yield tag("span", "The replay stopped there; ", flag, " goes on, and shows what follows.")
    if verdict.ended_early:
        yield tag(
            "span", "The recording ends in the middle of a turn; it was replayed up to there."
        )
    if verdict.edited is not None:
        yield tag(
            "span", f"Line {verdict.edited} of the recording was changed after it was written."
        )
    for part in verdict.stale:
        flag = tag("code", f"--live {part}")
        yield tag("span", f"Stale: {part} changed since and was not judged; ", flag, " does so.")


def _totals(verdict: Verdict, found: Comparison, pairs: Sequence[Pair]) -> Iterator[Html]:
    counts = Counter(_count_as(pair) for pair in pairs)
    follow = sum(row.state == "follows" for stage in found.stages for row in stage.rows)
    rows = (
        ("turns replayed", verdict.turns, ""),
        ("steps replayed", verdict.steps, ""),
        ("entries the same", counts["same"], ""),
        ("entries that differ", counts["differs"], f"{follow:,} only follow" if follow else ""),
        ("only recorded", counts["recorded"], ""),
        ("only replayed", counts["replayed"], ""),
        ("not replayed", counts["unreached"], ""),
    )
    for name, value, more in rows:
        detail = tag("small", more) if more else None
        yield tag("div", tag("dt", name), tag("dd", f"{value:,}", detail))


def _count_as(pair: Pair) -> str:
    if not pair.reached:
        return "unreached"
    if pair.made is None:
        return "recorded"
    if pair.recorded is None:
        return "replayed"
    return "differs" if pair.fields else "same"


def _strip(found: Comparison, anchors: dict[tuple[int, int], str]) -> Html:
    """A column for each step, or for a few where there are many; the tallest differ."""
    stages = [stage for stage in found.stages if stage.step or stage.state == "differs"]
    if not stages:
        return Html()
    width = -(-len(stages) // MOST_COLUMNS)
    shared = [stages[n : n + width] for n in range(0, len(stages), width)]
    turns = [column[0].turn for column in shared]
    columns = (
        _column(column, anchors, begins=n > 0 and turns[n - 1] != turns[n])
        for n, column in enumerate(shared)
    )
    states = {stage.state for stage in stages}
    legend = (tag("span", _WORDS[s], class_=f"key {s}") for s in _ICONS if s in states)
    steps = sum(stage.step > 0 for stage in stages)
    what = f"{_count(len(found.turns), 'turn')}, {_count(steps, 'step')}"
    return tag(
        "section",
        tag("div", tag("h2", "Steps"), *legend, tag("span", what, class_="dim"), class_="heading"),
        tag("ol", *columns, class_="strip"),
        class_="steps",
        aria_label="All steps, with those that differ",
    )


def _column(stages: Sequence[Stage], anchors: dict[tuple[int, int], str], *, begins: bool) -> Html:
    order: tuple[State, ...] = ("differs", "unreached", "follows", "same")
    shown = min(stages, key=lambda stage: order.index(stage.state))
    label = f"{_name(shown)}: {_WORDS[shown.state]}"
    link = tag(
        "a", href=f"#{anchors[shown.turn, shown.step]}", title=label, aria_label=label, tabindex=-1
    )
    return tag("li", link, class_=f"{shown.state} begins" if begins else shown.state)


def _breakable(name: str) -> Html:
    """A field's name that goes to a new line after a point rather than anywhere."""
    first, *rest = name.split(".")
    return joined([tag("span", first), *(tag("span", tag("wbr"), f".{part}") for part in rest)])


def _name(stage: Stage) -> str:
    turn = _turn_name([stage.number])
    return f"{turn}, step {stage.step}" if stage.step else turn


# -- both sides ----------------------------------------------------------------------------


class _Drawn:
    """The rows as markup; differences are numbered as they come."""

    def __init__(self, found: Comparison, texts: Texts, differ: Differ) -> None:
        self._found, self._texts, self._differ = found, texts, differ
        self.anchors = {
            (stage.turn, stage.step): f"turn-{stage.turn}-step-{stage.step}"
            for stage in found.stages
        }
        self._numbers = {
            id(row): n
            for n, row in enumerate(
                (row for stage in found.stages for row in stage.rows if row.state == "differs"), 1
            )
        }

    def contents(self) -> Html | None:
        if not self._numbers:
            return None
        entries = (
            tag(
                "li",
                tag(
                    "a",
                    tag("span", f"{stage.number}.{stage.step}", class_="number"),
                    " ",
                    tag("span", tag("bdi", _breakable(self._headline(row))), self._about(row)),
                    href=f"#difference-{self._numbers[id(row)]}",
                ),
            )
            for stage in self._found.stages
            for row in stage.rows
            if row.state == "differs"
        )
        return tag("nav", tag("h2", "Differences"), tag("ol", *entries), aria_label="Differences")

    def main(self) -> Html:
        turns = self._found.turns
        runs = _runs(turns, lambda turn: _foldable({stage.state for stage in turn}))
        parts: list[Html] = []
        for state, group in runs:
            shown = [self._turn(turn, folded=state is not None) for turn in group]
            count = sum(stage.entries for turn in group for stage in turn)
            label = _turn_name([turn[0].number for turn in group]).capitalize()
            parts += [_run(state, label, count, shown)] if state else shown
        sides = ("Recorded", "Replayed") if self._numbers else ("Recorded, and replayed alike",)
        heads = (tag("span", side) for side in sides)
        return tag(
            "main",
            tag("div", *heads, class_="heads", aria_hidden="true"),
            *parts,
            id="timeline",
            tabindex=-1,
            data_stops=".differs[id]",
        )

    def _turn(self, stages: Sequence[Stage], *, folded: bool) -> Html:
        """``folded``: the turn itself is folded away, and its steps need not be, too."""
        number, name = stages[0].turn, _turn_name([stages[0].number])
        parts: list[Html] = []
        for state, group in _runs(
            stages, lambda s: None if folded or not s.step else _foldable({s.state})
        ):
            shown = [self._stage(stage) for stage in group]
            count = sum(stage.entries for stage in group)
            label = _range("step", [stage.step for stage in group]).capitalize()
            parts += [_run(state, label, count, shown)] if state else shown
        title = tag("h2", name.capitalize(), id=f"turn-{number}-title")
        return tag(
            "section",
            tag("div", title, anchor(self.anchors[number, stages[0].step], name),
                class_="heading"),
            *parts,
            class_="turn",
            aria_labelledby=f"turn-{number}-title",
        )  # fmt: skip

    def _stage(self, stage: Stage) -> Html:
        rows = joined(self._shown(stage.rows))
        where = self.anchors[stage.turn, stage.step]
        if not stage.step:
            return tag("div", rows, class_="opening", id=where)
        heading = tag(
            "div",
            tag("h3", f"Step {stage.step}"),
            tag("span", stage.model, class_="dim"),
            anchor(where, f"step {stage.step}"),
            class_="heading",
        )
        return tag("article", heading, rows, class_="step", id=where, aria_label=_name(stage))

    def _shown(self, rows: Sequence[Row]) -> Iterator[Html]:
        """What stays in sight, and runs of what does not."""
        near = {
            at + by
            for at, row in enumerate(rows)
            if row.state == "differs"
            for by in range(-AROUND, AROUND + 1)
        }
        if not near:
            yield from map(self._row, rows)
            return
        numbered = [*enumerate(rows)]
        for state, group in _runs(numbered, lambda n: n[1].state if n[0] not in near else None):
            shown = [self._row(row) for _, row in group]
            if not state or (state == "same" and len(group) < 3):
                yield from shown
            else:
                yield _run(state, "", sum(len(row.pairs) for _, row in group), shown)

    def _row(self, row: Row) -> Html:
        if row.state == "differs":
            return self._different(row)
        shown = [item(each, closed=True) for each in row.left or row.right]
        if not shown:
            return Html()
        mark = tag("span", _ICONS[row.state], class_="mark", title=_WORDS[row.state])
        if row.state == "unreached":
            empty = tag("div", tag("p", "not replayed"), class_="side empty")
            sides = tag("div", tag("div", *shown, class_="side"), empty, class_="pair")
            return tag("div", mark, sides, class_="row unreached")
        return tag("div", mark, tag("div", *shown), class_=f"row {row.state}")

    def _different(self, row: Row) -> Html:
        number = self._numbers[id(row)]
        word = f"only {row.only}" if row.only else "differs"
        head = tag(
            "div",
            badge(f"{_ICONS['differs']} {word}", "bad"),
            tag("span", f"{number} of {len(self._numbers):,}", class_="dim"),
            anchor(f"difference-{number}", f"difference {number}"),
            class_="heading",
        )
        sides = tag(
            "div", self._side(row, row.left, "recorded"), self._side(row, row.right, "replayed"),
            class_="pair",
        )  # fmt: skip
        fields = () if row.only else self._fields(row)
        return tag(
            "div", head, sides, *fields, class_="row differs", id=f"difference-{number}",
            tabindex=-1, role="group", aria_label=f"difference {number}: {self._headline(row)}",
        )  # fmt: skip

    def _side(self, row: Row, items: Sequence[Any], side: str) -> Html:
        if row.only and row.only != side:
            return tag("div", tag("p", f"nothing was {side} here"), class_="side empty")
        shown = (item(each, closed=not row.only) for each in items)
        name = tag("p", side, class_="who side-name")
        return tag("div", name, *shown, class_="side")

    # -- fields --------------------------------------------------------------------

    def _fields(self, row: Row) -> Iterator[Html]:
        fields = [*self._values(row)]
        for pair, name, old, new in fields[:MOST_FIELDS]:
            title: list[str] = [tag("code", self._texts.line(name))]
            if "." not in name:
                side = "recorded" if new is None else "replayed"
                title += [" ", tag("span", f"only {side}", class_="dim")]
            if why := _DIGESTS.get(name.partition(".")[2]):
                title += [" ", tag("span", why, class_="dim")]
            values = self._differ.sides(self._text(pair, name, old), self._text(pair, name, new))
            yield tag("div", tag("h4", *title), values, class_="field")
        if len(fields) > MOST_FIELDS:
            yield tag("p", f"… {len(fields) - MOST_FIELDS:,} more fields differ", class_="more")

    def _values(self, row: Row) -> Iterator[tuple[Pair, str, Any, Any]]:
        for pair in row.pairs:
            entry = pair.recorded or pair.made
            if entry is None or not pair.reached:
                continue
            name = kind(entry)
            if pair.made is None or pair.recorded is None:
                whole = msgspec.to_builtins(entry)
                del whole["kind"]
                yield pair, name, *((whole, None) if pair.made is None else (None, whole))
            for field, old, new in pair.fields:
                yield pair, f"{name}.{field}", old, new

    def _text(self, pair: Pair, name: str, value: Any) -> str | None:
        field = name.partition(".")[2]
        if isinstance(pair.recorded, PromptInstalled) and field in _BLOBS:
            return self._texts.stored(str(value)) or value
        if value is None or isinstance(value, str):
            return value
        return self._texts.json(value).text

    def _about(self, row: Row) -> Html | None:
        """Which call it is."""
        named = [each for each in (*row.left, *row.right) if isinstance(each, Call)]
        return tag("small", f"{named[0].name} {named[0].about}") if named else None

    def _headline(self, row: Row) -> str:
        """What differs first, in a few words."""
        if row.only:
            entry = row.source.recorded or row.source.made
            assert entry is not None
            return f"{kind(entry)}: only {row.only}"
        first = next(self._values(row))
        return self._texts.line(first[1], 80)


# -- folding -------------------------------------------------------------------------------


def _foldable(states: set[State]) -> State | None:
    """As what a part is folded away, None where it is to be seen."""
    if states == {"unreached"}:
        return "unreached"
    if states <= {"same", "follows"}:
        return "follows" if "follows" in states else "same"
    return None


def _runs(
    parts: Iterable[T], key: Callable[[T], State | None]
) -> Iterator[tuple[State | None, list[T]]]:
    for state, group in groupby(parts, key):
        yield state, [*group]


def _run(state: State, label: str, entries: int, shown: Iterable[Html]) -> Html:
    count = f"{entries:,} entry" if entries == 1 else f"{entries:,} entries"
    head: list[str] = [tag("span", _ICONS[state], class_="mark", aria_hidden="true")]
    head += [tag("strong", f"{label} "), " "] if label else []
    head.append(
        tag("span", f"{count} {_WORDS[state]}" if not label else f"{_WORDS[state]}, {count}")
    )
    return details(tag("span", *head), joined(shown), f"run {state}")


def _turn_name(numbers: Sequence[int]) -> str:
    """What comes after the last turn has no number."""
    counted = [number for number in numbers if number]
    return _range("turn", counted) if counted else "after the last turn"


def _range(what: str, numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)
