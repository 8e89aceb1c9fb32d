"""How closely a run has to follow its golden file: ``exact``, ``structure``, ``contract``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from claw.errors import ConfigError
from claw.testing.tool_names import ToolNames
from claw.types.tools import ToolSpec

__all__ = ["Contract", "broken", "load_contract", "structure"]


class Contract(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What holds of a run whoever the model is; read from a golden file.

    Names are tools', and a call counts whether or not it was allowed. ``before`` are pairs:
    where the second is called, the first was called before.
    ``max_steps`` and ``max_usd`` are for all turns together.
    """

    must_call: tuple[str, ...] = ()
    never_call: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    max_steps: int | None = None
    max_usd: float | None = None


def load_contract(path: Path) -> Contract:
    """Read it from a JSON file. Raises ``ConfigError`` naming the file and what is wrong in it."""
    try:
        contract = msgspec.json.decode(path.read_bytes(), type=Contract)
    except OSError as error:
        raise ConfigError(f"cannot read the contract {path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path}: {error}",
            hint=f"A contract is an object of {', '.join(Contract.__struct_fields__)}.",
        ) from error
    if contract == Contract():
        raise ConfigError(
            f"{path}: the contract demands nothing",
            hint=f"It has at least one of {', '.join(Contract.__struct_fields__)}.",
        )
    return contract


def structure(record: Mapping[str, Any]) -> dict[str, Any]:
    """Of a trajectory: calls with their inputs, decisions, outcomes, ends. No wording."""
    return {"schema": record["schema"], "entries": [*filter(None, map(_shape, record["entries"]))]}


def broken(
    record: Mapping[str, Any], contract: Contract, offered: Iterable[ToolSpec] = ()
) -> list[str]:
    """Which parts of the contract do not hold, in words.

    ``offered`` are tools besides claw's own. Raises ``ConfigError`` for a name of none.
    """
    names, entries = ToolNames(offered), record["entries"]
    made = [call for entry in entries if entry.get("complete", True) for call in _calls(entry)]
    called = [names.called(call["name"]) for call in made]
    must, never = (map(names.meant, given) for given in (contract.must_call, contract.never_call))
    before = [(names.meant(first), names.meant(then)) for first, then in contract.before]
    steps = sum(entry["iterations"] for entry in entries if entry["kind"] == "turn_ended")
    found = [f"`{name}` was not called" for name in must if name not in called]
    found += [f"`{name}` was called" for name in never if name in called]
    found += [
        f"`{first}` was not called before `{then}`"
        for first, then in before
        if then in called and first not in called[: called.index(then)]
    ]
    if contract.max_steps is not None and steps > contract.max_steps:
        found.append(f"it took {steps} steps, more than {contract.max_steps}")
    return found + _too_dear(entries, contract.max_usd)


def _too_dear(entries: list[dict[str, Any]], most: float | None) -> list[str]:
    costs = [entry.get("cost") for entry in entries if entry["kind"] == "turn_ended"]
    if most is None:
        return []
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return ["the cost is not known"]
    spent = sum(known)
    return [f"it cost ${spent:.4f}, more than ${most:.4f}"] if spent > most else []


def _shape(entry: dict[str, Any]) -> dict[str, Any] | None:
    match entry["kind"]:
        case "reply_received":
            made = [{"name": c["name"], "input": c["input"]} for c in _calls(entry)]
            return {"kind": "calls", "calls": made} if made else None
        case "decision_made":
            kept = {key: entry[key] for key in ("kind", "decision")}
            return {**kept, "source": _source(entry["source"])}
        case "tool_finished":
            return {key: entry[key] for key in ("kind", "status")}
        case "hook_finished":
            return {key: entry[key] for key in ("kind", "event", "outcome")}
        case "turn_ended":
            return {key: entry[key] for key in ("kind", "stop_reason", "iterations")}
        case "steered" | "interrupted" | "compacted" | "mode_changed":
            return {"kind": entry["kind"]}
    return None


def _source(text: str) -> str:
    """Who decided, without the places of a machine: ``hook``, a rule's text, a mode."""
    if text.startswith("hook "):
        return "hook"
    placed = re.fullmatch(r"(.*\)|[^\s()]+) \(.+\)", text, re.DOTALL)  # RULE (FILE:LINE)
    return placed[1] if placed else text


def _calls(entry: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = entry.get("blocks", ()) if entry["kind"] == "reply_received" else ()
    return [block for block in blocks if block.get("type") == "tool_use"]
