"""Plans that run commands or change files."""

from __future__ import annotations

from collections.abc import Generator

from claw.models.offline.results import hits, is_clipped, is_refusal, numbered_lines, paths
from claw.models.offline.tasks import CreateFile, ReplaceText, RunCommand
from claw.models.offline.wording import (
    Call,
    Plan,
    Result,
    Voice,
    bounded,
    bullets,
    code,
    count_of,
    failure,
    fence,
    glob,
    grep,
)

__all__ = ["create_file", "replace_text", "run_command", "run_tests"]

# The program for a project's tests, by the files that tell of it.
_TEST_FILES = (
    "{scripts/test,pytest.ini,conftest.py,tests/conftest.py,package.json,Cargo.toml,go.mod"
    ",Makefile}"
)


def run_command(task: RunCommand, say: Voice) -> Plan:
    call = Call("Bash", {"command": task.command}, may_fail=True)
    result = yield call
    if result.is_error and is_refusal(result.text):
        return failure(call, result, say)
    output = fence(bounded(result.text.splitlines(), say))
    if result.is_error:
        head = say(f"{code(task.command)} did not succeed:", f"{code(task.command)} 未成功：")
    else:
        head = say(f"{code(task.command)} printed:", f"{code(task.command)} 的输出：")
    return f"{head}\n\n{output}"


def run_tests(say: Voice) -> Plan:
    command = yield from _test_command()
    if command is None:
        return say(
            "No way to run tests was found: no `scripts/test`, tests for pytest, `test` script in"
            " `package.json`, `Cargo.toml`, `go.mod` or `test` target in a `Makefile`."
            " Say `run COMMAND`.",
            "没有找到运行测试的方法：没有 `scripts/test`、pytest 测试、`package.json` 中的 `test`"
            " 脚本、`Cargo.toml`、`go.mod` 或 `Makefile` 中的 `test` 目标。请说 `运行 COMMAND`。",
        )
    return (yield from run_command(RunCommand(command), say))


def _test_command() -> Generator[Call, Result, str | None]:
    found = yield glob(_TEST_FILES, "")
    there = set(paths(found.text))
    if "scripts/test" in there:
        return "scripts/test"
    if there & {"pytest.ini", "conftest.py", "tests/conftest.py"}:
        return "pytest"
    written = yield glob("**/{test_*,*_test}.py", "")
    if paths(written.text):
        return "pytest"
    if "package.json" in there and (yield from _has(r'"test"\s*:', "package.json")):
        return "npm test"
    if "Cargo.toml" in there:
        return "cargo test"
    if "go.mod" in there:
        return "go test ./..."
    if "Makefile" in there and (yield from _has(r"^test\s*:", "Makefile")):
        return "make test"
    return None


def _has(pattern: str, path: str) -> Generator[Call, Result, bool]:
    result = yield grep(pattern, path)
    return bool(hits(result.text, path))


def replace_text(task: ReplaceText, say: Voice) -> Plan:
    old, new = code(task.old), code(task.new)
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
    everywhere = {"replace_all": True} if count != 1 else {}
    edit = {"file_path": task.path, "old_string": task.old, "new_string": task.new, **everywhere}
    yield Call("Edit", edit)
    if not count or is_clipped(shown.text):
        return say(
            f"Replaced {old} with {new} everywhere in `{task.path}`.",
            f"已把 `{task.path}` 中的 {old} 全部替换为 {new}。",
        )
    head = say(
        f"Replaced {old} with {new}, {count_of(count, 'time', 'times')}:",
        f"已把 {old} 替换为 {new}，共 {count} 处：",
    )
    return f"{head}\n\n{bullets([code(f'{task.path}:{n}') for n in places], say)}"


def create_file(task: CreateFile, say: Voice) -> Plan:
    yield Call("Write", {"file_path": task.path, "content": task.text})
    size = len(task.text.encode(errors="replace"))
    return say(
        f"Created `{task.path}` with {count_of(size, 'byte', 'bytes')}.",
        f"已创建 `{task.path}`，{size} 字节。",
    )
