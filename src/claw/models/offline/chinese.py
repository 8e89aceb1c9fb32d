"""The rules for prompts in Chinese, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable

from claw.models.offline.making import (
    count_files,
    count_lines,
    create_file,
    find_definition,
    find_definition_and_uses,
    find_files,
    find_imports,
    find_text,
    find_todos,
    find_uses,
    list_files,
    list_folder,
    outline,
    read_file,
    replace_text,
    run_command,
    show_code,
    show_definition,
    show_word,
    type_command,
)
from claw.models.offline.tasks import (
    Help,
    ListFiles,
    Overview,
    RunTests,
    Task,
)
from claw.models.offline.words import (
    KIND_ZH,
    NAME,
    ONE_NAME,
    QUOTED,
    SORT,
    VERB_ZH,
    Groups,
    N,
)

__all__ = ["ACTIONS", "QUESTIONS"]

Rule = tuple[str, str, Callable[[Groups], Task | None]]

# Ending with its kind or a slash, so that it can be told from the words around it.
FILE = (
    r"(?:[A-Za-z0-9_./~@+*-]+(?![A-Za-z0-9_./~@+*-])"
    r"|[\w./~@+*-]+?(?:\.[A-Za-z0-9]{1,10}(?![A-Za-z0-9_./~@+*-])|/(?![\w./])))"
)
FILE_GROUP = rf"(?P<file>{QUOTED}|{FILE})"
_NAME_ZH = rf"\s*(?:{KIND_ZH}\s*)?{ONE_NAME}\s*(?:的)?\s*(?:这个)?{KIND_ZH}?\s*"
_FILE_ZH = rf"\s*(?P<said>文件|文档)?\s*(?P<file>{QUOTED}|{FILE})\s*(?:这个)?(?:文件)?\s*"
_PATH_ZH = (
    rf"(?:目录|文件夹)?\s*(?P<path>{QUOTED}|{FILE})\s*(?:目录|文件夹|文件)?\s*"
    r"(?:里面|里|中|下面|下)?(?:的)?\s*"
)
_LANG_ZH = rf"(?:{SORT}\s*(?:语言|源代码|源|代码)?\s*(?:的)?\s*)?"
_N_ZH = rf"\s*(?:{N}|几|若干)?\s*"
_WHERE_ZH = (
    r"(?:在哪里|在哪儿|在哪个文件(?:里面|里|中)?|在哪些地方|在哪些文件(?:里|中)?|在哪|在什么地方"
    r"|位于哪里|何处)"
)
_SEARCH_ZH = (
    r"(?:查找一下|查找|搜索一下|搜索|搜寻|检索|寻找|找一下|找找|找到|找出|搜一下|找|搜|查一下)"
)

ACTIONS: tuple[Rule, ...] = (
    (
        "测试",
        r"(?:运行一下|运行|执行一下|执行|跑一下|跑一跑|跑)\s*(?:所有|全部|这些|这个项目的)?(?:的)?\s*(?:单元)?"
        r"测试(?:用例)?[。!\uff01]?",
        lambda g: RunTests(),
    ),
    (
        "运行|执行|跑",
        rf"(?:运行一下|运行|执行一下|执行|跑一下|跑)\s*(?:命令)?\s*[:\uff1a]?\s*(?P<command>{QUOTED})"
        rf"(?:[\s,\uff0c。并].*)?",
        run_command,
    ),
    (
        "运行|执行|跑",
        r"(?:运行一下|运行|执行一下|执行|跑一下|跑)\s*(?:命令)?\s*[:\uff1a]?\s*(?P<command>.+)",
        run_command,
    ),
    (
        "换|改",
        rf"把\s*(?:文件)?\s*(?P<file>{QUOTED}|{FILE})\s*(?:文件)?(?:里面|里|中|内)?的?\s*(?:所有|全部)?的?\s*"
        rf"(?P<old>{QUOTED}|.+?)\s*(?:都|全部|全都)?\s*(?:替换|改|换|修改)(?:成|为)\s*"
        rf"(?P<new>{QUOTED}|.+?)。?",
        replace_text,
    ),
    (
        "换|改",
        rf"在\s*(?:文件)?\s*(?P<file>{QUOTED}|{FILE})\s*(?:文件)?(?:里面|里|中|内)?[,\uff0c]?\s*(?:将|把)\s*"
        rf"(?:所有|全部)?的?\s*(?P<old>{QUOTED}|.+?)\s*(?:都|全部)?\s*(?:替换|改|换|修改)(?:成|为)\s*"
        rf"(?P<new>{QUOTED}|.+?)。?",
        replace_text,
    ),
    (
        "创建|新建|生成|建立|写",
        rf"(?:创建|新建|生成|建立|写)\s*(?:一个)?(?:新的?)?\s*(?P<said>文件)?\s*(?:名为|叫)?\s*{FILE_GROUP}"
        rf"\s*(?:的)?(?:文件)?\s*[,\uff0c]?\s*(?:并)?(?:里面)?(?:内容(?:为|是)?|写入|写上|包含)\s*[:\uff1a]?\s*(?P<text>.+)",
        create_file,
    ),
    (
        "写|保存",
        rf"(?:把|将)\s*(?P<text>{QUOTED}|.+?)\s*(?:写入|写到|写进|保存到|保存为)\s*(?P<said>文件)?\s*"
        rf"{FILE_GROUP}\s*(?:文件)?(?:里|中)?。?",
        create_file,
    ),
    (
        "创建|新建",
        rf"(?:创建|新建)\s*(?:一个)?(?:新的?|空的?)?\s*(?P<said>文件)?\s*(?:名为|叫)?\s*{FILE_GROUP}"
        rf"\s*(?:的)?(?:文件)?",
        create_file,
    ),
    ("", r"(?P<command>[a-z][\w-]*(?:\s.*)?)", type_command),
)

QUESTIONS: tuple[Rule, ...] = (
    ("你好|您好|嗨|早|晚", r"你好啊?|您好|嗨|早上好|下午好|晚上好|大家好", lambda g: Help()),
    (
        "什么|啥|哪些|内容|目录|文件夹",
        r"(?:列出|显示|查看|看看|看一下)?(?:(?:这个|本|当前)(?:目录|文件夹|项目|仓库)|这里)?(?:里面|里|中|下面|下)?的?"
        r"(?:都)?(?:有)?(?:些)?(?:什么|啥|哪些)(?:文件|东西|内容)?|(?:列出|显示|查看|看看|看一下)"
        r"(?:这个|本|当前)(?:目录|文件夹)(?:的)?(?:内容|文件)?",
        lambda g: ListFiles(),
    ),
    (
        "总结|概括|解释|说明|介绍|分析|做什么|干什么",
        rf"(?:(?:总结|概括|解释|说明|介绍|分析)(?:一下)?{_FILE_ZH}(?:的)?(?:内容|代码)?"
        rf"|(?P<said2>文件)?(?P<file2>{QUOTED}|{FILE})\s*(?:是)?(?:做|干)什么(?:的|用的)?)",
        lambda g: outline({"file": g.get("file2", "")} | g),
    ),
    (
        "行",
        rf"{_FILE_ZH}(?:一共|总共)?有?(?:多少|几)行(?:代码)?|(?:统计|数一下|数)\s*(?P<file2>{QUOTED}|{FILE})"
        rf"\s*(?:的)?行数",
        lambda g: count_lines({"file": g.get("file2", "")} | g),
    ),
    (
        "行",
        rf"(?:一共|总共)?有?(?:多少|几)行\s*{_LANG_ZH}(?:代码)?",
        count_lines,
    ),
    (
        "用|引",
        rf"{_NAME_ZH}(?:是|都)?{_WHERE_ZH}(?:被)?(?:定义|声明|实现)?(?:了|过|的)*\s*[,\uff0c;\uff1b?\uff1f]?\s*"
        r"(?:并且|以及|和|又|还有)?(?:被)?(?:谁|哪里|哪些地方|哪些文件|哪些代码)(?:在)?(?:调用|使用|引用|用到|用)(?:了|到)?"
        r"(?:它|它们|他|她)?",
        find_definition_and_uses,
    ),
    (
        "导入|引入|import",
        rf"(?:谁|哪里|哪些地方|哪些文件|哪些代码)(?:在)?(?:导入|引入|import)(?:了|过)?{_NAME_ZH}",
        find_imports,
    ),
    (
        "帮助|你|功能|怎么用",
        r"帮助|你是谁|你(?:能|可以|会)(?:做|干)(?:些)?什么|有(?:什么|哪些)功能|怎么用",
        lambda g: Help(),
    ),
    (
        "todo|fixme|待办",
        rf"(?:{_SEARCH_ZH}|列出|显示|查看|有哪些|还有哪些)?\s*(?:所有|全部)?(?:的)?\s*"
        rf"(?:TODOs?|FIXMEs?|待办事项|待办)\s*(?:注释)?(?:有哪些|在哪里|在哪)?",
        find_todos,
    ),
    (
        "用",
        rf"(?:谁|哪里|哪些地方|哪些文件|哪些代码)(?:在)?(?:调用|使用|引用|用到|用)(?:了|到)?{_NAME_ZH}",
        find_uses,
    ),
    (
        "用",
        rf"{_NAME_ZH}(?:都)?{_WHERE_ZH}(?:都)?(?:被)?(?:调用|使用|引用|用到|用)(?:了|到|过|的)*",
        find_uses,
    ),
    (
        "被",
        rf"{_NAME_ZH}被(?:谁|哪里|哪些地方|哪些文件)(?:调用|使用|引用|用到)(?:了|的)*",
        find_uses,
    ),
    (
        "用",
        rf"(?:{_SEARCH_ZH}|列出)?\s*(?:所有)?(?:对)?{_NAME_ZH}的?\s*(?:所有)?(?:调用|引用|用法|使用)(?:处|者|点)?",
        find_uses,
    ),
    (
        "项目|仓库|代码库",
        r"(?:介绍一下|介绍|解释一下|解释|分析一下|总结一下)?(?:这个|本|该)(?:项目|仓库|代码库)"
        r"(?:是)?(?:做|干)?(?:什么|啥)?(?:的|用的)?",
        lambda g: Overview(),
    ),
    (
        "文件",
        rf"(?:一共|总共)?(?:{_PATH_ZH})?(?:一共|总共)?有(?:多少|几)个?\s*{_LANG_ZH}文件",
        count_files,
    ),
    (
        "文件",
        rf"(?:统计|数一下|数)\s*(?:{_PATH_ZH})?{_LANG_ZH}文件(?:的)?(?:数量|个数|总数)?",
        count_files,
    ),
    (
        "文件",
        rf"(?:列出|列一下|显示|查看|看看|{_SEARCH_ZH})?\s*(?:所有|全部)?(?:的)?\s*(?:有哪些)?\s*"
        rf"{_LANG_ZH}文件(?:列表|有哪些)?",
        list_files,
    ),
    (
        "文件",
        rf"(?:列出|列一下|显示|查看|看看)?\s*{_PATH_ZH}(?:有)?(?:所有|全部|哪些|什么)?(?:的)?\s*{_LANG_ZH}文件"
        rf"(?:列表|有哪些)?",
        list_files,
    ),
    (
        "目录|文件夹",
        rf"(?:列出|列一下|查看|看看|显示)\s*(?P<path>{QUOTED}|{FILE})\s*(?P<said>目录|文件夹)(?:的)?(?:内容)?",
        list_folder,
    ),
    ("列出", rf"列出\s*(?P<path>{QUOTED}|{FILE})\s*(?:的内容)?", list_folder),
    (
        "前|头|后|尾",
        rf"(?:{VERB_ZH})?{_FILE_ZH}的?\s*(?:(?P<start>前面|前|开头|头)|(?P<end>最后|末尾|后面|结尾|后))(?:的)?"
        rf"{_N_ZH}行?(?:内容)?",
        read_file,
    ),
    (
        "行",
        rf"{VERB_ZH}\s*(?:(?P<start>前|开头|头)|(?P<end>最后|末尾|后)){_N_ZH}行(?:的)?{_FILE_ZH}",
        read_file,
    ),
    (
        "第",
        rf"(?:{VERB_ZH})?{_FILE_ZH}的?\s*第\s*(?P<from>\d+)\s*行?\s*(?:(?:到|至|-|~|~|—)+\s*(?:第)?\s*"
        rf"(?P<until>\d+)\s*)?行?(?:的)?(?:内容)?",
        read_file,
    ),
    ("", rf"{VERB_ZH}(?:一下)?{_FILE_ZH}(?:的)?(?:全部|完整)?(?:内容|全文|代码|源码)?", read_file),
    (
        "内容|什么|啥",
        rf"{_FILE_ZH}(?:里面|里|中)?(?:的)?(?:内容(?:是什么|是啥)?|有什么(?:内容)?|写了什么|都有什么|有啥)",
        read_file,
    ),
    (
        "的|里|中",
        rf"(?:{VERB_ZH})?(?:一下)?{_FILE_ZH}(?:里面的|里的|中的|里面|里|中|的)\s*"
        rf"(?P<name>{QUOTED}|{NAME})\s*(?:这个)?(?P<kind>{KIND_ZH})?(?:的)?(?:代码|实现|定义|内容|源码)?",
        show_code,
    ),
    (
        "哪|什么地方|位于|何处",
        rf"{_NAME_ZH}(?:是|都)?{_WHERE_ZH}(?:被)?(?:定义|声明|实现)?(?:了|过|的)*",
        find_definition,
    ),
    (
        "定义|声明|实现",
        rf"{_NAME_ZH}(?:的)?(?:定义|声明|实现)(?:的)?(?:位置|地方|代码)?(?:是)?(?:{_WHERE_ZH})?",
        find_definition,
    ),
    (
        "定义|声明|实现",
        rf"(?:{_WHERE_ZH}|哪里|哪儿|哪个文件(?:里|中)?|谁)(?:定义|声明|实现)(?:了|过)?{_NAME_ZH}",
        find_definition,
    ),
    (
        "定义|声明|实现",
        rf"(?:{_SEARCH_ZH}|{VERB_ZH}|跳到|跳转到)\s*{_NAME_ZH}(?:的)?(?:定义|声明|实现)(?:的)?(?:位置|地方)?",
        find_definition,
    ),
    (
        "找|搜|检索|查",
        rf"(?:{_SEARCH_ZH})\s*(?:{KIND_ZH}\s*(?P<name>{QUOTED}|{NAME})"
        rf"|(?P<name2>{QUOTED}|{NAME})\s*(?:这个)?{KIND_ZH})",
        lambda g: find_definition({"name": g.get("name") or g["name2"]}),
    ),
    (
        "在",
        rf"在\s*{_PATH_ZH}[,\uff0c]?\s*(?:{_SEARCH_ZH})\s*(?P<text>{QUOTED}|.+?)",
        find_text,
    ),
    (
        "文件",
        rf"(?:哪些|哪个|什么)文件(?:里面|里|中)?(?:包含|提到|含有|有|出现)(?:了|过)?\s*(?P<text>{QUOTED}|.+?)",
        find_files,
    ),
    ("找|搜|检索|查", rf"(?:{_SEARCH_ZH})\s*(?P<text>{QUOTED}|.+?)", find_text),
    (
        "",
        rf"(?:{VERB_ZH})\s*(?:一下)?\s*(?:(?P<kind>{KIND_ZH})\s*)?(?P<name>{QUOTED}|{NAME})\s*(?:这个)?"
        rf"(?P<kind2>{KIND_ZH})?(?:的)?(?:代码|内容|源码)?",
        show_definition,
    ),
    (
        "什么",
        rf"{_NAME_ZH}(?:是)?(?:做|干)?什么(?:的|用的)?",
        show_definition,
    ),
    (
        "",
        rf"(?:{VERB_ZH})\s*(?:一下)?\s*(?P<name>{QUOTED}|{FILE}|{NAME})",
        show_word,
    ),
    (
        "什么|啥|内容",
        rf"(?P<name>{QUOTED}|{FILE})\s*(?:目录|文件夹)?(?:里面|里|中|下)(?:有)?(?:什么|啥|哪些文件)(?:内容)?",
        show_word,
    ),
)
