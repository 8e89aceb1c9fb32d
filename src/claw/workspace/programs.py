"""Which file a program's name stands for, when claw itself runs it."""

from __future__ import annotations

import os

__all__ = ["find_program"]


def find_program(name: str, path: str, root: str) -> str | None:
    """The absolute path of ``name`` by the entries of ``path``; None where there is none.

    Relative entries do not count, and nothing that lies or leads into ``root``: a
    workspace may bring a ``git`` or ``bash`` of its own along. A ``name`` with a
    slash is taken as it is.
    """
    if "/" in name:
        return name
    inside = os.path.realpath(root).rstrip("/") + "/"
    for entry in filter(os.path.isabs, path.split(os.pathsep)):
        program = os.path.join(entry, name)
        if not os.access(program, os.X_OK) or os.path.isdir(program):
            continue
        places = (os.path.join(os.path.realpath(entry), name), os.path.realpath(program))
        # Everything lies in `/`: as a workspace it leaves no other programs.
        if inside == "/" or not any(place.startswith(inside) for place in places):
            return program
    return None
