"""From the groups of a rule to a task, or None where the words cannot be meant that way."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from claw.models.offline.commands import is_command
from claw.models.offline.tasks import (
    CountFiles,
    CountLines,
    CreateFile,
    FindDefinition,
    FindImports,
    FindText,
    FindTodos,
    FindUses,
    ListFiles,
    Outline,
    ReadFile,
    ReplaceText,
    RunCommand,
    Several,
    ShowCode,
    ShowWord,
    Task,
)
from claw.models.offline.words import (
    CJK,
    FILE,
    FOLDERS,
    LANGUAGES,
    ONE_NAME,
    PATH,
    QUOTED,
    Groups,
    file_in,
    glob_in,
    is_code_word,
    is_file,
    is_quoted,
    name_in,
    names_in,
    number,
    path_in,
    unquote,
)

__all__ = [
    "count_files",
    "count_lines",
    "create_file",
    "find_definition",
    "find_definition_and_uses",
    "find_files",
    "find_imports",
    "find_place",
    "find_text",
    "find_todos",
    "find_uses",
    "grep",
    "list_files",
    "list_folder",
    "list_named",
    "outline",
    "read_file",
    "read_files",
    "replace_text",
    "run_command",
    "search_in",
    "show_code",
    "show_definition",
    "show_word",
    "type_command",
]

FEW_LINES = 10  # where a prompt does not say how many


# "show me more", "explain how", "who calls foo and why": no names.
NO_NAMES = frozenset(
    [
        *("all", "anything", "code", "everything", "files", "here", "how", "it", "me", "more"),
        *("something", "that", "them", "there", "these", "this", "those", "us", "what", "when"),
        *("where", "which", "who", "why", "you", "yourself"),
    ]
)


def _each(groups: Groups, make: Callable[[Groups], Task | None]) -> Task | None:
    """A task for each of several names; None unless all of them are understood."""
    tasks = []
    for name in names_in(groups):
        task = None if name.lower() in NO_NAMES else make(groups | {"name": name})
        if task is None:
            return None
        tasks.append(task)
    return tasks[0] if len(tasks) == 1 else Several(tuple(tasks)) if tasks else None


def find_definition(groups: Groups) -> Task | None:
    given = groups["name"].strip()
    # "search and replace" may be the name of one thing.
    names = names_in(groups) if re.fullmatch(ONE_NAME, given) else ()
    sure = "many" in groups or " and " not in given or any(map(is_code_word, names))
    if len(names) > 1 and sure:
        return _each(groups, find_definition)
    if not is_quoted(given) and is_file(given):
        return ListFiles(f"**/{given.lstrip('./')}")
    words = given.split()
    if is_quoted(given) or len(words) == 1:
        return FindDefinition((name_in(groups),), path_in(groups))
    if not all(re.fullmatch(r"[A-Za-z][\w-]*", word) for word in words):
        return None
    return FindDefinition(tuple(words), path_in(groups)) if len(words) <= 4 else None


def find_definition_and_uses(groups: Groups) -> Task | None:
    defined, used = find_definition(groups), find_uses(groups)
    return Several((defined, used)) if defined and used else None


def find_imports(groups: Groups) -> Task | None:
    return FindImports(unquote(groups["name"]).removesuffix("()"), path_in(groups))


def find_files(groups: Groups) -> Task | None:
    """ "which files mention ..."."""
    task = find_text(groups)
    return msgspec.structs.replace(task, only_files=True) if isinstance(task, FindText) else task


def find_place(groups: Groups) -> Task | None:
    """ "where is X", "where are X handled": X may be a name, a file or some words."""
    given = groups["name"].strip()
    several = re.fullmatch(ONE_NAME, given) and any(map(is_code_word, names_in(groups)))
    if is_quoted(given) or len(given.split()) == 1 or several:
        return find_definition(groups)
    words = re.sub(r"\s+(?:\w+ed|set|done|kept|made|built|read|written|run|sent)$", "", given)
    return FindText(words) if len(words.split()) <= 4 else None


def show_definition(groups: Groups) -> Task | None:
    return _each(groups, _show_one)


def _show_one(groups: Groups) -> Task | None:
    given = groups["name"].strip()
    if not ({"kind", "kind2"} & groups.keys() or is_code_word(given)):
        return None
    return FindDefinition((name_in(groups),), path_in(groups), show=True)


def show_word(groups: Groups) -> Task | None:
    """A word that says by itself neither that it is a path nor that it is a name."""
    word = unquote(groups["name"]).strip().removesuffix("()")
    return None if word.lower() in NO_NAMES else ShowWord(word)


def find_uses(groups: Groups) -> Task | None:
    return _each(groups, lambda g: FindUses(name_in(g), path_in(g)))


def find_text(groups: Groups) -> Task | None:
    given = re.sub(
        r"^(?:(?:all|the|a|an|every|any|me|of|text|string|word|phrase|pattern|code|places?|lines?"
        r"|occurrences?|mentions?|instances?|for|that|with|containing|mentioning|where)\s+(?!(?:in|inside|under|within)\b))+",
        "",
        groups["text"].strip(),
        flags=re.I,
    )
    given = re.sub(r"^(?:所有|全部|关键字|关键词|文本|字符串|包含)+(?:的)?\s*", "", given)
    text = unquote(given)
    # "find out why ..." and "find and fix ..." ask for thought, not for text.
    vague = re.match(r"(?:out|why|how|whether|if|and|web|internet)\b", text, re.I)
    if not text.strip() or (vague and not is_quoted(given)):
        return None
    quoted, path, whole = is_quoted(given), path_in(groups), ""
    if not quoted and not path and "pattern" not in groups:
        scope = re.fullmatch(
            r"(.+?)\s+(?:in|inside|under|within)\s+(?:the\s+)?(\S+?)"
            r"(\s+(?:folder|directory|dir|file|files))?",
            text,
            re.DOTALL,
        )
        if scope and scope[3] == " files" and scope[2].lower() in LANGUAGES:
            sort = glob_in({"lang": scope[2]})
            return FindText(unquote(scope[1]), glob=sort, quoted=is_quoted(scope[1]))
        if scope:
            place, known = unquote(scope[2]), scope[3] or is_quoted(scope[1])
            # Any word may be a folder here: where it is none, all the words are looked for.
            whole = "" if known or is_file(place) or place.lower() in FOLDERS else text
            text, path, quoted = unquote(scope[1]), place, is_quoted(scope[1])
    if not (quoted or path) and is_file(text) and "pattern" not in groups:
        return ListFiles(f"**/{text.lstrip('./')}")
    if not quoted and len(text.split()) > 8:
        return None
    return FindText(text, path, is_pattern="pattern" in groups, quoted=quoted, whole=whole)


def search_in(groups: Groups) -> Task | None:
    """ "search X for ...", where X may be a place here but also "the web"."""
    place = path_in(groups)
    known = is_quoted(groups["path"]) or is_file(place) or place.lower() in FOLDERS
    return find_text(groups) if known else None


def find_todos(groups: Groups) -> Task | None:
    return FindTodos(path_in(groups))


def read_file(groups: Groups) -> Task | None:
    path = file_in(groups)
    if path is None:
        return None
    if "from" in groups:
        first = max(1, number(groups["from"]))
        last = max(first, number(groups["until"])) if "until" in groups else first
        return ReadFile(path, first, last - first + 1)
    if "end" in groups:
        return ReadFile(path, 1, -(number(groups["n"]) if "n" in groups else FEW_LINES))
    if "start" in groups:
        return ReadFile(path, 1, max(1, number(groups["n"])) if "n" in groups else FEW_LINES)
    return ReadFile(path)


def read_files(groups: Groups) -> Task | None:
    """ "show a.py and b.py"."""
    given = [part for part in re.findall(rf"{QUOTED}|{FILE}", groups["files"]) if part != "and"]
    if not all(is_quoted(part) or is_file(part) for part in given):
        return None
    return Several(tuple(ReadFile(unquote(part)) for part in given))


def show_code(groups: Groups) -> Task | None:
    path = file_in(groups)
    if path is None:
        return None
    return _each(groups, lambda g: ShowCode(name_in(g), path))


def outline(groups: Groups) -> Task | None:
    path = file_in(groups)
    return None if path is None else Outline(path)


def list_files(groups: Groups) -> Task | None:
    return ListFiles(glob_in(groups), path_in(groups))


def list_folder(groups: Groups) -> Task | None:
    path = path_in(groups)
    if "*" in path:
        return ListFiles(path if "/" in path else f"**/{path}")
    known = path.endswith("/") or path.lower().strip("./") in FOLDERS or path in {".", ".."}
    if not (known or "said" in groups):
        return None
    return ListFiles(path=path.rstrip("/") or "/")


def list_named(groups: Groups) -> Task | None:
    name = unquote(groups["text"])
    return ListFiles(name if "*" in name and "/" in name else f"**/{name}")


def count_files(groups: Groups) -> Task | None:
    return CountFiles(glob_in(groups), path_in(groups))


def count_lines(groups: Groups) -> Task | None:
    path = unquote(groups.get("file", "")).strip()
    sort = glob_in(groups)
    return CountLines(path or path_in(groups), "" if sort == "**/*" else sort)


def type_command(groups: Groups) -> Task | None:
    """A prompt that is a command line. What the tools that only read can do, is left to them."""
    line = groups["command"].strip()
    simple = rf"ls(?:\s+(?!-){FILE})?|cat\s+{FILE}|(?:head|tail)(?:\s+-n?\s*\d+)?\s+{FILE}|tree"
    if re.fullmatch(simple, line) or not is_command(line):
        return None
    return RunCommand(line)


def run_command(groups: Groups) -> Task | None:
    given = groups["command"].strip()
    if not is_quoted(given):
        given = re.sub(
            r"\s+and\s+(?:then\s+)?(?:show|tell|print|give|report|explain|summari[sz]e)\b.*$",
            "",
            given,
            flags=re.I | re.DOTALL,
        ).rstrip("。？?")
    command = unquote(given)
    vague = r"(?:the|my|a|an|all|some|it|this|that|these|those|your)\b|(?:unit\s+)?tests?[.!]?$"
    if not is_quoted(given) and re.match(rf"{vague}|{CJK}", command, re.I):
        return None
    return RunCommand(command) if command.strip() else None


def replace_text(groups: Groups) -> Task | None:
    path = unquote(groups["file"].strip().rstrip(",\uff0c。"))
    if not is_quoted(groups["file"]) and path.endswith("."):
        path = path[:-1]
    old, new = unquote(groups["old"]), unquote(groups["new"])
    return ReplaceText(old, new, path) if old and path else None


def create_file(groups: Groups) -> Task | None:
    path = file_in(groups)
    if path is None:
        return None
    return CreateFile(path, unquote(groups.get("text", "")))


def grep(groups: Groups) -> Task | None:
    """``grep [FLAGS] PATTERN [PATH]``, as one types it in a shell, or words after it."""
    parts = re.fullmatch(rf"(?P<text>{QUOTED}|\S+)(?:\s+(?:in\s+)?{PATH})?", groups["text"])
    if parts is None:
        return find_text({"text": groups["text"]})
    path = path_in({k: v for k, v in parts.groupdict().items() if v})
    task = find_text({"text": parts["text"], "path": path, "pattern": "yes"})
    known = not path or is_file(path) or path.lower().strip("./") in FOLDERS or path == "."
    if known or is_quoted(parts["text"]) or not isinstance(task, FindText):
        return task
    # "grep permission denied": the last word may be a folder or be looked for too.
    return msgspec.structs.replace(task, whole=groups["text"])
