"""What the offline model can be asked for, as values."""

from __future__ import annotations

import msgspec

__all__ = [
    "CountFiles",
    "CreateFile",
    "FindDefinition",
    "FindText",
    "FindTodos",
    "FindUses",
    "Help",
    "ListFiles",
    "Overview",
    "ReadFile",
    "ReplaceText",
    "RunCommand",
    "ShowCode",
    "Task",
]


class Help(msgspec.Struct, frozen=True):
    """What can you do?"""


class Overview(msgspec.Struct, frozen=True):
    """What is this project? The README says."""


class FindDefinition(msgspec.Struct, frozen=True):
    """``words``: an identifier, or several words that may be spelt as one.

    ``show``: with the code, where there is one definition.
    """

    words: tuple[str, ...]
    path: str = ""
    show: bool = False


class FindUses(msgspec.Struct, frozen=True):
    name: str
    path: str = ""


class FindText(msgspec.Struct, frozen=True):
    """``is_pattern``: an expression as ``grep`` takes it, not words."""

    text: str
    path: str = ""
    glob: str = ""
    is_pattern: bool = False
    quoted: bool = False


class FindTodos(msgspec.Struct, frozen=True):
    path: str = ""


class ReadFile(msgspec.Struct, frozen=True):
    """Lines from ``first`` (1 is the first one), ``count`` of them; a negative
    ``count`` is that many from the end; None is a page."""

    path: str
    first: int = 1
    count: int | None = None


class ShowCode(msgspec.Struct, frozen=True):
    """One function, class or the like of a file."""

    name: str
    path: str


class ListFiles(msgspec.Struct, frozen=True):
    pattern: str = "**/*"
    path: str = ""


class CountFiles(msgspec.Struct, frozen=True):
    pattern: str = "**/*"
    path: str = ""


class RunCommand(msgspec.Struct, frozen=True):
    command: str


class ReplaceText(msgspec.Struct, frozen=True):
    old: str
    new: str
    path: str


class CreateFile(msgspec.Struct, frozen=True):
    path: str
    text: str


Task = (
    Help
    | Overview
    | FindDefinition
    | FindUses
    | FindText
    | FindTodos
    | ReadFile
    | ShowCode
    | ListFiles
    | CountFiles
    | RunCommand
    | ReplaceText
    | CreateFile
)
