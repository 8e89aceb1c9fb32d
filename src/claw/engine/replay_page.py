"""A replay beside its recording, as one HTML page."""

from __future__ import annotations

from collections.abc import Callable

from claw.errors import SessionError
from claw.models.prices import cost
from claw.recordings.align import pairs
from claw.recordings.verify import Replayed
from claw.sessions.blobs import blobs_dir, read_blob
from claw.viewer.compare import Verdict, comparison

__all__ = ["page_of_replay"]


def page_of_replay(path: str, report: Replayed, clean: Callable[[str], str]) -> bytes:
    """``path`` is the recording's; ``clean`` takes the secrets out of a text."""
    folder = blobs_dir(path)

    def blob(digest: str) -> bytes | None:
        try:
            return read_blob(folder, digest)
        except SessionError:
            return None

    first = report.differences[0] if report.differences else None
    verdict = Verdict(
        turns=report.turns,
        steps=report.steps,
        live=report.live,
        stale=report.stale,
        ended_early=report.ended_early,
        edited=report.edited,
        stopped=any(each.stopped for each in report.played),
        first=str(first or ""),
        expected=first.expected if first else "",
        actual=first.actual if first else "",
    )
    return comparison(pairs(report), verdict, clean=clean, blob=blob, price=cost).encode()
