"""How a definition looks in common languages, as regular expressions.

The patterns are read twice: by ripgrep, which finds the lines, and by Python,
which judges each line together with its path. So they use what Rust's and
Python's expressions share: no lookaround, no possessive quantifiers.
"""

from __future__ import annotations

import functools
import re

__all__ = [
    "definition_pattern",
    "is_call",
    "is_declaration",
    "is_definition",
    "is_heading",
    "is_import",
    "is_source",
    "literal",
    "spellings",
    "whole_word",
]

_START = r"(?:^|[;{}])\s*(?:#\[[^\]]*\]\s*|@[\w.]+(?:\([^)]*\))?\s+)*"
_MODIFIERS = (
    r"(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|final"
    r"|abstract|async|unsafe|extern(?:\s+\"[^\"]*\")?|const|constexpr|inline|override|virtual"
    r"|open|sealed|data|suspend|declare|readonly|partial|local|lazy|case|enum)\s+)*"
)
_KEYWORDS = (
    r"(?:def[pn]?-?|defmodule|defmacro|class|fn|func|function\*?|fun|struct|enum|union|trait|type"
    r"|interface|protocol|actor|extension|object|record|module|mod|namespace|package"
    r"|macro_rules!|let(?:\s+mut|\s+rec)?|const|var|val|static(?:\s+mut)?|sub|proc|typealias"
    r"|newtype|message|service|rpc|alias|declare(?:\s+-\w+)?)"
)
_OWNER = r"(?:[\w$<>?]+(?:\.|::|:))*"

_C = frozenset(
    [
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".cxx",
        ".hpp",
        ".hh",
        ".hxx",
        ".m",
        ".mm",
        ".cu",
        ".ino",
    ]
)
_BRACES = _C | frozenset(
    [
        ".java",
        ".cs",
        ".js",
        ".jsx",
        ".mjs",
        ".cjs",
        ".ts",
        ".tsx",
        ".mts",
        ".cts",
        ".vue",
        ".svelte",
        ".dart",
        ".php",
        ".d",
        ".sh",
        ".bash",
        ".zsh",
        ".ksh",
        ".awk",
    ]
)
_MODIFIED = _BRACES | frozenset(
    [
        ".kt",
        ".scala",
        ".swift",
        ".groovy",
    ]
)
# Prose, pictures and data: what stands in them is no code that runs.
_DOCUMENTS = (
    r"\.(?:md|markdown|mdx|rst|txt|adoc|html?|org|tex|ipynb|svg|xml|jsonl?|csv|tsv|log|lock|pot?|map"
    r"|drawio|puml|diff|patch|pdf)$|(?:^|/)(?:readme|licen[cs]e|changelog|contributing|authors|notice)$"
)

# `@` stands for the name; the second value limits a form to files with these endings.
_FORMS: tuple[tuple[str, frozenset[str] | None], ...] = (
    (_START + _MODIFIERS + _KEYWORDS + r"\s+" + _OWNER + "@", None),
    (r"^func\s+\([^)]*\)\s+@", None),
    (_START + r"(?:unsafe\s+)?impl(?:<[^{]*>)?\s+(?:[^{;]+\s+for\s+)?(?:\w+::)*@", None),
    (r"^\s*#\s*define\s+@", None),
    (r"^\s*\((?:def\w*|define)\s+\(?@", None),
    (
        r"^\s*(?i:create\s+(?:or\s+replace\s+)?(?:\w+\s+)?(?:table|view|function|procedure|index"
        r"|trigger|type)\s+(?:if\s+not\s+exists\s+)?)(?:\w+\.)?@",
        None,
    ),
    (r"^\s*typedef\b[^;]*@\s*;", None),
    (r"^\}\s*@\s*;", _C),
    (r"^(?:export\s+)?@(?:\s*:[^=]*)?\s*[:?]?=(?:[^=]|$)", None),
    (r"^@\s*(?:::|<-)\s", None),
    (
        _START + r"(?:[\w$]+\.)*@\s*[:=]\s*(?:async\s*)?"
        r"(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|\w+\s*=>)",
        None,
    ),
    (
        r"^\s*(?:[\w:<>,\[\]?&*~]+\s+)*[*&]*(?:\w+(?:<[^>]*>)?::)*~?@(?:<[^>]*>)?\s*"
        r"\([^;\"'{]*\)[^;{(\"=]*\{",
        _BRACES,
    ),
    (
        r"^\s*(?:public|private|protected|internal|static|virtual|override|abstract)\s"
        r"[^=;(\"]*@\s*\(",
        _MODIFIED,
    ),
    (r"^(?:[A-Za-z_][\w:<>,&*\s]*[\s*&])?@\s*\([^;\"'{}=]*[),]\s*$", _C),
)

