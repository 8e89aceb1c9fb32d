"""The offline model: what it understands, which calls it makes, what it answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.errors import RequestRejected, ToolFailed
from claw.models.offline import OfflineModel
from claw.models.offline.definitions import definition_pattern, is_definition
from claw.models.offline.rules import understand
from claw.models.offline.tasks import (
    CountFiles,
    CountLines,
    CreateFile,
    FindDefinition,
    FindImports,
    FindText,
    FindTodos,
    FindUses,
    Help,
    ListFiles,
    Outline,
    Overview,
    ReadFile,
    ReplaceText,
    RunCommand,
    RunTests,
    Several,
    ShowCode,
    ShowWord,
    Task,
)
from claw.ports import ToolCall
from claw.tools.catalog import ToolList, builtin_tools
from claw.types.events import AssistantEvent, MessageStop, TextDelta
from claw.types.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec
from claw.types.usage import Usage
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

NAMES = ("Read", "Write", "Edit", "Glob", "Grep", "Bash")
MAIN_RS = """\
use std::io;

fn main() {
    NAME("hi");
}

pub fn NAME(prompt: &str) -> usize {
    // TODO: stream
    prompt.len()
}
""".replace("NAME", "run_turn")  # so that a search of this repository does not find it here
FILES = {
    "README.md": "".join(f"line {n}\n" for n in range(1, 101)),
    "main.rs": MAIN_RS,
    "src/loop.py": "class SessionLock:\n    depth = 1\n\n\nasync def run_turn(x):\n    return x\n",
    "src/deep/notes.txt": "the lock of a\nvery old session\n",
    "tests/test_loop.py": "from src.loop import run_turn\n\n\ndef test_it():\n    run_turn(1)\n",
}


@dataclass
class SmallTools:
    """The tools over files in memory; Bash is denied. ``calls`` are those that were made."""

    files: dict[str, str] = field(default_factory=lambda: dict(FILES))
    calls: list[ToolUse] = field(default_factory=list)

    def run(self, call: ToolUse) -> ToolResult:
        self.calls.append(call)
        tools: dict[str, Callable[[dict[str, object]], str]] = {
            "Grep": self._grep,
            "Glob": self._glob,
            "Read": self._read,
            "Edit": self._edit,
            "Write": self._write,
            "Bash": self._bash,
        }
        try:
            text, failed = tools[call.name](call.input), False
        except LookupError as error:
            text, failed = str(error.args[0]), True
        return ToolResult(call.id, (Text(text),), failed)

    def _grep(self, given: dict[str, object]) -> str:
        flags = re.MULTILINE
        pattern = re.compile(str(given["pattern"]), flags)
        under = self._place(given)
        lines = []
        for path, text in sorted(self.files.items()):
            if not path.startswith(under):
                continue
            found = [(n, t) for n, t in enumerate(text.splitlines(), 1) if pattern.search(t)]
            match given["output_mode"]:
                case "content":
                    lines += [f"{path}:{n}:{t}" for n, t in found]
                case "count" if found:
                    lines.append(f"{path}:{len(found)}")
                case "files_with_matches" if pattern.search(text):
                    lines.append(path)
        return "\n".join(lines) or "No matches found"

    def _glob(self, given: dict[str, object]) -> str:
        form = re.escape(str(given["pattern"]).removeprefix("./"))
        form = form.replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        form = form.replace(r"\{", "(").replace(r"\}", ")").replace(",", "|")
        under = self._place(given)
        names = [p for p in sorted(self.files) if p.startswith(under)]
        found = [p for p in names if re.fullmatch(form, p.removeprefix(under))]
        return "\n".join(found) or "No files found"

    def _place(self, given: dict[str, object]) -> str:
        """The start of the paths in the folder, or the file, that a search is about."""
        path = str(given.get("path", ""))
        if not path or path in self.files:
            return path
        if not any(file.startswith(f"{path}/") for file in self.files):
            raise LookupError(f"{path} does not exist")
        return f"{path}/"

    def _read(self, given: dict[str, object]) -> str:
        path = str(given["file_path"])
        if any(file.startswith(f"{path}/") for file in self.files):
            raise LookupError(f"{path} is a directory")
        if path not in self.files:
            raise LookupError(f"{path} does not exist")
        first, limit = int(str(given.get("offset", 1))), int(str(given.get("limit", 2000)))
        lines = list(enumerate(self.files[path].splitlines(), 1))[first - 1 :][:limit]
        return f"/somewhere/{path}\n" + "\n".join(f"{n:6}\t{text}" for n, text in lines)

    def _edit(self, given: dict[str, object]) -> str:
        path, old = str(given["file_path"]), str(given["old_string"])
        if self.files[path].count(old) > 1 and not given.get("replace_all"):
            raise LookupError("old_string occurs several times")
        self.files[path] = self.files[path].replace(old, str(given["new_string"]))
        return "edited"

    def _write(self, given: dict[str, object]) -> str:
        path = str(given["file_path"])
        if path in self.files:
            raise LookupError(f"{path} exists and was not read")
        self.files[path] = str(given["content"])
        return "written"

    def _bash(self, given: dict[str, object]) -> str:
        raise LookupError("Permission denied: nobody is there to ask")


def request(messages: tuple[Message, ...], tools: tuple[str, ...] = NAMES) -> Request:
    specs = tuple(ToolSpec(name, "", {}) for name in tools)
    return Request("You are an agent.", messages, specs, Sampling("offline"))


async def sample(asked: Request) -> tuple[list[AssistantEvent], Reply]:
    events = [event async for event in OfflineModel().stream(asked)]
    return events, assemble(events)


async def turn(
    prompt: str,
    tools: SmallTools,
    history: tuple[Message, ...] = (),
    offered: tuple[str, ...] = NAMES,
) -> tuple[str, tuple[Message, ...]]:
    """Play the part of the runtime for one turn: the answer, and all messages after it."""
    messages: tuple[Message, ...] = (*history, UserMessage((Text(prompt),)))
    for _ in range(14):
        _, reply = await sample(request(messages, offered))
        messages = (*messages, AssistantMessage(reply.blocks, stop_reason=reply.stop_reason))
        if not reply.tool_calls:
            return reply.text, messages
        messages = (*messages, UserMessage(tuple(tools.run(call) for call in reply.tool_calls)))
    raise AssertionError("the turn did not end")


# -- understanding -------------------------------------------------------------------------

RUN_TURN = FindDefinition(("run_turn",))
SHOWN = FindDefinition(("run_turn",), show=True)
ENGLISH: list[tuple[str, Task]] = [
    ("where is run_turn defined?", RUN_TURN),
    ("Where is `run_turn` defined", RUN_TURN),
    ("where's run_turn?", RUN_TURN),
    ("where is the function run_turn defined?", RUN_TURN),
    ("where is the run_turn function defined?", RUN_TURN),
    ("where is Conversation.run_turn defined?", RUN_TURN),
    ("can you tell me where run_turn is defined?", RUN_TURN),
    ("find the definition of run_turn", RUN_TURN),
    ("which file defines run_turn?", RUN_TURN),
    ("where is run_turn defined? [turn 2]", RUN_TURN),
    ("where is run_turn defined in this repository?", RUN_TURN),
    ("where is the session lock implemented?", FindDefinition(("session", "lock"))),
    ("where are the tool errors handled?", FindText("tool errors")),
    ("where is README.md", ListFiles("**/README.md")),
    ("find run_turn", FindText("run_turn")),
    ("find the session lock", FindText("session lock")),
    ('find "hello world" in src', FindText("hello world", "src", quoted=True)),
    ("search for permission denied", FindText("permission denied")),
    ("which files mention asyncio?", FindText("asyncio", only_files=True)),
    ("which files import asyncio?", FindImports("asyncio")),
    ("find foo in secrets", FindText("foo", "secrets", whole="foo in secrets")),
    ("grep foo secrets", FindText("foo", "secrets", is_pattern=True, whole="foo secrets")),
    (
        "where are fold and bar defined?",
        Several((FindDefinition(("fold",)), FindDefinition(("bar",)))),
    ),
    ("where is search and replace implemented?", FindDefinition(("search", "and", "replace"))),
    ("who calls a, b and `c`?", Several((FindUses("a"), FindUses("b"), FindUses("c")))),
    (
        "where is fold defined and who calls it?",
        Several((FindDefinition(("fold",)), FindUses("fold"))),
    ),
    ("show .git/config", ReadFile(".git/config")),
    ("show /etc/hostname", ReadFile("/etc/hostname")),
    ("show a.py and b.py", Several((ReadFile("a.py"), ReadFile("b.py")))),
    ("read the readme", ReadFile("readme")),
    ("summarize README.md", Outline("README.md")),
    ("explain src/x.py", Outline("src/x.py")),
    ("show me Foo", ShowWord("Foo")),
    ("what's in secrets?", ShowWord("secrets")),
    ("show 笔记.md", ReadFile("笔记.md")),
    ("create 测试.txt with hi", CreateFile("测试.txt", "hi")),
    ("replace 'foo' with 'bar' in 笔记.md", ReplaceText("foo", "bar", "笔记.md")),
    ("find 你好 in src", FindText("你好", "src")),
    ("what's in this directory?", ListFiles()),
    ("what's here?", ListFiles()),
    ("ls", ListFiles()),
    ("how many lines does README.md have?", CountLines("README.md")),
    ("how many lines of python code are there?", CountLines("", "**/*.py")),
    ("run the tests", RunTests()),
    ("git status", RunCommand("git status")),
    ("git log --oneline -5", RunCommand("git log --oneline -5")),
    ("ls -la", RunCommand("ls -la")),
    ("cat README.md | wc -l", RunCommand("cat README.md | wc -l")),
    ("pytest -q", RunCommand("pytest -q")),
    ("python x.py", RunCommand("python x.py")),
    ("make test", RunCommand("make test")),
    ("hello", Help()),
    ("hi there!", Help()),
    ("find foo in python files", FindText("foo", glob="**/*.py")),
    ("grep foo", FindText("foo", is_pattern=True)),
    ('grep -rn "a b" src', FindText("a b", "src", is_pattern=True, quoted=True)),
    ("find *.py", ListFiles("**/*.py")),
    ("find main.rs", ListFiles("**/main.rs")),
    ("who calls run_turn?", FindUses("run_turn")),
    ("where is run_turn used?", FindUses("run_turn")),
    ("find usages of run_turn", FindUses("run_turn")),
    ("TODOs?", FindTodos()),
    ("find todos in src", FindTodos("src")),
    ("read README.md", ReadFile("README.md")),
    ("what's in README.md?", ReadFile("README.md")),
    ("please open src/x.py", ReadFile("src/x.py")),
    ("show the first lines of README.md", ReadFile("README.md", 1, 10)),
    ("show me the first five lines of the README", ReadFile("README", 1, 5)),
    ("head -n 5 README.md", ReadFile("README.md", 1, 5)),
    ("last 3 lines of README.md", ReadFile("README.md", 1, -3)),
    ("show lines 10-20 of src/x.py", ReadFile("src/x.py", 10, 11)),
    ("src/x.py:7", ReadFile("src/x.py", 7, 1)),
    ("look at the run_turn function in main.rs", ShowCode("run_turn", "main.rs")),
    ("show main.rs's run_turn function", ShowCode("run_turn", "main.rs")),
    ("what does run_turn do?", SHOWN),
    ("show the function run_turn", SHOWN),
    ("list files", ListFiles()),
    ("list the python files", ListFiles("**/*.py")),
    ("list files in src", ListFiles(path="src")),
    ("what's in the src folder?", ListFiles(path="src")),
    ("how many files?", CountFiles()),
    ("how many rust files are there in crates?", CountFiles("**/*.rs", "crates")),
    ("run ls -la", RunCommand("ls -la")),
    ("run `pytest -q` and show me the output", RunCommand("pytest -q")),
    ("$ git status", RunCommand("git status")),
    ("replace foo with bar in src/x.py", ReplaceText("foo", "bar", "src/x.py")),
    ('change "a b" to `c.` in notes.txt.', ReplaceText("a b", "c.", "notes.txt")),
    ("create hello.txt with hello world.", CreateFile("hello.txt", "hello world.")),
    ('create a file called a.txt with the content "hi"', CreateFile("a.txt", "hi")),
    ('write "hi" to a.txt', CreateFile("a.txt", "hi")),
    ("create an empty file a.txt", CreateFile("a.txt", "")),
    ("create a.md with\n```\n# A\n```", CreateFile("a.md", "# A\n")),
    ("what does this project do?", Overview()),
    ("what can you do?", Help()),
    ("help", Help()),
]
CHINESE: list[tuple[str, Task]] = [
    ("run_turn 在哪里定义?", RUN_TURN),
    ("run_turn定义在哪", RUN_TURN),
    ("请问 run_turn 函数在哪个文件里定义？", RUN_TURN),
    ("哪里定义了run_turn？", RUN_TURN),
    ("谁调用了run_turn？", FindUses("run_turn")),
    ("run_turn在哪里被调用", FindUses("run_turn")),
    ("查找run_turn", FindText("run_turn")),
    ("搜索“hello world”", FindText("hello world", quoted=True)),
    ("在src里搜索 asyncio", FindText("asyncio", "src")),
    ("有哪些TODO", FindTodos()),
    ("查看 README.md", ReadFile("README.md")),
    ("显示README.md的前10行", ReadFile("README.md", 1, 10)),
    ("读取 src/x.py 的前二十行", ReadFile("src/x.py", 1, 20)),
    ("查看src/x.py第10到20行", ReadFile("src/x.py", 10, 11)),
    ("README.md里有什么？", ReadFile("README.md")),
    ("帮我看看main.rs的run_turn函数", ShowCode("run_turn", "main.rs")),
    ("看看main.rs里的run_turn", ShowCode("run_turn", "main.rs")),
    ("显示 run_turn 函数", SHOWN),
    ("列出所有Python文件", ListFiles("**/*.py")),
    ("列出src里的文件", ListFiles(path="src")),
    ("有多少个文件？", CountFiles()),
    ("运行 ls -la", RunCommand("ls -la")),
    ("执行 `git status`", RunCommand("git status")),
    ("把x.txt里的foo替换成bar", ReplaceText("foo", "bar", "x.txt")),
    ("把 src/x.py 中的 `foo` 改成 `bar`。", ReplaceText("foo", "bar", "src/x.py")),
    ("创建文件hello.txt，内容为你好", CreateFile("hello.txt", "你好")),
    ("创建文件 a.txt,内容为 “hi there”", CreateFile("a.txt", "hi there")),
    ("这个项目是做什么的？", Overview()),
    ("你能做什么？", Help()),
    ("你好", Help()),
    ("你好，你能做什么？", Help()),
    ("看看笔记.md", ReadFile("笔记.md")),
    ("显示笔记.md的前10行", ReadFile("笔记.md", 1, 10)),
    ("把笔记.md里的foo替换成bar", ReplaceText("foo", "bar", "笔记.md")),
    ("把文档/笔记.v2.md里的a.b替换成c", ReplaceText("a.b", "c", "文档/笔记.v2.md")),
    ("创建测试.txt，内容是hi", CreateFile("测试.txt", "hi")),
    ("这个目录里有什么", ListFiles()),
    ("运行测试", RunTests()),
    ("README.md 有多少行", CountLines("README.md")),
    ("总结 README.md", Outline("README.md")),
    ("哪些文件导入了 asyncio", FindImports("asyncio")),
    ("a和b在哪里定义", Several((FindDefinition(("a",)), FindDefinition(("b",))))),
    ("fold在哪里定义，谁调用了它？", Several((FindDefinition(("fold",)), FindUses("fold")))),
]
NOT_UNDERSTOOD = [
    "write me a poem",
    "make me a sandwich",
    "git is broken",
    "python is great",
    "show me more",
    "show me the bug and fix it",
    "how does it work?",
    "fix the bug",
    "find out why the tests fail",
    "find and fix the bug",
    "delete README.md",
    "why does this fail?",
    "what is the meaning of life?",
    "replace foo with bar",
    "写一首诗",
    "",
    "x" * 50_000,
]


@pytest.mark.parametrize(("prompt", "task"), ENGLISH + CHINESE, ids=lambda value: str(value)[:50])
def test_a_prompt_becomes_a_task(prompt: str, task: Task) -> None:
    assert understand(prompt) == (task, False)


@pytest.mark.parametrize("prompt", NOT_UNDERSTOOD, ids=lambda value: value[:40])
async def test_a_prompt_that_no_rule_fits_is_a_short_error_with_examples(prompt: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        await sample(request((UserMessage((Text(prompt),)),)))
    assert len(caught.value.message.splitlines()) == 2
    assert (
        "`where is X defined`" in caught.value.message or "`X 在哪里定义`" in caught.value.message
    )
    assert "API_KEY" in caught.value.hint
    assert caught.value.kind == "request_rejected"


def test_a_first_sentence_is_followed_only_where_it_changes_nothing() -> None:
    assert understand("Where is run_turn defined? Answer in one line.") == (RUN_TURN, True)
    assert understand("Replace a with b in c.txt. Then run it.") is None
    assert understand("Run the tests. Then fix what fails.") is None


# -- definitions ---------------------------------------------------------------------------

DEFINITIONS = [
    ("a.py", "def run(x):"),
    ("a.py", "    async def run("),
    ("a.py", "class run(Base):"),
    ("a.py", "run = 3"),
    ("a.py", "run: int = 3"),
    ("a.rs", "pub(crate) async fn run<T>(x: T) {"),
    ("a.rs", "    const run: u8 = 1;"),
    ("a.rs", "macro_rules! run {"),
    ("a.rs", "impl<T> Trait for run<T> {"),
    ("a.rs", "#[test] fn run() {}"),
    ("a.rs", "pub struct run {"),
    ("a.go", "func run(x int) error {"),
    ("a.go", "func (r *Runner) run(x int) error {"),
    ("a.go", "type run struct {"),
    ("a.ts", "export default async function run(x: number) {"),
    ("a.ts", "export interface run<T> {"),
    ("a.ts", "  private async run(x: number): Promise<void> {"),
    ("a.js", "const run = () => {"),
    ("a.js", "  run(x) {"),
    ("a.js", "exports.run = function (x) {"),
    ("a.js", "  run: async (x) => x,"),
    ("a.java", "    public static void run(String[] args) {"),
    ("a.kt", "fun String.run(x: Int): Int = x"),
    ("a.c", "static int *run(int x)"),
    ("a.c", "int run(int x) {"),
    ("a.c", "#define run(x) (x)"),
    ("a.cpp", "void Loop::run(int x) const {"),
    ("a.h", "typedef struct loop run;"),
    ("a.rb", "  def self.run(x)"),
    ("a.sh", "run() {"),
    ("a.sh", "function run {"),
    ("a.ex", "  defp run(x) do"),
    ("a.php", "    public function run($x)"),
    ("a.hs", "run :: Int -> Int"),
    ("a.lua", "local function run(x)"),
    ("a.sql", "CREATE TABLE IF NOT EXISTS run ("),
    ("a.clj", "(defn run [x]"),
]
NO_DEFINITIONS = [
    ("a.py", "    return run(x)"),
    ("a.py", "x = run(1)"),
    ("a.py", "from loop import run"),
    ("a.py", "def run_turn(x):"),
    ("a.py", "    call(run=3)"),
    ("a.py", "run == 3"),
    ("a.py", "await run()"),
    ("a.py", "# def run is elsewhere"),
    ("a.rs", "    if run(x) {"),
    ("a.rs", "use loop::run;"),
    ("a.rs", "    let y = run(x);"),
    ("a.js", "run(x, () => {"),
    ("a.js", "  while (run(x)) {"),
    ("a.go", "\tif err := run(x); err != nil {"),
    ("a.c", "    run(x);"),
    ("a.c", "// int run(int x) {"),
    ("a.md", "Call the run(prompt) function first,"),
]


@pytest.mark.parametrize(("path", "line"), DEFINITIONS)
def test_definitions_are_recognised(path: str, line: str) -> None:
    assert is_definition(("run",), path, line)
    assert re.search(definition_pattern(("run",)), line, re.MULTILINE)


@pytest.mark.parametrize(("path", "line"), NO_DEFINITIONS)
def test_uses_are_no_definitions(path: str, line: str) -> None:
    assert not is_definition(("run",), path, line)


def test_ripgrep_reads_the_pattern_as_python_does(tmp_path: Path) -> None:
    rg = shutil.which("rg", path=str(Path(sys.executable).parent)) or shutil.which("rg")
    if rg is None:
        pytest.skip("no rg here")
    text = "\n".join(line for _, line in DEFINITIONS + NO_DEFINITIONS)
    (tmp_path / "all.txt").write_text(text)
    for names in (("run",), ("run", "Run"), ("a.b[0]+?",)):
        pattern = definition_pattern(names)
        done = subprocess.run(
            [rg, "-n", "-e", pattern, "all.txt"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        by_rg = {int(line.split(":", 1)[0]) for line in done.stdout.splitlines()}
        by_python = {n for n, t in enumerate(text.split("\n"), 1) if re.search(pattern, t)}
        assert by_rg == by_python


# -- whole turns ---------------------------------------------------------------------------


async def test_every_definition_is_named_with_file_and_line() -> None:
    tools = SmallTools()
    answer, _ = await turn("where is run_turn defined?", tools)
    assert [call.name for call in tools.calls] == ["Grep"]
    assert "`main.rs:7`" in answer
    assert "`src/loop.py:5`" in answer
    assert "2 places" in answer
    assert "test_loop" not in answer
    assert "does not reason" in answer


async def test_a_chinese_prompt_gets_a_chinese_answer() -> None:
    answer, _ = await turn("run_turn在哪里定义？", SmallTools())
    assert "2 处定义" in answer
    assert "`main.rs:7`" in answer
    assert "`src/loop.py:5`" in answer
    assert "不做推理" in answer


async def test_without_a_definition_the_mentions_are_given_and_said_to_be_that() -> None:
    tools = SmallTools()
    answer, _ = await turn("where is depth defined?", tools)
    assert "No definition of `depth`" in answer
    assert "`src/loop.py:2`" in answer
    nothing, _ = await turn("where is zzz defined?", tools)
    assert "no mention" in nothing


async def test_the_look_at_a_function_is_one_read_and_an_answer() -> None:
    tools = SmallTools()
    answer, messages = await turn("帮我看看main.rs的run_turn函数", tools)
    assert [(call.name, call.input) for call in tools.calls] == [("Read", {"file_path": "main.rs"})]
    assert "`main.rs:7`" in answer
    assert "prompt.len()\n}" in answer
    assert "fn main" not in answer
    assert len(messages) == 4


async def test_lines_of_a_file_are_shown() -> None:
    answer, _ = await turn("show the first 3 lines of README.md", SmallTools())
    assert "line 1\nline 2\nline 3\n```" in answer
    last, _ = await turn("last 2 lines of README.md", SmallTools())
    assert "`README.md:99-100`" in last
    page, _ = await turn("show README.md", SmallTools())
    assert "lines 61-" in page


async def test_a_file_elsewhere_is_found_by_its_name() -> None:
    tools = SmallTools()
    answer, _ = await turn("read notes.txt", tools)
    assert [call.name for call in tools.calls] == ["Read", "Glob", "Read"]
    assert "`src/deep/notes.txt:1-2`" in answer
    missing, _ = await turn("read nothing.txt", SmallTools())
    assert "nothing.txt does not exist" in missing


async def test_words_are_found_as_one_identifier_then_in_one_line_then_in_one_file() -> None:
    answer, _ = await turn("find the session lock", SmallTools())
    assert "`src/loop.py:1`" in answer
    in_line, _ = await turn("find session very", SmallTools())
    assert "`src/deep/notes.txt:2`" in in_line
    in_file, _ = await turn("find lock very", SmallTools())
    assert "`src/deep/notes.txt`" in in_file


async def test_the_search_for_a_definition_is_a_short_pattern() -> None:
    tools = SmallTools()
    await turn("where is run_turn defined?", tools)
    assert [call.input["pattern"] for call in tools.calls] == [r"\brun_turn\b"]


async def test_a_name_too_common_is_looked_for_where_it_is_defined() -> None:
    uses = "".join(f"run({n})\n" for n in range(600))
    tools = SmallTools({"a.py": uses, "b.py": "def run(n):\n    return n\n"})
    answer, _ = await turn("where is run defined?", tools)
    assert len(tools.calls) == 2
    assert "1 place" in answer
    assert "`b.py:1`" in answer


SECRETS = {**FILES, "secrets/a.txt": "foo\n", "deep/er/b.txt": "foo\nfoo in nowhere\n"}


@pytest.mark.parametrize("prompt", ["find foo in secrets", "grep foo secrets"])
async def test_a_word_that_is_a_folder_is_where_to_look(prompt: str) -> None:
    answer, _ = await turn(prompt, SmallTools(dict(SECRETS)))
    assert "1 line matches `foo` in `secrets`" in answer
    assert "deep" not in answer


async def test_a_folder_that_lies_deeper_is_found() -> None:
    answer, _ = await turn("find foo in er", SmallTools(dict(SECRETS)))
    assert "2 lines match `foo` in `deep/er`" in answer
    listed, _ = await turn("list files in er", SmallTools(dict(SECRETS)))
    assert "`deep/er/b.txt`" in listed


async def test_a_word_that_is_no_folder_or_has_nothing_is_looked_for_itself() -> None:
    answer, _ = await turn("find foo in nowhere", SmallTools(dict(SECRETS)))
    assert "1 line matches `foo in nowhere`" in answer
    nothing, _ = await turn("find line in secrets", SmallTools(dict(SECRETS)))
    assert "No line matches `line` in `secrets`." in nothing


async def test_several_names_are_each_answered() -> None:
    answer, _ = await turn("where are run_turn and SessionLock defined?", SmallTools())
    assert "`run_turn` is defined in 2 places" in answer
    assert "`SessionLock` is defined in 1 place" in answer
    both, _ = await turn("where is run_turn defined and who calls it?", SmallTools())
    assert "2 places" in both
    assert "`tests/test_loop.py:5`" in both


async def test_prose_and_pictures_call_nothing() -> None:
    files = {
        "a.py": '# fold(1) is good\nx = fold(2)  # as fold(3)\n"""See `fold(4)`."""\n',
        "b.md": "Call fold(5).\n",
        "c.svg": "<text>fold(6)</text>\n",
        "README": "fold(7)\n",
    }
    answer, _ = await turn("who calls fold?", SmallTools(files))
    assert "called in 1 place" in answer
    assert "Documents mention it: 3 lines in 3 files." in answer
    assert "b.md" not in answer
    del files["a.py"]
    none, _ = await turn("who calls fold?", SmallTools(files))
    assert "No line calls `fold`" in none


async def test_imports_name_the_files() -> None:
    answer, _ = await turn("which files import run_turn?", SmallTools())
    assert "1 file imports `run_turn`" in answer
    assert "`tests/test_loop.py:1`" in answer


async def test_a_word_is_shown_as_code_file_or_folder() -> None:
    code, _ = await turn("show me SessionLock", SmallTools())
    assert "class SessionLock:\n    depth = 1\n```" in code
    folder, _ = await turn("show deep", SmallTools())
    assert "`src/deep/notes.txt`" in folder
    nothing, _ = await turn("show zzz", SmallTools())
    assert "no mention" in nothing


async def test_the_readme_is_found_however_it_is_spelt() -> None:
    tools = SmallTools()
    answer, _ = await turn("read the readme", tools)
    assert [call.name for call in tools.calls] == ["Glob", "Read"]
    assert "`README.md:1-60`" in answer


async def test_who_wants_a_summary_is_told_that_there_is_none_and_shown_the_outline() -> None:
    answer, _ = await turn("explain src/loop.py", SmallTools())
    assert "cannot explain" in answer
    assert "`src/loop.py:1`: `class SessionLock:`" in answer
    assert "`src/loop.py:5`" in answer


TESTED = [
    ({"scripts/test": "", "pytest.ini": ""}, "scripts/test"),
    ({"tests/test_a.py": ""}, "pytest"),
    ({"package.json": '{"scripts": {"test": "x"}}'}, "npm test"),
    ({"Cargo.toml": ""}, "cargo test"),
    ({"Makefile": "test:\n"}, "make test"),
]


@pytest.mark.parametrize(("files", "command"), TESTED, ids=lambda value: str(value)[:20])
async def test_the_tests_are_run_as_the_project_does(files: dict[str, str], command: str) -> None:
    tools = SmallTools(files)
    await turn("run the tests", tools)
    assert tools.calls[-1].input == {"command": command}


async def test_a_project_without_tests_is_said_to_have_none() -> None:
    answer, _ = await turn(
        "run the tests", SmallTools({"Makefile": "all:\n", "package.json": "{}"})
    )
    assert "No way to run tests" in answer


async def test_a_folder_with_many_files_is_shown_by_its_folders() -> None:
    files = {f"pack/f{n:02}.py": "" for n in range(60)} | {"top.txt": ""}
    answer, _ = await turn("what's in this directory?", SmallTools(files))
    assert "61 files" in answer
    assert "- `pack/`\n- `top.txt`" in answer


async def test_a_greeting_is_answered_with_the_abilities() -> None:
    answer, _ = await turn("hello", SmallTools())
    assert "`who calls X`" in answer


async def test_uses_leave_out_the_definitions() -> None:
    answer, _ = await turn("who calls run_turn?", SmallTools())
    called, _, rest = answer.partition("mentioned")
    assert "`main.rs:4`" in called
    assert "`tests/test_loop.py:5`" in called
    assert "`main.rs:7`" not in called
    assert "`main.rs:7`" in rest


async def test_files_are_listed_and_counted() -> None:
    listed, _ = await turn("list the python files", SmallTools())
    assert "2 files match" in listed
    assert "`tests/test_loop.py`" in listed
    counted, _ = await turn("how many files in src?", SmallTools())
    assert counted.startswith("2 files match")


async def test_todos() -> None:
    answer, _ = await turn("TODOs?", SmallTools())
    assert "1 note to do" in answer
    assert "`main.rs:8`" in answer


async def test_replacing_reads_first_and_says_how_often() -> None:
    tools = SmallTools()
    answer, _ = await turn("replace prompt with text in main.rs", tools)
    assert [call.name for call in tools.calls] == ["Read", "Edit"]
    assert tools.calls[1].input["replace_all"] is True
    assert "2 times" in answer
    assert "text.len()" in tools.files["main.rs"]
    none, _ = await turn("replace zebra with horse in main.rs", tools)
    assert "does not contain" in none


async def test_creating_writes_the_text_as_given() -> None:
    tools = SmallTools()
    answer, _ = await turn("创建文件 a.txt，内容为你好", tools)
    assert tools.files["a.txt"] == "你好"
    assert "6 字节" in answer
    again, _ = await turn("create a.txt with hi", tools)
    assert "exists and was not read" in again


async def test_a_denied_call_is_said_plainly_and_the_turn_completes() -> None:
    answer, messages = await turn("run ls", SmallTools())
    assert "not permitted" in answer
    assert "nobody is there to ask" in answer
    last = messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.stop_reason == "end_turn"


async def test_a_tool_that_is_not_offered_is_named() -> None:
    answer, _ = await turn("run ls", SmallTools(), offered=("Read",))
    assert "needs the tool `Bash`" in answer


async def test_a_later_turn_goes_by_its_own_prompt_and_ids_stay_unique() -> None:
    tools = SmallTools()
    _, history = await turn("where is run_turn defined?", tools)
    answer, messages = await turn("show the first 2 lines of README.md", tools, history)
    assert "line 2" in answer
    ids = [c.id for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls]
    assert ids == ["offline_1", "offline_2"]


async def test_context_added_to_a_prompt_is_not_taken_for_it() -> None:
    message = UserMessage((Text("where is run_turn defined?"), Text("A hook says hello.")))
    _, reply = await sample(request((message,)))
    assert reply.tool_calls[0].name == "Grep"


async def test_a_long_answer_is_bounded_and_streamed_in_parts() -> None:
    tools = SmallTools({f"f{n:03}.py": "needle\n" for n in range(60)})
    answer, messages = await turn("find needle", tools)
    assert answer.count("\n- `f") == 40
    assert "and 20 more" in answer
    events, reply = await sample(request(messages[:-1]))
    assert sum(isinstance(event, TextDelta) for event in events) > 1
    assert reply.text == answer


async def test_a_search_that_was_cut_off_is_said_to_be() -> None:
    _, first = await sample(request((UserMessage((Text("find x"),)),)))
    call = first.tool_calls[0]
    result = ToolResult(call.id, (Text("a.py:1:x\n\n[300 more lines were omitted]"),))
    messages = (
        UserMessage((Text("find x"),)),
        AssistantMessage((call,)),
        UserMessage((result,)),
    )
    _, reply = await sample(request(messages))
    assert "cut off" in reply.text


REAL = [
    ("where is run_turn defined?", ["`main.rs:7`", "`src/loop.py:5`", "2 places"]),
    ("run_turn在哪里定义？", ["`main.rs:7`", "`src/loop.py:5`", "2 处定义"]),
    ("帮我看看main.rs的run_turn函数", ["`main.rs:7` (7-10)"]),
    ("show the first lines of README.md", ["`README.md:1-10`", "line 10\n```"]),
    ("last 2 lines of README.md", ["`README.md:99-100`"]),
    ("read notes.txt", ["`src/deep/notes.txt:1-2`"]),
    ("find lock very", ["`src/deep/notes.txt`"]),
    ("who calls run_turn?", ["called in 2 places", "`tests/test_loop.py:5`"]),
    ("list the python files", ["2 files match", "`src/loop.py`"]),
    ("how many files in src?", ["2 files match"]),
    ("where is nowhere_at_all defined?", ["no mention"]),
    ("replace prompt with text in main.rs", ["2 times", "`main.rs:7`"]),
    ("create a.txt with hi", ["Created `a.txt` with 2 bytes"]),
    ("run echo one; exit 3", ["did not succeed", "one", "exit code 3"]),
    ("grep 'a('", ["`Grep` reports an error"]),
    ("find very in deep", ["1 line matches `very` in `src/deep`", "`src/deep/notes.txt:2`"]),
    ("grep very nowhere", ["No line matches `very nowhere`"]),
    ("how many lines does README.md have?", ["`README.md` has 100 lines."]),
    ("how many lines of python code?", ["11 lines, in 2 files"]),
    ("show deep", ["1 file matches `src/deep/**/*`"]),
    ("read the readme", ["`README.md:1-60`"]),
    ("which files import run_turn?", ["1 file imports"]),
    ("show src/", ["2 files match"]),
    ("create 测试.txt with hi", ["Created `测试.txt`"]),
]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[LocalProcesses]:
    local = LocalProcesses(str(tmp_path), os.environ, Guard())
    yield local
    local.close()


@pytest.mark.parametrize(("prompt", "said"), REAL, ids=lambda value: str(value)[:40])
async def test_with_the_real_tools(
    prompt: str, said: list[str], tmp_path: Path, processes: LocalProcesses
) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    tools = ToolList(builtin_tools(LocalWorkspace(str(tmp_path)), processes))

    async def run(use: ToolUse) -> ToolResult:
        tool = tools.get(use.name)
        assert tool is not None
        try:
            output = await tool.run(tool.parse(use.input), ToolCall(use.id, lambda text: None))
        except ToolFailed as error:
            return ToolResult(use.id, (Text(error.message),), True)
        return ToolResult(use.id, output.content, output.is_error)

    messages: tuple[Message, ...] = (UserMessage((Text(prompt),)),)
    _, reply = await sample(Request("", messages, tools.specs(), Sampling("offline")))
    while reply.tool_calls:
        results = UserMessage(tuple([await run(use) for use in reply.tool_calls]))
        messages = (*messages, AssistantMessage(reply.blocks), results)
        _, reply = await sample(Request("", messages, tools.specs(), Sampling("offline")))
    for part in said:
        assert part in reply.text
    assert str(tmp_path) not in reply.text


async def test_usage_is_an_estimate_and_costs_nothing() -> None:
    events, reply = await sample(request((UserMessage((Text("find run_turn"),)),)))
    assert reply.usage.estimated
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    assert isinstance(events[-1], MessageStop)
    assert reply.model == "offline"
    model = OfflineModel()
    assert model.cost(Usage(), "offline") == 0.0
    assert model.window is None


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.sampled_from([p for p, _ in ENGLISH + CHINESE]))
async def test_the_same_prompt_gives_the_same_bytes_or_the_same_refusal(prompt: str) -> None:
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append((await turn(prompt, SmallTools()))[0])
        except RequestRejected as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "piece", ["a ", "with ", "`", "where is ", "把", "in ", "\n", "的 ", "**/"]
)
def test_a_long_prompt_is_judged_quickly(piece: str) -> None:
    for start in ("", "replace ", "where is ", "find ", "create a with ", "把a里的"):
        understand((start + piece * 2000)[:6000])
