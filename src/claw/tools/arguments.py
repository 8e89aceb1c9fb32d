"""Arguments of a tool: one struct gives the JSON Schema and parses a call's input."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import FieldInfo, fields

from claw.errors import ToolFailed

__all__ = ["brief", "input_schema", "parse_arguments"]

_QUOTED = 200  # characters

T = TypeVar("T", bound=msgspec.Struct)


def brief(argument: str) -> str:
    """An argument as messages quote it."""
    return argument if len(argument) <= _QUOTED else argument[:_QUOTED] + "..."


def input_schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """JSON Schema of an object: flat, without references, titles and ``null``."""
    schema = msgspec.json.schema(arguments)
    definitions = schema["$defs"]
    simple: dict[str, Any] = _simplified(definitions[arguments.__name__], definitions)
    simple["additionalProperties"] = False
    return simple


def parse_arguments(
    tool: str, arguments: type[T], input: Mapping[str, Any], aliases: Mapping[str, str]
) -> T:
    """The struct from a call's input, where ``aliases`` map other names to wire names.

    Numbers and booleans may come as strings; a null means "not given". Raises
    ``ToolFailed`` that names every unknown and missing argument and what exists.
    """
    known = _known(arguments)
    given: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in input.items():
        name = key if key in known else aliases.get(key)
        if name is None:
            unknown.append(key)
        elif name in given and given[name] != value:
            raise ToolFailed(f"{tool}: `{name}` is given twice, under two names.")
        elif value is not None or known[name].required:
            given[name] = value
    missing = [name for name, field in known.items() if field.required and name not in given]
    if unknown or missing:
        raise ToolFailed(_what_exists(tool, unknown, missing, known))
    try:
        return msgspec.convert(given, arguments, strict=False)
    except msgspec.ValidationError as error:
        raise ToolFailed(f"{tool}: {_at_argument(str(error))}.") from error


@cache
def _known(arguments: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {field.encode_name: field for field in fields(arguments)}


def _what_exists(
    tool: str, unknown: list[str], missing: list[str], known: Mapping[str, FieldInfo]
) -> str:
    said = [f"unknown argument `{name}`" for name in unknown]
    said += [f"missing argument `{name}`" for name in missing]
    listed = ", ".join(f"`{n}`" + ("" if f.required else " (optional)") for n, f in known.items())
    return f"{tool}: {'; '.join(said)}. The arguments are {listed}."


def _at_argument(text: str) -> str:
    """``Expected `int`, got `str` - at `$.limit``` with the argument first."""
    what, _, place = text.rpartition(" - at ")
    return f"argument {place.replace('$.', '')}: {what}" if what else text


def _simplified(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_simplified(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        schema = {key: value for key, value in schema.items() if key != "anyOf"}
        schema |= options[0] if len(options) == 1 else {"anyOf": options}
    if "$ref" in schema:
        whole = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**whole, **{key: value for key, value in schema.items() if key != "$ref"}}
    simple = {
        key: _simplified(value, definitions)
        for key, value in schema.items()
        if key != "title" and not (key == "default" and value in (None, False, ""))
    }
    if "enum" in simple:
        simple["type"] = "string"
    return simple
