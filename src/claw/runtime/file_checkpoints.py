"""Files as they were before the session changed them, and putting them back."""

from __future__ import annotations

from claw.errors import SessionError, ToolFailed
from claw.ports import Ports
from claw.runtime.recorder import Recorder
from claw.types.effects import Facts, WritePath
from claw.types.entries import Checkpointed
from claw.types.session import SessionState

__all__ = ["keep_files", "put_back"]

MOST_BYTES = 64 * 1024 * 1024
"""More than any tool changes; what is larger cannot be put back."""


def keep_files(ports: Ports, log: Recorder, call_id: str, facts: Facts) -> None:
    """Put on record what a call is about to change: each file once a turn."""
    kept = {saved.path for saved in log.state.checkpoints[log.state.turn_checkpoints :]}
    for seen in facts.observed:
        if isinstance(seen.effect, WritePath) and seen.real not in kept:
            try:
                log.record(_as_it_is(ports, call_id, seen.real))
            except ToolFailed:  # the call cannot change it either, and will say why
                continue


def put_back(ports: Ports, log: Recorder, past: SessionState) -> tuple[list[str], list[str]]:
    """Make the files that were changed since ``past`` what they were then.

    Returns their paths, and why others were left alone. What is replaced is kept, so that
    this can be undone in the same way.
    """
    first: dict[str, Checkpointed] = {}
    for saved in log.state.checkpoints[len(past.checkpoints) :]:
        first.setdefault(saved.path, saved)
    done: list[str] = []
    left: list[str] = []
    for path, saved in first.items():
        try:
            if _restore(ports, log, saved):
                done.append(path)
        except (ToolFailed, SessionError) as error:
            left.append(error.message)
    return done, left


def _restore(ports: Ports, log: Recorder, saved: Checkpointed) -> bool:
    """Whether anything had to be done."""
    path = saved.path
    if saved.secret:
        raise ToolFailed(_not_kept(path))
    now = ports.workspace.peek(path, limit=MOST_BYTES)
    before = None if saved.before is None else ports.blobs.get(saved.before)
    if (None if now is None else now.data) == before:
        return False
    replaced = _as_it_is(ports, "", path)
    if replaced.secret:  # this could not be undone
        raise ToolFailed(_not_kept(path))
    log.record(replaced)
    if before is not None:
        expect = None if now is None else now.digest
        ports.workspace.write(path, before, expect=expect, mode=saved.mode)
    elif now is not None:
        ports.workspace.remove(path, expect=now.digest)
    return True


def _as_it_is(ports: Ports, call_id: str, path: str) -> Checkpointed:
    found = ports.workspace.peek(path, limit=MOST_BYTES)
    if found is None:
        return Checkpointed(call_id, path, None)
    text = found.data.decode("utf-8", "surrogateescape")
    if ports.redactor.clean(text) != text:
        return Checkpointed(call_id, path, None, secret=True)
    return Checkpointed(call_id, path, ports.blobs.put(found.data), found.mode)


def _not_kept(path: str) -> str:
    return f"{path} holds a secret, which no session keeps: it is left as it is"
