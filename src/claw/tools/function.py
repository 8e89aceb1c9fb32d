"""``claw.tool``: a typed function as a tool.

::

    @claw.tool(read_only=True)
    def forecast(city: Annotated[str, "Its name in English"], days: int = 3) -> str:
        \"\"\"The weather of the next days.\"\"\"
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec import Meta

from claw.errors import ToolFailed
from claw.ports import ToolCall
from claw.tools.arguments import input_schema, parse_arguments
from claw.types.effects import Effect
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["FunctionTool", "tool"]

Function = Callable[..., Any]


@overload
def tool(function: Function, /) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, read_only: bool = False
) -> Callable[[Function], FunctionTool]: ...
def tool(
    function: Function | None = None, /, *, name: str | None = None, read_only: bool = False
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of a function: its docstring and its signature are what the model is told.

    Parameters need types that msgspec knows; ``Annotated[int, "How many"]`` describes one. A
    call is asked about like a command, unless it is ``read_only``: then it runs without a
    question, and beside other reads. A text is given to the model as it is, ``ToolOutput``
    too, and any other value as JSON. Raise ``ToolFailed`` for what the model should know.
    A function without ``async`` runs in a thread, which an interrupt leaves to its end.

    Raises ``TypeError`` for a function that cannot be a tool.
    """
    if function is not None:
        return FunctionTool(function)
    return lambda function: FunctionTool(function, name=name, read_only=read_only)


class FunctionTool:
    """Implements ``Tool``. It can still be called as the function that it was made of."""

    def __init__(
        self, function: Function, *, name: str | None = None, read_only: bool = False
    ) -> None:
        called = str(name or getattr(function, "__name__", ""))
        description = inspect.getdoc(function) or ""
        if not called.isidentifier():
            raise TypeError(f"claw.tool: {function!r} is no function with a name")
        if not description.strip():
            raise TypeError(f"claw.tool: `{called}` needs a docstring: a model reads it")
        self._function = function
        self._arguments = _arguments(called, function)
        try:
            schema = input_schema(self._arguments)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"claw.tool: a type of `{called}` has no schema: {error}") from error
        self.spec = ToolSpec(called, description, schema, read_only=read_only)

    def __call__(self, *args: Any, **given: Any) -> Any:
        return self._function(*args, **given)

    def parse(self, input: dict[str, Any]) -> msgspec.Struct:
        return parse_arguments(self.spec.name, self._arguments, input, {})

    def effects(self, args: msgspec.Struct) -> tuple[Effect, ...]:
        return ()

    def preview(self, args: msgspec.Struct) -> str:
        given = msgspec.structs.asdict(args).items()
        return f"{self.spec.name}({', '.join(f'{key}={value!r}' for key, value in given)})"

    async def run(self, args: msgspec.Struct, call: ToolCall) -> ToolOutput:
        given = msgspec.structs.asdict(args)
        if inspect.iscoroutinefunction(self._function):
            value = await self._function(**given)
        else:
            value = await asyncio.to_thread(self._function, **given)
        return self._output(value)

    def _output(self, value: Any) -> ToolOutput:
        if isinstance(value, ToolOutput):
            return value
        if isinstance(value, str):
            return ToolOutput.of(value)
        try:
            return ToolOutput.of(msgspec.json.encode(value).decode())
        except (TypeError, ValueError, RecursionError) as error:
            what = f"{self.spec.name} gave a {type(value).__name__}"
            raise ToolFailed(f"{what}, which cannot be told: {error}") from error


def _arguments(name: str, function: Function) -> type[msgspec.Struct]:
    """A struct with the parameters as its fields. Raises ``TypeError``."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"claw.tool: a type of `{name}` is not known: {error}") from error
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        at = f"parameter `{parameter.name}` of `{name}`"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"claw.tool: {at} cannot be given by name")
        if parameter.name not in hints:
            raise TypeError(f"claw.tool: {at} needs a type")
        hint = _described(hints[parameter.name])
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    try:
        return msgspec.defstruct(name, fields, kw_only=True, frozen=True)
    except TypeError as error:
        raise TypeError(f"claw.tool: `{name}` cannot be a tool: {error}") from error


def _described(hint: Any) -> Any:
    """``Annotated[int, "How many"]`` as msgspec says it."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    said = [Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[(kind, *said)]
