"""Reading what the tools answered: leniently, because the text is made for models."""

from __future__ import annotations

import re

import msgspec

__all__ = [
    "Hit",
    "hits",
    "is_clipped",
    "is_folder",
    "is_missing",
    "is_refusal",
    "line_count",
    "numbered_lines",
    "paths",
    "total",
]


class Hit(msgspec.Struct, frozen=True):
    """One line of Grep's ``content`` output; ``line`` counts from 1."""

    path: str
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def hits(output: str, searched: str = "") -> tuple[Hit, ...]:
    """Matching lines. ``searched``: the path of a Grep in one file, which may go unnamed."""
    found: list[Hit] = []
    if output.startswith("No "):
        return ()
    for line in output.splitlines():
        if match := re.match(r"(.+?):(\d+):(.*)$", line):
            found.append(Hit(match[1], int(match[2]), match[3]))
        elif searched and (match := re.match(r"(\d+):(.*)$", line)):
            found.append(Hit(searched, int(match[1]), match[2]))
    return tuple(found)


def numbered_lines(output: str) -> tuple[tuple[int, str], ...]:
    """The lines of a Read, with their numbers; headers and notes left out."""
    found = []
    for line in output.split("\n"):
        if match := re.match(r"\s*(\d+)(?:\t|→)(.*)$", line):
            found.append((int(match[1]), match[2].removesuffix("\r")))
    return tuple(found)


def paths(output: str) -> tuple[str, ...]:
    """The paths of a Glob, or of Grep's ``files_with_matches``."""
    return tuple(
        line.strip()
        for line in output.splitlines()
        if line.strip() and not _is_note(line.strip()) and not re.search(r"[:.]$", line.strip())
    )


def total(output: str) -> int:
    """How many files a Glob found, also those that it did not list."""
    said = re.match(r"Found ([\d,]+) files?$", output.partition("\n")[0])
    return int(said[1].replace(",", "")) if said else len(paths(output))


def is_clipped(output: str) -> bool:
    """Whether the tool says that it did not give everything."""
    return any(
        re.search(r"omitted|truncat|clipped|\bmore\b|\blimit|first \d+|\boffset\b", line, re.I)
        for line in output.splitlines()
        if _is_note(line.strip())
    )


def is_refusal(output: str) -> bool:
    """Whether an error means that the call was not permitted.

    A command that ran may print these words too; its result ends with its exit code.
    """
    return output.startswith("Permission denied:") and not re.search(r"\[exit code \d+", output)


def is_missing(output: str) -> bool:
    """Whether an error says that a path is not there."""
    return not is_refusal(output) and "does not exist" in output


def is_folder(output: str) -> bool:
    """Whether an error of Read says that the path is a directory."""
    return not is_refusal(output) and re.search(r"(?:is|names) a directory", output) is not None


def line_count(output: str) -> tuple[int, int]:
    """Of a Grep that counts line beginnings: lines and files."""
    said = re.match(r"Found ([\d,]+) occurrences? in ([\d,]+) files?$", output.partition("\n")[0])
    if said:
        return int(said[1].replace(",", "")), int(said[2].replace(",", ""))
    numbers = re.findall(r"(?:^|:)(\d+)$", output, re.MULTILINE)
    return sum(map(int, numbers)), len(numbers)


def _is_note(line: str) -> bool:
    """Notes of the tools are sentences or stand in brackets; paths and matches do neither."""
    return re.match(r"[\[(<…]|\.\.\.|No (?:files|matches)|Found |Note", line) is not None or (
        line.count(" ") >= 3 and re.match(r"[\w./-]+:\d+:|\s*\d+\t", line) is None
    )
