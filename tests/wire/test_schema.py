"""Schemas of tools are rewritten for providers that refuse parts of JSON Schema."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from claw.models.schema import RULES, fit_schema

Json = dict[str, Any]


def fit(schema: Json, rules: str) -> Json:
    before = copy.deepcopy(schema)
    made = fit_schema(schema, RULES[rules])
    assert schema == before
    return made


def of(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


def one(schema: Any, rules: str, **more: Any) -> Json:
    """What becomes of the schema of a property."""
    made: Json = fit({**of(p=schema), **more}, rules)["properties"]["p"]
    return made


PLAIN = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "where"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "many": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    },
    "required": ["path"],
}


@pytest.mark.parametrize("rules", RULES)
def test_what_everybody_takes_stays_as_it_is(rules):
    assert fit(PLAIN, rules) == PLAIN


@pytest.mark.parametrize("rules", RULES)
def test_references_are_what_they_mean(rules):
    defs = {"$defs": {"a/b": {"type": "object", "properties": {"x": {"$ref": "#/$defs/s"}}}}}
    defs["$defs"]["s"] = {"type": "string", "description": "s"}
    made = one({"$ref": "#/$defs/a~1b"}, rules, **defs)
    assert made["properties"]["x"] == {"type": "string", "description": "s"}
    assert one({"$ref": "#/$defs/s", "description": "mine"}, rules, **defs)["description"] == "mine"


@pytest.mark.parametrize("rules", RULES)
def test_what_refers_to_itself_is_cut(rules):
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    made = one({"$ref": "#/$defs/Node"}, rules, **{"$defs": {"Node": node}})
    assert "Again as Node" in json.dumps(made)
    whole = fit({"type": "object", "properties": {"child": {"$ref": "#"}}}, rules)
    assert "Again as the whole" in json.dumps(whole)


@pytest.mark.parametrize("rules", RULES)
def test_references_that_multiply_end(rules):
    defs: Json = {"d0": {"type": "string"}}
    for n in range(1, 40):
        defs[f"d{n}"] = of(a={"$ref": f"#/$defs/d{n - 1}"}, b={"$ref": f"#/$defs/d{n - 1}"})
    made = fit({**of(p={"$ref": "#/$defs/d39"}), "$defs": defs}, rules)
    assert len(json.dumps(made)) < 2_000_000


@pytest.mark.parametrize("rules", RULES)
def test_unions_of_unions_end(rules):
    union: Json = {"type": "string"}
    for n in range(12):
        union = {"anyOf": [of(a=union, k={"const": n}), of(a=union, k={"const": -n - 1})]}
    assert len(json.dumps(fit(of(p=union), rules))) < 2_000_000


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_a_union_at_the_top_is_one_object(rules, key):
    read = {"type": "object", "properties": {"kind": {"const": "read"}, "path": {"type": "string"}}}
    wait = {"type": "object", "properties": {"kind": {"const": "wait"}, "ms": {"type": "integer"}}}
    read["required"] = ["kind", "path"]
    wait["required"] = ["kind"]
    made = fit({key: [read, wait], "description": "either"}, rules)
    assert made["type"] == "object"
    assert list(made["properties"]) == ["kind", "path", "ms"]
    assert made["properties"]["kind"]["enum"] == ["read", "wait"]
    assert made["required"] == ["kind"]
    assert made["description"].startswith("either")


@pytest.mark.parametrize("rules", RULES)
def test_a_condition_at_the_top_is_said_in_words(rules):
    needs = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    made = fit({**of(a={"type": "string"}, b={"type": "string"}), **needs}, rules)
    assert "anyOf" not in made
    assert '"anyOf":[{"required":["a"]},{"required":["b"]}]' in made["description"]


def test_an_intersection_at_the_top_is_one_object():
    parts = [{**of(a={"type": "string"}), "required": ["a"]}, of(b={"type": "integer"})]
    made = fit({"allOf": parts}, "anthropic")
    assert made == {**of(a={"type": "string"}, b={"type": "integer"}), "required": ["a"]}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"type": ["object", "null"]}])
def test_the_top_is_always_an_object(rules, schema):
    assert fit(schema, rules)["type"] == "object"


def test_names_that_anthropic_refuses_are_described():
    made = fit({**of(**{"a b": {"type": "string"}, "ok": {}}), "required": ["a b"]}, "anthropic")
    assert list(made["properties"]) == ["ok"]
    assert "required" not in made or "a b" not in made["required"]
    assert '"a b"' in made["description"]


def test_arrays_get_items_where_they_must_have_them():
    assert one({"type": "array"}, "openai") == {"type": "array", "items": {}}
    assert one({"type": "array"}, "gemini")["items"]["anyOf"][0]["type"] == "string"
    assert one({"type": "array"}, "moonshot") == {"type": "array"}


def test_an_object_without_properties():
    assert fit({"type": "object"}, "openai") == {"type": "object", "properties": {}}
    assert fit({"type": "object"}, "gemini") == {"type": "object"}  # empty ones are refused there


def test_older_drafts_in_the_words_of_the_newest():
    old = {"type": "number", "minimum": 3, "exclusiveMinimum": True}
    assert one(old, "openai") == {"type": "number", "exclusiveMinimum": 3}
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    assert one(pair, "anthropic")["prefixItems"] == [{"type": "string"}, {"type": "integer"}]
    assert one({"type": "string", "nullable": True}, "openai") == {"type": ["string", "null"]}
    assert "required" not in one({"type": "string", "required": True}, "openai")
    assert one({"type": "any"}, "openai") == {}


def test_the_words_of_gemini():
    assert one({"const": "x"}, "gemini") == {"type": "string", "enum": ["x"]}
    assert one({"type": ["string", "null"]}, "gemini") == {"type": "string", "nullable": True}
    made = one({"type": "integer", "enum": [1, 2]}, "gemini")
    assert made == {"type": "integer", "description": 'Must satisfy: {"enum":[1,2]}'}
    union = {"oneOf": [{"type": "string"}, {"type": "integer"}], "description": "d"}
    assert one(union, "gemini") == {
        "anyOf": [{"type": "string", "description": "d"}, {"type": "integer"}]
    }
    limits = {"type": "integer", "exclusiveMinimum": 0, "maximum": 9}
    made = one(limits, "gemini")
    assert (made["minimum"], made["maximum"]) == (0, 9)
    assert '"exclusiveMinimum":0' in made["description"]
    both = {"allOf": [of(a={"type": "string"}), of(b={"type": "string", "format": "uri"})]}
    made = one(both, "gemini")
    assert list(made["properties"]) == ["a", "b"]
    assert '"format":"uri"' in made["properties"]["b"]["description"]


def test_the_words_of_moonshot():
    union = {"type": "array", "anyOf": [{"maxItems": 0}, {"minItems": 2}], "description": "d"}
    assert one(union, "moonshot") == {
        "anyOf": [{"type": "array", "maxItems": 0}, {"type": "array", "minItems": 2}],
        "description": "d",
    }
    assert one({"enum": ["a", "b"]}, "moonshot") == {"type": "string", "enum": ["a", "b"]}
    assert one({"type": ["integer", "null"]}, "moonshot")["anyOf"][1] == {"type": "null"}
    closed = {**of(a={"type": "string"}), "additionalProperties": False}
    assert one(closed, "moonshot") == closed


def test_no_others_are_forbidden_where_a_pattern_of_names_had_to_go():
    named = {**of(a={"type": "string"}), "patternProperties": {"^x": {}}}
    made = one({**named, "additionalProperties": False}, "moonshot")
    assert "additionalProperties" not in made
    assert '"^x"' in made["description"]


@pytest.mark.parametrize("rules", ["gemini", "moonshot"])
def test_lists_with_a_place_for_each_item(rules):
    pair = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}
    both = [{"type": "string"}, {"type": "integer"}]
    assert one({**pair, "items": False}, rules)["items"] == {"anyOf": both}
    assert one({**pair, "maxItems": 2}, rules)["items"] == {"anyOf": both}
    more = one({**pair, "items": {"type": "boolean"}}, rules)["items"]
    assert more == {"anyOf": [*both, {"type": "boolean"}]}
    anything = one(pair, rules).get("items", {}).get("anyOf", [])
    assert not anything or {"type": "object"} in anything


def test_the_words_of_a_grammar():
    assert one({"type": "string", "pattern": "^[a-z]+$"}, "llama")["pattern"] == "^[a-z]+$"
    for refused in ("a", "^a", r"^\d+$", "^(?=a)b$"):
        made = one({"type": "string", "pattern": refused}, "llama")
        assert "pattern" not in made
        assert json.dumps(refused) in made["description"]
    assert one({"description": "what you like"}, "llama")["type"]
    assert "maxLength" not in one({"type": "string", "maxLength": 99_999}, "llama")


@pytest.mark.parametrize("rules", RULES)
def test_odd_schemas_are_no_failure(rules):
    odds: list[Any] = [
        None,
        1,
        "x",
        [],
        True,
        False,
        {"$ref": 3},
        {"$ref": "http://x/y"},
        {"type": 1},
    ]
    for odd in odds:
        one(odd, rules)
        one({"items": odd, "anyOf": odd, "properties": odd, "enum": odd, "required": odd}, rules)
    assert "pattern" not in one({"pattern": 3}, rules)
    deep: Json = {"type": "string"}
    for _ in range(120):
        deep = {"type": "array", "items": deep}
    one(deep, rules)


# Any schema, any instance

TEXT = st.sampled_from(["", "a", "ab", "7"])
NUMBER = st.sampled_from([-1, 0, 1, 2, 2.5])
SCALAR = st.one_of(TEXT, NUMBER, st.booleans(), st.none())
NAME = st.sampled_from(["a", "b", "odd name", "$ref"])
WORDS = st.sampled_from([{}, {}, {"description": "d"}, {"title": "t"}])


def nodes(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    few = st.lists(inner, min_size=1, max_size=3)
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAME, inner, max_size=3)},
        optional={
            "required": st.lists(NAME, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(st.just("^o"), inner, min_size=1),
            "minProperties": st.integers(0, 2),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": few,
            "minItems": st.integers(0, 3),
            "maxItems": st.integers(0, 3),
            "uniqueItems": st.booleans(),
        },
    )
    unions = st.fixed_dictionaries(
        {}, optional={"anyOf": few, "oneOf": few, "allOf": few, "not": inner}
    )
    kinds = st.one_of(
        objects, arrays, unions, st.tuples(objects, unions).map(lambda p: p[0] | p[1])
    )
    return st.tuples(kinds, WORDS).map(lambda pair: pair[0] | pair[1])


LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "enum": st.lists(TEXT, min_size=1, max_size=3, unique=True),
            "pattern": st.sampled_from(["a", "^a$", r"^\d$"]),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 3),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["number", "integer", ["integer", "null"], ["string", "number"]])},
        optional={
            "minimum": NUMBER,
            "exclusiveMaximum": NUMBER,
            "exclusiveMinimum": NUMBER,
            "multipleOf": st.just(2),
        },
    ),
    st.builds(lambda values: {"enum": values}, st.lists(SCALAR, min_size=1, max_size=3)),
    st.builds(lambda value: {"const": value}, SCALAR),
    st.builds(lambda: {"type": "boolean", "default": True}),
    st.builds(lambda: {"$ref": "#/$defs/N"}),
    st.just({}),
)
SCHEMAS = st.recursive(LEAVES, nodes, max_leaves=8)
TOOLS = st.builds(
    lambda root, inner: {**root, "$defs": {"N": of(a=inner)}},
    st.one_of(nodes(SCHEMAS), SCHEMAS),
    SCHEMAS,
)


@st.composite
def instances(draw: st.DrawFn, schema: Json, root: Json, depth: int = 0) -> Any:
    """A value that may be valid: made of what the schema names, and nothing else."""
    if "$ref" in schema:
        return draw(SCALAR) if depth > 4 else draw(instances(root["$defs"]["N"], root, depth + 1))
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    branches = [b for key in ("anyOf", "oneOf", "allOf") for b in schema.get(key, ())]
    kind = schema.get("type")
    if branches and kind != "object":
        return draw(instances(draw(st.sampled_from(branches)), root, depth + 1))
    if kind == "object":
        properties = dict(schema["properties"])
        chosen = draw(st.sampled_from(branches)) if branches else {}
        for name, inner in chosen.get("properties", {}).items():
            properties.setdefault(name, inner)
        names = st.sampled_from(sorted(properties) or [""])
        keys = draw(st.lists(names, min_size=1, unique=True)) if properties else []
        return {key: draw(instances(properties[key], root, depth + 1)) for key in keys}
    if kind == "array":
        leading = schema.get("prefixItems", [])
        size = draw(st.integers(0, 3))
        makers = [*leading, *[schema.get("items", {"const": 1})] * 3][:size]
        return [draw(instances(maker, root, depth + 1)) for maker in makers]
    return draw(SCALAR)


def named(node: Json) -> set[str]:
    """Properties that every branch at the top names: only these have one reading."""
    found = set(node.get("properties", {"a"} if "$ref" in node else ()))
    for part in node.get("allOf", ()):
        found |= named(part)
    for key in ("anyOf", "oneOf"):
        if key in node:
            found |= set.intersection(*map(named, node[key]))
    return found


def standard(schema: Any) -> Any:
    """Gemini's ``nullable`` as the standard says it."""
    if isinstance(schema, list):
        return [standard(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: standard(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [{"type": "null"}, made]} if schema.get("nullable") is True else made


ALLOWED = {
    "gemini": {"type", "title", "description", "nullable", "enum", "properties", "required"}
    | {"items", "anyOf", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"},
    "moonshot": {"type", "title", "description", "enum", "properties", "required", "default"}
    | {"items", "anyOf", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
    | {"additionalProperties"},
}


def refused(schema: Any, rules: str, *, top: bool = True) -> list[str]:
    """What the provider would complain about."""
    found = []
    if top:
        found += [k for k in ("anyOf", "oneOf", "allOf", "enum", "not", "const") if k in schema]
        found += ["no object"] if schema.get("type") != "object" else []
        found += ["no properties"] if rules == "openai" and "properties" not in schema else []
    found += [k for k in ("$ref", "$defs", "definitions", "$schema") if k in schema]
    for name in schema.get("properties", ()):
        if rules == "anthropic" and not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            found.append(f"name {name}")
        if rules == "moonshot" and name in {"$ref", "$defs", "anyOf", "required"}:
            found.append(f"name {name}")
    if rules in {"openai", "anthropic", "gemini"} and schema.get("type") == "array":
        found += [] if "items" in schema else ["no items"]
    if rules in ALLOWED:
        found += [key for key in schema if key not in ALLOWED[rules]]
        if "anyOf" in schema:
            words = {"description", "title"} if rules == "moonshot" else set()
            found += [f"{key} beside anyOf" for key in schema.keys() - {"anyOf"} - words]
        elif not isinstance(schema.get("type"), str):
            found.append("no type")
        found += [
            f"requires {n}"
            for n in set(schema.get("required", ())) - set(schema.get("properties", ()))
        ]
        kinds = {type(value) for value in schema.get("enum", ())}
        if kinds - ({str} if rules == "gemini" else {str, int, float}) or "" in schema.get(
            "enum", ()
        ):
            found.append("enum")
    if rules == "llama" and not (
        schema.keys() & {"type", "anyOf", "oneOf", "allOf", "enum", "const", "properties", "items"}
    ):
        found.append("nothing told")
    inner = [
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
        *schema.get("allOf", ()),
    ]
    inner += [
        schema[key]
        for key in ("items", "additionalProperties", "not")
        if isinstance(schema.get(key), dict)
    ]
    return found + [
        complaint
        for item in inner
        if item != {} or rules == "gemini"
        for complaint in refused(item, rules, top=False)
    ]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(TOOLS, st.data())
def test_nothing_refused_is_left_and_nothing_valid_becomes_invalid(schema, data):
    tool = {**schema, "type": "object"}
    tool.setdefault("properties", {})
    values = [data.draw(instances(tool, tool)) for _ in range(3)]
    validator = Draft202012Validator(tool)
    valid = [v for v in values if validator.is_valid(v) and v.keys() <= named(tool)]
    for rules in RULES:
        made = fit_schema(tool, RULES[rules])
        Draft202012Validator.check_schema(standard(made))
        assert refused(made, rules) == []
        for value in valid:
            Draft202012Validator(standard(made)).validate(value)
