"""The texts by which servers say that a request is too large, and those that only sound so."""

from __future__ import annotations

import json
from typing import Any

from claw.models.classify import classify_error
from tests.corpus.recorded import CASES, NEEDS_CORPUS

pytestmark = NEEDS_CORPUS

KINDS = {"overflow": "context_overflow", "lower-max-tokens": "output_limit_too_high"}


def test_every_text_is_in_its_class():
    lines = [json.loads(line) for line in (CASES / "overflow.jsonl").read_text().splitlines()]
    assert {line["expect"] for line in lines} == {*KINDS, "not-overflow"}
    for line in lines:
        kind = classify_error(line["status"], line["body"] or "").kind
        assert KINDS.get(line["expect"], "") == (kind if kind in KINDS.values() else ""), (
            line["id"],
            kind,
        )


def test_the_output_limit_that_would_fit_is_named():
    for line in (CASES / "overflow.jsonl").read_text().splitlines():
        case: dict[str, Any] = json.loads(line)
        if case["expect"] == "lower-max-tokens":
            error = classify_error(case["status"], case["body"])
            assert getattr(error, "max_tokens", 0) > 0, case["id"]
