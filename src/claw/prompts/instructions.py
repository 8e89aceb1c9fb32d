"""Instruction files: CLAUDE.md and AGENTS.md of the user and of the project."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

import msgspec

from claw.prompts.project import project_root

__all__ = ["MAX_BYTES", "NAMES", "Discovered", "Instruction", "discover_instructions"]

NAMES = ("CLAUDE.md", "AGENTS.md")
MAX_BYTES = 64 * 1024


class Instruction(msgspec.Struct, frozen=True):
    """``path`` is absolute. Where ``text`` is not the whole file, its last line says so."""

    path: str
    text: str


class Discovered(msgspec.Struct, frozen=True):
    """``notes`` tell a person which files were skipped or clipped, and why."""

    instructions: tuple[Instruction, ...]
    notes: tuple[str, ...]


class _File(msgspec.Struct, frozen=True):
    path: str
    data: bytes
    size: int


def discover_instructions(cwd: str, *, user_dir: str, max_bytes: int = MAX_BYTES) -> Discovered:
    """The user's files, then the project's from its root down to ``cwd``.

    Both names are read in each directory; the same content is told once. Only
    regular files count, and in a project only those that lie inside it once links
    are followed. All together take ``max_bytes``: the user's files first, then
    those nearest to ``cwd``.
    """
    directories = _from_root_to(cwd)
    seen: set[bytes] = set()
    notes: list[str] = []
    user = _read_all([user_dir], None, limit=max_bytes, seen=seen, notes=notes)
    project = _read_all(directories, directories[0], limit=max_bytes, seen=seen, notes=notes)
    shares: dict[str, int] = {}
    left = max_bytes
    for file in (*user, *reversed(project)):
        shares[file.path] = min(left, file.size)
        left -= shares[file.path]
    files = (*user, *project)
    notes += [
        f"{file.path} is clipped: {shares[file.path]} of {file.size} bytes are told to the model "
        f"(all instructions may take {max_bytes}: `instructions.maxBytes`)"
        for file in files
        if shares[file.path] < file.size
    ]
    return Discovered(tuple(_told(file, shares[file.path]) for file in files), tuple(notes))


def _from_root_to(cwd: str) -> list[str]:
    directory = os.path.realpath(cwd)
    root = project_root(directory) or directory
    directories = [directory]
    while directory != root:
        directory = os.path.dirname(directory)
        directories.append(directory)
    return directories[::-1]


def _read_all(
    directories: Iterable[str],
    within: str | None,
    *,
    limit: int,
    seen: set[bytes],
    notes: list[str],
) -> list[_File]:
    files = []
    for directory in directories:
        for name in NAMES:
            path = os.path.join(directory, name)
            file = _read(path, within, limit)
            if isinstance(file, str):
                notes.append(f"{path} is left out: {file}")
            elif file is not None and file.data.strip() and file.data not in seen:
                seen.add(file.data)
                files.append(file)
    return files


def _read(path: str, within: str | None, limit: int) -> _File | str | None:
    """The file, or why it is left out; None where there is none."""
    try:
        real = os.path.realpath(path, strict=True)
        if within is not None and os.path.commonpath((real, within)) != within:
            return "it is a link to a place outside of the project"
        # Without O_NONBLOCK, opening a FIFO would wait for its writer.
        fd = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return "it is no regular file"
            with open(fd, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        finally:
            os.close(fd)
    except (FileNotFoundError, NotADirectoryError):
        return "it is a link to a file that is not there" if os.path.islink(path) else None
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return _File(path, data, max(status.st_size, len(data)))


def _told(file: _File, share: int) -> Instruction:
    text = file.data[:share].decode("utf-8-sig", "replace")
    if share < file.size:
        # A cut inside a character leaves its beginning behind.
        text = text.rstrip("\ufffd")
        text += (
            f"\n[Clipped: {share} of {file.size} bytes are shown. Read {file.path} for the rest.]"
        )
    return Instruction(file.path, text.strip())
