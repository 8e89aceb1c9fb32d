"""`--json-schema`: the last answer of a turn must be a JSON document of a schema."""

from __future__ import annotations

import json
import os
from typing import Any

from msgspec.structs import replace

from claw.engine.structured import Checked, schema_problem, with_schema
from claw.errors import WrongUse
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.turn import TurnOptions
from claw.types.messages import UserBlock

__all__ = ["SchemaAnswer", "schema_from"]

RETRIES = 2
LARGEST_SCHEMA = 1024 * 1024  # bytes


def schema_from(given: str) -> dict[str, Any]:
    """A schema as JSON, or from a file. Raises ``WrongUse``."""
    text = given if given.lstrip().startswith("{") else _read(given)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"`--json-schema` is no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise WrongUse("`--json-schema` takes a JSON object, or a file with one")
    schema_problem(schema)
    return schema


def _read(path: str) -> str:
    try:
        with open(os.path.expanduser(path), "rb") as file:
            content = file.read(LARGEST_SCHEMA + 1)
    except (OSError, ValueError) as error:
        raise WrongUse(
            f"`--json-schema` is neither a JSON object nor a file: {error}",
            hint="""Give it as in `--json-schema '{"type": "object"}'`, or name a file.""",
        ) from error
    if len(content) > LARGEST_SCHEMA:
        raise WrongUse(f"`--json-schema`: {path} has more than {LARGEST_SCHEMA // 1024} KiB")
    return content.decode("utf-8", "replace")


class SchemaAnswer:
    """Implements ``oneshot.AnswerCheck`` for one turn."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._checked: Checked | None = None

    def options(self, runtime: ConversationRuntime) -> TurnOptions:
        self._checked = Checked(self._schema, RETRIES, runtime.steer)
        runtime.listen(self._checked.emit)
        return replace(runtime.options, verdict=self._checked.failure)

    def content(self, prompt: str) -> tuple[UserBlock, ...]:
        return with_schema(prompt, self._schema)

    @property
    def document(self) -> str:
        return self._checked.text if self._checked is not None else ""
