"""Schemas of tools as a provider takes them: what it refuses is said in another way.

One refused schema fails the whole request, and schemas come from anywhere. Nothing that
was valid becomes invalid by the rewriting; what cannot be said in a provider's words is
left out of the constraints and written into the description. Two readings beyond the
letter of the standard: who has ``properties`` and no type is an object, and a branch of
a union that does not name a property does not take it.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from claw.models.schema_refs import LISTS, MAPS, ONES, SIZES, TYPES, inline
from claw.models.wire_text import to_bytes

__all__ = ["RULES", "Rules", "fit_schema"]

Json = dict[str, Any]


class Rules(msgspec.Struct, frozen=True):
    """What a provider takes. ``keys`` is a pattern for the names of properties.

    ``subset`` names the keywords of those that take only some; every node has one type
    there, or is an ``anyOf`` and nothing else. ``null`` is how such a node may be null.
    """

    keys: str = ""
    reserved: frozenset[str] = frozenset()
    subset: frozenset[str] = frozenset()
    null: Literal["branch", "nullable"] = "branch"
    enums: frozenset[str] = frozenset(TYPES)
    needs_items: bool = True
    needs_properties: bool = False
    most_branches: int = 1_000
    grammar: bool = False


_TYPED = frozenset({"type", "title", "description", "properties", "required", "items", "anyOf"})
_LIMITS = frozenset({"enum", "minItems", "maxItems", "minLength", "maxLength"})

RULES = {
    # "It rejects reference keywords ... top-level oneOf, anyOf, and allOf, and property names
    # outside letters, digits, underscores, dots, and hyphens (1-64 characters)": Anthropic's
    # documentation of custom tools.
    "anthropic": Rules(keys=r"[a-zA-Z0-9_.-]{1,64}"),
    # "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the
    # top level", "array schema missing items", "object schema missing properties": OpenAI's
    # own errors; others copy them.
    "openai": Rules(needs_properties=True),
    # The Schema message of Google's API: unknown fields, enums that are not of strings,
    # nodes without a type, arrays without items, and fields beside `anyOf` are refused.
    "gemini": Rules(
        subset=_TYPED | _LIMITS | {"nullable", "minimum", "maximum"},
        null="nullable",
        enums=frozenset({"string"}),
    ),
    # Moonshot Flavored JSON Schema, as github.com/MoonshotAI/walle documents it.
    "moonshot": Rules(
        reserved=frozenset({"$defs", "$ref", "anyOf", "required", "additionalProperties"}),
        subset=_TYPED | _LIMITS | {"minimum", "maximum", "additionalProperties", "default"},
        enums=frozenset({"string", "integer", "number"}),
        needs_items=False,
        most_branches=10,
    ),
    # llama.cpp compiles schemas to grammars: "Pattern must start with '^' and end with '$'",
    # no classes such as \d, and nothing that has only a description.
    "llama": Rules(needs_items=False, grammar=True),
}
"""By the name that a dialect or a provider's quirk has for them; looked up in November 2026."""

