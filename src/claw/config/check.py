"""What of a layer can be used: everything else is a problem of its own, with its line."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from claw.config.lines import Lines, Path, dotted
from claw.config.settings import LATER_KEYS, WITHOUT_EFFECT, Settings
from claw.types.permissions import MODE_ALIASES

__all__ = ["Problem", "ProblemCode", "check", "kind_name"]

ProblemCode = Literal[
    "unreadable", "syntax", "unknown_key", "repeated_key", "wrong_type", "ignored", "no_effect"
]


class Problem(msgspec.Struct, frozen=True):
    """``line`` counts from 1, 0 where there is none. ``code`` is stable."""

    code: ProblemCode
    file: str
    line: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}: {self.message}"
            if self.line
            else (f"{self.file}: {self.message}")
        )


MODE_PATH: Path = ("permissions", "defaultMode")
_UNUSABLE = object()


def check(value: Any, file: str, lines: Lines, report: Callable[[Problem], None]) -> dict[str, Any]:
    """The keys of one layer that are known and of the right type, as plain values."""
    if isinstance(value, dict):
        _tell_what_has_no_effect(value, file, lines, report)
    for path in lines.repeated:
        message = f"`{dotted(path)}` stands twice; the last one counts"
        report(Problem("repeated_key", file, lines.of(path), message))
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if k not in LATER_KEYS and k != "$schema"}
    usable = _Checker(file, lines, report).struct(value, Settings, ())
    return usable if isinstance(usable, dict) else {}


def _tell_what_has_no_effect(
    value: dict[str, Any], file: str, lines: Lines, report: Callable[[Problem], None]
) -> None:
    for key, instead in WITHOUT_EFFECT.items():
        path = tuple(key.split("."))
        if _asks_for_something(_at(value, path)):
            message = f"`{key}` is accepted, without effect yet: this version {instead}"
            report(Problem("no_effect", file, lines.of(path), message))


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _asks_for_something(value: Any) -> bool:
    """Not so where nothing happens anyway: ``false``, ``"off"``, ``{"enabled": false}``."""
    if isinstance(value, dict):
        return any(map(_asks_for_something, value.values()))
    return bool(value) and value != "off"


class _Checker:
    def __init__(self, file: str, lines: Lines, report: Callable[[Problem], None]) -> None:
        self.file, self.lines, self.report = file, lines, report

    def value(self, value: Any, kind: Any, path: Path) -> Any:
        needed = _without_none(kind)
        if value is None and needed is not kind:
            return _UNUSABLE  # null says "not set", and there is nothing wrong with that
        kind, origin = needed, get_origin(needed)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(value, kind, path)
        if origin is dict:
            return self.mapping(value, get_args(kind), path)
        if origin is tuple:
            return self.array(value, get_args(kind)[0], path)
        if path == MODE_PATH:
            value = MODE_ALIASES.get(value, value) if isinstance(value, str) else value
        return self.leaf(value, kind, path)

    def struct(self, value: Any, kind: type[msgspec.Struct], path: Path) -> Any:
        if not isinstance(value, dict):
            return self.wrong(path, f"expected an object, got {kind_name(value)}")
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        usable = {}
        for key, item in value.items():
            if key not in fields:
                known = [*fields, *(LATER_KEYS if not path else ())]
                self.unknown((*path, key), key, known)
                continue
            checked = self.value(item, fields[key].type, (*path, key))
            if checked is not _UNUSABLE:
                usable[key] = checked
            elif key == "type" and item is not None:
                return _UNUSABLE  # not the kind of thing that its other keys would make it
        missing = [key for key, f in fields.items() if f.required and key not in usable]
        if missing:
            absent = [key for key in missing if key not in value]
            if absent:
                self.wrong(path, f"`{absent[0]}` is missing")
            return _UNUSABLE
        return usable

    def mapping(self, value: Any, kinds: tuple[Any, ...], path: Path) -> Any:
        key_kind, kind = kinds
        if not isinstance(value, dict):
            return self.wrong(path, f"expected an object, got {kind_name(value)}")
        usable = {}
        for key, item in value.items():
            if get_origin(key_kind) is Literal and key not in get_args(key_kind):
                self.unknown((*path, key), key, list(get_args(key_kind)))
                continue
            checked = self.value(item, kind, (*path, key))
            if checked is not _UNUSABLE:
                usable[key] = checked
        return usable

    def array(self, value: Any, kind: Any, path: Path) -> Any:
        if not isinstance(value, list | tuple):
            return self.wrong(path, f"expected an array, got {kind_name(value)}")
        checked = [self.value(item, kind, (*path, n)) for n, item in enumerate(value)]
        # What is not usable keeps its place, so that indexes go on naming lines of the file.
        return [None if item is _UNUSABLE else item for item in checked]

    def leaf(self, value: Any, kind: Any, path: Path) -> Any:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            choices = [c for c in get_args(kind) if isinstance(c, str)]
            message = str(error)
            hint = f"One of: {', '.join(choices)}." if choices else ""
            if choices and isinstance(value, str):
                message = f"{value!r} is not a choice"
                aliases = MODE_ALIASES if path == MODE_PATH else ()
                hint = _did_you_mean(value, [*choices, *aliases]) or hint
            message = f"{message[:1].lower()}{message[1:]}"
            return self.wrong(path, message, hint)
        return value

    def wrong(self, path: Path, message: str, hint: str = "") -> object:
        where = f"`{dotted(path)}`: " if path else ""
        line = self.lines.of(path)
        self.report(Problem("wrong_type", self.file, line, where + message, hint))
        return _UNUSABLE

    def unknown(self, path: Path, key: str, known: list[str]) -> None:
        message = f"unknown key `{dotted(path)}`"
        hint = _did_you_mean(key, known)
        self.report(Problem("unknown_key", self.file, self.lines.of(path), message, hint))


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [arg for arg in get_args(kind) if arg is not type(None)]
        return kinds[0] if len(kinds) == 1 else kind
    return kind


def kind_name(value: Any) -> str:
    """``a string``, ``an array``: what JSON calls it."""
    names = {str: "a string", bool: "a boolean", list: "an array", dict: "an object"}
    return "null" if value is None else names.get(type(value), "a number")


def _did_you_mean(word: str, known: list[str]) -> str:
    import difflib  # only for a mistake; nobody else pays for it

    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), 1, 0.5)
    return f"Did you mean `{by_lower[near[0]]}`?" if near else ""
