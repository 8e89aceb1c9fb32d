"""The generated documents, from the code that they describe; a test compares them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from claw.config.settings import settings_schema
from claw.tools.arguments import input_schema
from claw.tools.bash import BashArguments
from claw.tools.edit import EditArguments
from claw.tools.glob import GlobArguments
from claw.tools.grep import GrepArguments
from claw.tools.read import ReadArguments
from claw.tools.todo_write import TodoWriteArguments
from claw.tools.write import WriteArguments

PROJECT = Path(__file__).resolve().parent.parent
ARGUMENTS = {
    "bash": BashArguments,
    "edit": EditArguments,
    "glob": GlobArguments,
    "grep": GrepArguments,
    "read": ReadArguments,
    "todo_write": TodoWriteArguments,
    "write": WriteArguments,
}


def documents() -> dict[str, str]:
    """Text by path in the project."""
    schemas = {
        f"src/claw/tools/{name}.json": _json(input_schema(arguments))
        for name, arguments in ARGUMENTS.items()
    }
    return {**schemas, "src/claw/config/settings.schema.json": _json(settings_schema())}


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, text in documents().items():
        path = PROJECT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(name)
