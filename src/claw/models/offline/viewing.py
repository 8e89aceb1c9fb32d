"""Plans that show files, lines and folders."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

import msgspec

from claw.models.offline.definitions import is_definition, is_heading, whole_word
from claw.models.offline.results import (
    Hit,
    hits,
    is_clipped,
    is_folder,
    is_missing,
    line_count,
    numbered_lines,
    paths,
    total,
)
from claw.models.offline.tasks import (
    CountFiles,
    CountLines,
    ListFiles,
    Outline,
    ReadFile,
    ShowCode,
)
from claw.models.offline.wording import (
    MOST_PLACES,
    PAGE_LINES,
    SNIPPET_LINES,
    Call,
    Plan,
    Result,
    Voice,
    block,
    block_listing,
    bullets,
    code,
    count_of,
    failure,
    folder_named,
    glob,
    grep,
    listing,
    places,
    read_call,
    several,
    shown_pattern,
    span,
    unnumbered,
)
from claw.models.offline.words import PLAIN_FILES

__all__ = [
    "count_files",
    "count_lines",
    "list_files",
    "outline",
    "overview",
    "read_file",
    "show_code",
]

OUTLINE_HEAD = 15  # lines


def overview(say: Voice) -> Plan:
    plan = read_file(ReadFile("README", 1, 30), say)
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
    if path.lower() in PLAIN_FILES:
        # "the readme" is a kind of name, not a name.
        found = yield glob(f"./{{{path},{path.upper()},{path.capitalize()},{path.lower()}}}*", "")
        if there := paths(found.text):
            path = path if path in there else min(there, key=lambda p: (len(p), p))
            first = msgspec.structs.replace(first, input={**first.input, "file_path": path})
    result = yield first
    if not result.is_error or not is_missing(result.text) or path.startswith(("/", "~")):
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


def read_file(task: ReadFile, say: Voice) -> Plan:
    if task.count is not None and task.count < 0:
        return (yield from _read_end(task, say))
    wanted = task.count or PAGE_LINES
    # Of a page, one line more than is shown tells whether the file goes on.
    call = read_call(task.path, task.first, task.count or PAGE_LINES + 1)
    path, result, candidates = yield from _locate(task.path, call)
    if candidates:
        return several(task.path, candidates, say)
    if result.is_error and is_folder(result.text):
        return (yield from list_files(ListFiles(path=path), say))
    if result.is_error and is_missing(result.text) and (folder := (yield from folder_named(path))):
        return (yield from list_files(ListFiles(path=folder), say))
    if result.is_error:
        return failure(call, result, say)
    lines = numbered_lines(result.text)
    if not lines:
        return unnumbered(path, result, say)
    shown = lines[:wanted]
    last = shown[-1][0]
    parts = [
        code(span(path, shown)) + say(":", "："),
        listing([text for _, text in shown], path),
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
    call = read_call(task.path, 1, 1)
    path, result, candidates = yield from _locate(task.path, call)
    if candidates:
        return several(task.path, candidates, say)
    if result.is_error:
        return failure(call, result, say)
    counted = yield _count_call(path)
    lines_there, _ = line_count(counted.text)
    wanted = -(task.count or 0)
    result = yield read_call(path, max(1, lines_there - wanted + 1), wanted)
    lines = numbered_lines(result.text)
    if not lines:
        return unnumbered(path, result, say)
    shown = listing([text for _, text in lines], path)
    return code(span(path, lines)) + say(":", "：") + f"\n\n{shown}"


def _count_call(path: str, pattern: str = "") -> Call:
    call = grep("^", path, pattern)
    del call.input["-n"]
    call.input.update(output_mode="count", head_limit=0)
    return call


def count_lines(task: CountLines, say: Voice) -> Plan:
    path = task.path
    if path:
        call = read_call(path, 1, 1)
        path, result, candidates = yield from _locate(path, call)
        if candidates:
            return several(task.path, candidates, say)
        if result.is_error and is_missing(result.text):
            path = (yield from folder_named(path)) or path
        elif result.is_error and not is_folder(result.text):
            return failure(call, result, say)
    counted = yield _count_call(path, task.glob)
    lines, files = line_count(counted.text)
    where = code(path or task.glob or ".")
    several_files = say(
        f", in {count_of(files, 'file', 'files')} of {'that' if task.glob else 'every'} kind."
        " Ignored files are not counted.",
        f"（{files} 个{'此类' if task.glob else '各类'}文件）。被忽略的文件不计算在内。",
    )
    return say(f"{where} has {count_of(lines, 'line', 'lines')}", f"{where} 有 {lines} 行") + (
        say(".", "。") if files <= 1 and path else several_files
    )


def outline(task: Outline, say: Voice) -> Plan:
    """No explanation, which takes a model: the beginning and the titles or definitions."""
    call = Call("Read", {"file_path": task.path}, may_fail=True)
    path, result, candidates = yield from _locate(task.path, call)
    if candidates:
        return several(task.path, candidates, say)
    if result.is_error and is_folder(result.text):
        return (yield from list_files(ListFiles(path=path), say))
    if result.is_error:
        return failure(call, result, say)
    lines = numbered_lines(result.text)
    if not lines:
        return unnumbered(path, result, say)
    first = lines[:OUTLINE_HEAD]
    parts = [
        say(
            "I cannot explain or summarise, only show. The file begins so:",
            "我无法解释或总结，只能展示。文件开头如下：",
        ),
        code(span(path, first)) + say(":", "："),
        listing([text for _, text in first], path),
    ]
    titles = [Hit(path, n, text) for n, text in lines if is_heading(path, text)]
    if titles:
        parts += [say("In it:", "其中有："), places(titles, say)]
    if is_clipped(result.text):
        parts.append(say("Only a part of the file was read.", "只读取了文件的一部分。"))
    return "\n\n".join(parts)


def show_code(task: ShowCode, say: Voice) -> Plan:
    names = (task.name,)
    asked = code(task.name)
    call = Call("Read", {"file_path": task.path}, may_fail=True)
    path, result, candidates = yield from _locate(task.path, call)
    if candidates:
        return several(task.path, candidates, say)
    if result.is_error:
        return failure(call, result, say)
    lines = numbered_lines(result.text)
    named = [Hit(path, n, text) for n, text in lines if re.search(whole_word(names), text)]
    is_part = is_clipped(result.text)
    if is_part:
        searched = yield grep(whole_word(names), path)
        named = list(hits(searched.text, path))
    defined = [hit.line for hit in named if is_definition(names, path, hit.text)]
    if not defined:
        if not named:
            return say(
                f"`{path}` does not define or mention {asked}.",
                f"`{path}` 没有定义或提到 {asked}。",
            )
        head = say(
            f"`{path}` does not define {asked}, but mentions it:",
            f"`{path}` 没有定义 {asked}，但提到了它：",
        )
        return f"{head}\n\n{places(named, say)}"
    parts = []
    for first in defined[:3]:
        if is_part:
            part = yield read_call(path, first, SNIPPET_LINES + 1)
            lines = numbered_lines(part.text)
        last = first + len(block(lines, first)) - 1
        head = say(f"{asked} is defined at", f"{asked} 定义在")
        shown = block_listing(lines, first, path, say)
        parts.append(f"{head} `{path}:{first}` ({first}-{last}):\n\n{shown}")
    if len(defined) > 3:
        rest = [hit for hit in named if hit.line in defined[3:]]
        parts.append(places(rest, say))
    return "\n\n".join(parts)


def list_files(task: ListFiles, say: Voice) -> Plan:
    result, path = yield from _glob_in(task.pattern, task.path)
    shown = code(shown_pattern(task.pattern, path))
    found = paths(result.text)
    if not found:
        return say(f"No files match {shown}.", f"没有匹配 {shown} 的文件。")
    n = total(result.text)
    head = say(
        f"{count_of(n, 'file matches', 'files match')} {shown}:",
        f"匹配 {shown} 的文件有 {n} 个：",
    )
    if task.pattern == "**/*" and n > MOST_PLACES:
        return f"{head}\n\n{(yield from _folder(path, found, n, say))}"
    return f"{head}\n\n{bullets([code(file) for file in found], say, n)}"


def _folder(path: str, found: Sequence[str], n: int, say: Voice) -> Plan:
    """A folder with too many files to name: its own files, and its folders."""
    inside = f"{path.removeprefix('./').rstrip('/')}/" if path not in {"", "."} else ""
    folders = dict.fromkeys(
        f"{inside}{file.removeprefix(inside).partition('/')[0]}/"
        for file in found
        if "/" in file.removeprefix(inside)
    )
    own = yield glob("./*", path)
    items = [code(name) for name in (*folders, *paths(own.text))]
    parts = [
        say("Folders and files directly in it:", "直接位于其中的目录和文件："),
        bullets(items, say),
    ]
    if n > len(found):
        parts.append(
            say(
                f"There may be more folders: only {len(found)} files were looked at.",
                f"可能还有其他目录：只查看了 {len(found)} 个文件。",
            )
        )
    return "\n\n".join(parts)


def count_files(task: CountFiles, say: Voice) -> Plan:
    result, path = yield from _glob_in(task.pattern, task.path)
    n = total(result.text)
    pattern = code(shown_pattern(task.pattern, path))
    return say(
        f"{count_of(n, 'file matches', 'files match')} {pattern}.",
        f"有 {n} 个文件匹配 {pattern}。",
    ) + say(" Ignored files are not counted.", "被忽略的文件不计算在内。")


def _glob_in(pattern: str, path: str) -> Generator[Call, Result, tuple[Result, str]]:
    """A Glob; where its folder is not there, in the one folder of that name elsewhere."""
    call = glob(pattern, path)
    result = yield msgspec.structs.replace(call, may_fail=True)
    if result.is_error and is_missing(result.text) and (folder := (yield from folder_named(path))):
        return (yield glob(pattern, folder)), folder
    if result.is_error:
        yield call  # which ends the plan with its error
    return result, path
