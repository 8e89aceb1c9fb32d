"""From the groups of a rule to a task, or None where the words cannot be meant that way."""

from __future__ import annotations

import re

from claw.models.offline.tasks import (
    CountFiles,
    CreateFile,
    FindDefinition,
    FindText,
    FindTodos,
    FindUses,
    ListFiles,
    ReadFile,
    ReplaceText,
    RunCommand,
    ShowCode,
    Task,
)
from claw.models.offline.words import (
    CJK,
    FOLDERS,
    LANGUAGES,
    NAME,
    PATH,
    QUOTED,
    Groups,
    file_in,
    glob_in,
    is_code_word,
    is_file,
    is_quoted,
    name_in,
    number,
    path_in,
    unquote,
)

__all__ = [
    "count_files",
    "create_file",
    "find_definition",
    "find_place",
    "find_text",
    "find_todos",
    "find_uses",
    "grep",
    "list_files",
    "list_folder",
    "list_named",
    "read_file",
    "replace_text",
    "run_command",
    "search_in",
    "show_code",
    "show_definition",
]

FEW_LINES = 10  # where a prompt does not say how many


def find_definition(groups: Groups) -> Task | None:
    given = groups["name"].strip()
    if not is_quoted(given) and is_file(given):
        return ListFiles(f"**/{given.lstrip('./')}")
    words = given.split()
    if is_quoted(given) or len(words) == 1:
        return FindDefinition((name_in(groups),), path_in(groups))
    if not all(re.fullmatch(r"[A-Za-z][\w-]*", word) for word in words):
        return None
    return FindDefinition(tuple(words), path_in(groups)) if len(words) <= 4 else None


def find_place(groups: Groups) -> Task | None:
    """ "where is X", "where are X handled": X may be a name, a file or some words."""
    given = groups["name"].strip()
    if is_quoted(given) or len(given.split()) == 1:
        return find_definition(groups)
    words = re.sub(r"\s+(?:\w+ed|set|done|kept|made|built|read|written|run|sent)$", "", given)
    return FindText(words) if len(words.split()) <= 4 else None


def show_definition(groups: Groups) -> Task | None:
    given = groups["name"].strip()
    if not ("kind" in groups or is_code_word(given)):
        return None
    return FindDefinition((name_in(groups),), path_in(groups), show=True)


def find_uses(groups: Groups) -> Task | None:
    return FindUses(name_in(groups), path_in(groups))


def find_text(groups: Groups) -> Task | None:
    given = re.sub(
        r"^(?:(?:all|the|a|an|every|any|me|of|text|string|word|phrase|pattern|code|places?|lines?"
        r"|occurrences?|mentions?|instances?|for|that|with|containing|mentioning|where)\s+)+",
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
    quoted, path = is_quoted(given), path_in(groups)
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
        if scope and (scope[3] or is_file(unquote(scope[2])) or scope[2].lower() in FOLDERS):
            text, path, quoted = unquote(scope[1]), unquote(scope[2]), is_quoted(scope[1])
    if not (quoted or path) and is_file(text) and "pattern" not in groups:
        return ListFiles(f"**/{text.lstrip('./')}")
    if not quoted and len(text.split()) > 8:
        return None
    return FindText(text, path, is_pattern="pattern" in groups, quoted=quoted)


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


def show_code(groups: Groups) -> Task | None:
    path = file_in(groups)
    if path is None or not ("kind" in groups or re.fullmatch(NAME, unquote(groups["name"]))):
        return None
    return ShowCode(name_in(groups), path)


def list_files(groups: Groups) -> Task | None:
    return ListFiles(glob_in(groups), path_in(groups))


def list_folder(groups: Groups) -> Task | None:
    path = path_in(groups)
    if "*" in path:
        return ListFiles(path if "/" in path else f"**/{path}")
    known = path.endswith("/") or path.lower().strip("./") in FOLDERS or path in {".", ".."}
    if not (known or "said" in groups or ("/" in path and not is_file(path.rsplit("/", 1)[1]))):
        return None
    return ListFiles(path=path.rstrip("/") or "/")


def list_named(groups: Groups) -> Task | None:
    name = unquote(groups["text"])
    return ListFiles(name if "*" in name and "/" in name else f"**/{name}")


def count_files(groups: Groups) -> Task | None:
    return CountFiles(glob_in(groups), path_in(groups))


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
    if path and not (is_file(path) or path.lower().strip("./") in FOLDERS or path == "."):
        return find_text({"text": groups["text"]})
    return find_text({"text": parts["text"], "path": path, "pattern": "yes"})
