"""What plans are made of: calls, their results, and how an answer is worded."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from claw.models.offline.results import Hit, is_clipped, is_refusal, paths

__all__ = [
    "MOST_PLACES",
    "PAGE_LINES",
    "SNIPPET_LINES",
    "Call",
    "Plan",
    "Result",
    "Steps",
    "Voice",
    "block",
    "block_listing",
    "bounded",
    "bullets",
    "clip_note",
    "code",
    "count_of",
    "failure",
    "fence",
    "folder_named",
    "glob",
    "grep",
    "is_cut",
    "listing",
    "places",
    "read_call",
    "several",
    "shown_pattern",
    "span",
    "unnumbered",
]

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
Steps = Generator[Call, Result, Any]


def failure(call: Call, result: Result, say: Voice) -> str:
    """The answer where a call failed or was not permitted."""
    if is_refusal(result.text):
        first = say(
            f"The call of `{call.name}` was not permitted:", f"`{call.name}` 调用未获许可："
        )
    else:
        first = say(f"`{call.name}` reports an error:", f"`{call.name}` 报告了错误：")
    return f"{first}\n\n{fence(bounded(result.text.splitlines(), say))}"


def grep(pattern: str, path: str = "", glob: str = "") -> Call:
    arguments: dict[str, Any] = {"pattern": pattern}
    if path:
        arguments["path"] = path
    if glob:
        arguments["glob"] = glob
    return Call(
        "Grep", arguments | {"output_mode": "content", "-n": True, "head_limit": MOST_MATCHES}
    )


def glob(pattern: str, path: str) -> Call:
    return Call("Glob", {"pattern": pattern, "path": path} if path else {"pattern": pattern})


def folder_named(path: str) -> Generator[Call, Result, str | None]:
    """The one nearest folder elsewhere that is named as a path that is not there."""
    if path.startswith(("/", "~", "..")):
        return None
    name = path.strip("./")
    found = yield Call("Glob", {"pattern": f"**/{name}/**/*"}, may_fail=True)
    if found.is_error:
        return None
    inside = f"/{name}/"
    folders = {
        f"/{file}".partition(inside)[0].lstrip("/") + inside.rstrip("/")
        for file in paths(found.text)
        if inside in f"/{file}"
    }
    least = min((folder.count("/") for folder in folders), default=0)
    nearest = sorted(folder.lstrip("/") for folder in folders if folder.count("/") == least)
    return nearest[0] if len(nearest) == 1 else None


def read_call(path: str, first: int, count: int) -> Call:
    return Call("Read", {"file_path": path, "offset": first, "limit": count}, may_fail=True)


def shown_pattern(pattern: str, path: str) -> str:
    return f"{path.rstrip('/')}/{pattern}" if path else pattern


def span(path: str, lines: Sequence[tuple[int, str]]) -> str:
    first, last = lines[0][0], lines[-1][0]
    return f"{path}:{first}" if first == last else f"{path}:{first}-{last}"


def several(path: str, candidates: Sequence[str], say: Voice) -> str:
    head = say(
        f"There is no `{path}` here, but these files have that name:",
        f"没有 `{path}`，但有这些同名文件：",
    )
    return f"{head}\n\n{bullets([code(p) for p in candidates], say)}"


def unnumbered(path: str, result: Result, say: Voice) -> str:
    # The tool names the file by its absolute path; the answer does not depend on that.
    text = re.sub(rf"\S*/{re.escape(path)}", path, result.text.strip())
    if not text or text == f"{path} is empty.":
        return say(f"`{path}` is empty.", f"`{path}` 是空文件。")
    return f"`{path}`:\n\n{fence(bounded(text.splitlines(), say))}"


def places(found: Sequence[Hit], say: Voice) -> str:
    return bullets([f"{code(hit.place)}: {code(_cut(hit.text.strip()))}" for hit in found], say)


def bullets(items: Sequence[str], say: Voice, of: int = 0) -> str:
    """``of`` is how many there are where ``items`` is not all of them."""
    lines = [f"- {item}" for item in items[:MOST_PLACES]]
    left = max(of, len(items)) - len(lines)
    if left:
        lines.append(say(f"- and {left} more", f"- 还有 {left} 处"))
    return "\n".join(lines)


def is_cut(result: Result, found: Sequence[Hit]) -> bool:
    """Whether a search found more than it gave."""
    return len(found) >= MOST_MATCHES or is_clipped(result.text)


def clip_note(result: Result, found: Sequence[Hit], say: Voice) -> list[str]:
    if not is_cut(result, found):
        return []
    return [
        say(
            "The search was cut off: there may be more. Name a folder to narrow it.",
            "搜索结果被截断，可能还有更多；请指定目录以缩小范围。",
        )
    ]


def block(lines: Sequence[tuple[int, str]], first: int) -> list[str]:
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


def block_listing(lines: Sequence[tuple[int, str]], first: int, path: str, say: Voice) -> str:
    """The definition that begins at line ``first``, and whether it goes on."""
    shown = block(lines, first)
    after = first + len(shown)
    text = listing(shown, path)
    following = next((line for number, line in lines if number == after), "")
    # Short of the limit, the block ended by itself.
    if len(shown) < SNIPPET_LINES or not following:
        return text
    more = say(
        f"It may go on: `show lines {after}-{after + PAGE_LINES - 1} of {path}`.",
        f"可能未完：`查看 {path} 第 {after}-{after + PAGE_LINES - 1} 行`。",
    )
    return f"{text}\n\n{more}"


def bounded(lines: Sequence[str], say: Voice) -> list[str]:
    if len(lines) <= MOST_OUTPUT_LINES:
        return list(lines)
    half = MOST_OUTPUT_LINES // 2
    n = len(lines) - 2 * half
    return [*lines[:half], say(f"... {n} lines ...", f"... {n} 行 ..."), *lines[-half:]]


def listing(lines: Sequence[str], path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    ending = name.rsplit(".", 1)[1] if "." in name else ""
    return fence(lines, ending if re.fullmatch(r"\w{1,10}", ending) else "")


def fence(lines: Sequence[str], language: str = "") -> str:
    longest = max((len(m) for line in lines for m in re.findall(r"`{3,}", line)), default=2)
    marks = "`" * (longest + 1)
    return "\n".join([marks + language, *lines, marks])


def code(text: str) -> str:
    """As inline code, whatever back-ticks are in it."""
    longest = max((len(m) for m in re.findall(r"`+", text)), default=0)
    if not longest:
        return f"`{text}`"
    marks = "`" * (longest + 1)
    return f"{marks} {text} {marks}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 3] + "..."


def count_of(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
