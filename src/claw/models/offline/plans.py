"""How each task is done: a plan yields its calls, is sent their results, returns the answer.

Plans are pure: for the same task and the same results they go the same way. So
nothing is kept between requests; a plan is simply walked again from its start.
"""

from __future__ import annotations

from claw.models.offline.changing import create_file, replace_text, run_command, run_tests
from claw.models.offline.searching import (
    find_definition,
    find_imports,
    find_text,
    find_todos,
    find_uses,
    show_word,
)
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
from claw.models.offline.viewing import (
    count_files,
    count_lines,
    list_files,
    outline,
    overview,
    read_file,
    show_code,
)
from claw.models.offline.wording import Plan, Voice

__all__ = ["describe_abilities", "examples", "plan_for"]


def plan_for(task: Task, say: Voice) -> Plan:
    match task:
        case Help():
            return _help(say)
        case Overview():
            return overview(say)
        case FindDefinition():
            return find_definition(task, say)
        case FindUses():
            return find_uses(task, say)
        case FindText():
            return find_text(task, say)
        case FindImports():
            return find_imports(task, say)
        case FindTodos():
            return find_todos(task, say)
        case ReadFile():
            return read_file(task, say)
        case ShowCode():
            return show_code(task, say)
        case ShowWord():
            return show_word(task, say)
        case Outline():
            return outline(task, say)
        case ListFiles():
            return list_files(task, say)
        case CountFiles():
            return count_files(task, say)
        case CountLines():
            return count_lines(task, say)
        case RunCommand():
            return run_command(task, say)
        case RunTests():
            return run_tests(say)
        case ReplaceText():
            return replace_text(task, say)
        case CreateFile():
            return create_file(task, say)
        case Several():
            return _several(task, say)


def describe_abilities(*, chinese: bool = False) -> str:
    """What the offline model can be asked for, one form a line."""
    if chinese:
        return (
            "- `X 在哪里定义`、`谁调用了 X`、`哪些文件导入了 X`、`查找 X`、`有哪些 TODO`\n"
            "- `查看 FILE`、`显示 FILE 的前 20 行`、`看看 FILE 的 X 函数`、`总结 FILE`\n"
            "- `这个目录里有什么`、`列出 Python 文件`、`有多少个文件`、`FILE 有多少行`\n"
            "- `把 FILE 里的 A 替换成 B`、`创建文件 FILE，内容为 TEXT`\n"
            "- `运行 COMMAND`、`运行测试`、`git status`"
        )
    return (
        "- `where is X defined`, `who calls X`, `which files import X`, `find X`, `TODOs`\n"
        "- `show FILE`, `show the first 20 lines of FILE`, `show the function X in FILE`,"
        " `summarize FILE`\n"
        "- `list the python files`, `list files in src`, `how many files`,"
        " `how many lines does FILE have`\n"
        "- `replace A with B in FILE`, `create FILE with TEXT`\n"
        "- `run COMMAND`, `run the tests`, `git status`"
    )


def examples(*, chinese: bool = False) -> str:
    """Five prompts to try, on one line."""
    if chinese:
        return "`X 在哪里定义`、`谁调用了 X`、`查找 X`、`查看 FILE`、`运行 COMMAND`"
    return "`where is X defined`, `who calls X`, `find X`, `show FILE`, `run COMMAND`"


def _several(task: Several, say: Voice) -> Plan:
    answers = []
    for one in task.tasks:
        answers.append((yield from plan_for(one, say)))
    return "\n\n".join(answers)


def _help(say: Voice) -> Plan:
    yield from ()
    head = say("Without a model I can do this:", "没有接入模型时，我能做这些：")
    return f"{head}\n\n{describe_abilities(chinese=say.chinese)}"
