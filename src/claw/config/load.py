"""``load_settings``: every layer of settings, merged, with the origin of each value.

Precedence: managed > flags > environment > project-local > project > user > default.
Rules, directories and hooks of all layers add up. Of a project's files only ``deny``
and ``ask`` rules count: nothing else of a project is obeyed before it is trusted.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from claw.config.check import Problem, check
from claw.config.lines import Lines, Path, dotted
from claw.config.paths import (
    MANAGED,
    Homes,
    Layer,
    find_homes,
    managed_objection,
    settings_files,
)
from claw.config.reading import Decoded, FileBytes, decode_settings, lost_list, read_bytes
from claw.config.settings import Settings
from claw.errors import ConfigError
from claw.types.hooks import HookEvent
from claw.types.permissions import Behavior

__all__ = ["FLAGS", "HookText", "Loaded", "Origin", "RuleText", "load_settings"]


FROM_FLAG = "flag "
"""How the place of what a flag of the command line said begins."""
# The flag that sets each key, for messages and for `claw config`.
FLAGS = {
    "model": "--model",
    "fallbackModel": "--fallback-model",
    "effort": "--effort",
    "permissions.defaultMode": "--permission-mode",
    "permissions.allow": "--allowedTools",
    "permissions.deny": "--disallowedTools",
    "permissions.additionalDirectories": "--add-dir",
    "limits.maxTurns": "--max-turns",
    "limits.maxBudgetUsd": "--max-budget-usd",
    "limits.maxBudgetTokens": "--max-budget-tokens",
    "limits.maxTime": "--max-time",
    "compaction.auto": "--auto-compact",
    "compaction.threshold": "--auto-compact",
}
VARIABLES = {"CLAW_MODEL": "model", "CLAW_PERMISSION_MODE": "permissions.defaultMode"}
AUTO_COMPACTION = ("CLAUDE_CODE_AUTO_COMPACT_INPUT_TOKENS", "CLAW_AUTO_COMPACT")
"""A threshold or `off`; the last one that is set counts. The first is others' name for it."""
INLINE = "--settings"  # in place of a file's name, for settings that stand in the flag itself
UNTRUSTED: tuple[Layer, ...] = ("project", "project-local")
BEHAVIORS: tuple[Behavior, ...] = ("deny", "ask", "allow")


class Origin(msgspec.Struct, frozen=True):
    """A value and where it is from: ``file:line``, ``flag --x``, ``environment X``, ``default``."""

    value: Any
    source: str


class RuleText(msgspec.Struct, frozen=True):
    """A permission rule as it was written."""

    behavior: Behavior
    text: str
    source: str
    layer: Layer


class HookText(msgspec.Struct, frozen=True):
    """A command hook as it was declared. ``timeout`` in seconds, None for the usual one."""

    event: HookEvent
    matcher: str
    command: str
    timeout: float | None
    on_failure: Literal["warn", "block"]
    source: str
    layer: Layer


class Loaded(msgspec.Struct, frozen=True):
    """``origins`` tells of every value that something set, by dotted key."""

    settings: Settings
    homes: Homes
    origins: Mapping[str, Origin]
    rules: tuple[RuleText, ...]
    hooks: tuple[HookText, ...]
    problems: tuple[Problem, ...]

    @property
    def provenance(self) -> dict[str, Origin]:
        """``origins``, and the defaults of all other keys that have one. Sorted."""
        found = {dotted(path): Origin(value, "default") for path, value in _leaves_of_defaults()}
        return dict(sorted((found | dict(self.origins)).items()))


class _Source(msgspec.Struct, frozen=True):
    """One layer as it was read: what of it can be used, and how to name a place in it.

    ``sandbox`` is the mode that it asks for, blank where it says nothing of one.
    """

    layer: Layer
    values: dict[str, Any]
    place: str
    lines: Lines | None = None
    sandbox: str = ""

    def origin(self, path: Path) -> str:
        if self.lines is None:
            return self.place
        line = self.lines.of(path)
        return f"{self.place}:{line}" if line else self.place


def load_settings(
    *,
    cwd: str,
    env: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    settings_file: str | None = None,
    managed_file: str = MANAGED,
) -> Loaded:
    """Read all layers. ``flags`` are values by dotted key; ``settings_file`` is ``--settings``.

    Files that cannot be used are ``problems``; a flag, variable or ``--settings`` that
    cannot be used raises ``ConfigError``, and so does a file of the user's or of the
    machine's whose deny rules may not all have been read.
    """
    homes = find_homes(cwd, env)
    problems: list[Problem] = []
    sources: list[_Source] = []
    managed: list[_Source] = []
    for file in settings_files(homes, managed_file):
        found = read_bytes(file.path)
        if found is None:
            continue
        if file.layer == "managed":
            objection = managed_objection(file.path)
            if objection:
                message = f"not honoured: {objection}"
                hint = "Run `chown root` and `chmod go-w` on it."
                problems.append(Problem("unreadable", file.path, 0, message, hint))
                continue
        source = _source(file.layer, file.path, found, problems)
        (managed if file.layer == "managed" else sources).append(source)
    sources += _environment(env)
    sources += _settings_flag(settings_file, cwd, problems)
    sources += _flags(flags or {})
    sources += managed
    _refuse_without_sandbox(sources)
    return _merged(homes, sources, problems)