_COMMENT = r"\s*(?://|\*\s|#\s(?!\s*define)|--\s|<!--)"
_STATEMENT = (
    r"\s*(?:if|else|elif|while|for|switch|return|await|yield|raise|throw|assert|not|and|or|in"
    r"|match|new|print|del|defer|go|do|with|when|unless|until|import|from|use|using)\b"
)
_IMPORT = (
    r"\s*(?:import|from|use|using|pub\s+use|require|require_relative|load|source|mod|#\s*include"
    r"|@import|export\b.*\bfrom)\b|.*\b(?:require|import)\s*\(|\s*\"[\w./-]+\"\s*$"
)
_OUTLINE = (
    r"\s{0,8}(?:#\[[^\]]*\]\s*)*"
    + _MODIFIERS
    + r"(?:def[pn]?|defmodule|defmacro|class|fn|func|function\*?|fun|struct|enum|union|trait|type"
    r"|interface|protocol|impl|object|module|mod|namespace|macro_rules!)\b[^=]*[\w$]"
)
_DECLARATIONS = (
    r"^\s*(?:[\w\s]*\s)?(?:self\.|this\.)?@\s*(?::[^:=]+)?=(?:[^=]|$)",
    r"^\s*(?:(?:pub(?:\([^)]*\))?|public|private|protected|readonly|static)\s+)*"
    r"[\"']?@[\"']?\??\s*:(?:[^:]|$)",
)


def literal(text: str) -> str:
    """The text as an expression that Rust and Python read alike."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)


def whole_word(names: tuple[str, ...]) -> str:
    """An expression for any of the names, not inside a longer word."""
    alternatives = "|".join(_bounded(name) for name in names)
    return f"(?:{alternatives})" if len(names) > 1 else alternatives


def spellings(words: tuple[str, ...]) -> tuple[str, ...]:
    """One word as it is; several as ``a_b``, ``AB``, ``aB``, ``A_B`` and ``a-b`` identifiers."""
    if len(words) == 1:
        return words
    low = [word.lower() for word in words]
    camel = "".join(word.capitalize() for word in low)
    snake = "_".join(low)
    return tuple(
        dict.fromkeys((snake, camel, camel[0].lower() + camel[1:], snake.upper(), "-".join(low)))
    )


def definition_pattern(names: tuple[str, ...]) -> str:
    """One expression for ripgrep that finds every definition of the names, and a little more.

    It is long; it is for names that are too common to look at every line that has them.
    """
    return "|".join(f"(?:{form})" for form, _ in _forms(names))


def is_definition(names: tuple[str, ...], path: str, line: str) -> bool:
    """Whether a line that the pattern found defines one of the names."""
    if re.match(_COMMENT, line) or re.match(_STATEMENT, line):
        return False
    ending = _ending(path)
    return any(
        (endings is None or ending in endings) and re.search(form, line)
        for form, endings in _forms(names)
    )


def is_declaration(names: tuple[str, ...], line: str) -> bool:
    """Whether a line gives a field, key, parameter or local variable of that name."""
    if re.match(_COMMENT, line) or re.match(_STATEMENT, line):
        return False
    word = whole_word(names)
    return any(re.search(form.replace("@", word), line) for form in _DECLARATIONS)


def is_call(name: str, line: str) -> bool:
    """Whether a line of a source file calls ``name``, outside of comments and of prose."""
    if re.match(_COMMENT, line):
        return False
    for match in re.finditer(rf"{_bounded(name)}\s*(?:<[^<>()]*>|::<[^()]*>)?\(", line):
        before = line[: match.start()]
        in_text = len(re.findall(r'(?<!\\)"', before)) % 2 and not re.search(r'\bf"', before)
        if not in_text and not re.search(r"(?:^|\s)(?:#|//)\s|[`']$", before):
            return True
    return False


def is_import(line: str) -> bool:
    return re.match(_IMPORT, line) is not None


def is_heading(path: str, line: str) -> bool:
    """Whether a line belongs into an outline: a title, or the head of a function or type."""
    if not is_source(path):
        return re.match(r"#{1,6}\s+\S", line) is not None
    return re.match(_COMMENT, line) is None and re.match(_OUTLINE, line) is not None


def is_source(path: str) -> bool:
    """Whether a file may hold code, by its name."""
    return re.search(_DOCUMENTS, path, re.IGNORECASE) is None


@functools.cache
def _forms(names: tuple[str, ...]) -> tuple[tuple[str, frozenset[str] | None], ...]:
    word = whole_word(names)
    # Attributes such as `@property` are part of a form; its last `@` is the name.
    return tuple((_put(form, word), endings) for form, endings in _FORMS)


def _put(form: str, word: str) -> str:
    before, _, after = form.rpartition("@")
    return before + word + after


def _bounded(name: str) -> str:
    first = r"\b" if re.match(r"\w", name) else ""
    last = r"\b" if re.search(r"\w$", name) else ""
    return first + literal(name) + last


def _ending(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return "." + name.rsplit(".", 1)[1].lower() if "." in name else ""
