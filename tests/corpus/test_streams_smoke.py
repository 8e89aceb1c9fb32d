"""Recorded replies of real servers: every one decodes, the same for every chunking.

What differs from the recorded client's own reading is printed (``pytest -rP``); the
share that agrees must not fall.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw.errors import ModelError
from claw.models.classify import classify_error
from claw.models.decode import decode
from claw.types.reply import Reply

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[3] / "shared")
CASES = SHARED / "cases"
DIALECTS = {"anthropic-messages": "anthropic", "openai-chat": "openai-chat"}
STOPS = {
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_dir(), reason=f"no outside corpora at {SHARED}"),
]


def cases(*patterns: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for pattern in patterns:
        for path in sorted(CASES.glob(pattern)):
            case = json.loads(path.read_bytes())
            if case.get("api") in DIALECTS:
                yield f"{path.parent.name}/{path.stem}", case


def outcome(case: dict[str, Any], size: int | None) -> Reply | tuple[type[ModelError], str]:
    response = case["response"]
    body = response["body_text"].encode()
    chunks = [body] if size is None else [body[i : i + size] for i in range(0, len(body), size)]
    try:
        return decode(
            DIALECTS[case["api"]], chunks, status=response["status"], headers=response["headers"]
        )
    except ModelError as error:
        return type(error), error.message


def differences(case: dict[str, Any], got: Reply | tuple[type[ModelError], str]) -> list[str]:
    expected = case.get("expected_lenient") or case["expected"]
    failed = not case["expected"]["ok"] and (
        "expected_lenient" not in case or expected.get("stream_error")
    )
    if not isinstance(got, Reply):
        return [] if failed else [f"raised {got}"]
    if failed and case["expected"].get("error", {}).get("stage") != "iter":
        return ["no error"]
    reasoning = next(
        (expected[k] for k in ("thinking", "reasoning", "reasoning_content") if expected.get(k)), ""
    )
    calls = [(c["name"], c.get("input")) for c in expected.get("tool_calls") or ()]
    stop = expected.get("stop_reason") or ""
    usage = expected.get("usage") or {}
    checks = {
        "text": ((expected.get("text") or ""), got.text),
        "thinking": (reasoning, got.thinking),
        "calls": (calls, [(c.name, c.input) for c in got.tool_calls]),
        "stop": (STOPS.get(stop, stop), got.stop_reason),
        "output": (usage.get("output_tokens") or 0, got.usage.output_tokens),
    }
    if got.usage.estimated:
        del checks["output"]
    return [f"{name}: {a!r:.80} / {b!r:.80}" for name, (a, b) in checks.items() if a != b]


def test_recorded_streams():
    total = agree = 0
    for name, case in cases("streams/anthropic*/*.json", "streams/*-chat/*.json"):
        whole = outcome(case, None)
        assert outcome(case, 7) == whole, name
        found = differences(case, whole)
        total += 1
        agree += not found
        if found:
            print(name, *found, sep="\n    ")
    print(f"{agree} of {total} agree")
    assert total > 300
    assert agree / total >= 0.9


def test_recorded_errors():
    for name, case in cases("stream_errors/*.json"):
        got = outcome(case, None)
        assert outcome(case, 7) == got, name
        features = set(case["features"])
        if isinstance(got, Reply):
            assert "truncated" in features, name
            assert not got.complete, name
            continue
        retry = got[0].advice == "retry"
        if "retryable" in features:
            assert retry, name
        if "not_worth_retrying" in features:
            assert not retry, name
        if "context_overflow" in features:
            wanted = (
                "output_limit_too_high" if "lower_max_tokens" in features else "context_overflow"
            )
            assert got[0].kind == wanted, name


def test_recorded_overflow_texts():
    kinds = {"overflow": "context_overflow", "lower-max-tokens": "output_limit_too_high"}
    for line in (CASES / "overflow.jsonl").read_text().splitlines():
        case = json.loads(line)
        kind = classify_error(case["status"], case["body"] or "").kind
        wanted = kinds.get(case["expect"])
        assert kind == wanted if wanted else kind not in kinds.values(), case["id"]
