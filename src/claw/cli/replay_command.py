"""`claw replay`: a recorded session is run again, and what goes another way is named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from claw.cli.export_command import cleaner
from claw.cli.interrupts import interruptible
from claw.cli.place import working_directory
from claw.cli.render.envelope import dumps
from claw.cli.sessions_command import home_and_project, screen_here
from claw.cli.style import harmless
from claw.cli.view_command import open_page, put_page
from claw.engine.live import RUN
from claw.engine.replay_page import page_of_replay
from claw.engine.replaying import Live, Part, replay_session
from claw.errors import WrongUse
from claw.recordings.verify import Difference, Replayed
from claw.sessions.index import find_anywhere

__all__ = ["DIFFERS", "replay_recording"]

DIFFERS = 5


def replay_recording(given: Mapping[str, Any]) -> int:
    """Replay and report, also as a page; 0 where all is the same, 5 where not.

    Raises ``ClawError``.
    """
    path = find_anywhere(*home_and_project(given), given["ref"])
    parts = frozenset[Part]() if given["live"] is None else _parts(given["live"])
    if given["in_place"] and not parts & RUN:
        raise WrongUse("--in-place: nothing runs", hint="Add `--live tools` or `--live hooks`.")
    live = Live(
        parts=parts,
        in_place=given["in_place"],
        goes_on=given["on_divergence"] == "continue",
        settings_file=given["settings"],
        env=dict(os.environ),
        cwd=given["cwd"] and working_directory(given["cwd"]),
    )
    with interruptible():
        done = asyncio.run(replay_session(path, live))
    page = ""
    if given["html"] or given["view"]:
        page = put_page(page_of_replay(path, done, cleaner(given)), given["html"], path)
    screen = screen_here()
    if given["output_format"] == "json":
        screen.product(dumps({**_json(done), **({"page": page} if page else {})}) + "\n")
    else:
        screen.product(harmless(_text(done) + (f"page: {page}\n" if page else "")))
    if given["view"]:
        open_page(screen, page)
    return screen.exit_code(0 if done.same else DIFFERS)


def _parts(text: str) -> frozenset[Part]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    known: tuple[Part, ...] = ("tools", "hooks", "policy", "prompt")
    if not names:
        raise WrongUse("--live: no part is named", hint=f"Any of {', '.join(known)}.")
    if strange := [name for name in names if name not in known]:
        raise WrongUse(
            f"--live: there is no part `{strange[0]}`",
            hint=f"Any of these, with commas between them: {', '.join(known)}.",
        )
    return frozenset(part for part in known if part in names)


def _json(done: Replayed) -> dict[str, Any]:
    told = msgspec.structs.replace(done, played=(), system=None)
    fields: dict[str, Any] = msgspec.to_builtins(told)
    del fields["played"], fields["system"]
    found = [{**msgspec.to_builtins(d), "diff": d.diff} for d in done.differences]
    return {"schema": 1, "type": "replay", "same": done.same, **fields, "differences": found}


def _text(done: Replayed) -> str:
    counted = f"{_counted(done.turns, 'turn')}, {_counted(done.steps, 'step')}"
    lines = [f"same: {counted}" if done.same else f"differs: {counted}"]
    if not done.turns:
        lines = ["There is no turn to replay."]
    if done.missing_from is not None:
        lines.append(
            f"Records are missing from number {done.missing_from} on; up to there it was replayed."
        )
    elif done.ended_early:
        lines.append("The recording ends in the middle of a turn; up to there it was replayed.")
    if done.edited is not None:
        lines.append(f"Line {done.edited} was changed: its checksum does not fit its content.")
    for difference in done.differences:
        lines += _told(difference)
    lines += [f"stale: {what} changed since (`--live {what}` judges it)" for what in done.stale]
    return "\n".join(lines) + "\n"


def _told(difference: Difference) -> list[str]:
    where = f"{difference} ({difference.about})" if difference.about else str(difference)
    if "\n" in difference.expected or "\n" in difference.actual:
        return [where, *(f"  {line}" for line in difference.diff.splitlines())]
    return [
        where,
        f"  recorded: {difference.expected}",
        f"  replayed: {difference.actual}",
    ]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
