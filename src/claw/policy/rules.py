"""Permission rules: ``Tool`` and ``Tool(content)``, parsed and matched.

Deny and ask rules match as widely as they can, allow rules as narrowly as they can:

* ``Bash(npm test:*)`` and ``Bash(npm test *)``: the command ``npm test`` and whatever
  follows it after a space. ``Bash(npm test)``: exactly that. An allow rule counts
  only for one plain command; a deny or ask rule counts where any part of the line,
  with quotes, assignments and wrappers such as ``sudo`` taken off, could be meant.
* ``Read(./secrets/**)``, ``Edit(src/**)``: globs as in a .gitignore. ``x/y``, ``./x`` and
  ``/x`` start at the workspace, ``x`` names it at any depth, ``//x`` is an absolute
  path, ``~/x`` is in the home directory. What a pattern names includes what lies
  beneath it. Rules with a path hold for all tools of a family: one on Read, Grep or
  Glob for every reading of that path, one on Edit or Write for every writing (of
  allow rules with a path only ``Edit``: ``Write(x)`` allows no edit). A
  search that starts *above* a denied path is not refused; ``keeps_unread`` names the
  patterns that it has to leave out.

The glob syntax is that of https://git-scm.com/docs/gitignore, without negation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from claw.types.effects import Execute, Observed, ReadPath, WritePath
from claw.types.permissions import Behavior, Rule
from claw.types.tools import ToolSpec

__all__ = [
    "RuleProblem",
    "could_hide",
    "covers",
    "is_plain_command",
    "names_tool",
    "parse_rule",
    "split_rules",
    "strikes",
]

READERS = frozenset({"Read", "Grep", "Glob"})
WRITERS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
SHELL = "Bash"
WITHOUT_CONTENT = frozenset({"TodoWrite"})  # it touches nothing that a content could name

# Names that rules of this ecosystem use for tools that claw does not have (yet).
FOREIGN_TOOLS = (
    "Agent",
    "AskUserQuestion",
    "BashOutput",
    "ExitPlanMode",
    "KillShell",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Skill",
    "Task",
    "WebFetch",
    "WebSearch",
)

FORM = r"(?s)([A-Za-z_][\w-]*(?:__\*|\*)?)(?:\((.*)\))?"


class RuleProblem(msgspec.Struct, frozen=True):
    """A rule that can never match. A deny rule among them is a hole in somebody's fence."""

    behavior: Behavior
    text: str
    source: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        return f"{where}{self.behavior} rule `{self.text}`: {self.message}"


# -- parsing -------------------------------------------------------------------


def parse_rule(
    text: str, behavior: Behavior, source: str, specs: Sequence[ToolSpec]
) -> Rule | RuleProblem:
    """A rule with its tool's own name, or why it can never match.

    Tools go by their name or any alias, whatever the case; ``mcp__server__tool`` keeps its case.
    """

    def problem(message: str, hint: str = "") -> RuleProblem:
        return RuleProblem(behavior, text, source, message, hint)

    form = re.fullmatch(FORM, text.strip())
    if form is None:
        return problem("not a rule", "Write `Tool` or `Tool(content)`, such as `Bash(npm test:*)`.")
    written, content = form[1], (form[2] or "").strip()
    if written.startswith("mcp__"):
        if behavior == "allow" and re.fullmatch(r"mcp__\*?|mcp__[^_]*\*", written):
            return problem("an allow rule must name the server", "Write `mcp__server__*`.")
        return Rule(behavior, written, content, source)
    known = _tool_names(specs)
    tool = known.get(written.lower())
    if tool is None:
        near = _nearest(written.lower(), known)
        return problem(
            f"there is no tool `{written}`", f"Did you mean `{known[near]}`?" if near else ""
        )
    if content in ("*", ":*"):
        content = ""
    if content and tool == SHELL and behavior == "allow" and "*" in _allow_prefix(content)[0]:
        return problem("in an allow rule `*` may stand at the end only", "Write `Bash(prefix:*)`.")
    if content and tool in WITHOUT_CONTENT:
        return problem(f"`{tool}` takes no content", f"Write `{tool}`.")
    return Rule(behavior, tool, content, source)


def split_rules(text: str) -> list[str]:
    """The rules of one flag, with commas or spaces between them (not inside parentheses)."""
    rules, depth = [""], 0
    for char in text:
        depth = max(0, depth + (char == "(") - (char == ")"))
        if depth == 0 and char in ", \t\n":
            rules.append("")
        else:
            rules[-1] += char
    return [rule for rule in rules if rule]


def _tool_names(specs: Sequence[ToolSpec]) -> dict[str, str]:
    names = {name.lower(): name for name in FOREIGN_TOOLS}
    for spec in specs:
        for name in (spec.name, *spec.aliases):
            names[name.lower()] = spec.name
    return names


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib  # only for a mistake; nobody else pays for it

    return next(iter(difflib.get_close_matches(name, list(known), 1, 0.6)), "")


# -- matching ------------------------------------------------------------------


