"""`claw sessions`: looking at what was kept, mending it, and cleaning up."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec

from claw.cli.asking import confirmed
from claw.cli.place import working_directory
from claw.cli.render.activity import show_labelled
from claw.cli.render.envelope import dumps
from claw.cli.render.story import as_text, story
from claw.cli.screen import Screen
from claw.cli.style import Paint, clip, harmless, human_tokens, one_line
from claw.cli.terminal import Terminal
from claw.cli.times import ago, human_size, local_time, seconds_of
from claw.config.paths import find_homes
from claw.errors import ClawError
from claw.sessions.index import (
    SessionSummary,
    find_anywhere,
    list_all_sessions,
    list_sessions,
    summary_of,
)
from claw.sessions.journal import FileJournal
from claw.sessions.load import read_entries
from claw.sessions.record import Record
from claw.sessions.removal import delete, prune
from claw.sessions.salvage import Salvaged, Verified, salvage, verify
from claw.types.entries import (
    Compacted,
    ReplyReceived,
    Steered,
    Titled,
    TurnEnded,
    TurnStarted,
    UnknownEntry,
    UserMessaged,
)
from claw.types.messages import text_of
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk

__all__ = [
    "delete_session",
    "home_and_project",
    "listed",
    "prune_sessions",
    "rename_session",
    "screen_here",
    "show_list",
    "show_session",
    "verify_sessions",
]

LONGEST_TITLE = 200


def home_and_project(given: Mapping[str, Any]) -> tuple[str, str]:
    """claw's own directory, and the one that is worked in. Raises ``ConfigError``."""
    cwd = os.path.realpath(working_directory(given["cwd"]))
    return find_homes(cwd, os.environ).config, cwd


def screen_here() -> Screen:
    return Screen(Terminal.look(os.environ), sys.stdout, sys.stderr)


# -- list ------------------------------------------------------------------------------


def show_list(given: Mapping[str, Any]) -> int:
    """Print the sessions, newest first; 0, whatever there is. Raises ``ClawError``."""
    home, cwd = home_and_project(given)
    screen = screen_here()
    found = list_all_sessions(home) if given["all_"] else list_sessions(home, cwd)
    if wanted := given["search"]:
        found = tuple(session for session in found if _speaks_of(session, wanted.casefold()))
    if given["output_format"] == "json":
        screen.product(dumps(msgspec.to_builtins(found)) + "\n")
        return screen.exit_code(0)
    if not found:
        screen.say(_nothing(cwd, all_=given["all_"], wanted=wanted))
        return screen.exit_code(0)
    if screen.terminal.stdout:
        table = listed(found, screen.terminal.width, Paint(screen.terminal.color_stdout))
    else:
        table = _plain(found)
    screen.product("".join(f"{line}\n" for line in table))
    damaged = next((session for session in found if session.problem), None)
    if damaged is not None:
        show_labelled(screen, "hint", f"`claw sessions verify {damaged.id}` tells what is damaged.")
    return screen.exit_code(0)


def listed(found: Sequence[SessionSummary], width: int, paint: Paint) -> list[str]:
    """A table for people; with the directories where there are several."""
    now = time.time()
    directories = len({session.cwd for session in found}) > 1
    rows = [
        (harmless(session.id), ago(session.updated, now), str(session.turns)) for session in found
    ]
    heads = ("ID", "UPDATED", "TURNS")
    first, second, third = (
        max(len(head), *(len(row[at]) for row in rows)) for at, head in enumerate(heads)
    )
    rest = max(20, width - first - second - third - 7)
    head = f"{heads[0].ljust(first)}  {heads[1].ljust(second)}  {heads[2].rjust(third)}  TITLE"
    lines = [paint(head, "bold")]
    for session, (id, when, turns) in zip(found, rows, strict=True):
        front = f"{id.ljust(first)}  {when.ljust(second)}  {turns.rjust(third)}"
        lines.append(f"{front}  {_titled(session, rest, paint)}".rstrip())
        if directories:
            lines.append(paint(f"{' ' * first}  {_where(session.cwd)}".rstrip(), "dim"))
    return lines


def _titled(session: SessionSummary, width: int, paint: Paint) -> str:
    if not session.problem:
        return one_line(session.title, width)
    return paint(one_line(f"[damaged: {session.problem}] {session.title}", width), "red")


def _plain(found: Iterable[SessionSummary]) -> list[str]:
    """A line each, with tabs between the fields: for other programs."""
    lines = []
    for session in found:
        problem = f"[damaged: {session.problem}] " if session.problem else ""
        fields = (session.id, local_time(session.updated), str(session.turns), session.cwd)
        title = f"{problem}{session.title}"
        lines.append("\t".join(" ".join(harmless(field).split()) for field in (*fields, title)))
    return lines


