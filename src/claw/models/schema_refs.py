"""JSON Schemas without references, in the words of draft 2020-12.

References are replaced by what they mean, since Anthropic, Gemini and Moonshot refuse them
or some of them. What refers to itself is cut where it comes again. Constructs of older
drafts and of OpenAPI that the newest one has no place for are put in its words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

__all__ = ["LISTS", "MAPS", "ONES", "SIZES", "TYPES", "inline"]

TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")

MAPS = ("properties", "patternProperties", "dependentSchemas")
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
ONES = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
"""Keywords whose values are schemas: by name, in a list, alone."""

SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")

_FRAME = frozenset(
    {"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment", "$defs"}
    | {"definitions", "$ref", "$dynamicRef", "$recursiveRef", "$recursiveAnchor", "nullable"}
)
_DEEPEST = 32
_MOST_NODES = 4_000
"""A few references can stand for millions of nodes: what comes after this many is cut."""


class _Inliner:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = _MOST_NODES

    def schema(self, value: Any, path: tuple[str, ...] = (), depth: int = 0) -> dict[str, Any]:
        if value is False:
            return {"not": {}}
        if not isinstance(value, dict):
            return {}
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return _cut(value, "More of the same kind.")
        node = {key: item for key, item in value.items() if key not in _FRAME}
        self._subschemas(node, lambda item: self.schema(item, path, depth + 1))
        _modernise(node, nullable=value.get("nullable") is True)
        ref = next((value[k] for k in ("$ref", "$dynamicRef", "$recursiveRef") if k in value), None)
        if ref is None:
            return node
        meant = self._meant(ref, path, depth)
        return _joined(node, meant)

    def _meant(self, ref: Any, path: tuple[str, ...], depth: int) -> dict[str, Any]:
        target = self._find(ref)
        if not isinstance(target, dict):
            return {} if target is True else {"description": f"As in {ref}."}
        if ref in path:
            return _cut(
                target, f"Again as {ref.rpartition('/')[2].removeprefix('#') or 'the whole'}."
            )
        return self.schema(target, (*path, ref), depth + 1)

    def _find(self, ref: Any) -> Any:
        """What a reference within the document stands for, None for any other."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        found: Any = self._root
        for step in ref[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(name)
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return None
        return found if ref in {"#", "#/"} or "/" in ref else None

    def _subschemas(self, node: dict[str, Any], make: Callable[[Any], dict[str, Any]]) -> None:
        """Make of each; what is no schema where one belongs goes."""
        for key in MAPS:
            if key in node:
                named = node.pop(key)
                if isinstance(named, dict):
                    node[key] = {str(name): make(item) for name, item in named.items()}
        for key in LISTS:
            if key in node:
                listed = node.pop(key)
                if isinstance(listed, list) and listed:
                    node[key] = [make(item) for item in listed]
        for key in ONES:
            if isinstance(node.get(key), list) and key == "items":
                node["prefixItems"] = [make(item) for item in node.pop("items")]
                if "additionalItems" in node:
                    node["items"] = make(node["additionalItems"])
            elif key in node and not (key == "additionalProperties" and node[key] is False):
                if node[key] is True:
                    del node[key]
                else:
                    node[key] = make(node[key])
        node.pop("additionalItems", None)


def inline(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema without references; where it had to be cut it allows more."""
    return _Inliner(schema).schema(schema, ("#",))


def _cut(schema: dict[str, Any], note: str) -> dict[str, Any]:
    kind = schema.get("type")
    return {"type": kind, "description": note} if kind in TYPES else {"description": note}


def _joined(node: dict[str, Any], meant: dict[str, Any]) -> dict[str, Any]:
    """A reference's target with what stood beside the reference; both hold."""
    beside = {key: value for key, value in node.items() if key not in {"description", "title"}}
    words: dict[str, Any] = {key: node[key] for key in ("description", "title") if key in node}
    if not beside.keys() & meant.keys():
        return {**meant, **beside, **words}
    return {"allOf": [meant, beside], **words}


def _modernise(node: dict[str, Any], *, nullable: bool) -> None:
    kind = node.get("type")
    kinds = [k for k in (kind if isinstance(kind, list) else [kind]) if k in TYPES]
    if nullable and kinds and "null" not in kinds:
        kinds.append("null")
        if isinstance(node.get("enum"), list):
            node["enum"] = [*node["enum"], None]
    if kinds:
        node["type"] = kinds if len(kinds) > 1 or isinstance(kind, list) else kinds[0]
    else:
        node.pop("type", None)
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if node.get(exclusive) is True and _is_number(node.get(limit)):
            node[exclusive] = node.pop(limit)
    for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
        if key in node and not (_is_number(node[key]) and (key != "multipleOf" or node[key] > 0)):
            del node[key]
    for key in (*SIZES, "minContains", "maxContains"):
        if key in node and not (_is_number(node[key]) and node[key] >= 0):
            del node[key]
    for key in ("pattern", "format", "title", "description"):
        if key in node and not isinstance(node[key], str):
            del node[key]
    if "enum" in node and not (isinstance(node["enum"], list) and node["enum"]):
        del node["enum"]
    if "required" in node:
        named = node["required"]
        names = [n for n in named if isinstance(n, str)] if isinstance(named, list) else []
        node["required"] = list(dict.fromkeys(names))
        if not names:
            del node["required"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
