"""Final texts as JSON documents of a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.engine.structured import document, schema_problem
from claw.errors import WrongUse

POINT = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/whole"}},
    "required": ["x"],
    "$defs": {"whole": {"type": "integer"}},
}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None)
@given(values, st.sampled_from(["{}", "\n {} \n", "```json\n{}\n```", "```\n{}\n```\n"]))
def test_any_json_is_found_whole(value: Any, around: str):
    text = json.dumps(value, indent=2)
    found, problem = document(around.replace("{}", text), {})
    assert (found, problem) == (text, None)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_judged(text: str):
    found, problem = document(text, {"type": "object"})
    assert problem is not None or isinstance(json.loads(found), dict)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "{", '{"x": 1', '{"x": NaN}', "Here it is: {}", '{"x": 1} {"x": 2}'),
        *("[" * 100_000, "9" * 10_000),
        *('{"x": "1"}', "[]", "{}", "null", '{"x": 1.5}'),
    ],
)
def test_what_does_not_fit_is_told_in_short(text: str):
    problem = document(text, POINT)[1]
    assert problem
    assert len(problem) < 700


def test_the_place_is_named():
    assert "/x" in str(document('{"x": "1"}', POINT)[1])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 3},
        {"properties": []},
        {"$ref": "http://127.0.0.1:1/schema"},
        {"$ref": "file:///etc/passwd"},
        {"items": {"$ref": "other.json"}},
        {"$ref": "#/$defs/missing"},
    ],
)
def test_what_is_no_schema_is_said_before_anything_runs(schema: dict[str, Any]):
    with pytest.raises(WrongUse):
        schema_problem(schema)


def test_a_schema_that_refers_to_itself_is_one():
    schema = {"type": "array", "items": {"$ref": "#"}}
    schema_problem(schema)
    assert document("[[[]]]", schema)[1] is None
    assert document("[[[1]]]", schema)[1] is not None


def test_a_schema_without_end_is_no_crash():
    assert document("1", {"allOf": [{"$ref": "#"}]})[1] is not None
