"""Which processes descend from a command, also those that left its process group.

Linux only, from ``/proc`` (``proc_pid_stat(5)``, ``proc_pid_environ(5)``): claw is
made the sub-reaper, so that orphans of its children become its own children and
can be found (``PR_SET_CHILD_SUBREAPER``, ``prctl(2)``). Elsewhere every answer is
empty and the process group is all there is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import msgspec

__all__ = ["Process", "adopt_orphans", "carries", "family", "own_children", "process"]

_PR_SET_CHILD_SUBREAPER = 36


class Process(msgspec.Struct, frozen=True):
    """``state`` is the kernel's letter; ``Z`` and ``X`` are dead."""

    pid: int
    parent: int
    group: int
    session: int
    state: str

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


def adopt_orphans() -> None:
    """Make this process the parent of its descendants' orphans."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_children() -> list[int]:
    """The ids of this process's children, dead ones included until they are reaped."""
    found: list[int] = []
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:  # no /proc, or a kernel without this file: look at everybody
        me = os.getpid()
        return [p.pid for p in _everybody().values() if p.parent == me]
    return found


def process(pid: int) -> Process | None:
    """One process, None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in parentheses and may hold anything: read on after the last one.
    fields = text[text.rfind(b")") + 2 :].split(None, 4)
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0].decode())


def carries(pid: int, mark: str) -> bool:
    """Whether a process has ``mark`` in its environment, or an environment swept clean.

    A process that wiped its environment on its way out of the group has no
    ``PATH`` either; what other parts of claw start always has one.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read()
    except OSError:
        return False
    return mark.encode() in environ or b"PATH=" not in environ


def family(leader: int, is_ours: Callable[[Process], bool]) -> list[Process]:
    """Everybody who belongs to the command led by ``leader``, the dead included.

    Members of its session and group, children of this process of which ``is_ours``
    claims that they came from the command, and all their descendants.
    """
    everybody = _everybody()
    me = os.getpid()
    belong = {
        p.pid
        for p in everybody.values()
        if leader in (p.pid, p.session, p.group) or (p.parent == me and is_ours(p))
    }
    grown = True
    while grown:
        new = {p.pid for p in everybody.values() if p.parent in belong} - belong
        belong |= new
        grown = bool(new)
    return [everybody[pid] for pid in sorted(belong)]


def _everybody() -> dict[int, Process]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    found = (process(int(name)) for name in names if name.isdigit())
    return {p.pid: p for p in found if p is not None}
