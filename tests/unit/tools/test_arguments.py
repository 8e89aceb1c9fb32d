from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest
from jsonschema import Draft202012Validator

from claw.errors import ToolFailed
from claw.tools.arguments import input_schema, parse_arguments


class Item(msgspec.Struct, frozen=True):
    name: str


class Order(msgspec.Struct, frozen=True):
    items: Annotated[list[Item], msgspec.Meta(description="what")]
    count: int = 1
    size: Literal["small", "large"] = "small"
    note: str | None = None
    loud: bool = msgspec.field(name="-l", default=False)


def parsed(**input: object) -> Order:
    return parse_arguments("Order", Order, input, {"number": "count", "loud": "-l"})


def test_the_schema_is_flat_and_valid() -> None:
    schema = input_schema(Order)
    Draft202012Validator.check_schema(schema)
    assert "$ref" not in str(schema)
    assert "null" not in str(schema)
    assert schema["required"] == ["items"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["size"]["type"] == "string"


def test_aliases_strings_and_nulls_are_understood() -> None:
    order = parsed(items=[{"name": "x"}], number="3", loud="true", note=None, size=None)
    assert order == Order([Item("x")], 3, "small", None, True)


@pytest.mark.parametrize(
    ("input", "said"),
    [
        ({}, "missing argument `items`.*`count` \\(optional\\)"),
        ({"items": [], "colour": 1}, "unknown argument `colour`.*`items`"),
        ({"items": [], "count": "many"}, "argument `count`: Expected `int`"),
        ({"items": [{"name": 1}]}, r"argument `items\[0\].name`"),
        ({"items": None}, "argument `items`"),
        ({"items": [], "size": "huge"}, "argument `size`"),
        ({"items": [], "count": 1, "number": 2}, "given twice"),
    ],
)
def test_what_is_wrong_is_named(input: dict[str, object], said: str) -> None:
    with pytest.raises(ToolFailed, match=said):
        parsed(**input)