def names_tool(rule: Rule, spec: ToolSpec) -> bool:
    """Whether the rule names this tool; ``mcp__x`` and ``mcp__x__*`` name a server's tools."""
    if rule.tool == spec.name:
        return True
    if not rule.tool.startswith("mcp__"):
        return False
    if rule.tool.endswith("*"):
        return spec.name.startswith(rule.tool[:-1])
    return rule.tool.count("__") == 1 and spec.name.startswith(f"{rule.tool}__")


def strikes(rule: Rule, spec: ToolSpec, observed: Sequence[Observed]) -> bool:
    """Whether a deny or ask rule holds for a call: for any effect, in any reading of it."""
    if not rule.content:
        return names_tool(rule, spec)
    return any(_concerns(rule, spec, seen) and _strikes_effect(rule, seen) for seen in observed)


def covers(rule: Rule, spec: ToolSpec, seen: Observed) -> bool:
    """Whether an allow rule holds for one effect of a call, beyond doubt."""
    if not rule.content:
        return names_tool(rule, spec)
    if not _concerns(rule, spec, seen):
        return False
    if isinstance(seen.effect, WritePath) and rule.tool != "Edit" and not names_tool(rule, spec):
        return False  # an allow for Edit is one for every change of that path; others are not
    if isinstance(seen.effect, Execute):
        return _allows_command(rule.content, seen.effect.command)
    # A relative pattern speaks of the workspace only; ``real`` is for absolute ones.
    absolute = rule.content.startswith(("//", "~"))
    name = seen.real if absolute else seen.relative if seen.inside else ""
    return bool(name) and _glob_matches(rule.content, name, greedy=False)


def could_hide(rules: Iterable[Rule], spec: ToolSpec, observed: Sequence[Observed]) -> Rule | None:
    """The first rule whose command may hide in one that only running it would tell.

    ``$c x``, ``... | sh`` and ``eval ...`` may run anything.
    """
    if not any(isinstance(s.effect, Execute) and _is_opaque(s.effect.command) for s in observed):
        return None
    return next((rule for rule in rules if rule.content and names_tool(rule, spec)), None)


def keeps_unread(rules: Iterable[Rule], path: str) -> bool:
    """Claims that a deny rule keeps this file from being read; searches leave it out.

    ``path`` is relative to the workspace, or absolute.
    """
    return any(
        rule.behavior == "deny"
        and rule.tool in READERS
        and rule.content
        and _glob_matches(rule.content, path, greedy=True)
        for rule in rules
    )


def _concerns(rule: Rule, spec: ToolSpec, seen: Observed) -> bool:
    if isinstance(seen.effect, ReadPath) and rule.tool in READERS:
        return True
    if isinstance(seen.effect, WritePath) and rule.tool in WRITERS:
        return True
    return names_tool(rule, spec)


def _strikes_effect(rule: Rule, seen: Observed) -> bool:
    match seen.effect:
        case Execute(command):
            return any(_command_matches(rule.content, part) for part in _parts(command))
        case ReadPath(path) | WritePath(path):
            names = {seen.relative, seen.real, _clean(path)} - {""}
            return any(_glob_matches(rule.content, name, greedy=True) for name in names)
        case _:
            return False


# -- commands ------------------------------------------------------------------

# Whatever could start another command, or could do more than run one with its arguments.
NOT_PLAIN = r"[;&|<>$`(){}\\*?\[\]~!#\x00-\x08\x0a-\x1f\x7f]"
SEPARATORS = r"\$\(|[<>]\(|&&|\|\||[;&|\n\r(){}`]"
QUOTES = r"\$?['\"]|\\\n|\\"
ASSIGNMENT = r"\w+\+?=\S*\s*"
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "eval", "source", "."})
KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "time", "coproc"})
# Programs that run another one named by their arguments. For deny and ask rules only.
# fmt: off
WRAPPERS = SHELLS | {
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "fd", "find", "flock",
    "ionice", "nice", "nohup", "parallel", "script", "setsid", "ssh", "stdbuf", "strace", "su",
    "sudo", "timeout", "trap", "unshare", "watch", "xargs",
}
# fmt: on


def is_plain_command(command: str) -> bool:
    """One simple command without anything a shell would expand, redirect or split."""
    return bool(command.strip()) and not re.search(NOT_PLAIN, command)


def _allow_prefix(content: str) -> tuple[str, str]:
    """A content's literal part, and what may follow: nothing, words, or anything."""
    for ending, rest in ((":*", "words"), (" *", "words"), ("*", "anything")):
        if content.endswith(ending):
            return content[: -len(ending)].strip(), rest
    return content, ""


def _allows_command(content: str, command: str) -> bool:
    if not is_plain_command(command):
        return False
    prefix, rest = _allow_prefix(content)
    prefix, command = " ".join(prefix.split()), " ".join(command.split())
    if rest == "anything":
        return command.startswith(prefix)
    return command == prefix or (rest == "words" and command.startswith(f"{prefix} "))


