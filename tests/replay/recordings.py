"""Sessions to replay, and recordings in which something was changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from claw.engine.replaying import replay_session
from claw.sessions.load import read_entries
from claw.sessions.record import encode_record
from claw.testing import Harness
from claw.types.entries import Entry, ToolFinished, TurnEnded, UserMessaged
from claw.types.messages import Text

HOOK = """#!/bin/sh
read -r payload
case "$payload" in
  *secret.txt*) echo "not that file" >&2; exit 2 ;;
  *PostToolUse*) echo '{"hookSpecificOutput": {"additionalContext": "mind the tests"}}' ;;
  *) exit 1 ;;
esac
"""


def hooked(*events: str) -> dict[str, object]:
    """Settings with one hook for these events."""
    hook = {"hooks": [{"type": "command", "command": "sh hook.sh"}]}
    return {"hooks": {event: [hook] for event in events}}


async def same(run: Harness) -> None:
    """It replays whole, turn by turn."""
    report = await replay_session(str(journal(run)))
    report.check()
    assert not report.ended_early
    recorded = {e.turn for e in run.entries if isinstance(e, TurnEnded)}
    assert report.turns == len(recorded)


def journal(run: Harness) -> Path:
    path = run.house.journal_path
    assert path is not None
    return Path(path)


def changed(path: Path, change: Callable[[Entry], Entry]) -> Path:
    """The recording with other entries in place of some, under valid checksums."""
    lines = [
        encode_record(
            change(record.entry), seq=record.seq, id=record.id, parent=record.parent, at=record.at
        )
        for record in read_entries(str(path))
    ]
    path.write_bytes(b"".join(lines))
    return path


def shortened(path: Path, records: int) -> Path:
    """The first records of it, as a process leaves them that was killed then."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:records]))
    return path


def with_text(entry: Entry, kind: type, text: str) -> Entry:
    """The entry, with another text if it is of this kind."""
    if not isinstance(entry, kind) or not isinstance(entry, UserMessaged | ToolFinished):
        return entry
    first = entry.content[0]
    assert isinstance(first, Text)
    return replace(entry, content=(replace(first, text=text), *entry.content[1:]))
