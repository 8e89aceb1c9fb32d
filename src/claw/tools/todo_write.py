"""TodoWrite: the plan of the work at hand, for the user to see."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from claw.errors import ToolFailed
from claw.ports import ToolCall
from claw.tools.arguments import parse_arguments
from claw.tools.descriptions import description, schema
from claw.types.effects import Effect, Remember
from claw.types.tools import Todo, ToolOutput, ToolSpec

__all__ = ["TodoWrite", "TodoWriteArguments"]

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class TodoWriteArguments(msgspec.Struct, frozen=True):
    todos: Annotated[list[Todo], Meta(description="The whole list, in order")]


class TodoWrite:
    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="TodoWrite",
            description=description("todo_write"),
            input_schema=schema("todo_write"),
            aliases=("todo_write",),
        )

    def parse(self, input: dict[str, Any]) -> TodoWriteArguments:
        args = parse_arguments("TodoWrite", TodoWriteArguments, input, {"items": "todos"})
        if any(not item.content.strip() for item in args.todos):
            raise ToolFailed("TodoWrite: every item needs a `content` that is not blank.")
        return args

    def effects(self, args: TodoWriteArguments) -> tuple[Effect, ...]:
        return (Remember(),)

    def preview(self, args: TodoWriteArguments) -> str:
        return _checklist(args)

    async def run(self, args: TodoWriteArguments, call: ToolCall) -> ToolOutput:
        done = sum(item.status == "completed" for item in args.todos)
        return ToolOutput.of(
            f"The list is kept: {done} of {len(args.todos)} completed.", display=_checklist(args)
        )


def _checklist(args: TodoWriteArguments) -> str:
    return "\n".join(f"{_MARKS[item.status]} {item.content}" for item in args.todos)
