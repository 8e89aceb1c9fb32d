"""What the session has seen of files, so that nothing unseen is overwritten."""

from __future__ import annotations

__all__ = ["ReadLedger"]


class ReadLedger:
    """Real paths and the digest of the content that was last read or written."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    def note(self, real: str, digest: str) -> None:
        self._digests[real] = digest

    def seen(self, real: str) -> str | None:
        """The digest of what was seen; None for a file that was not."""
        return self._digests.get(real)