# -- one file ------------------------------------------------------------------


def _source(layer: Layer, path: str, found: FileBytes, problems: list[Problem]) -> _Source:
    """Raises ``ConfigError`` where deny rules may be lost, except those of a project:
    it must not be able to keep claw from starting."""
    text = decode_settings(path, found)
    lost = text.doubt or lost_list(path, text)
    if lost is not None and layer not in UNTRUSTED:
        raise ConfigError(
            f"{lost}; claw does not start without the deny rules in it",
            hint=f"{lost.hint} {_correct(path)}",
        )
    if text.flaw is not None:
        problems.append(text.flaw)
    value, lines = text.value, text.lines
    if layer not in UNTRUSTED:
        sandbox = _sandbox(text, found.data.decode("utf-8", "replace"))
        return _Source(layer, check(value, path, lines, problems.append), path, lines, sandbox)
    trusted, ignored = _of_a_project(value)
    if ignored:
        message = f"ignored: projects are not trusted yet ({', '.join(ignored)})"
        hint = "Put what you want to use into your own settings. `deny` and `ask` rules count."
        line = lines.of((ignored[0].split(".")[0],))
        problems.append(Problem("ignored", path, line, message, hint))
    # A repeated key among what is ignored anyway is nobody's problem.
    lines = msgspec.structs.replace(lines, repeated=_about_rules(lines.repeated))
    return _Source(layer, check(trusted, path, lines, problems.append), path, lines)


def _correct(path: str) -> str:
    return "Correct it." if path == INLINE else "Correct the file, or move it away."


def _sandbox(decoded: Decoded, text: str) -> str:
    """What cannot be understood is taken for the strictest."""
    if decoded.flaw is not None:
        known = re.search(r'"sandbox"\s*:\s*(?:\{\s*"mode"\s*:\s*)?"(auto|off)"', text)
        return known[1] if known else "required" if "sandbox" in text else ""
    if not isinstance(decoded.value, dict) or not (wanted := decoded.value.get("sandbox")):
        return ""
    mode = wanted.get("mode") or "auto" if isinstance(wanted, dict) else wanted
    return mode if mode in ("auto", "off") else "required"


def _refuse_without_sandbox(sources: list[_Source]) -> None:
    """Raises ``ConfigError`` where the last word is that there must be one."""
    asking = [source for source in sources if source.sandbox]
    if asking and asking[-1].sandbox == "required":
        raise ConfigError(
            f"{asking[-1].origin(('sandbox',))}: `sandbox` is required, and this version has none",
            hint="Run claw in a container or a virtual machine, and set `sandbox.mode` to `off`.",
        )


def _of_a_project(value: Any) -> tuple[Any, list[str]]:
    """What counts of an untrusted project's settings, and the names of what does not."""
    if not isinstance(value, dict):
        return value, []
    permissions = value.get("permissions", {})
    ignored = [key for key in value if key not in ("permissions", "$schema")]
    if not isinstance(permissions, dict):
        return {"permissions": permissions}, ignored
    ignored += [f"permissions.{key}" for key in permissions if key not in ("deny", "ask")]
    kept = {key: rules for key, rules in permissions.items() if key in ("deny", "ask")}
    return {"permissions": kept}, ignored


