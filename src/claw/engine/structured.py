"""Structured output: a final text that must be a JSON document of some schema.

The model is told the schema with the prompt. A final text that does not fit is answered
within the same turn, at most so many times; what did not fit in the end is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from claw.errors import WrongUse
from claw.types.entries import Event, ReplyReceived, TurnStarted
from claw.types.messages import Text, ToolUse, UserBlock, text_of
from claw.types.permissions import PermissionDenial
from claw.types.reply import ENDED_WELL
from claw.types.results import Failure

__all__ = ["KIND", "Checked", "document", "envelope", "failed", "schema_problem", "with_schema"]

KIND = "structured_output"
LONGEST_PROBLEM = 500  # characters
LONGEST_WHERE = 100


class Checked(msgspec.Struct, eq=False):
    """Watches the final texts of turns; ``steer`` is told what is wrong with one.

    Use ``emit`` as a listener of the conversation. ``problem`` is what was wrong with the
    last final text, None where it fits; ``text`` is that document.
    """

    schema: dict[str, Any]
    retries: int
    steer: Callable[[str], None]
    text: str = ""
    problem: str | None = "there was no answer"
    asked: int = 0

    def emit(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self.text, self.problem, self.asked = "", "there was no answer", 0
            case ReplyReceived(complete=True) if _is_final(event):
                self._look_at(text_of(event.blocks))

    def failure(self) -> Failure | None:
        """As data, for the result of a turn that would be complete without it."""
        if self.problem is None:
            return None
        tries = "1 try" if self.asked == 0 else f"{self.asked + 1} tries"
        return Failure(
            KIND,
            f"the answer is no JSON document of the given schema, after {tries}: {self.problem}",
            "Make the schema simpler, or try another model.",
        )

    def _look_at(self, text: str) -> None:
        self.text, self.problem = document(text, self.schema)
        if self.problem is not None and self.asked < self.retries:
            self.asked += 1
            self.steer(
                f"That is no JSON document of the given schema: {self.problem}\n"
                "Answer once more, with the corrected JSON document and nothing else."
            )


def with_schema(prompt: str, schema: dict[str, Any]) -> tuple[UserBlock, ...]:
    """The prompt, and behind it what the answer has to be."""
    wanted = json.dumps(schema, ensure_ascii=False)
    return (
        Text(prompt),
        Text(
            "\n\nWhen you are done, your last answer must be one JSON document that is valid under "
            f"this JSON Schema, and nothing else:\n\n{wanted}"
        ),
    )


def document(text: str, schema: dict[str, Any]) -> tuple[str, str | None]:
    """The JSON document that a final text is, and what is wrong with it, None for nothing.

    A fence around the whole of it is taken off.
    """
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", text, re.DOTALL)
    found = (fenced[1] if fenced else text).strip()
    try:
        value = json.loads(found, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return found, _brief(f"it is not JSON: {error}")
    return found, _problem(value, schema)


def schema_problem(schema: dict[str, Any]) -> None:
    """Raises ``WrongUse`` for what is no JSON Schema, or needs one from elsewhere."""
    validator, errors = _validator(schema)
    try:
        validator.check_schema(schema)
        for ref in _refs(schema):
            if not ref.startswith("#") or (ref.startswith("#/") and not _is_in(schema, ref)):
                raise WrongUse(
                    f"the JSON Schema refers to `{_brief(ref)}`, which is not in it",
                    hint="Put what it needs into `$defs`, and refer to `#/$defs/NAME`.",
                )
    except errors as error:
        raise WrongUse(f"this is no JSON Schema: {_brief(error.message)}") from error
    except RecursionError as error:
        raise WrongUse("the JSON Schema is nested too deeply") from error


def envelope(
    prompt: str,
    output: str,
    *,
    commands: Sequence[str],
    tools: Sequence[str],
    denials: Sequence[PermissionDenial],
    stop_reason: str,
    session_id: str,
) -> str:
    """Claw's own document, ``{summary: [lines], session_id}``: made without asking a model."""
    lines = [
        f"Prompt: {prompt}",
        f"Matched commands: {', '.join(commands) or 'none'}",
        f"Matched tools: {', '.join(tools) or 'none'}",
        f"Permission denials: {len(denials)}",
        f"Stop reason: {stop_reason}",
        *output.splitlines(),
    ]
    return json.dumps({"summary": lines, "session_id": session_id}, ensure_ascii=False, indent=2)


def failed(failure: Failure, session_id: str) -> str:
    """The document in place of one of the schema, where there is none."""
    error = {"kind": failure.kind, "message": failure.message, "hint": failure.hint}
    return json.dumps({"error": error, "session_id": session_id}, ensure_ascii=False, indent=2)


def _is_final(reply: ReplyReceived) -> bool:
    calls = any(isinstance(block, ToolUse) for block in reply.blocks)
    says = bool(text_of(reply.blocks).strip())  # else it is asked for again anyway
    return says and not calls and reply.stop_reason in ENDED_WELL


def _validator(schema: dict[str, Any]) -> tuple[Any, Any]:
    """Loaded when it is needed: few turns have a schema."""
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    return validator_for(schema, default=Draft202012Validator), SchemaError


def _problem(value: Any, schema: dict[str, Any]) -> str | None:
    from jsonschema.exceptions import best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator, _ = _validator(schema)
    try:
        # An empty registry: nothing is fetched, whatever a schema refers to.
        error = best_match(validator(schema, registry=Registry()).iter_errors(value))
    except (RecursionError, Unresolvable) as problem:
        return _brief(f"it cannot be checked: {type(problem).__name__}")
    if error is None:
        return None
    place = "".join(f"/{part}" for part in error.absolute_path)
    where = f"at `{place[:LONGEST_WHERE]}`: " if place else ""
    return f"{where}{_brief(error.message)}"


def _refs(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for value in node.values() for ref in _refs(value)]
    return [ref for item in node for ref in _refs(item)] if isinstance(node, list) else []


def _is_in(schema: Any, ref: str) -> bool:
    """Claims that the JSON pointer behind ``#`` leads somewhere
    (https://www.rfc-editor.org/rfc/rfc6901)."""
    node = schema
    for part in unquote(ref[2:]).split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, dict) and key in node:
            node = node[key]
        else:
            return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _brief(text: str) -> str:
    return text if len(text) <= LONGEST_PROBLEM else text[:LONGEST_PROBLEM] + "..."
