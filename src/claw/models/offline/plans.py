"""How each task is done: a plan yields its calls, is sent their results, returns the answer.

Plans are pure: for the same task and the same results they go the same way. So
nothing is kept between requests; a plan is simply walked again from its start.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from claw.models.offline.definitions import (
    definition_pattern,
    is_declaration,
    is_definition,
    is_documentation,
    literal,
    spellings,
    whole_word,
)
from claw.models.offline.results import (
    Hit,
    hits,
    is_clipped,
    is_refusal,
    numbered_lines,
    paths,
    total,
)
from claw.models.offline.tasks import (
    CountFiles,
    CreateFile,
    FindDefinition,
    FindText,
    FindTodos,
    FindUses,
    Help,
    ListFiles,
    Overview,
    ReadFile,
    ReplaceText,
    RunCommand,
    ShowCode,
    Task,
)

__all__ = ["Call", "Plan", "Result", "Voice", "describe_abilities", "failure", "plan_for"]

MOST_PLACES = 40
MOST_MATCHES = 500
PAGE_LINES = 60
SNIPPET_LINES = 40
MOST_OUTPUT_LINES = 60
LONGEST_LINE = 160


class Voice(msgspec.Struct, frozen=True):
    """Says things in the language of the prompt."""

    chinese: bool = False

    def __call__(self, english: str, chinese: str) -> str:
        return chinese if self.chinese else english


class Call(msgspec.Struct, frozen=True):
    """``may_fail``: the plan goes on after an error; others end with it."""

    name: str
    input: dict[str, Any] = {}
    may_fail: bool = False


class Result(msgspec.Struct, frozen=True):
    text: str
    is_error: bool = False


Plan = Generator[Call, Result, str]


def plan_for(task: Task, say: Voice) -> Plan:
    match task:
        case Help():
            return _help(say)
        case Overview():
            return _overview(say)
        case FindDefinition():
            return _find_definition(task, say)
        case FindUses():
            return _find_uses(task, say)
        case FindText():
            return _find_text(task, say)
        case FindTodos():
            return _find_todos(task, say)
        case ReadFile():
            return _read(task, say)
        case ShowCode():
            return _show_code(task, say)
        case ListFiles():
            return _list(task, say)
        case CountFiles():
            return _count(task, say)
        case RunCommand():
            return _run(task, say)
        case ReplaceText():
            return _replace(task, say)
        case CreateFile():
            return _create(task, say)


def describe_abilities(*, chinese: bool = False) -> str:
    """What the offline model can be asked for, one form a line."""
    if chinese:
        return (
            "- `X 在哪里定义`、`谁调用了 X`、`查找 X`、`有哪些 TODO`\n"
            "- `查看 FILE`、`显示 FILE 的前 20 行`、`看看 FILE 的 X 函数`\n"
            "- `列出 Python 文件`、`列出 src 里的文件`、`有多少个文件`\n"
            "- `把 FILE 里的 A 替换成 B`、`创建文件 FILE，内容为 TEXT`\n"
            "- `运行 COMMAND`"
        )
    return (
        "- `where is X defined`, `who calls X`, `find X`, `TODOs`\n"
        "- `show FILE`, `show the first 20 lines of FILE`, `show the function X in FILE`\n"
        "- `list the python files`, `list files in src`, `how many files`\n"
        "- `replace A with B in FILE`, `create FILE with TEXT`\n"
        "- `run COMMAND`"
    )


def failure(call: Call, result: Result, say: Voice) -> str:
    """The answer where a call failed or was not permitted."""
    if is_refusal(result.text):
        first = say(
            f"The call of `{call.name}` was not permitted:", f"`{call.name}` 调用未获许可："
        )
    else:
        first = say(f"`{call.name}` reports an error:", f"`{call.name}` 报告了错误：")
    return f"{first}\n\n{_fence(_bounded(result.text.splitlines(), say))}"


# -- looking for things --------------------------------------------------------------------


def _find_definition(task: FindDefinition, say: Voice) -> Plan:
    names = spellings(task.words)
    asked = _code(" ".join(task.words))
    result = yield _grep(definition_pattern(names), task.path)
    found = hits(result.text, task.path)
    defined = [hit for hit in found if is_definition(names, hit.path, hit.text)]
    if not defined:
        return (yield from _mentions(names, asked, task.path, say))
    sources = [hit for hit in defined if not is_documentation(hit.path)]
    documents = [hit for hit in defined if is_documentation(hit.path)]
    parts = []
    if sources:
        n = len(sources)
        parts.append(
            say(
                f"{asked} is defined in {_count_of(n, 'place', 'places')}:",
                f"{asked} 有 {n} 处定义：",
            )
        )
        parts.append(_places(sources, say))
    if documents:
        parts.append(say(f"{asked} in documents:", f"文档中的 {asked}："))
        parts.append(_places(documents, say))
    if task.show and len(sources) == 1:
        hit = sources[0]
        shown = yield Call(
            "Read",
            {"file_path": hit.path, "offset": hit.line, "limit": SNIPPET_LINES},
            may_fail=True,
        )
        lines = _block(numbered_lines(shown.text), hit.line)
        if lines and not shown.is_error:
            parts.append(_listing(lines, hit.path))
    parts.extend(_clip_note(result, found, say))
    return "\n\n".join(parts)


def _mentions(names: tuple[str, ...], asked: str, path: str, say: Voice) -> Plan:
    """After a definition was not found: where the name stands at all."""
    result = yield _grep(f"(?i){whole_word(names)}", path)
    found = hits(result.text, path)
    if not found:
        return say(
            f"No definition of {asked}, and no mention of it either.",
            f"没有找到 {asked} 的定义，也没有任何地方提到它。",
        )
    declared = [hit for hit in found if is_declaration(names, hit.text)]
    others = [hit for hit in found if hit not in declared]
    parts = [
        say(
            f"No definition of {asked} as a function, class or constant.",
            f"没有找到 {asked} 作为函数、类或常量的定义。",
        )
    ]
    if declared:
        parts.append(say("It is assigned or declared here:", "赋值或声明的位置："))
        parts.append(_places(declared, say))
    if others:
        parts.append(say("It is mentioned here:", "提到它的位置："))
        parts.append(_places(others, say))
    return "\n\n".join([*parts, *_clip_note(result, found, say)])


def _find_uses(task: FindUses, say: Voice) -> Plan:
    names = (task.name,)
    result = yield _grep(whole_word(names), task.path)
    found = hits(result.text, task.path)
    uses = [hit for hit in found if not is_definition(names, hit.path, hit.text)]
    defined = [hit for hit in found if is_definition(names, hit.path, hit.text)]
    asked = _code(task.name)
    if not found:
        return say(f"Nothing mentions {asked}.", f"没有任何地方提到 {asked}。")
    calls = [hit for hit in uses if re.search(rf"{whole_word(names)}\s*\(", hit.text)]
    others = [hit for hit in uses if hit not in calls]
    parts = []
    for group, english, chinese in (
        (calls, f"{asked} is called in", f"调用 {asked} 的位置："),
        (others, f"{asked} is mentioned in", f"提到 {asked} 的位置："),
        (defined, f"{asked} is defined in", f"{asked} 的定义："),
    ):
        if group:
            parts.append(say(f"{english} {_count_of(len(group), 'place', 'places')}:", chinese))
            parts.append(_places(group, say))
    return "\n\n".join([*parts, *_clip_note(result, found, say)])


def _find_text(task: FindText, say: Voice) -> Plan:
    words = _words(task)
    asked = _code(task.text)
    result = yield _grep(_first_pattern(task, words), task.path, task.glob)
    found = hits(result.text, task.path)
    if found:
        return _found_text(found, asked, words, result, say)
    nothing = say(f"No line matches {asked}.", f"没有匹配 {asked} 的行。")
    if len(words) < 2:
        return nothing
    together = say("all of ", "以下全部词语：") + ", ".join(_code(word) for word in words)
    orders = [".*".join(literal(w) for w in order) for order in itertools.permutations(words)]
    result = yield _grep(f"(?i)(?:{'|'.join(orders)})", task.path, task.glob)
    found = hits(result.text, task.path)
    if found:
        n = _count_of(len(found), "line", "lines")
        head = say(
            f"No line has {asked}; {n} with {together}:", f"没有 {asked}；包含{together} 的行："
        )
        return "\n\n".join([head, _places(found, say), *_clip_note(result, found, say)])
    call = _grep(f"(?is)(?:{'|'.join(orders)})", task.path, task.glob)
    call.input.update(output_mode="files_with_matches", multiline=True)
    result = yield call
    files = [path for path in paths(result.text) if path]
    if not files:
        return say(
            f"No line matches {asked}, and no file has {together}.",
            f"没有匹配 {asked} 的行，也没有文件包含{together}。",
        )
    head = say(
        f"No line matches {asked}. Files with {together}:",
        f"没有匹配 {asked} 的行。包含{together} 的文件：",
    )
    return "\n\n".join([head, _bullets([_code(path) for path in files], say)])


def _found_text(
    found: Sequence[Hit], asked: str, words: tuple[str, ...], result: Result, say: Voice
) -> str:
    names = spellings(words) if words and all(re.fullmatch(r"[\w-]+", w) for w in words) else ()
    defined = [hit for hit in found if names and is_definition(names, hit.path, hit.text)]
    others = [hit for hit in found if hit not in defined]
    n = len(found)
    parts = [
        say(
            f"{_count_of(n, 'line matches', 'lines match')} {asked}:", f"匹配 {asked} 的有 {n} 行："
        )
    ]
    if defined and others:
        parts.append(say("Definitions:", "定义："))
        parts.append(_places(defined, say))
        parts.append(say("Other lines:", "其他行："))
    parts.append(_places(others or defined, say))
    return "\n\n".join([*parts, *_clip_note(result, found, say)])


def _find_todos(task: FindTodos, say: Voice) -> Plan:
    result = yield _grep(r"\b(?:TODO|FIXME|XXX|HACK)\b", task.path)
    found = hits(result.text, task.path)
    if not found:
        return say("No TODO, FIXME, XXX or HACK.", "没有 TODO、FIXME、XXX 或 HACK。")
    n = len(found)
    head = say(f"{_count_of(n, 'note', 'notes')} to do:", f"共有 {n} 处待办：")
    return "\n\n".join([head, _places(found, say), *_clip_note(result, found, say)])


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


# -- files ---------------------------------------------------------------------------------


def _overview(say: Voice) -> Plan:
    plan = _read(ReadFile("README.md", 1, 30), say)
    shown = yield from plan
    head = say(
        "I cannot judge what a project is for; its README begins so:",
        "我无法判断项目的用途；它的 README 开头如下：",
    )
    return f"{head}\n\n{shown}"


def _locate(path: str, first: Call) -> Generator[Call, Result, tuple[str, Result, tuple[str, ...]]]:
    """Read a file; where it is not there, look for its name elsewhere.

    Gives the path that was read, the result, and all candidates if there are several.
    """
    result = yield first
    if not result.is_error or is_refusal(result.text):
        return path, result, ()
    name = path.rstrip("/").rsplit("/", 1)[-1]
    pattern = f"**/{name}" if "." in name else f"**/{name}*"
    found = yield Call("Glob", {"pattern": pattern}, may_fail=True)
    candidates = [p for p in (paths(found.text) if not found.is_error else ()) if p != path]
    if not candidates:
        return path, result, ()
    least = min(p.count("/") for p in candidates)
    nearest = [p for p in candidates if p.count("/") == least]
    if len(nearest) > 1:
        return path, result, tuple(candidates)
    again = yield Call(first.name, {**first.input, "file_path": nearest[0]}, may_fail=True)
    return nearest[0], again, ()


def _read(task: ReadFile, say: Voice) -> Plan:
    if task.count is not None and task.count < 0:
        return (yield from _read_end(task, say))
    wanted = task.count or PAGE_LINES
    # Of a page, one line more than is shown tells whether the file goes on.
    call = _read_call(task.path, task.first, task.count or PAGE_LINES + 1)
    path, result, candidates = yield from _locate(task.path, call)
    if candidates:
        return _several(task.path, candidates, say)
    if result.is_error:
        return failure(call, result, say)
    lines = numbered_lines(result.text)
    if not lines:
        return _unnumbered(path, result, say)
    shown = lines[:wanted]
    last = shown[-1][0]
    parts = [
        _code(_span(path, shown)) + say(":", "："),
        _listing([text for _, text in shown], path),
    ]
    if len(lines) > wanted and task.count is None:
        parts.append(
            say(
                f"The file goes on: `show lines {last + 1}-{last + PAGE_LINES} of {path}`.",
                f"文件未完：`查看 {path} 第 {last + 1}-{last + PAGE_LINES} 行`。",
            )
        )
    return "\n\n".join(parts)


def _read_end(task: ReadFile, say: Voice) -> Plan:
    call = _grep("^", task.path)
    call.input.update(output_mode="count")
    counted = yield call
    numbers = re.findall(r"(?:^|:)\s*(\d+)\s*$", counted.text, re.MULTILINE)
    total = int(numbers[0]) if numbers else 0
    wanted = -(task.count or 0)
    first = max(1, total - wanted + 1)
    result = yield _read_call(task.path, first, wanted)
    lines = numbered_lines(result.text)
    if not lines:
        return _unnumbered(task.path, result, say)
    shown = _listing([text for _, text in lines], task.path)
    return _code(_span(task.path, lines)) + say(":", "：") + f"\n\n{shown}"


def _show_code(task: ShowCode, say: Voice) -> Plan:
    names = (task.name,)
    asked = _code(task.name)
    call = Call("Read", {"file_path": task.path}, may_fail=True)
    path, result, candidates = yield from _locate(task.path, call)
    if candidates:
        return _several(task.path, candidates, say)
    if result.is_error:
        return failure(call, result, say)
    lines = numbered_lines(result.text)
    defined = [n for n, text in lines if is_definition(names, path, text)]
    if not defined:
        named = [Hit(path, n, text) for n, text in lines if re.search(whole_word(names), text)]
        clipped = (
            say(" Only the first part of the file was read.", " 只读取了文件的前一部分。")
            if is_clipped(result.text)
            else ""
        )
        if not named:
            return (
                say(
                    f"`{path}` does not define or mention {asked}.",
                    f"`{path}` 没有定义或提到 {asked}。",
                )
                + clipped
            )
        head = say(
            f"`{path}` does not define {asked}, but mentions it:",
            f"`{path}` 没有定义 {asked}，但提到了它：",
        )
        return f"{head}{clipped}\n\n{_places(named, say)}"
    parts = []
    for first in defined[:3]:
        block = _block(lines, first)
        last = first + len(block) - 1
        head = say(f"{asked} is defined at", f"{asked} 定义在")
        parts.append(f"{head} `{path}:{first}` ({first}-{last}):\n\n{_listing(block, path)}")
    if len(defined) > 3:
        rest = [Hit(path, n, text) for n, text in lines if n in defined[3:]]
        parts.append(_places(rest, say))
    return "\n\n".join(parts)


def _list(task: ListFiles, say: Voice) -> Plan:
    result = yield _glob(task.pattern, task.path)
    found = paths(result.text)
    if not found:
        return say(
            f"No files match {_code(_shown_pattern(task))}.",
            f"没有匹配 {_code(_shown_pattern(task))} 的文件。",
        )
    n = total(result.text)
    head = say(
        f"{_count_of(n, 'file matches', 'files match')} {_code(_shown_pattern(task))}:",
        f"匹配 {_code(_shown_pattern(task))} 的文件有 {n} 个：",
    )
    return f"{head}\n\n{_bullets([_code(path) for path in found], say, n)}"


def _count(task: CountFiles, say: Voice) -> Plan:
    result = yield _glob(task.pattern, task.path)
    n = total(result.text)
    pattern = _code(_shown_pattern(task))
    return say(
        f"{_count_of(n, 'file matches', 'files match')} {pattern}.",
        f"有 {n} 个文件匹配 {pattern}。",
    ) + say(" Ignored files are not counted.", "被忽略的文件不计算在内。")


# -- changing things -----------------------------------------------------------------------


def _run(task: RunCommand, say: Voice) -> Plan:
    call = Call("Bash", {"command": task.command}, may_fail=True)
    result = yield call
    if result.is_error and is_refusal(result.text):
        return failure(call, result, say)
    output = _fence(_bounded(result.text.splitlines(), say))
    if result.is_error:
        head = say(f"{_code(task.command)} did not succeed:", f"{_code(task.command)} 未成功：")
    else:
        head = say(f"{_code(task.command)} printed:", f"{_code(task.command)} 的输出：")
    return f"{head}\n\n{output}"


def _replace(task: ReplaceText, say: Voice) -> Plan:
    old, new = _code(task.old), _code(task.new)
    if task.old == task.new:
        return say("Both texts are the same: nothing to do.", "两段文字相同，无需修改。")
    shown = yield Call("Read", {"file_path": task.path})
    lines = numbered_lines(shown.text)
    places = [n for n, text in lines if task.old in text]
    count = "\n".join(text for _, text in lines).count(task.old)
    if not count and not is_clipped(shown.text):
        return say(
            f"`{task.path}` does not contain {old}; nothing was changed.",
            f"`{task.path}` 不包含 {old}；没有修改。",
        )
    edit = {"file_path": task.path, "old_string": task.old, "new_string": task.new}
    if count != 1:
        edit["replace_all"] = True  # type: ignore[assignment]
    yield Call("Edit", edit)
    if not count or is_clipped(shown.text):
        return say(
            f"Replaced {old} with {new} everywhere in `{task.path}`.",
            f"已把 `{task.path}` 中的 {old} 全部替换为 {new}。",
        )
    head = say(
        f"Replaced {old} with {new}, {_count_of(count, 'time', 'times')}:",
        f"已把 {old} 替换为 {new}，共 {count} 处：",
    )
    return f"{head}\n\n{_bullets([_code(f'{task.path}:{n}') for n in places], say)}"


def _create(task: CreateFile, say: Voice) -> Plan:
    yield Call("Write", {"file_path": task.path, "content": task.text})
    size = len(task.text.encode(errors="replace"))
    return say(
        f"Created `{task.path}` with {_count_of(size, 'byte', 'bytes')}.",
        f"已创建 `{task.path}`，{size} 字节。",
    )


def _help(say: Voice) -> Plan:
    yield from ()
    head = say("Without a model I can do this:", "没有接入模型时，我能做这些：")
    return f"{head}\n\n{describe_abilities(chinese=say.chinese)}"


# -- calls and wording ---------------------------------------------------------------------


def _grep(pattern: str, path: str = "", glob: str = "") -> Call:
    arguments: dict[str, Any] = {"pattern": pattern}
    if path:
        arguments["path"] = path
    if glob:
        arguments["glob"] = glob
    return Call(
        "Grep", arguments | {"output_mode": "content", "-n": True, "head_limit": MOST_MATCHES}
    )


def _glob(pattern: str, path: str) -> Call:
    return Call("Glob", {"pattern": pattern, "path": path} if path else {"pattern": pattern})


def _read_call(path: str, first: int, count: int) -> Call:
    return Call("Read", {"file_path": path, "offset": first, "limit": count}, may_fail=True)


def _shown_pattern(task: ListFiles | CountFiles) -> str:
    return f"{task.path.rstrip('/')}/{task.pattern}" if task.path else task.pattern


def _span(path: str, lines: Sequence[tuple[int, str]]) -> str:
    first, last = lines[0][0], lines[-1][0]
    return f"{path}:{first}" if first == last else f"{path}:{first}-{last}"


def _several(path: str, candidates: Sequence[str], say: Voice) -> str:
    head = say(
        f"There is no `{path}` here, but these files have that name:",
        f"没有 `{path}`，但有这些同名文件：",
    )
    return f"{head}\n\n{_bullets([_code(p) for p in candidates], say)}"


def _unnumbered(path: str, result: Result, say: Voice) -> str:
    # The tool names the file by its absolute path; the answer does not depend on that.
    text = re.sub(rf"\S*/{re.escape(path)}", path, result.text.strip())
    if not text or text == f"{path} is empty.":
        return say(f"`{path}` is empty.", f"`{path}` 是空文件。")
    return f"`{path}`:\n\n{_fence(_bounded(text.splitlines(), say))}"


def _places(found: Sequence[Hit], say: Voice) -> str:
    return _bullets([f"{_code(hit.place)}: {_code(_cut(hit.text.strip()))}" for hit in found], say)


def _bullets(items: Sequence[str], say: Voice, of: int = 0) -> str:
    """``of`` is how many there are where ``items`` is not all of them."""
    lines = [f"- {item}" for item in items[:MOST_PLACES]]
    left = max(of, len(items)) - len(lines)
    if left:
        lines.append(say(f"- and {left} more", f"- 还有 {left} 处"))
    return "\n".join(lines)


def _clip_note(result: Result, found: Sequence[Hit], say: Voice) -> list[str]:
    if len(found) < MOST_MATCHES and not is_clipped(result.text):
        return []
    return [
        say(
            "The search was cut off: there may be more. Name a folder to narrow it.",
            "搜索结果被截断，可能还有更多；请指定目录以缩小范围。",
        )
    ]


def _block(lines: Sequence[tuple[int, str]], first: int) -> list[str]:
    """The definition that begins at line ``first``: up to where its indentation ends."""
    texts = [text for number, text in lines if number >= first]
    if not texts:
        return []
    depth = _indent(texts[0])
    block = [texts[0]]
    for text in texts[1:SNIPPET_LINES]:
        stripped = text.strip()
        if stripped and _indent(text) <= depth and not re.match(r"[)\]}{]|end\b|where\b", stripped):
            break
        block.append(text)
        if stripped and _indent(text) == depth and re.match(r"\}|end\b", stripped):
            break
    while not block[-1].strip():
        block.pop()
    return block


def _indent(text: str) -> int:
    expanded = text.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _bounded(lines: Sequence[str], say: Voice) -> list[str]:
    if len(lines) <= MOST_OUTPUT_LINES:
        return list(lines)
    half = MOST_OUTPUT_LINES // 2
    n = len(lines) - 2 * half
    return [*lines[:half], say(f"... {n} lines ...", f"... {n} 行 ..."), *lines[-half:]]


def _listing(lines: Sequence[str], path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    ending = name.rsplit(".", 1)[1] if "." in name else ""
    return _fence(lines, ending if re.fullmatch(r"\w{1,10}", ending) else "")


def _fence(lines: Sequence[str], language: str = "") -> str:
    longest = max((len(m) for line in lines for m in re.findall(r"`{3,}", line)), default=2)
    marks = "`" * (longest + 1)
    return "\n".join([marks + language, *lines, marks])


def _code(text: str) -> str:
    """As inline code, whatever back-ticks are in it."""
    longest = max((len(m) for m in re.findall(r"`+", text)), default=0)
    if not longest:
        return f"`{text}`"
    marks = "`" * (longest + 1)
    return f"{marks} {text} {marks}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 3] + "..."


def _count_of(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
