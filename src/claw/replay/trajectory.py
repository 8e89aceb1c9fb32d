"""Trajectories: the normalised record of a run, which golden files hold.

What differs from run to run without meaning anything (durations, times, digests,
estimated usage, the claw version) is left out; what differs from machine to machine
(the workspace, the home, the session) is replaced by a name: ``${CWD}``,
``${HOME}``, ``${SESSION}``, ``${BLOBS}``. The rest is the session's entries in order.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from claw.types.entries import SCHEMA, Entry, UnknownEntry

__all__ = ["diff", "dumps", "trajectory"]

LEFT_OUT: dict[str, frozenset[str]] = {
    "session_started": frozenset({"created", "claw_version"}),
    "prompt_installed": frozenset({"system", "tools", "rules", "hooks"}),
    "step_requested": frozenset({"digests"}),
    "retried": frozenset({"delay"}),
    "hook_finished": frozenset({"hook"}),
    "tool_finished": frozenset({"spilled"}),
    "checkpointed": frozenset({"before"}),
}
EVERYWHERE = frozenset({"ms"})


def trajectory(entries: Iterable[Entry], names: Mapping[str, str]) -> dict[str, Any]:
    """The record as plain data.

    ``names`` maps what to replace in every text to its name, for instance
    ``{"/tmp/x/workspace": "${CWD}"}``; longer ones are replaced first.
    """
    longest_first = sorted(((k, v) for k, v in names.items() if k), key=lambda kv: -len(kv[0]))
    return {
        "schema": SCHEMA,
        "entries": [
            _normal(_plain(entry), longest_first)
            for entry in entries
            if not isinstance(entry, UnknownEntry)
        ],
    }


def dumps(record: Mapping[str, Any]) -> str:
    """The text of a golden file: stable, one field a line, made for reading diffs."""
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def diff(expected: str, actual: str) -> str:
    """A unified diff of two golden texts; empty where they are equal."""
    lines = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm=""
    )
    return "\n".join(lines)


def _plain(entry: Entry) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry)
    dropped = LEFT_OUT.get(plain["kind"], frozenset()) | EVERYWHERE
    if plain.get("usage", {}).get("estimated"):  # it counts the machine's paths, too
        dropped |= {"usage"}
    return {key: value for key, value in plain.items() if key not in dropped}


def _normal(value: Any, names: list[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for old, new in names:
            value = value.replace(old, new)
        return value
    if isinstance(value, list | tuple):
        return [_normal(item, names) for item in value]
    if isinstance(value, dict):
        return {_normal(key, names): _normal(item, names) for key, item in value.items()}
    return value
