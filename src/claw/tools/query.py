"""What is searched for and what was found, however the search is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from claw.tools.patterns import beneath, path_matcher

__all__ = ["SECRETS", "WIDEST", "Found", "Hit", "Query", "Searcher"]

_SECRET_FILES = ".env,.env.*,.envrc,.netrc,.pgpass,.git-credentials,.pypirc,.htpasswd"
_SECRET_KEYS = "id_rsa,id_dsa,id_ecdsa,id_ed25519"
_SECRET_FOLDERS = ".ssh,.gnupg,.aws,.password-store"
SECRETS = f"{{{_SECRET_FILES},{_SECRET_KEYS},{_SECRET_FOLDERS}}}"
"""What holds secrets by convention, in any case: searched only when it is named itself."""

WIDEST = 500
"""Characters of a line that are shown."""


class Query(msgspec.Struct, frozen=True):
    """``path`` is relative to the root or absolute, with links resolved.

    ``private``: secrets were asked for, so they are searched too.
    """

    pattern: str
    path: str
    mode: Literal["files_with_matches", "content", "count"]
    glob: str = ""
    type: str = ""
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    most: int = 250
    private: bool = False

    def path_filter(self) -> Callable[[str], bool]:
        """Whether ``glob`` wants a path, seen from the root or from where the search starts."""
        if not self.glob:
            return lambda path: True
        wanted = path_matcher(self.glob.removeprefix("!"))
        negated = self.glob.startswith("!")
        return lambda path: (wanted(path) or wanted(beneath(path, self.path))) != negated


class Hit(msgspec.Struct, frozen=True):
    """A line (``number`` from 1), or in the mode ``count`` the number of occurrences."""

    path: str
    number: int = 0
    text: str = ""
    matched: bool = True


class Found(msgspec.Struct):
    """``gaps`` are positions in ``hits`` before which lines were left out."""

    hits: list[Hit] = []
    gaps: set[int] = set()
    notes: list[str] = []


class Searcher(Protocol):
    """Raises only ``ToolFailed``. ``.git`` is never searched, links are not followed."""

    async def files(self, path: str, matches: Callable[[str], bool]) -> Found:
        """Files beneath ``path`` whose path relative to it matches, sorted."""

    async def lines(self, query: Query) -> Found: ...
