"""Trajectories: the normalised record of a run, which golden files hold.

What differs from run to run without meaning anything (durations, times, digests,
estimated usage, the claw version) is left out, and so are the commands of hooks; what
differs from machine to machine (the workspace, the home, the session) is replaced by a
name: ``${CWD}``, ``${HOME}``, ``${SESSION}``, ``${BLOBS}``. The rest is the session's
entries in order.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from claw.types.entries import SCHEMA, Entry, KnownEntry, UnknownEntry
from claw.types.texts import each_text

__all__ = ["WIRE", "Names", "diff", "dumps", "longest_first", "plain", "trajectory"]

Names = Sequence[tuple[str, str]]
"""What to replace in every text, and its name; longer ones first."""

WIRE = frozenset({"wire", "wire_dialect", "wire_sizes"})
"""Fields that tell of a reply's raw bytes, which no two runs get in the same chunks."""

LEFT_OUT: dict[str, frozenset[str]] = {
    "session_started": frozenset({"created", "claw_version"}),
    "prompt_installed": frozenset({"system", "tools", "rules", "hooks", "instructions"}),
    "step_requested": frozenset({"digests"}),
    "retried": frozenset({"delay"}),
    "reply_received": WIRE,
    "hook_finished": frozenset({"hook"}),
    "tool_finished": frozenset({"spilled"}),
    "checkpointed": frozenset({"before"}),
    "compacted": frozenset({"tokens_after", "tokens_before"}),  # estimates, as usage may be
    "turn_ended": frozenset({"digest"}),
}
EVERYWHERE = frozenset({"ms"})


def trajectory(entries: Iterable[Entry], names: Mapping[str, str]) -> dict[str, Any]:
    """The record as plain data.

    ``names`` maps what to replace in every text to its name, for instance
    ``{"/tmp/x/workspace": "${CWD}"}``; longer ones are replaced first.
    """
    ordered = longest_first(names)
    return {
        "schema": SCHEMA,
        "entries": [
            _without_commands(
                _without_estimates(plain(entry, ordered, LEFT_OUT.get(entry_kind(entry), ())))
            )
            for entry in entries
            if not isinstance(entry, UnknownEntry)
        ],
    }


def longest_first(names: Mapping[str, str]) -> Names:
    return sorted(((k, v) for k, v in names.items() if k), key=lambda kv: -len(kv[0]))


def entry_kind(entry: KnownEntry) -> str:
    return str(entry.__struct_config__.tag)


def plain(entry: KnownEntry, names: Names, dropped: Collection[str] = ()) -> dict[str, Any]:
    """An entry as plain data, with names for paths, and without durations."""
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    kept = {k: v for k, v in fields.items() if k not in EVERYWHERE and k not in dropped}
    return {key: _normal(value, names) for key, value in kept.items()}


def dumps(record: Mapping[str, Any]) -> str:
    """The text of a golden file: stable, one field a line, made for reading diffs."""
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def diff(expected: str, actual: str) -> str:
    """A unified diff of two golden texts; empty where they are equal."""
    lines = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm=""
    )
    return "\n".join(lines)


def _without_estimates(fields: dict[str, Any]) -> dict[str, Any]:
    if fields.get("usage", {}).get("estimated"):  # it counts the machine's paths, too
        del fields["usage"]
    return fields


def _without_commands(fields: dict[str, Any]) -> dict[str, Any]:
    """Hooks by their place alone: a command names the interpreter and scripts of one machine,
    and is shortened before its paths could get names."""
    merged = fields.get("merged") or {}
    for said, key in ((fields, "source"), (merged, "by")):
        if isinstance(said.get(key), str):
            said[key] = re.sub(r"^hook `.*`", "hook", said[key], flags=re.DOTALL)
    return fields


def _normal(value: Any, names: Names) -> Any:
    def change(text: str) -> str:
        for old, new in names:
            text = text.replace(old, new)
        return text

    return each_text(value, change)
