"""``claw.tool``: what a model is told of a function, and what becomes of its calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

import claw
from claw.errors import ToolFailed
from claw.ports import Tool, ToolCall
from claw.testing import Harness, calls, says
from claw.testing.conformance import ToolSuite
from claw.types.messages import text_of
from claw.types.tools import ToolOutput


class Place(msgspec.Struct):
    name: str
    height: int = 0


@claw.tool(read_only=True)
def forecast(
    city: Annotated[str, "Its name in English"],
    days: int = 3,
    unit: Literal["C", "F"] = "C",
    near: Place | None = None,
) -> str:
    """The weather of the next days."""
    return f"{city}: {days} days of sun, in {unit}, near {near.name if near else 'nothing'}"


@claw.tool
async def note(
    text: str | int, *, tags: Annotated[list[str] | None, "Words"] = None
) -> dict[str, Any]:
    """Keeps a note."""
    await asyncio.sleep(0)
    return {"text": text, "tags": tags}


class TestForecast(ToolSuite):
    good = ({"city": "Oslo"}, {"city": "Oslo", "days": "2", "near": {"name": "sea"}})
    bad = ({}, {"city": 1}, {"city": "Oslo", "when": "now"}, {"city": "Oslo", "unit": "K"})

    def make(self) -> Tool:
        return forecast


class TestNote(ToolSuite):
    good = ({"text": "x"}, {"text": 1, "tags": []})
    bad = ({}, {"text": "x", "tags": "y"})

    def make(self) -> Tool:
        return note


def test_a_model_is_told_the_signature() -> None:
    assert forecast.spec.name == "forecast"
    assert forecast.spec.description == "The weather of the next days."
    assert forecast.spec.read_only
    assert forecast.spec.input_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name in English"},
            "days": {"type": "integer", "default": 3},
            "unit": {"enum": ["C", "F"], "type": "string", "default": "C"},
            "near": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "height": {"type": "integer"},
                },
                "required": ["name"],
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert note.spec.input_schema["properties"]["text"] == {
        "anyOf": [{"type": "string"}, {"type": "integer"}]
    }
    assert note.spec.input_schema["properties"]["tags"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": "Words",
    }


def test_it_is_still_a_function() -> None:
    assert forecast("Oslo", days=1) == "Oslo: 1 days of sun, in C, near nothing"
    assert asyncio.run(note("x")) == {"text": "x", "tags": None}


async def ran(tool: Any, **input: Any) -> ToolOutput:
    output: ToolOutput = await tool.run(tool.parse(input), ToolCall("c1", lambda text: None))
    return output


async def test_what_it_gives_reaches_the_model() -> None:
    output = await ran(forecast, city="Oslo", near={"name": "sea"})
    assert text_of(output.content) == "Oslo: 3 days of sun, in C, near sea"
    assert text_of((await ran(note, text=1)).content) == '{"text":1,"tags":null}'
    whole = ToolOutput.of("no", is_error=True)

    @claw.tool(name="Whole")
    def gives() -> ToolOutput:
        """Gives it."""
        return whole

    assert gives.spec.name == "Whole"
    assert await ran(gives) is whole


async def test_what_no_model_can_be_told_is_an_error_result() -> None:
    @claw.tool
    def odd() -> object:
        """Gives something odd."""
        return object()

    with pytest.raises(ToolFailed, match="odd gave a object"):
        await ran(odd)


def undocumented(x: int) -> int:
    return x


def untyped(x):
    """Does it."""


def positional(x: int, /) -> None:
    """Does it."""


def many(*x: int) -> None:
    """Does it."""


def unknown(x: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Does it."""


def complicated(x: complex) -> None:
    """Does it."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (undocumented, "docstring"),
        (untyped, "parameter `x` of `untyped` needs a type"),
        (positional, "parameter `x` of `positional` cannot be given by name"),
        (many, "parameter `x` of `many` cannot be given by name"),
        (unknown, "Nowhere"),
        (complicated, "complex"),
        (lambda x: x, "no function with a name"),
        ("text", "no function with a name"),
    ],
)
def test_what_cannot_be_a_tool_says_why(function: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        claw.tool(function)


async def test_a_turn_asks_runs_and_replays_it(tmp_path: Path) -> None:
    script: list[Any] = [
        calls(("forecast", {"city": "Oslo"}), ("note", {"text": "sun"})),
        calls(("forecast", {"town": "Oslo"})),
        says("done"),
    ]
    async with Harness(tmp_path, script, tools=(forecast, note)) as run:
        summary = await run.turn("go")
        told, denied, wrong = run.results(summary)
        assert told.startswith("Oslo: 3 days")
        assert denied.startswith("Permission denied")
        assert "unknown argument `town`" in wrong
