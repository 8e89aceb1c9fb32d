"""What the offline model can be asked for, as values."""

from __future__ import annotations

import msgspec

__all__ = [
    "CountFiles",
    "CountLines",
    "CreateFile",
    "FindDefinition",
    "FindImports",
    "FindText",
    "FindTodos",
    "FindUses",
    "Help",
    "ListFiles",
    "Outline",
    "Overview",
    "ReadFile",
    "ReplaceText",
    "RunCommand",
    "RunTests",
    "Several",
    "ShowCode",
    "ShowWord",
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
    """``is_pattern``: an expression as ``grep`` takes it, not words.

    ``whole``: what is meant instead where ``path`` turns out to be no place, or
    has nothing: "foo in bar" may be three words. ``only_files``: the files, not the lines.
    """

    text: str
    path: str = ""
    glob: str = ""
    is_pattern: bool = False
    quoted: bool = False
    whole: str = ""
    only_files: bool = False


class FindImports(msgspec.Struct, frozen=True):
    name: str
    path: str = ""


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


class ShowWord(msgspec.Struct, frozen=True):
    """A word that may be a file, a folder or a definition."""

    word: str


class Outline(msgspec.Struct, frozen=True):
    """How a file begins and what is in it, where somebody wants it explained."""

    path: str


class ListFiles(msgspec.Struct, frozen=True):
    pattern: str = "**/*"
    path: str = ""


class CountFiles(msgspec.Struct, frozen=True):
    pattern: str = "**/*"
    path: str = ""


class CountLines(msgspec.Struct, frozen=True):
    path: str = ""
    glob: str = ""


class RunTests(msgspec.Struct, frozen=True):
    """With the program that the project seems to use for that."""


class RunCommand(msgspec.Struct, frozen=True):
    command: str


class ReplaceText(msgspec.Struct, frozen=True):
    old: str
    new: str
    path: str


class CreateFile(msgspec.Struct, frozen=True):
    path: str
    text: str


class Several(msgspec.Struct, frozen=True):
    """One after another, answered together."""

    tasks: tuple[Task, ...]


Task = (
    Help
    | Overview
    | FindDefinition
    | FindUses
    | FindText
    | FindImports
    | FindTodos
    | ReadFile
    | ShowCode
    | ShowWord
    | Outline
    | ListFiles
    | CountFiles
    | CountLines
    | RunCommand
    | RunTests
    | ReplaceText
    | CreateFile
    | Several
)
