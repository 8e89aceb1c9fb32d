"""The words that rules are made of: expressions with named groups, and what a word may be."""

from __future__ import annotations

import re

__all__ = [
    "ANY_NUMBER",
    "CJK",
    "ENDINGS",
    "FILE",
    "FILE_EN",
    "FILE_GROUP",
    "FOLDERS",
    "IN",
    "KIND",
    "KIND_ZH",
    "LANGUAGE",
    "LANGUAGES",
    "MORE",
    "NAME",
    "NUMBERS",
    "ONE_NAME",
    "PATH",
    "PLAIN_FILES",
    "QUOTED",
    "SAID",
    "SCOPE",
    "SORT",
    "VERB",
    "VERB_ZH",
    "Groups",
    "N",
    "file_in",
    "glob_in",
    "is_code_word",
    "is_file",
    "is_quoted",
    "name_in",
    "names_in",
    "number",
    "path_in",
    "unquote",
]

Groups = dict[str, str]


QUOTED = r"`[^`]+`|\"[^\"]+\"|'[^']+'|“[^”]+”|‘[^’]+’|「[^」]+」|『[^』]+』|《[^》]+》|```.*?```"
NAME = r"[A-Za-z0-9_$@][A-Za-z0-9_$.:!?#-]*(?:\(\))?"
FILE = r"[\w./~@+*-]+"
CJK = r"[\u3400-\u9fff]"
ANY_NUMBER = (
    r"\d+|[一二两三四五六七八九十百]+|one|two|three|four|five|six|seven|eight|nine|ten|twenty"
)

KIND = (
    r"(?:(?:function|method|struct|enum|trait|type|interface|constant|variable|const|module"
    r"|macro|symbol|field|identifier|func|fn|def)s?|class(?:es)?)"
)
KIND_ZH = r"(?:这个)?(?:函数|方法|类型|类|结构体|枚举|接口|特征|常量|变量|模块|宏|符号|字段)"
VERB = (
    r"(?:show|read|open|view|cat|print|display|look\s+(?:at|into)|see|check(?:\s+out)?|less|dump"
    r"|take\s+a\s+look\s+at|have\s+a\s+look\s+at|examine|inspect|explain|describe|give)"
    r"(?:\s+me)?"
)
VERB_ZH = (
    r"(?:显示一下|显示|查看一下|查看|读取一下|读取|读一下|读|打开|看一看|看一下|看看|看下|看"
    r"|阅读|展示|输出|打印|解释一下|解释|分析一下|分析)"
)
IN = r"(?:in|inside|under|within|of|from)"
FOLDERS = frozenset(
    [
        "src",
        "source",
        "sources",
        "test",
        "tests",
        "docs",
        "doc",
        "lib",
        "libs",
        "app",
        "apps",
        "scripts",
        "packages",
        "crates",
        "cmd",
        "internal",
        "pkg",
        "bin",
        "examples",
        "benchmarks",
        "tools",
        "include",
        "config",
    ]
)
PLAIN_FILES = frozenset(
    [
        "readme",
        "license",
        "licence",
        "changelog",
        "makefile",
        "dockerfile",
        "contributing",
        "authors",
        "notice",
    ]
)
ENDINGS = frozenset(
    [
        "c",
        "cc",
        "cfg",
        "cpp",
        "cs",
        "css",
        "csv",
        "go",
        "h",
        "hpp",
        "html",
        "ini",
        "ipynb",
        "java",
        "js",
        "json",
        "jsx",
        "kt",
        "lock",
        "log",
        "lua",
        "md",
        "mjs",
        "php",
        "pl",
        "properties",
        "proto",
        "py",
        "pyi",
        "rb",
        "rs",
        "rst",
        "scala",
        "sh",
        "sql",
        "svg",
        "swift",
        "tex",
        "toml",
        "ts",
        "tsx",
        "txt",
        "vue",
        "xml",
        "yaml",
        "yml",
        "zig",
    ]
)
LANGUAGES = {
    "python": "py",
    "py": "py",
    "rust": "rs",
    "rs": "rs",
    "javascript": "{js,jsx,mjs,cjs}",
    "js": "{js,jsx,mjs,cjs}",
    "typescript": "{ts,tsx}",
    "ts": "{ts,tsx}",
    "go": "go",
    "golang": "go",
    "java": "java",
    "kotlin": "{kt,kts}",
    "c": "{c,h}",
    "c++": "{cc,cpp,cxx,h,hh,hpp}",
    "cpp": "{cc,cpp,cxx,h,hh,hpp}",
    "ruby": "rb",
    "php": "php",
    "swift": "swift",
    "shell": "{sh,bash}",
    "bash": "{sh,bash}",
    "markdown": "{md,markdown}",
    "md": "{md,markdown}",
    "json": "json",
    "yaml": "{yaml,yml}",
    "yml": "{yaml,yml}",
    "toml": "toml",
    "html": "{html,htm}",
    "css": "css",
    "sql": "sql",
    "text": "txt",
    "txt": "txt",
}
LANGUAGE = "|".join(re.escape(name) for name in sorted(LANGUAGES, key=len, reverse=True))
SORT = rf"(?:(?P<glob>{QUOTED}|\*[^\s]+)|\.?(?P<lang>{LANGUAGE})|(?P<test>test|测试))"
NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twenty": 20,
}
SAID = r"(?P<said>file\s+)?"
PATH = rf"(?P<path>{QUOTED}|{FILE})"
SCOPE = rf"(?:\s+{IN}\s+(?:the\s+)?(?:directory\s+|folder\s+)?{PATH}(?:\s+(?:directory|folder))?)?"
FILE_GROUP = rf"(?P<file>{QUOTED}|{FILE})"
FILE_EN = rf"(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?{SAID}{FILE_GROUP}(?:\s+file)?"
_ONE = rf"(?:{QUOTED}|{NAME})"
_AND = r"(?:\s*[,&\uff0c、]\s*(?:and\s+)?|\s+and\s+|\s*(?:和|与|跟|以及|及)\s*)"
ONE_NAME = rf"(?P<name>{_ONE}(?:{_AND}{_ONE})*)"  # or several
MORE = r"(?:all\s+|me\s+|the\s+|of\s+|every\s+|any\s+)*"
N = rf"(?P<n>{ANY_NUMBER})"


