"""Plans that look for names, words and notes in files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Sequence

import msgspec

from claw.models.offline.definitions import (
    definition_pattern,
    is_call,
    is_declaration,
    is_definition,
    is_import,
    is_source,
    literal,
    spellings,
    whole_word,
)
from claw.models.offline.results import Hit, hits, is_missing, numbered_lines, paths
from claw.models.offline.tasks import (
    FindDefinition,
    FindImports,
    FindText,
    FindTodos,
    FindUses,
    ReadFile,
    ShowWord,
)
from claw.models.offline.viewing import read_file
from claw.models.offline.wording import (
    SNIPPET_LINES,
    Call,
    Plan,
    Result,
    Voice,
    block_listing,
    bullets,
    clip_note,
    code,
    count_of,
    folder_named,
    grep,
    is_cut,
    places,
    read_call,
)

__all__ = [
    "find_definition",
    "find_imports",
    "find_text",
    "find_todos",
    "find_uses",
    "show_word",
]

MOST_SNIPPETS = 3


class Looked(msgspec.Struct, frozen=True):
    """What a search gave: ``found`` are all lines, ``path`` is where it really looked."""

    result: Result
    found: tuple[Hit, ...]
    path: str = ""


def _look_if_there(
    pattern: str, path: str, glob: str = ""
) -> Generator[Call, Result, Looked | None]:
    """A Grep; where its folder is not there, in the one folder of that name elsewhere.

    None where there is no such place. Other errors end the plan.
    """
    call = grep(pattern, path, glob)
    result = yield msgspec.structs.replace(call, may_fail=bool(path))
    if result.is_error and is_missing(result.text):
        folder = yield from folder_named(path)
        if folder is None:
            return None
        path = folder
        call = grep(pattern, path, glob)
        result = yield call
    if result.is_error:
        yield call  # not as one that may fail
    return Looked(result, hits(result.text, path), path)


def _look(pattern: str, path: str, glob: str = "") -> Generator[Call, Result, Looked]:
    looked = yield from _look_if_there(pattern, path, glob)
    if looked is None:
        yield grep(pattern, path, glob)  # which ends the plan with its error
    return looked or Looked(Result(""), (), path)


def _look_up(
    names: tuple[str, ...], path: str
) -> Generator[Call, Result, tuple[Looked, list[Hit]]]:
    """The lines with one of the names, and those of them that define it."""
    looked = yield from _look(whole_word(names), path)
    if is_cut(looked.result, looked.found):
        # Too common a word: only the lines that look like definitions.
        looked = yield from _look(definition_pattern(names), looked.path)
    return looked, [hit for hit in looked.found if is_definition(names, hit.path, hit.text)]


# -- names ---------------------------------------------------------------------------------


def find_definition(task: FindDefinition, say: Voice) -> Plan:
    names = spellings(task.words)
    looked, defined = yield from _look_up(names, task.path)
    if not defined:
        return (yield from _mentions(names, code(" ".join(task.words)), looked.path, say))
    return (yield from _definitions(task, looked, defined, say))


def show_word(task: ShowWord, say: Voice) -> Plan:
    """A path or a definition: names with capitals or marks of code are looked up first."""
    named = FindDefinition((task.word,), show=True)
    if re.search(r"[A-Z_]", task.word):
        looked, defined = yield from _look_up((task.word,), "")
        if defined:
            return (yield from _definitions(named, looked, defined, say))
    result = yield read_call(task.word, 1, 1)
    if result.is_error and is_missing(result.text):
        folder = yield from folder_named(task.word)
        if folder is None:
            return (yield from find_definition(named, say))
    return (yield from read_file(ReadFile(task.word), say))


def _definitions(task: FindDefinition, looked: Looked, defined: Sequence[Hit], say: Voice) -> Plan:
    asked = code(" ".join(task.words))
    sources = [hit for hit in defined if is_source(hit.path)]
    documents = [hit for hit in defined if not is_source(hit.path)]
    parts = []
    if sources:
        n = len(sources)
        parts.append(
            say(
                f"{asked} is defined in {count_of(n, 'place', 'places')}:",
                f"{asked} 有 {n} 处定义：",
            )
        )
        parts.append(places(sources, say))
    if documents:
        parts.append(say(f"{asked} in documents:", f"文档中的 {asked}："))
        parts.append(places(documents, say))
    if task.show and len(sources) <= MOST_SNIPPETS:
        for hit in sources:
            shown = yield read_call(hit.path, hit.line, SNIPPET_LINES + 1)
            lines = numbered_lines(shown.text)
            if lines and not shown.is_error:
                title = [code(hit.place) + say(":", "：")] if len(sources) > 1 else []
                parts += [*title, block_listing(lines, hit.line, hit.path, say)]
    parts.extend(clip_note(looked.result, looked.found, say))
    return "\n\n".join(parts)


def _mentions(names: tuple[str, ...], asked: str, path: str, say: Voice) -> Plan:
    """After a definition was not found: where the name stands at all."""
    looked = yield from _look(f"(?i){whole_word(names)}", path)
    found = looked.found
    if not found:
        return say(
            f"No definition of {asked}, and no mention of it either.",
            f"没有找到 {asked} 的定义，也没有任何地方提到它。",
        )
    declared = [hit for hit in found if is_source(hit.path) and is_declaration(names, hit.text)]
    others = [hit for hit in found if hit not in declared]
    parts = [
        say(
            f"No definition of {asked} as a function, class or constant.",
            f"没有找到 {asked} 作为函数、类或常量的定义。",
        )
    ]
    if declared:
        parts.append(say("It is assigned or declared here:", "赋值或声明的位置："))
        parts.append(places(declared, say))
    if others:
        parts.append(say("It is mentioned here:", "提到它的位置："))
        parts.append(places(others, say))
    return "\n\n".join([*parts, *clip_note(looked.result, found, say)])


def find_uses(task: FindUses, say: Voice) -> Plan:
    names = (task.name,)
    looked = yield from _look(whole_word(names), task.path)
    asked = code(task.name)
    if not looked.found:
        return say(f"Nothing mentions {asked}.", f"没有任何地方提到 {asked}。")
    sources = [hit for hit in looked.found if is_source(hit.path)]
    documents = [hit for hit in looked.found if not is_source(hit.path)]
    defined = [hit for hit in sources if is_definition(names, hit.path, hit.text)]
    uses = [hit for hit in sources if hit not in defined]
    calls = [hit for hit in uses if is_call(task.name, hit.text)]
    others = [hit for hit in uses if hit not in calls]
    parts = [] if calls else [say(f"No line calls {asked}.", f"没有调用 {asked} 的行。")]
    for group, english, chinese in (
        (calls, f"{asked} is called in", f"调用 {asked} 的位置："),
        (others, f"{asked} is mentioned in", f"提到 {asked} 的位置："),
        (defined, f"{asked} is defined in", f"{asked} 的定义："),
    ):
        if group:
            parts.append(say(f"{english} {count_of(len(group), 'place', 'places')}:", chinese))
            parts.append(places(group, say))
    if documents:
        lines, files = len(documents), len({hit.path for hit in documents})
        parts.append(
            say(
                f"Documents mention it: {count_of(lines, 'line', 'lines')}"
                f" in {count_of(files, 'file', 'files')}.",
                f"另外，{files} 个文档中有 {lines} 行提到它。",
            )
        )
    return "\n\n".join([*parts, *clip_note(looked.result, looked.found, say)])


def find_imports(task: FindImports, say: Voice) -> Plan:
    asked = code(task.name)
    word = whole_word((task.name,))
    looked = yield from _look(word, task.path)
    if is_cut(looked.result, looked.found):
        looked = yield from _look(
            rf"\b(?:import|from|use|using|include|require)\b.*{word}", looked.path
        )
    imports = [hit for hit in looked.found if is_source(hit.path) and is_import(hit.text)]
    files = len({hit.path for hit in imports})
    if imports:
        head = say(
            f"{count_of(files, 'file imports', 'files import')} {asked}:",
            f"导入 {asked} 的文件有 {files} 个：",
        )
        parts = [head, places(imports, say)]
    else:
        parts = [say(f"No line imports {asked}.", f"没有导入 {asked} 的行。")]
    return "\n\n".join([*parts, *clip_note(looked.result, looked.found, say)])


# -- words ---------------------------------------------------------------------------------


def find_text(task: FindText, say: Voice) -> Plan:
    """Where the words may name a place: there first, else for all of the words."""
    if not task.whole:
        answer, _ = yield from _find_words(task, say)
        return answer
    inside = msgspec.structs.replace(task, whole="")
    other = FindText(task.whole, only_files=task.only_files)
    pattern = _first_pattern(inside, _words(inside))
    looked = yield from _look_if_there(pattern, task.path, task.glob)
    if looked is None:
        answer, _ = yield from _find_words(other, say)
        return answer
    answer, found = yield from _find_words(msgspec.structs.replace(inside, path=looked.path), say)
    if not found:
        again, found = yield from _find_words(other, say)
        answer = f"{answer}\n\n{again}" if found else answer
    return answer


def _find_words(task: FindText, say: Voice) -> Generator[Call, Result, tuple[str, bool]]:
    """The answer, and whether anything was found."""
    words = _words(task)
    looked = yield from _look(_first_pattern(task, words), task.path, task.glob)
    asked, where = code(task.text), _where(looked.path, say)
    if looked.found:
        return _found_text(task, looked, words, say), True
    nothing = say(f"No line matches {asked}{where}.", f"没有匹配 {asked} 的行{where}。")
    if len(words) < 2:
        return nothing, False
    together = say("all of ", "以下全部词语：") + ", ".join(code(word) for word in words)
    orders = [".*".join(literal(w) for w in order) for order in itertools.permutations(words)]
    looked = yield from _look(f"(?i)(?:{'|'.join(orders)})", looked.path, task.glob)
    if looked.found:
        n = count_of(len(looked.found), "line", "lines")
        head = say(
            f"No line has {asked}{where}; {n} with {together}:",
            f"没有 {asked}{where}；包含{together} 的行：",
        )
        note = clip_note(looked.result, looked.found, say)
        return "\n\n".join([head, places(looked.found, say), *note]), True
    call = grep(f"(?is)(?:{'|'.join(orders)})", looked.path, task.glob)
    call.input.update(output_mode="files_with_matches", multiline=True)
    result = yield call
    files = paths(result.text)
    if not files:
        none = say(
            f"No line matches {asked}{where}, and no file has {together}.",
            f"没有匹配 {asked} 的行{where}，也没有文件包含{together}。",
        )
        return none, False
    head = say(
        f"No line matches {asked}{where}. Files with {together}:",
        f"没有匹配 {asked} 的行{where}。包含{together} 的文件：",
    )
    return "\n\n".join([head, bullets([code(path) for path in files], say)]), True


def _where(path: str, say: Voice) -> str:
    return say(f" in {code(path)}", f"（在 {code(path)} 中）") if path else ""


def _found_text(task: FindText, looked: Looked, words: tuple[str, ...], say: Voice) -> str:
    asked, found, where = code(task.text), looked.found, _where(looked.path, say)
    note = clip_note(looked.result, found, say)
    if task.only_files:
        files = list(dict.fromkeys(hit.path for hit in found))
        head = say(
            f"{count_of(len(files), 'file has', 'files have')} {asked}{where}:",
            f"有 {asked} 的文件有 {len(files)} 个{where}：",
        )
        return "\n\n".join([head, bullets([code(path) for path in files], say), *note])
    names = spellings(words) if words and all(re.fullmatch(r"[\w-]+", w) for w in words) else ()
    defined = [hit for hit in found if names and is_definition(names, hit.path, hit.text)]
    others = [hit for hit in found if hit not in defined]
    n = len(found)
    parts = [
        say(
            f"{count_of(n, 'line matches', 'lines match')} {asked}{where}:",
            f"匹配 {asked} 的有 {n} 行{where}：",
        )
    ]
    if defined and others:
        parts.append(say("Definitions:", "定义："))
        parts.append(places(defined, say))
        parts.append(say("Other lines:", "其他行："))
    parts.append(places(others or defined, say))
    return "\n\n".join([*parts, *note])


def find_todos(task: FindTodos, say: Voice) -> Plan:
    looked = yield from _look(r"\b(?:TODO|FIXME|XXX|HACK)\b", task.path)
    found = looked.found
    if not found:
        return say("No TODO, FIXME, XXX or HACK.", "没有 TODO、FIXME、XXX 或 HACK。")
    n = len(found)
    head = say(f"{count_of(n, 'note', 'notes')} to do:", f"共有 {n} 处待办：")
    return "\n\n".join([head, places(found, say), *clip_note(looked.result, found, say)])


def _words(task: FindText) -> tuple[str, ...]:
    """The words of a search, at most three (the longest) where it has more."""
    if task.is_pattern or task.quoted:
        return ()
    words = [w for w in re.split(r"[\s,]+", task.text) if w]
    small = {"the", "a", "an", "of", "in", "for", "to", "and", "or", "with", "is"}
    words = [w for w in words if w.lower() not in small] or words
    longest = sorted(words, key=len, reverse=True)[:3]
    return tuple(w for w in words if w in longest)[:3]


def _first_pattern(task: FindText, words: tuple[str, ...]) -> str:
    if task.is_pattern:
        return task.text
    ignore_case = "(?i)" if task.text == task.text.lower() else ""
    if task.quoted:
        return literal(task.text)
    every = [w for w in task.text.split() if w]
    if len(every) == 1:
        return ignore_case + literal(every[0])
    # "session lock" is also `session_lock`, `SessionLock` and `session-lock`.
    return "(?i)" + r"[\s_-]*".join(literal(word) for word in every)