def _nothing(cwd: str, *, all_: bool, wanted: str | None) -> str:
    if wanted:
        return f"No session speaks of `{harmless(wanted)}`."
    if all_:
        return "There are no sessions yet. `claw` starts one."
    return f"There are no sessions of {_where(cwd)} yet. `--all` lists those of all directories."


def _where(cwd: str) -> str:
    return harmless(cwd.replace("\n", r"\n")) or "(unknown directory)"


def _speaks_of(session: SessionSummary, wanted: str) -> bool:
    """Whether its id, title or directory, a prompt or an answer contains the words."""
    if any(wanted in text.casefold() for text in (session.id, session.title, session.cwd)):
        return True
    try:
        return any(wanted in _spoken(record).casefold() for record in read_entries(session.path))
    except ClawError:  # damaged, or gone meanwhile: not found is all that can be said
        return False


def _spoken(record: Record) -> str:
    match record.entry:
        case UserMessaged() | Steered():
            return text_of(record.entry.content)
        case ReplyReceived():
            return text_of(record.entry.blocks)
        case Titled():
            return record.entry.title
        case _:
            return ""


# -- show ------------------------------------------------------------------------------


def show_session(given: Mapping[str, Any]) -> int:
    """Print what was said. Raises ``ClawError``; what can be read before damage is printed."""
    path = find_anywhere(*home_and_project(given), given["ref"])
    screen = screen_here()
    if given["output_format"] == "json":
        for record in read_entries(path):
            screen.product(dumps(_as_object(record)) + "\n")
        return screen.exit_code(0)
    paint = Paint(screen.terminal.color_stdout)
    screen.product("".join(f"{line}\n" for line in _front(summary_of(path), paint)))
    spent = _Spent()
    for line in as_text(story(spent.watch(read_entries(path))), paint):
        screen.product(line + "\n")
    screen.product(f"\n{paint(str(spent), 'dim')}\n")
    return screen.exit_code(0)


def _front(session: SessionSummary, paint: Paint) -> list[str]:
    lines = [f"{paint(harmless(session.id), 'bold')}  {one_line(session.title, 80)}".rstrip()]
    return [*lines, f"{_where(session.cwd)}, {local_time(session.created)}".rstrip(", ")]


def _as_object(record: Record) -> dict[str, Any]:
    entry = record.entry
    if isinstance(entry, UnknownEntry):
        fields = msgspec.json.decode(entry.raw, type=dict[str, Any])
        fields.pop("crc", None)
    else:
        fields = msgspec.to_builtins(entry)
    place = {"seq": record.seq, "id": record.id, "parent": record.parent, "at": record.at}
    return {**place, **fields}


class _Spent:
    """Turns, tokens and cost of a session, added up as its records go by."""

    def __init__(self) -> None:
        self._turns = 0
        self._usage = Usage()
        self._cost: float | None = 0.0

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            match record.entry:
                case TurnStarted():
                    self._turns += 1
                case ReplyReceived():
                    self._usage += record.entry.usage
                case Compacted():
                    self._usage += record.entry.usage
                    if record.entry.trigger == "manual":  # else the turn's cost has it
                        self._add(record.entry.cost)
                case TurnEnded():
                    self._add(record.entry.cost)
            yield record

    def __str__(self) -> str:
        turns = "1 turn" if self._turns == 1 else f"{self._turns} turns"
        cost = "cost unknown" if self._cost is None else f"${self._cost:.4f}"
        return f"{turns}, {human_tokens(self._usage.context_tokens)}, {cost}"

    def _add(self, cost: float | None) -> None:
        self._cost = None if self._cost is None or cost is None else self._cost + cost


# -- delete, rename, prune -------------------------------------------------------------


def delete_session(given: Mapping[str, Any]) -> int:
    """Delete one, after a question. Raises ``ClawError``, ``UsageError``."""
    path = find_anywhere(*home_and_project(given), given["ref"])
    screen = screen_here()
    if not given["yes"] and not _agreed(summary_of(path), screen):
        screen.line("Nothing was deleted.")
        return 1
    freed = delete(path, disk=SystemDisk())
    screen.line(f"Deleted {_id_of(path)} ({human_size(freed)}).")
    return 0


def _agreed(session: SessionSummary, screen: Screen) -> bool:
    if not (screen.terminal.stdin and screen.terminal.stderr):
        raise click.UsageError("nobody can be asked here: say `--yes` to delete it")
    turns = "1 turn" if session.turns == 1 else f"{session.turns} turns"
    screen.say(f"{session.id}: {one_line(session.title, 200)} ({turns})")
    return asyncio.run(confirmed("Delete it for good? [y/N]: ", screen))