@lru_cache(maxsize=256)
def _command_pattern(content: str) -> re.Pattern[str]:
    body, ending = " ".join(content.split()), ""
    for tail in (":*", " *"):
        if body.endswith(tail):
            body, ending = body[: -len(tail)].strip(), r"(?: .*)?"
            break
    return re.compile(".*".join(map(re.escape, body.split("*"))) + ending, re.DOTALL)


def _command_matches(content: str, command: str) -> bool:
    return _command_pattern(content).fullmatch(command) is not None


def _parts(command: str) -> set[str]:
    """Every command that a line might run, by naive and generous splitting."""
    parts = {" ".join(command.split())}
    for text in (command, re.sub(QUOTES, "", command)):
        for piece in re.split(SEPARATORS, text):
            parts |= _readings(re.sub(QUOTES, "", piece))
    return parts


def _readings(piece: str) -> set[str]:
    """A simple command as it stands, without assignments or options, by base name, unwrapped."""
    readings = {" ".join(piece.split())}
    words = _command_words(piece)
    if not words:
        return readings
    starts = range(len(words)) if _base_name(words[0]) in WRAPPERS else (0,)
    for start in starts:
        program, rest = words[start], words[start + 1 :]
        readings.add(" ".join((program, *rest)))
        for after in _after_options(rest):
            readings.add(" ".join((_base_name(program), *after)))
    return readings


def _after_options(words: list[str]) -> list[list[str]]:
    """The words, and what is left of them behind each option before a subcommand.

    An option may take the word that follows it: ``git -c a=b push`` is ``git push``.
    """
    left = [words]
    for n, word in enumerate(words):
        if not word.startswith("-") and (n == 0 or not words[n - 1].startswith("-")):
            break
        left.append(words[n + 1 :])
    return left


def _command_words(piece: str) -> list[str]:
    words = piece.split()
    while words and (re.fullmatch(ASSIGNMENT, words[0]) or words[0] in KEYWORDS):
        words = words[1:]
    return words


def _base_name(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2] or word


def _is_opaque(command: str) -> bool:
    """Whether a shell, or a name that only running it tells, stands where a command does."""
    for piece in re.split(r"[;&|\n\r(){}]", command):
        words = _command_words(piece)
        if not words:
            continue
        name = _base_name(re.sub(QUOTES, "", words[0]))
        named_late = piece if name in WRAPPERS else words[0]
        if name in SHELLS or "$" in named_late or "`" in named_late:
            return True
    return False


# -- paths ---------------------------------------------------------------------

BRACKET = r"\[[!^]?\]?[^\]/]*\]"


def _clean(path: str) -> str:
    path = os.path.expanduser(path)
    return os.path.normpath(path).replace("//", "/") if path else path


def _glob_matches(pattern: str, path: str, *, greedy: bool) -> bool:
    """``greedy``, for deny and ask: ``/x`` also as an absolute path, ``x/**`` also ``x`` itself."""
    if path == ".":
        path = ""
    return any(glob.fullmatch(path) is not None for glob in _globs(pattern, greedy))


@lru_cache(maxsize=256)
def _globs(pattern: str, greedy: bool) -> tuple[re.Pattern[str], ...]:
    shown = pattern
    if greedy and pattern.endswith("/**"):
        pattern = pattern[:-3] or "/"
    if pattern.startswith(("//", "~")):
        return (_glob(_clean(pattern), anywhere=False),)
    # An absolute path never begins like one relative to the workspace, so one form serves each.
    body = shown.removeprefix("./")
    anywhere = body == shown and "/" not in body.rstrip("/")
    globs = [_glob(pattern.removeprefix("./").lstrip("/"), anywhere=anywhere)]
    if greedy and pattern.startswith("/"):
        globs.append(_glob(pattern, anywhere=False))
    return tuple(globs)


def _glob(body: str, *, anywhere: bool) -> re.Pattern[str]:
    out, at = [r"(?:.*/)?" if anywhere else ""], 0
    body = body.rstrip("/") if body != "/" else body
    while at < len(body):
        if body.startswith("**/", at):
            out.append(r"(?:.*/)?")
            at += 3
        elif body.startswith("**", at):
            out.append(r".*")
            at += 2
        elif body[at] == "*":
            out.append(r"[^/]*")
            at += 1
        elif body[at] == "?":
            out.append(r"[^/]")
            at += 1
        elif (bracket := re.match(BRACKET, body[at:])) is not None:
            out.append(_bracket(bracket[0]))
            at += bracket.end()
        else:
            out.append(re.escape(body[at]))
            at += 1
    beneath = r".*" if body in ("", "/") else r"(?:/.*)?"
    return re.compile("".join(out) + beneath, re.DOTALL)


def _bracket(text: str) -> str:
    negated = text[1] in "!^"
    chars = re.sub(r"([\\\[\]^&~|])", r"\\\1", text[2 if negated else 1 : -1])
    expression = f"(?!/)[{'^' if negated else ''}{chars}]"
    try:
        re.compile(expression)
    except re.error:  # a range that runs backwards
        return re.escape(text)
    return expression
