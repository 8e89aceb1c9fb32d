"""Reading one settings file, whatever state it is in: JSON, or at least its rules."""

from __future__ import annotations

import os
import re
import stat
from typing import Any

import msgspec

from claw.config.check import Problem, kind_name
from claw.config.lines import (
    Lines,
    Path,
    begins_list,
    dotted,
    ends_open,
    find_lines,
    line_at,
    line_too_deep,
)

__all__ = ["Decoded", "FileBytes", "decode_settings", "lost_list", "read_bytes"]

LARGEST = 1024 * 1024
DEEPEST = 64
DENY_PATHS: frozenset[Path] = frozenset({("permissions",), ("permissions", "deny")})
LIST_HINT = 'Rules are a list in an object: `{"permissions": {"deny": ["Bash(rm:*)"]}}`.'


class FileBytes(msgspec.Struct, frozen=True):
    """``flaw`` says why ``data`` is not the whole file; blank if it is."""

    data: bytes
    flaw: str = ""


def read_bytes(path: str) -> FileBytes | None:
    """What can be had of a settings file, None where there is none."""
    try:
        # A FIFO must not hang the start.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        is_link = os.path.islink(path)
        return FileBytes(b"", "it is a link to a file that is not there") if is_link else None
    except OSError as error:
        if not os.path.lexists(os.path.dirname(path)):  # in a directory that is not ours to see
            return None
        return FileBytes(b"", f"cannot be read: {error.strerror}")
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "a pipe or a device"
            return FileBytes(b"", f"it is {what}, not a file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        return FileBytes(b"", f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    if len(data) > LARGEST:
        return FileBytes(data[:LARGEST], "it is larger than 1 MiB")
    return FileBytes(data)


class Decoded(msgspec.Struct, frozen=True):
    """A file as JSON, or, with a ``flaw``, the rules that could be found in it.

    ``doubt`` says why deny rules may be missing from ``value``.
    """

    value: Any
    lines: Lines
    flaw: Problem | None = None
    doubt: Problem | None = None


def decode_settings(path: str, found: FileBytes) -> Decoded:
    """Never raises: what cannot be read is a flaw, and maybe a doubt."""
    data = found.data.removeprefix(b"\xef\xbb\xbf")
    text = data.decode("utf-8", "replace")
    if found.flaw:
        hint = "Settings are a file of at most 1 MiB that you can read."
        return _salvaged(text, Problem("unreadable", path, 0, found.flaw, hint), cut_off=True)
    if flaw := _encoding_flaw(path, data) or _depth_flaw(path, text):
        return _salvaged(text, flaw)
    try:
        value = msgspec.json.decode(data) if data.strip() else {}
        lines = find_lines(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return _salvaged(text, _syntax_flaw(path, data, error), cut_off=ends_open(text))
    if isinstance(value, dict) and not DENY_PATHS.isdisjoint(lines.repeated):
        return _joined(path, text, value, lines)
    doubt = None
    if not isinstance(value, dict) and re.search(MENTION, text):
        message = f"expected an object, got {kind_name(value)}"
        doubt = Problem("wrong_type", path, 1, message, LIST_HINT)
    return Decoded(value, lines, None, doubt)


def _encoding_flaw(path: str, data: bytes) -> Problem | None:
    try:
        at = data.decode().find("\0")  # UTF-16 may be valid UTF-8, full of zeros
    except UnicodeDecodeError as error:
        at = error.start
    if at < 0:
        return None
    return Problem("syntax", path, line_at(data, at), "it is not UTF-8 text", "Save it as UTF-8.")


def _depth_flaw(path: str, text: str) -> Problem | None:
    line = line_too_deep(text, DEEPEST)
    if not line:
        return None
    message = f"more than {DEEPEST} objects and arrays in each other"
    return Problem("syntax", path, line, message, "No setting is nested that deeply.")


def _syntax_flaw(path: str, data: bytes, error: Exception) -> Problem:
    offset = re.search(r"\(byte (\d+)\)", str(error))
    line = line_at(data, int(offset[1]) if offset else len(data.rstrip()))
    message = re.sub(r" \(byte \d+\)", "", str(error))
    hint = "Settings are JSON: no comments, no comma after the last element."
    return Problem("syntax", path, line, message, hint)


def lost_list(path: str, text: Decoded) -> Problem | None:
    """What keeps a list of deny rules from being one."""
    permissions = text.value.get("permissions") if isinstance(text.value, dict) else None
    if permissions is None:
        return None
    at: Path = ("permissions",)
    if not isinstance(permissions, dict):
        message = f"`permissions` is {kind_name(permissions)}, not an object"
        return Problem("wrong_type", path, text.lines.of(at), message, LIST_HINT)
    rules, at = permissions.get("deny"), (*at, "deny")
    if rules is None:
        return None
    if not isinstance(rules, list):
        message = f"`permissions.deny` is {kind_name(rules)}, not a list of rules"
        return Problem("wrong_type", path, text.lines.of(at), message, LIST_HINT)
    for n, rule in enumerate(rules):
        if not isinstance(rule, str):
            here: Path = (*at, n)
            message = f"`{dotted(here)}` is {kind_name(rule)}, not a rule"
            return Problem("wrong_type", path, text.lines.of(here), message, LIST_HINT)
    return None


# -- rules in a text that cannot be read as a whole ----------------------------------

STRING = r'"(?:[^"\\\n]|\\.)*"'
RULE_LIST = rf'"(deny|ask)"\s*:\s*\[((?:\s*(?:{STRING}|,|//[^\n]*))*)(\s*\])?'
# Whatever may be the key of a list of deny rules, in JSON and in what people take for it.
MENTION = r"""(?i)["']deny["']|deny\s*[:=]|deny\W*\Z"""


class _Rules(msgspec.Struct, frozen=True):
    """``complete``: no list of deny rules was met that could not be read to its end."""

    values: dict[str, list[str]]
    lines: dict[Path, int]
    complete: bool


def _find_rules(text: str) -> _Rules:
    rules: dict[str, list[str]] = {}
    lines: dict[Path, int] = {}
    complete = not re.search(MENTION, _unescaped(re.sub(RULE_LIST, "", text)))
    for found in re.finditer(RULE_LIST, text):
        listed = rules.setdefault(found[1], [])
        readable = found[3] is not None
        for string in re.finditer(STRING, found[2]):
            try:
                rule = msgspec.json.decode(string[0], type=str)
            except msgspec.DecodeError:
                readable = False
                continue
            readable = readable and "\ufffd" not in rule
            line = text.count("\n", 0, found.start(2) + string.start()) + 1
            lines["permissions", found[1], len(listed)] = line
            listed.append(rule)
        complete = complete and (readable or found[1] != "deny")
    return _Rules(rules, lines, complete)


def _unescaped(text: str) -> str:
    return re.sub(r"\\u00([2-7][0-9a-fA-F])", lambda code: chr(int(code[1], 16)), text)


def _salvaged(text: str, flaw: Problem, *, cut_off: bool = False) -> Decoded:
    """The rules of a text that is not JSON. Where it is ``cut_off``, or no text at all,
    only a list that was found tells that none is missing."""
    rules = _find_rules(text.replace("\0", ""))
    unsure = flaw.code == "unreadable" or "\0" in text or "{" not in text
    if cut_off or "\ufffd" in text:
        unsure = unsure or not begins_list(text, "permissions", "deny")
    value = {"permissions": rules.values} if rules.values else {}
    message = f"{flaw.message}; of this file only the deny and ask rules that can be read count"
    told = msgspec.structs.replace(flaw, message=message)
    doubt = flaw if unsure or not rules.complete else None
    return Decoded(value, Lines(rules.lines), told, doubt)


def _joined(path: str, text: str, value: dict[str, Any], lines: Lines) -> Decoded:
    """Of several `permissions` JSON keeps the last: here the rules of all of them count."""
    rules = _find_rules(text)
    last = value.get("permissions")
    if isinstance(last, dict):
        value = {**value, "permissions": {**last, **rules.values}}
    doubt = None
    if not rules.complete:
        again = next(key for key in lines.repeated if key in DENY_PATHS)
        message = f"`{dotted(again)}` stands twice, and its rules cannot be told apart"
        doubt = Problem("repeated_key", path, lines.of(again), message, LIST_HINT)
    return Decoded(value, Lines({**lines.by_path, **rules.lines}, lines.repeated), None, doubt)