def rename_session(given: Mapping[str, Any]) -> int:
    """Give one a title. Raises ``ClawError``, ``UsageError``."""
    title = " ".join(given["title"].split())
    if not title or len(title) > LONGEST_TITLE:
        raise click.UsageError(f"a title has 1 to {LONGEST_TITLE} characters")
    path = find_anywhere(*home_and_project(given), given["ref"])
    screen = screen_here()
    journal, loaded = FileJournal.continue_from(path, now=time.time, disk=SystemDisk())
    try:
        journal.append(Titled(title), sync=True)
    finally:
        journal.close()
    for note in loaded.notes:
        show_labelled(screen, "warning", harmless(note))
    screen.line(f"{_id_of(path)} is called: {harmless(title)}")
    return 0


def prune_sessions(given: Mapping[str, Any]) -> int:
    """Delete those that nobody used for so long. Raises ``ClawError``, ``UsageError``."""
    age = seconds_of(given["older_than"])
    if age is None:
        raise click.UsageError("`--older-than` takes an age: 45m, 12h, 30d or 8w")
    home, _ = home_and_project(given)
    screen = screen_here()
    dry_run = given["dry_run"]
    pruned = prune(home, age, now=time.time(), disk=SystemDisk(), dry_run=dry_run)
    for path in pruned.deleted:
        screen.product(f"{_id_of(path)}\n")
    for path, why in pruned.kept:
        show_labelled(screen, "warning", f"kept {_id_of(path)}: {harmless(why)}")
    number = len(pruned.deleted)
    count = "1 session" if number == 1 else f"{number} sessions"
    word = "Would delete" if dry_run else "Deleted"
    screen.line(f"{word} {count} ({human_size(pruned.bytes)}).")
    return screen.exit_code(0)


def _id_of(path: str) -> str:
    return harmless(os.path.basename(path).removesuffix(".jsonl"))


# -- verify ----------------------------------------------------------------------------


class _Report(msgspec.Struct, frozen=True):
    """``problem`` where a session could not even be looked at or mended."""

    id: str
    path: str
    verified: Verified | None = None
    salvaged: Salvaged | None = None
    problem: str = ""

    @property
    def is_well(self) -> bool:
        mended = self.salvaged is not None and self.salvaged.damaged
        healed = mended or (self.verified and not self.verified.damage)
        return bool(healed) and not self.problem


def verify_sessions(given: Mapping[str, Any]) -> int:
    """Look for damage; 1 where some is left. Raises ``ClawError``, ``UsageError``."""
    if given["ref"] and given["all_"]:
        raise click.UsageError("a session and `--all` contradict each other")
    home, cwd = home_and_project(given)
    screen = screen_here()
    if given["ref"]:
        paths = [find_anywhere(home, cwd, given["ref"])]
    else:
        found = list_all_sessions(home) if given["all_"] else list_sessions(home, cwd)
        paths = [session.path for session in found]
    reports = [_examined(path, mend=given["salvage"]) for path in paths]
    if given["output_format"] == "json":
        screen.product(dumps(msgspec.to_builtins(reports)) + "\n")
    else:
        for report in reports:
            screen.product("".join(f"{line}\n" for line in _reported(report)))
        if not reports:
            screen.say(_nothing(cwd, all_=given["all_"], wanted=None))
    return screen.exit_code(0 if all(report.is_well for report in reports) else 1)


def _examined(path: str, *, mend: bool) -> _Report:
    id = _id_of(path)
    try:
        verified = verify(path)
        if not mend or not (verified.damage or verified.torn):
            return _Report(id, path, verified)
        return _Report(id, path, verified, salvage(path, now=time.time, disk=SystemDisk()))
    except ClawError as error:
        return _Report(id, path, problem=f"{error.message} {error.hint}".strip())


def _reported(report: _Report) -> Iterator[str]:
    found = report.verified
    if found is None:
        yield f"{report.id}: {harmless(report.problem)}"
        return
    size = f"{found.records} records, {human_size(found.bytes)}"
    yield f"{report.id}: {'damaged' if found.damage else 'well'} ({size}, {found.blobs} blobs)"
    for damage in found.damage:
        where = f"line {damage.line}" if damage.line else "blobs"
        yield f"  {where}: {clip(harmless(damage.what), 300)}"
    if found.torn:
        yield f"  the last record was not written in full ({found.torn} bytes): it is left out"
    for note in found.notes:
        yield f"  {harmless(note)}"
    done = report.salvaged
    if done is None:
        if any(damage.line for damage in found.damage):
            yield f"  To keep the rest: claw sessions verify {shlex.quote(report.path)} --salvage"
        elif found.damage:
            yield "  Its records can all be read; what is lost cannot be replayed."
    elif done.damaged:
        yield f"  Salvaged: {done.kept} records are kept. Lost:"
        for lost in done.lost:
            where = f"line {lost.line}: " if lost.line else ""
            yield f"    {where}{clip(harmless(lost.what), 300)}"
        yield f"  The file as it was: {harmless(done.damaged)}"
