"""A recording and its replay, folded each, and set side by side: what the page of both tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from claw.types.entries import KnownEntry, StepRequested, TurnEnded, TurnStarted
from claw.types.usage import Usage
from claw.viewer.fold import fold
from claw.viewer.story import Call, Note, Said, Session

__all__ = ["Comparison", "Pair", "Row", "Stage", "State", "compared", "kind"]

Item = Said | Note | Call
State = Literal["same", "follows", "differs", "unreached"]
"""``follows``: it differs only because something before it did."""


class Pair(Protocol):
    """What was recorded, and what the replay made in its place; None where there is nothing.

    ``step`` is 0 before the first request of a turn. ``fields`` are those that differ, with
    both values as plain data. ``reached`` claims that the replay came so far.
    """

    @property
    def turn(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def recorded(self) -> KnownEntry | None: ...
    @property
    def made(self) -> KnownEntry | None: ...
    @property
    def fields(self) -> Sequence[tuple[str, Any, Any]]: ...
    @property
    def reached(self) -> bool: ...


class Row(msgspec.Struct):
    """What stands side by side. ``source`` is where it begins, ``pairs`` all that it tells of.

    A call has the pair of its reply as ``source``, whose own differences it does not tell.
    """

    source: Pair
    left: list[Item]
    right: list[Item]
    pairs: list[Pair]
    state: State = "same"

    @property
    def only(self) -> Literal["", "recorded", "replayed"]:
        """On which side there is something, where there is nothing on the other."""
        if self.source.recorded is None:
            return "replayed"
        return "recorded" if self.source.made is None and self.source.reached else ""


class Stage(msgspec.Struct):
    """A step with its rows, or with ``step`` 0 what comes before the first one of a turn.

    ``turn`` is the turn's place, ``number`` what it calls itself; 0 is after the last one.
    """

    turn: int
    number: int
    step: int
    model: str = ""
    rows: list[Row] = []
    entries: int = 0

    @property
    def state(self) -> State:
        """The most telling one of its rows."""
        found = {row.state for row in self.rows}
        order: tuple[State, ...] = ("differs", "unreached", "follows")
        return next((state for state in order if state in found), "same")


class Comparison(msgspec.Struct):
    """``session`` is the recorded one. ``turns`` are lists of stages."""

    session: Session
    turns: list[list[Stage]]

    @property
    def stages(self) -> Iterator[Stage]:
        for turn in self.turns:
            yield from turn


class _Placed(msgspec.Struct, frozen=True):
    seq: int
    entry: KnownEntry
    at: str = ""


def compared(
    pairs: Sequence[Pair],
    *,
    clean: Callable[[str], str],
    blob: Callable[[str], bytes | None],
    price: Callable[[Usage, str], float | None],
) -> Comparison:
    """Both sides of all pairs. The other arguments are those of ``fold``."""

    def folded(entries: Sequence[KnownEntry | None]) -> tuple[Session, dict[int, list[Item]]]:
        """A side, and what it tells by the places of its entries among the pairs."""
        places = [n for n, entry in enumerate(entries) if entry is not None]
        told = (entry for entry in entries if entry is not None)
        placed = (_Placed(seq, entry) for seq, entry in enumerate(told, 1))
        session = fold(placed, clean=clean, blob=blob, price=price)
        return session, {places[seq - 1]: items for seq, items in _by_seq(session).items()}

    recorded, left = folded([pair.recorded for pair in pairs])
    _, right = folded([pair.made for pair in pairs])
    rows = _rows(pairs, left, right)
    _judge(rows)
    return Comparison(recorded, _staged(pairs, rows, clean))


def kind(entry: KnownEntry) -> str:
    return str(entry.__struct_config__.tag)


def _by_seq(session: Session) -> dict[int, list[Item]]:
    found: dict[int, list[Item]] = {}
    for item in session.told:
        for seq in item.seqs if isinstance(item, Call) else [item.seq]:
            found.setdefault(seq, []).append(item)
    return found


def _rows(
    pairs: Sequence[Pair], left: dict[int, list[Item]], right: dict[int, list[Item]]
) -> list[Row]:
    rows: list[Row] = []
    of_call: dict[int, Row] = {}
    for n, pair in enumerate(pairs):
        here, there = left.get(n, []), right.get(n, [])
        if known := [of_call[id(item)] for item in (*here, *there) if id(item) in of_call]:
            known[0].pairs.append(pair)
            continue
        rows.append(Row(pair, _not_calls(here), _not_calls(there), [pair]))
        for mine, others in _calls(here, there):
            row = Row(pair, mine, others, [])
            of_call.update((id(call), row) for call in (*mine, *others))
            rows.append(row)
    return rows


def _not_calls(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if not isinstance(item, Call)]


def _calls(here: Sequence[Item], there: Sequence[Item]) -> Iterator[tuple[list[Item], list[Item]]]:
    """Each call of one reply with the one of the same id."""
    others = {item.id: item for item in there if isinstance(item, Call)}
    for item in here:
        if isinstance(item, Call):
            other = others.pop(item.id, None)
            yield [item], [other] if other is not None else []
    for item in others.values():
        yield [], [item]


def _judge(rows: Iterable[Row]) -> None:
    differed = False
    for row in rows:
        if any(_differs(pair) for pair in row.pairs) or row.only:
            row.state = "follows" if differed and _follows(row) else "differs"
            differed = True
        elif not all(pair.reached for pair in (row.source, *row.pairs)):
            row.state = "unreached"


def _differs(pair: Pair) -> bool:
    return bool(pair.fields) or pair.recorded is None or (pair.made is None and pair.reached)


def _follows(row: Row) -> bool:
    """A request tells what the conversation before it was: nothing new if that is all."""
    names = {name for pair in row.pairs for name, _, _ in pair.fields}
    return isinstance(row.source.made, StepRequested) and names == {"digests.messages"}


def _staged(
    pairs: Sequence[Pair], rows: Iterable[Row], clean: Callable[[str], str]
) -> list[list[Stage]]:
    found: dict[int, dict[int, Stage]] = {}
    started = ((pair.turn, pair.recorded or pair.made) for pair in pairs)
    numbers = {turn: entry.turn for turn, entry in started if isinstance(entry, TurnStarted)}
    for pair in pairs:
        steps = found.setdefault(pair.turn, {})
        stage = steps.setdefault(pair.step, Stage(pair.turn, numbers.get(pair.turn, 0), pair.step))
        stage.entries += 1
        for entry in (pair.recorded, pair.made):
            if isinstance(entry, StepRequested):
                stage.model = stage.model or clean(entry.model)
    for row in rows:
        if row.left or row.right or row.state in ("differs", "follows"):
            _give_a_word(row, clean)
            found[row.source.turn][row.source.step].rows.append(row)
        elif row.state == "unreached":
            found[row.source.turn][row.source.step].rows.append(row)
    return [[*steps.values()] for steps in found.values()]


def _give_a_word(row: Row, clean: Callable[[str], str]) -> None:
    """What headings tell else is told in one line where it differs."""
    for entry, items in ((row.source.recorded, row.left), (row.source.made, row.right)):
        if entry is not None and not items:
            items.append(Note("change", clean(_word(entry))))


def _word(entry: KnownEntry) -> str:
    match entry:
        case TurnStarted():
            return f"the turn begins in mode {entry.mode}"
        case StepRequested():
            again = f", attempt {entry.attempt}" if entry.attempt > 1 else ""
            return f"request to {entry.model}{again}"
        case TurnEnded():
            return f"the turn ends: {entry.stop_reason.replace('_', ' ')}"
        case _:
            return kind(entry).replace("_", " ")
