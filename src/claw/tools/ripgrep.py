"""Searching with ripgrep, as its own program."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence

from claw.errors import ToolFailed
from claw.ports import Command, Processes, ProcessResult
from claw.tools.patterns import beneath
from claw.tools.query import SECRETS, WIDEST, Found, Hit, Query

__all__ = ["Ripgrep", "find_ripgrep"]

_SECONDS = 60.0
_KEEP = 16 * 1024 * 1024  # bytes of output
_TIMED_OUT = f"ended after {_SECONDS:g} s"
_LISTING = ("--hidden", "--sort=path", "--glob=!.git", "--null")


def find_ripgrep(root: str) -> str | None:
    """``rg`` beside this Python, where its package puts it, else on the PATH.

    Nothing that lies in the workspace ``root``, where somebody else may have put it,
    unless claw itself runs from there.
    """
    own = (os.path.join(sys.prefix, "bin"), os.path.dirname(sys.executable))
    for place in (*own, *os.get_exec_path()):
        program = os.path.join(place, "rg")
        if not os.access(program, os.X_OK) or not os.path.isfile(program):
            continue
        if place in own or (os.path.isabs(place) and not _within(program, root)):
            return program
    return None


def _within(program: str, root: str) -> bool:
    """Whether a program or what it links to lies in ``root``; nothing lies outside of ``/``."""
    inside = os.path.realpath(root).rstrip("/") + "/"
    folder, name = os.path.split(program)
    places = (os.path.join(os.path.realpath(folder), name), os.path.realpath(program))
    return inside != "/" and any(place.startswith(inside) for place in places)


class Ripgrep:
    """A ``Searcher`` beneath ``root`` that runs the ``program``; respects ignore files."""

    def __init__(
        self, program: str, root: str, processes: Processes, hidden: Callable[[str], bool]
    ) -> None:
        self._hidden = hidden
        self._program = program
        self._root = root
        self._processes = processes

    async def files(self, path: str, matches: Callable[[str], bool]) -> Found:
        found = Found()
        result = await self._run(["--files", *_LISTING, "--", path], found)
        paths = map(_shown_path, result.stdout.split(b"\0"))
        found.hits = [
            Hit(file)
            for file in paths
            if file and matches(beneath(file, path)) and not self._hidden(file)
        ]
        return found

    async def lines(self, query: Query) -> Found:
        found = Found()
        result = await self._run(_options(query), found)
        _collect(result.stdout, query, self._hidden, found)
        return found

    async def _run(self, options: Sequence[str], found: Found) -> ProcessResult:
        argv = (self._program, "--no-config", "--color=never", *options)
        command = Command(argv, cwd=self._root, timeout=_SECONDS, keep=_KEEP)
        result = await self._processes.run(command)
        if result.ended == "not_started":
            raise ToolFailed(f"The search did not start: {result.error}.")
        if result.ended == "timeout":
            found.notes.append(f"{_TIMED_OUT}: narrow the search")
        if result.omitted:
            found.notes.append("too many results, some are left out: narrow the search")
        said = result.stderr.decode("utf-8", "replace").strip()
        failed = result.ended == "timeout" or result.exit_code not in (0, 1)  # 1: no match
        if failed and not result.stdout:
            raise ToolFailed(f"The search failed: {_reason(result, said)[:2000]}")
        if failed and result.ended != "timeout":
            found.notes.append(f"the search is incomplete: {_reason(result, said)[:300]}")
        elif said:
            found.notes.append(said[:300])
        return result


def _reason(result: ProcessResult, said: str) -> str:
    if result.ended == "timeout":
        return f"{_TIMED_OUT} without a result. Narrow the search."
    if said:
        return said.removeprefix("rg: ")
    if result.exit_code is not None and result.exit_code < 0:
        return f"ripgrep was ended by signal {-result.exit_code}."
    return f"ripgrep ended with exit code {result.exit_code} and said nothing."


def _options(query: Query) -> list[str]:
    options = [*_LISTING, "--no-heading", "--with-filename"]
    if not query.private:
        options.append(f"--iglob=!{SECRETS}")
    if query.ignore_case:
        options.append("--ignore-case")
    if query.multiline:
        options += ["--multiline", "--multiline-dotall"]
    if query.type:
        options.append(f"--type={query.type}")
    elif name := _name_pattern(query.glob):
        # A type, unlike `--glob`, does not bring ignored files back.
        options += [f"--type-add=claw:{name}", "--type=claw"]
    if query.mode == "files_with_matches":
        options.append("--files-with-matches")
    elif query.mode == "count":
        options.append("--count-matches")
    else:
        options += [
            "--line-number",
            f"--max-columns={WIDEST}",
            "--max-columns-preview",
            f"--max-count={query.most + 1}",
            f"--before-context={query.before}",
            f"--after-context={query.after}",
        ]
    return [*options, f"--regexp={query.pattern}", "--", query.path]


def _name_pattern(glob: str) -> str:
    """The part of a glob that is about the file's name, so that fewer files are looked at."""
    name = glob.rpartition("/")[2]
    if glob.startswith("!") or "**" in name or name.count("{") != name.count("}"):
        return ""
    return name


def _collect(output: bytes, query: Query, hidden: Callable[[str], bool], found: Found) -> None:
    """Read what was printed: a path and NUL, then a number, ``:`` or ``-``, and the line."""
    is_named = query.path_filter()

    def wanted(path: str) -> bool:
        return is_named(path) and not hidden(path)

    if query.mode == "files_with_matches":
        paths = map(_shown_path, output.split(b"\0"))
        found.hits = [Hit(path) for path in paths if path and wanted(path)]
        return
    for line in output.split(b"\n"):
        name, separator, rest = line.partition(b"\0")
        if not separator:
            if line == b"--":
                found.gaps.add(len(found.hits))
            continue
        path = _shown_path(name)
        number = re.match(rb"[0-9]+", rest)
        if number is None or not wanted(path):
            continue
        text = rest[number.end() + 1 :].decode("utf-8", "replace").rstrip("\r")
        matched = rest[number.end() : number.end() + 1] != b"-"
        found.hits.append(Hit(path, int(number[0]), text, matched))


def _shown_path(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace").removeprefix("./")
