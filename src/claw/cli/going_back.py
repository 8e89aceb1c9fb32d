"""`/rewind` and `/history`: what can be gone back to, and what was said before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from claw.cli.render.story import Passage
from claw.cli.style import one_line
from claw.cli.times import local_time
from claw.types.results import Restored
from claw.types.session import TurnPoint

__all__ = ["WHAT", "last_of", "restored", "turn_list"]

WHAT = {
    "conversation": (True, False),
    "files": (False, True),
    "both": (True, True),
}
"""What is put back: the conversation, files."""

_NAMED = 3
_LISTED = 40


def turn_list(points: Sequence[TurnPoint], width: int) -> str:
    """The turns, newest last, with the files that each has changed, and how to go back."""
    if not points:
        return "There is no turn to go back to yet."
    lines = []
    if earlier := len(points[:-_LISTED]):
        lines.append(f"... {earlier} earlier turn{'' if earlier == 1 else 's'}")
        points = points[-_LISTED:]
    number = max(len(str(point.turn)) for point in points)
    for point in points:
        front = f"{str(point.turn).rjust(number)}  {local_time(point.at)}  "
        lines.append(front + one_line(_first_line(point.prompt), max(20, width - len(front) - 1)))
        if point.files:
            lines.append(f"{' ' * (number + 2)}changed {_files(point.files)}")
    lines.append(
        "Go back to before a turn: /rewind N, with `conversation` or `files` to put back only that."
    )
    return "\n".join(lines)


def restored(point: TurnPoint | None, what: str, done: Restored) -> str:
    """What a rewind came to; without a point, one that was undone."""
    parts = []
    if what != "files":
        parts.append("the conversation")
    if done.files:
        parts.append(_files(done.files))
    elif what == "files":
        parts.append("no file, since none differs")
    head = f"Back to before turn {point.turn}" if point else "Undone"
    lines = [f"{head}: {' and '.join(parts)}."]
    lines += [f"Left as it is: {one_line(why, 200)}" for why in done.left]
    if point is not None and done.undo is not None:
        lines.append("/rewind undo takes this back, until the next turn.")
    return "\n".join(lines)


def last_of(passages: Iterable[Passage], number: int) -> list[Passage]:
    """Those from the last ``number`` messages on."""
    told = list(passages)
    spoken = [at for at, one in enumerate(told) if one.kind in ("user", "assistant")]
    return told[spoken[-number] :] if number < len(spoken) else told


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _files(paths: Sequence[str]) -> str:
    names = ", ".join(one_line(path.rsplit("/", 1)[-1], 40) for path in paths[:_NAMED])
    count = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    return f"{count} ({names}{', ...' if len(paths) > _NAMED else ''})"
