"""The published models of the trajectory format, as an oracle, and a reader of its documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from claw.sessions.record import Record
from claw.types.entries import Entry
from claw.types.messages import AssistantMessage, Message, Text, ToolResult, text_of
from claw.types.transcript import NO_OUTPUT
from claw.types.usage import Usage
from claw.viewer.atif import atif

__all__ = ["check", "context", "exported", "judge", "judges_are_here", "placed", "seen"]

Spoken = tuple[str, str, tuple[tuple[str, str], ...]]
"""Who, the text, and calls or results by id."""


def placed(entries: Sequence[Entry]) -> list[Record]:
    """Entries as a journal has them, one second after another."""
    at = "2026-01-01T{:02}:{:02}:{:02}.000Z".format
    return [
        Record(n, f"e{n}", "", at(n // 3600 % 24, n // 60 % 60, n % 60), entry)
        for n, entry in enumerate(entries, 1)
    ]


def exported(records: Sequence[Record], **others: Any) -> Any:
    """The document, as a reader has it."""

    def price(usage: Usage, model: str) -> float | None:
        return None

    ports: dict[str, Any] = {
        "clean": str,
        "blob": lambda digest: None,
        "file": lambda digest: None,
        "price": price,
    }
    return json.loads("".join(atif(records, **{**ports, **others})))


def check(document: Any) -> None:
    """Fails where its figures do not add up, or the format's own models refuse it.

    Where those are not installed, a test of its own skips and says so. Of a file, the
    pictures that it names must be there.
    """
    if judges_are_here():
        judge(document)
    if isinstance(document, Path):
        document = json.loads(document.read_text())
    final = document["final_metrics"]
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        counted = sum(step.get("metrics", {}).get(name, 0) for step in document["steps"])
        assert final[f"total_{name}"] == counted
    assert final["total_steps"] == len(document["steps"])
    for step in document["steps"]:
        ids = [call["tool_call_id"] for call in step.get("tool_calls", ())]
        results = step.get("observation", {}).get("results", ())
        answered = [result["source_call_id"] for result in results] if ids else []
        assert answered == [id for id in ids if id in answered]


def judges_are_here() -> bool:
    return find_spec("harbor") is not None


def judge(document: Any) -> None:
    """Fails where the models refuse it, or would write it in another way."""
    validator = import_module("harbor.utils.trajectory_validator").TrajectoryValidator()
    assert validator.validate(document), validator.get_errors()
    if isinstance(document, Path):
        document = json.loads(document.read_text())
    models = import_module("harbor.models.trajectories")
    trajectory = models.Trajectory.model_validate(document, strict=True)
    assert trajectory.to_json_dict() == document


def context(document: Any) -> list[Spoken]:
    """What the model sees at the end, as the format's rule for context boundaries has it."""
    seen: list[Spoken] = []
    for step in document["steps"]:
        extra = step.get("extra", {})
        boundary = extra.get("context_management", {}).get("boundary")
        if boundary == "replace":
            (told,) = step["observation"]["results"]
            seen = [("user", told["content"], ())]
        elif boundary == "truncate":
            stubs = extra.get("pruned_results", {})
            seen = [(who, text, _pruned(who, results, stubs)) for who, text, results in seen]
        elif step["source"] == "agent":
            seen += _answer(step)
        elif (
            "prompt_installed" not in extra and step["source"] != "system"
        ) or "steered_by" in extra:
            seen.append(("user", step["message"], ()))
    return seen


def _answer(step: Any) -> list[Spoken]:
    calls = [(c["tool_call_id"], c["function_name"]) for c in step.get("tool_calls", ())]
    if not (step["message"] or calls or step.get("reasoning_content")):
        return []
    said: list[Spoken] = [("agent", step["message"], tuple(calls))]
    results = [
        (r["source_call_id"], r["extra"].get("text_in_context", r["content"]) or NO_OUTPUT)
        for r in step.get("observation", {}).get("results", ())
    ]
    return [*said, ("results", "", tuple(results))] if results else said


def _pruned(
    who: str, pairs: tuple[tuple[str, str], ...], stubs: dict[str, str]
) -> tuple[tuple[str, str], ...]:
    return tuple((id, stubs.get(id, text)) for id, text in pairs) if who == "results" else pairs


def seen(messages: Sequence[Message]) -> list[Spoken]:
    """The same of a conversation; a summary and what follows it are two."""
    return [spoken for message in messages for spoken in _spoken(message)]


def _spoken(message: Message) -> list[Spoken]:
    if isinstance(message, AssistantMessage):
        calls = tuple((call.id, call.name) for call in message.tool_calls)
        return [("agent", text_of(message.content), calls)]
    results = [block for block in message.content if isinstance(block, ToolResult)]
    if results:
        return [("results", "", tuple((r.tool_use_id, text_of(r.content)) for r in results))]
    texts = [block.text for block in message.content if isinstance(block, Text)]
    return [("user", "\n".join(texts), ())]