_UNSAID = frozenset(
    {"type", "title", "description", "properties", "required"}
    | {"deprecated", "readOnly", "writeOnly", "unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords that are no condition, or that stay."""
_LONGEST_NOTE = 600  # characters
_MOST_BRANCHES = 64
_MOST_REPEATS = 2_000
"""Of a grammar of llama.cpp; more is an error there."""


def fit_schema(schema: Json, rules: Rules) -> Json:
    """A schema of a tool's input, rewritten; always one of an object. ``schema`` is not changed."""
    plain = inline(schema)
    root = _root(plain)
    if rules.needs_properties:
        root.setdefault("properties", {})
    return _Subset(rules).root(root) if rules.subset else _plain(root, rules)


def _root(node: Json) -> Json:
    """One object in place of a union or an intersection of them."""
    branches = _branches(node)
    merged = _union(branches) if len(branches) > 1 else dict(branches[0])
    dropped: Json = {key: merged.pop(key) for key in ("enum", "const", "not") if key in merged}
    for key in ("anyOf", "oneOf"):
        needs = [{k: b[k] for k in ("required", "not") if k in b} for b in node.get(key, ())]
        if any(needs):
            dropped[key] = needs
    merged["type"] = "object"
    return _noted(merged, dropped)


def _branches(node: Json) -> list[Json]:
    """What a node may be, each without unions and intersections at its top."""
    base = {key: value for key, value in node.items() if key not in {"allOf", "anyOf", "oneOf"}}
    bases = [base]
    for part in node.get("allOf", ()):
        bases = [both for b in bases for p in _branches(part) if (both := _both(b, p)) is not None]
    for key in ("anyOf", "oneOf"):
        options = [b for branch in node.get(key, ()) for b in _branches(branch)]
        if options and len(bases) * len(options) <= _MOST_BRANCHES:
            bases = [both for b in bases for o in options if (both := _both(b, o)) is not None]
    return bases or [{}]


def _both(one: Json, other: Json) -> Json | None:
    """A schema that allows what both allow, and maybe more; None where nothing is left."""
    kinds = _common_types(one, other)
    if kinds == []:
        return None
    both = {k: v for k, v in one.items() if k not in _NOT_MERGED}
    for key, value in other.items():
        if key in _NOT_MERGED:
            continue
        if key == "properties" and key in both:
            both[key] = {**both[key]}
            for name, schema in value.items():
                mine = both[key].get(name)
                both[key][name] = schema if mine is None else _both(mine, schema) or mine
        elif key == "patternProperties" and key in both:
            both[key] = {**value, **both[key]}
        elif key == "required" and key in both:
            both[key] = list(dict.fromkeys([*both[key], *value]))
        elif key == "enum" and key in both:
            both[key] = [v for v in both[key] if any(_same(v, w) for w in value)] or both[key]
        else:
            both.setdefault(key, value)
    if kinds:
        both["type"] = kinds[0] if len(kinds) == 1 else kinds
    return both


_NOT_MERGED = frozenset(
    {"if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
    | {"contains", "minContains", "maxContains"}
)
"""Keywords whose meaning hangs on those beside them."""


def _common_types(one: Json, other: Json) -> list[str] | None:
    """The types that both allow; None where neither names one."""
    mine, theirs = _declared(one), _declared(other)
    if not mine or not theirs:
        return mine or theirs or None
    found = [t for t in mine if t in theirs or (t == "integer" and "number" in theirs)]
    if "number" in mine and "integer" in theirs and "integer" not in found:
        found.append("integer")
    return found


def _declared(node: Json) -> list[str]:
    kind = node.get("type", [])
    return list(kind) if isinstance(kind, list) else [kind]


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _union(branches: list[Json]) -> Json:
    """One object that takes what each of them takes."""
    names = dict.fromkeys(name for b in branches for name in b.get("properties", ()))
    properties = {}
    for name in names:
        found = [b["properties"][name] for b in branches if name in b.get("properties", ())]
        different = [s for at, s in enumerate(found) if s not in found[:at]]
        properties[name] = different[0] if len(different) == 1 else _any_of(different)
    required = [n for n in names if all(n in b.get("required", ()) for b in branches)]
    same = {
        key: value
        for key, value in branches[0].items()
        if all(key in b and b[key] == value for b in branches[1:])
    }
    merged = {**same, "properties": properties, "required": required}
    if "patternProperties" not in same and any("patternProperties" in b for b in branches):
        merged.pop("additionalProperties", None)
    if not required:
        del merged["required"]
    return merged


def _any_of(schemas: list[Json]) -> Json:
    """The union of schemas; of literals as one list of them."""
    literals = [_literals(schema) for schema in schemas]
    if all(literals):
        kinds = list(dict.fromkeys(k for s in schemas for k in _declared(s)))
        kind = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
        if all(_declared(s) for s in schemas) or not kinds:
            return {**kind, "enum": [v for values in literals for v in values]}
    return {"anyOf": schemas}


def _literals(schema: Json) -> list[Any]:
    if set(schema) <= {"const", "type", "description", "title"} and "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if set(schema) <= {"enum", "type"} and "enum" in schema else []


def _noted(node: Json, dropped: Json) -> Json:
    """The node with what it does not demand any more in its description."""
    said = {key: value for key, value in dropped.items() if value != {"not": {}}}
    if not said:
        return node
    text = to_bytes(said).decode()
    if len(text) > _LONGEST_NOTE:
        text = f"conditions not shown here on {', '.join(said)}"
    return {**node, "description": f"{node.get('description', '')}\nMust satisfy: {text}".strip()}


def _odd_names(node: Json, rules: Rules) -> Json:
    """The properties whose names are refused."""
    return {
        name: schema
        for name, schema in node.get("properties", {}).items()
        if name in rules.reserved or (rules.keys and not re.fullmatch(rules.keys, name))
    }


# Providers that take all keywords


def _plain(node: Json, rules: Rules) -> Json:
    node = dict(node)
    for key in MAPS:
        if key in node:
            node[key] = {name: _plain(item, rules) for name, item in node[key].items()}
    for key in LISTS:
        if key in node:
            node[key] = [_plain(item, rules) for item in node[key]]
    for key in ONES:
        if isinstance(node.get(key), dict):
            node[key] = _plain(node[key], rules)
    if odd := _odd_names(node, rules):
        # Only described from here on, so others than the named ones must be allowed.
        node.pop("additionalProperties", None)
        node["properties"] = {n: s for n, s in node["properties"].items() if n not in odd}
        node["required"] = [n for n in node.get("required", ()) if n not in odd]
        node = _noted(node, {"properties": odd})
    if rules.needs_items and "array" in _declared(node):
        node.setdefault("items", {})
    return _for_grammar(node) if rules.grammar else node


_TELLING = ("type", "properties", "items", "prefixItems", *LISTS[:3], "enum", "const")


def _for_grammar(node: Json) -> Json:
    dropped = {}
    pattern = node.get("pattern", "^$")
    if not re.fullmatch(r"\^(?:[^\\(]|\\[^a-zA-Z0-9]|\((?!\?))*\$", pattern):
        dropped["pattern"] = pattern
    for key in SIZES:
        if node.get(key, 0) > _MOST_REPEATS:
            dropped[key] = node[key]
    if "not" in node and not any(key in node for key in _TELLING):
        dropped["not"] = node["not"]
    node = _noted({key: value for key, value in node.items() if key not in dropped}, dropped)
    if any(key in node for key in _TELLING):
        return node
    return {"type": [kind for kind in TYPES if kind != "integer"], **node}


# Providers that take only some keywords


class _Subset:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._done: dict[int, tuple[Json, Json]] = {}  # the node is kept, so its id stays its own

    def root(self, node: Json) -> Json:
        return self._of_type("object", node, []) or {"type": "object"}

    def _node(self, node: Json) -> Json:
        held = self._done.get(id(node))
        if held is None:
            held = self._done[id(node)] = (node, self._make(node))
        return held[1]

    def _make(self, node: Json) -> Json:
        words = {key: node[key] for key in ("title", "description") if node.get(key)}
        bare = {key: value for key, value in node.items() if key not in words}
        options: list[Json] = []
        kinds: list[str] = []
        for branch in _branches(bare):
            literals = [branch["const"]] if "const" in branch else branch.get("enum", [])
            for kind in _types_of(branch, literals):
                option = self._of_type(kind, branch, literals)
                if option is not None and option not in options:
                    options.append(option)
                    kinds.append(kind)
        if len(options) > self._rules.most_branches:
            options = [self._any(kind) for kind in dict.fromkeys(kinds)]
        return self._joined(options or [self._any("string")], words)

    def _joined(self, options: list[Json], words: Json) -> Json:
        is_null = {"type": "null"}
        if self._rules.null == "nullable" and is_null in options:
            first, *rest = [o for o in options if o != is_null] or [self._any("string")]
            options = [{**first, "nullable": True}, *rest]
        if len(options) > 1 and self._rules.null == "branch":
            return {"anyOf": options, **words}
        first = {**options[0], **words}
        if both := "\n".join(o["description"] for o in (words, options[0]) if "description" in o):
            first["description"] = both
        return first if len(options) == 1 else {"anyOf": [first, *options[1:]]}

    def _any(self, kind: str) -> Json:
        return self._of_type(kind, {}, []) or {"type": kind}

    def _of_type(self, kind: str, node: Json, literals: list[Any]) -> Json | None:
        """The node as one of this type; None where no value of it is left."""
        made: Json = {"type": kind}
        for key in ("title", "description"):
            if node.get(key):
                made[key] = node[key]
        if literals:
            values = [value for value in literals if _is_of(value, kind)]
            if not values:
                return None
            if kind in self._rules.enums and "" not in values:
                made["enum"] = values
        if kind == "object":
            self._object(node, made)
        elif kind == "array":
            self._array(node, made)
        elif kind in {"number", "integer"}:
            for limit, exclusive, tighter in _BOUNDS:
                found = [node[k] for k in (limit, exclusive) if k in node]
                if found:
                    made[limit] = tighter(found)
        elif kind == "string":
            made.update({key: node[key] for key in ("minLength", "maxLength") if key in node})
        if kind not in {"object", "array"} and _is_of(node.get("default", made), kind):
            made["default"] = node["default"]
        for low, high in (
            ("minimum", "maximum"),
            ("minLength", "maxLength"),
            ("minItems", "maxItems"),
        ):
            if low in made and high in made and made[low] > made[high]:
                del made[low], made[high]
        made = {key: value for key, value in made.items() if key in self._rules.subset}
        left = {
            key: node[key]
            for key in node
            if key not in _UNSAID
            and not key.startswith("x-")
            and kind in _ABOUT.get(key, TYPES)
            and made.get(key) != node[key]
        }
        if kind == "null" or made.get("enum") == literals:
            left.pop("enum", None)
            left.pop("const", None)
        for key in ("items", "additionalProperties"):
            if key in made or left.get(key) in (False, {}):
                left.pop(key, None)
        return made if kind == "null" else _noted(made, left)

    def _object(self, node: Json, made: Json) -> None:
        odd = _odd_names(node, self._rules)
        named = {n: self._node(s) for n, s in node.get("properties", {}).items() if n not in odd}
        if named:
            made["properties"] = named
        required = [name for name in node.get("required", ()) if name in named]
        if required:
            made["required"] = required
        others = node.get("additionalProperties")
        if others is not None and not odd and "patternProperties" not in node:
            made["additionalProperties"] = self._node(others) if others else others
        if odd:
            made.update(_noted(made, {"properties": odd}))

    def _array(self, node: Json, made: Json) -> None:
        made.update({key: node[key] for key in ("minItems", "maxItems") if key in node})
        leading = node.get("prefixItems", [])
        rest = node.get("items", {})
        if leading:
            is_closed = rest == {"not": {}} or node.get("maxItems", len(leading) + 1) <= len(
                leading
            )
            rest = _any_of(leading if is_closed else [*leading, rest]) if is_closed or rest else {}
        if rest:
            made["items"] = self._node(rest)
        elif self._rules.needs_items:
            kinds = ("string", "number", "boolean", "object")  # not arrays again without an end
            made["items"] = self._joined([self._any(kind) for kind in kinds], {})


_BOUNDS = (("minimum", "exclusiveMinimum", max), ("maximum", "exclusiveMaximum", min))

_INFERRED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    ("string", ("pattern", "format", "minLength", "maxLength")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
_ABOUT: dict[str, tuple[str, ...]] = {key: (kind,) for kind, keys in _INFERRED for key in keys}
_ABOUT.update(dict.fromkeys(_INFERRED[3][1], ("number", "integer")))


def _types_of(node: Json, literals: list[Any]) -> list[str]:
    if kinds := _declared(node):
        return kinds
    if literals:
        return [kind for kind in TYPES if any(_is_of(value, kind) for value in literals)]
    found = [kind for kind, keys in _INFERRED if any(key in node for key in keys)]
    return found or [kind for kind in TYPES if kind != "integer"]


def _is_of(value: Any, kind: str) -> bool:
    match value:
        case bool():
            return kind == "boolean"
        case int():
            return kind in {"integer", "number"}
        case float():
            return kind == "number" or (kind == "integer" and value.is_integer())
        case str():
            return kind == "string"
        case None:
            return kind == "null"
        case dict():
            return kind == "object"
        case _:
            return kind == "array"
