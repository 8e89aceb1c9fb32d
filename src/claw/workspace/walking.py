"""Walking through directories, and guessing which file was meant."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

__all__ = ["similar_files", "walk"]

_MOST_LOOKED_AT = 5000  # directory entries searched for a name that was meant


def walk(directory: str) -> Iterator[str]:
    """Regular files beneath, sorted by name within each directory; links are not followed."""
    waiting = [_entries(directory)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif entry.is_file(follow_symlinks=False):
            yield entry.path
        elif entry.is_dir(follow_symlinks=False) and entry.name != ".git":
            waiting.append(_entries(entry.path))


def _entries(directory: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            found = [entry for entry in entries if _can_be_shown(entry.name)]
    except OSError:  # gone or forbidden meanwhile
        found = []
    return iter(sorted(found, key=lambda entry: entry.name))


def _can_be_shown(name: str) -> bool:
    """Whether a file's name is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def similar_files(path: str, root: str) -> list[str]:
    """Files that may be meant by an absolute path that does not exist, the likeliest first.

    Those of the same name anywhere beneath ``root``, then names like it beside it.
    """
    import difflib

    parent, name = os.path.split(path)
    same = [file for file in islice(walk(root), _MOST_LOOKED_AT) if os.path.basename(file) == name][
        :3
    ]
    while parent != "/" and not os.path.isdir(parent):
        parent, name = os.path.split(parent)
    names: list[str] = []
    with suppress(OSError), os.scandir(parent) as entries:
        names = [e.name for e in islice(entries, _MOST_LOOKED_AT) if _can_be_shown(e.name)]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    return list(dict.fromkeys([*same, *(os.path.join(parent, match) for match in near)]))[:4]
