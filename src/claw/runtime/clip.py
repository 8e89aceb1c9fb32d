"""One output limit for all tools: head and tail stay, the whole text goes to a blob."""

from __future__ import annotations

from claw.ports import Blobs

__all__ = ["HEAD", "LIMIT", "TAIL", "clip"]

LIMIT = 30_000
"""Characters of a result that the model sees."""
HEAD = 20_000
TAIL = 8_000


def clip(text: str, blobs: Blobs, lost: int = 0) -> tuple[str, str]:
    """The text within the limit, and the digest of the whole ("" where all of it fits).

    ``lost`` bytes are missing from ``text`` already: the tool kept no more.
    """
    if len(text) <= LIMIT:
        return text, ""
    head, tail = text[:HEAD], text[-TAIL:]
    # Cut at line ends, unless the lines are longer than what is shown.
    if (end := head.rfind("\n")) > HEAD // 2:
        head = head[: end + 1]
    if 0 <= (start := tail.find("\n")) < TAIL // 2:
        tail = tail[start + 1 :]
    omitted = text[len(head) : len(text) - len(tail)]
    lines, size = omitted.count("\n"), len(omitted.encode("utf-8", "replace"))
    digest = blobs.put(text.encode("utf-8", "replace"))
    path = blobs.path(digest)
    what = "the full text" if not lost else f"the text, without {lost} bytes lost before,"
    where = f"; {what} is in {path}" if path else ""
    return f"{head}\n[... {lines} lines / {size} bytes omitted{where} ...]\n{tail}", digest
