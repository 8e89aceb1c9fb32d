"""The guard: what a killed claw leaves behind is ended by a small watchdog.

``kill -9`` gives claw no chance to clean up. So the first child is accompanied
by one ``/bin/sh`` that reads the ids of running process groups from a pipe. The
kernel closes the pipe when claw dies, however it dies; the watchdog then ends
the groups, and after them every process that carries the session's mark in its
environment (where ``/proc`` tells), which also finds those that left their group.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

__all__ = ["MARK_VARIABLE", "Guard"]

MARK_VARIABLE = "CLAW_SESSION_MARK"

# Only builtins, `sleep` and `grep`. The watchdog ignores what a terminal may send
# and leads its own session. Its own environment does not carry the mark.
_WATCHDOG = r"""
trap '' HUP INT QUIT TERM
groups=' '
while read -r verb group; do
  case $verb in
    +) groups="$groups$group " ;;
    -) case $groups in
         *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;;
       esac ;;
    q) exit 0 ;;
  esac
done
if [ -n "${groups# }" ]; then
  for group in $groups; do kill -TERM "-$group"; kill -CONT "-$group"; done
  sleep 0.3 || sleep 1
  for group in $groups; do kill -KILL "-$group"; done
fi
[ -r /proc/self/environ ] || exit 0
# A child that was just started carries the mark only after its exec: look for a while.
rounds=0
empty=0
while [ $rounds -lt 30 ] && [ $empty -lt 11 ]; do
  rounds=$((rounds + 1))
  empty=$((empty + 1))
  marked=$(grep -lsF "$1" /proc/[0-9]*/environ)
  [ -z "$marked" ] || empty=0
  for file in $marked; do
    pid=${file#/proc/}
    kill -KILL "${pid%/environ}"
  done
  sleep 0.05 || sleep 1
done
"""


class Guard:
    """One watchdog, started with the first child. ``mark`` is unique to this object."""

    def __init__(self) -> None:
        self.mark = os.urandom(8).hex()
        self._shell: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def pid(self) -> int | None:
        """The watchdog's process id, None before the first child."""
        return self._shell.pid if self._shell else None

    def start(self, environ: Mapping[str, str]) -> None:
        """Start the watchdog unless it runs. Raises ``OSError`` where there is no shell."""
        if self._shell is not None:
            return
        reader, writer = os.pipe()
        try:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _WATCHDOG, "claw-guard", self.mark],
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                # The system's own programs first: others may lie in the workspace.
                env={"PATH": f"{os.defpath}:{environ.get('PATH', '')}".rstrip(":")},
                start_new_session=True,
            )
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)
        os.set_blocking(writer, False)  # a stopped watchdog must not stop claw
        self._pipe = writer

    def watch(self, group: int) -> None:
        """Have ``group`` ended when claw dies."""
        self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """Before the group's leader is reaped: then its id may be used again."""
        self._tell(f"- {group}\n")

    def close(self) -> None:
        """Dismiss the watchdog; without this it leaves by itself when claw has ended."""
        if self._shell is None:
            return
        self._tell("q\n")
        os.close(self._pipe)
        try:
            self._shell.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()
        self._shell = None
        self._pipe = -1

    def _tell(self, line: str) -> None:
        if self._pipe < 0:
            return
        try:
            os.write(self._pipe, line.encode())
        except (BrokenPipeError, BlockingIOError):
            # The watchdog is gone or stopped: the command itself is unharmed.
            return