def unquote(text: str) -> str:
    text = text.strip()
    fence = re.fullmatch(r"```[\w+-]*\n(.*?\n)```", text, re.DOTALL)
    if fence:
        return fence[1]
    return text[1:-1] if re.fullmatch(QUOTED, text, re.DOTALL) else text


def is_quoted(text: str) -> bool:
    return re.fullmatch(QUOTED, text.strip(), re.DOTALL) is not None


def is_file(text: str) -> bool:
    """Whether a word can only be meant as a file."""
    name = text.rstrip("/").rsplit("/", 1)[-1]
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    return (
        "/" in text
        or ending in ENDINGS
        or name.lower() in PLAIN_FILES
        or re.fullmatch(r"\.[a-z]\w*", name) is not None
    ) and not re.search(r"[\s()<>|]", text)


def path_in(groups: Groups, key: str = "path") -> str:
    return unquote(groups.get(key, "")).strip()


def file_in(groups: Groups) -> str | None:
    """The file that a rule named; None where the word is no file."""
    given = groups["file"]
    path = unquote(given).strip()
    return path if is_quoted(given) or "said" in groups or is_file(path) else None


def names_in(groups: Groups) -> tuple[str, ...]:
    """Each of "a, b and `c`"."""
    given = re.findall(rf"{QUOTED}|{NAME}", groups["name"])
    return tuple(name for name in given if name.lower() != "and")


def name_in(groups: Groups) -> str:
    """An identifier without its call brackets and owner: ``a.B.c()`` is ``c``."""
    name = unquote(groups["name"]).strip()
    name = name.removesuffix("()")
    last = re.split(r"\.|::|#|->", name)[-1]
    return last or name


def is_code_word(text: str) -> bool:
    """Whether a word is code and no plain word: ``run_turn``, ``runTurn``, ``a.b()``."""
    if is_quoted(text):
        return re.fullmatch(NAME, unquote(text)) is not None
    return re.fullmatch(NAME, text) is not None and bool(
        re.search(r"_|[a-z][A-Z]|\(\)$|::|[a-z]\.[a-z]|[A-Z]{2}.*[a-z]|\d", text)
    )


def number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    if text.lower() in NUMBERS:
        return NUMBERS[text.lower()]
    digits = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2}
    total = current = 0
    for character in text:
        if character in "十百":
            total += (current or 1) * (10 if character == "十" else 100)
            current = 0
        else:
            current = digits.get(character, 0)
    return total + current


def glob_in(groups: Groups) -> str:
    if glob := unquote(groups.get("glob", "")):
        return glob if "/" in glob else f"**/{glob}"
    if lang := groups.get("lang"):
        return f"**/*.{LANGUAGES[lang.lower()]}"
    return "**/*test*" if "test" in groups else "**/*"
