"""Names for the places of a machine, so that what was recorded on one serves on another.

``${CWD}`` is the workspace, ``${HOME}`` the home, ``${BLOBS}`` the folder of a session's
long texts. Text that says so by itself gets one ``$`` more, and loses it again: whatever
a text holds, it comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = ["with_names", "with_places"]

_NAMES = r"(\$+)\{(CWD|HOME|BLOBS)\}"


def with_names(text: str, places: Iterable[tuple[str, str]]) -> str:
    """``places`` are pairs of a path and its name, ``("/tmp/x", "CWD")``; a longer path wins."""
    text = re.sub(_NAMES, r"$\1{\2}", text)
    names = {path: name for path, name in places if path}
    if not any(path in text for path in names):
        return text
    paths = "|".join(re.escape(path) for path in sorted(names, key=len, reverse=True))
    # Not behind a `$`: that would read as a name that the text has by itself.
    return re.sub(rf"(?<!\$)(?:{paths})", lambda found: f"${{{names[found[0]]}}}", text)


def with_places(text: str, places: Mapping[str, str]) -> str:
    """The opposite; ``places`` are paths by name. A name without a path stays."""

    def place(found: re.Match[str]) -> str:
        dollars, name = found.groups()
        if len(dollars) > 1:
            return f"{dollars[1:]}{{{name}}}"
        return places.get(name, found[0])

    return re.sub(_NAMES, place, text)