def _about_rules(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(path for path in paths if path[:1] == ("permissions",) and path[1:2] != ("allow",))


# -- layers that are not files ----------------------------------------------------


def _environment(env: Mapping[str, str]) -> list[_Source]:
    given = [
        (variable, {key: env[variable]}) for variable, key in VARIABLES.items() if env.get(variable)
    ]
    given += [
        (variable, _auto_compaction(variable, env[variable]))
        for variable in AUTO_COMPACTION
        if env.get(variable)
    ]
    return [
        _given("environment", values, f"environment {variable}", variable)
        for variable, values in given
    ]


def _auto_compaction(variable: str, text: str) -> dict[str, Any]:
    if text.strip().lower() == "off":
        return {"compaction.auto": False}
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise ConfigError(
            f"{variable} is neither a number above zero nor `off`",
            hint="Give tokens, or up to 100 per cent of the model's window.",
        )
    return {"compaction.auto": True, "compaction.threshold": number}


def _flags(flags: Mapping[str, Any]) -> list[_Source]:
    return [
        _given("flags", {key: value}, f"{FROM_FLAG}{FLAGS[key]}", FLAGS[key])
        for key, value in flags.items()
        if value is not None
    ]


def _settings_flag(settings_file: str | None, cwd: str, told: list[Problem]) -> list[_Source]:
    """``--settings FILE`` or ``--settings '{...}'``."""
    if settings_file is None:
        return []
    problems: list[Problem] = []
    hint = 'Name a file, or write settings as JSON: `{"model": "..."}`.'
    if not settings_file.strip():
        raise ConfigError("--settings is empty", hint=hint)
    if settings_file.lstrip()[0] in '{["':
        path = INLINE
        found: FileBytes | None = FileBytes(settings_file.encode("utf-8", "surrogateescape"))
    else:
        path = os.path.join(cwd, os.path.expanduser(settings_file))
        found = read_bytes(path)
    if found is None:
        raise ConfigError(f"--settings: there is no file {path}", hint=hint)
    source = _source("flags", path, found, problems)
    told += [problem for problem in problems if problem.code == "no_effect"]
    if wrong := [problem for problem in problems if problem.code != "no_effect"]:
        raise ConfigError(str(wrong[0]), hint=wrong[0].hint or hint)
    return [source]


def _given(layer: Layer, values: dict[str, Any], place: str, name: str) -> _Source:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *sections, last = key.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    problems: list[Problem] = []
    usable = check(nested, name, Lines(), problems.append)
    if problems:
        raise ConfigError(str(problems[0]), hint=problems[0].hint)
    return _Source(layer, usable, place)


# -- merging -------------------------------------------------------------------


def _merged(homes: Homes, sources: list[_Source], problems: list[Problem]) -> Loaded:
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    rules: list[RuleText] = []
    hooks: list[HookText] = []
    for source in sources:
        _merge(values, source.values, source, (), origins)
        rules += _rules(source)
        hooks += _hooks(source)
    return Loaded(
        msgspec.convert(values, Settings) if values else Settings(),
        homes,
        origins,
        tuple(rules),
        tuple(hooks),
        tuple(problems),
    )


def _merge(
    into: dict[str, Any],
    values: Mapping[str, Any],
    source: _Source,
    path: Path,
    origins: dict[str, Origin],
) -> None:
    """Objects are merged key by key, lists add up, anything else is replaced."""
    for key, value in values.items():
        here = (*path, key)
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value, source, here, origins)
        elif isinstance(value, list):
            into[key] = listed = [*into.get(key, ())]
            for n, item in enumerate(value):
                if item is not None:
                    name = f"{dotted(here)}[{len(listed)}]"
                    origins[name] = Origin(item, source.origin((*here, n)))
                    listed.append(_without_gaps(item))
        else:
            into[key] = value
            origins[dotted(here)] = Origin(value, source.origin(here))


def _without_gaps(value: Any) -> Any:
    """Without the places that unusable elements left in lists."""
    if isinstance(value, dict):
        return {key: _without_gaps(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_gaps(item) for item in value if item is not None]
    return value


def _rules(source: _Source) -> list[RuleText]:
    permissions = source.values.get("permissions", {})
    return [
        RuleText(behavior, text, source.origin(("permissions", behavior, n)), source.layer)
        for behavior in BEHAVIORS
        for n, text in enumerate(permissions.get(behavior, ()))
        if text is not None
    ]


def _hooks(source: _Source) -> list[HookText]:
    default: Literal["warn", "block"] = "block" if source.layer == "managed" else "warn"
    return [
        HookText(
            event,
            group.get("matcher", ""),
            hook["command"],
            hook.get("timeout"),
            hook.get("onFailure") or default,
            source.origin(("hooks", event, n, "hooks", m)),
            source.layer,
        )
        for event, groups in source.values.get("hooks", {}).items()
        for n, group in enumerate(groups)
        if group is not None
        for m, hook in enumerate(group["hooks"])
        if hook is not None
    ]


def _leaves_of_defaults() -> list[tuple[Path, Any]]:
    leaves: list[tuple[Path, Any]] = []

    def visit(struct: msgspec.Struct, path: Path) -> None:
        for field in msgspec.structs.fields(struct):
            value = getattr(struct, field.name)
            here = (*path, field.encode_name)
            if isinstance(value, msgspec.Struct):
                visit(value, here)
            elif not isinstance(value, tuple | dict):
                leaves.append((here, value))

    visit(Settings(), ())
    return leaves
