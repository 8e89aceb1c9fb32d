"""Recorded replies of real servers: every one decodes, the same for every chunking.

What differs from the recorded client's own reading is printed (``pytest -rP``); the
share that agrees must not fall.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from claw.errors import ModelError
from claw.models.classify import classify_error
from claw.models.decode import decode
from claw.models.encode import encode_request
from claw.models.tool_input import parse_input
from claw.types.messages import (
    AssistantBlock,
    AssistantMessage,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserBlock,
    UserMessage,
)
from claw.types.reply import Reply

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[3] / "shared")
CASES = SHARED / "cases"
DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
}
LONG = 60_000  # bytes of a body that take long one by one
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


def responses_differences(case: dict[str, Any], got: Reply) -> list[str]:
    """Against the whole response as the vendor's own client read it."""
    expected = case["expected"]
    output = expected["final"].get("output") or []
    usage = expected["usage"] or {}
    details = (usage.get("raw") or {}).get("input_tokens_details") or {}
    stop = {"completed": "stop", "complete": "stop"}.get(expected["status"], expected["status"])
    if expected["incomplete_details"]:
        stop = {"max_output_tokens": "max_tokens"}[expected["incomplete_details"]["reason"]]
    elif expected["tool_calls"]:
        stop = "tool_use"
    checks = {
        "text": (expected["text"], got.text),
        "thinking": ("".join(thought(i) for i in output if i["type"] == "reasoning"), got.thinking),
        "calls": (
            [
                (c["call_id"], c["name"], *parse_input(c["arguments"]))
                for c in expected["tool_calls"]
            ],
            [(c.id, c.name, c.input, c.raw_input) for c in got.tool_calls],
        ),
        "order": (kinds_of(output), [k for b in got.blocks if (k := kind_of(b))]),
        "stop": (stop, got.stop_reason),
        "usage": (
            [
                usage.get("input_tokens") or 0,
                usage.get("output_tokens") or 0,
                details.get("cached_tokens") or 0,
                details.get("cache_write_tokens") or 0,
            ],
            [
                got.usage.context_tokens - got.usage.output_tokens,
                got.usage.output_tokens,
                got.usage.cache_read_input_tokens,
                got.usage.cache_creation_input_tokens,
            ],
        ),
    }
    if got.usage.estimated:
        del checks["usage"]
    return [f"{name}: {a!r:.80} / {b!r:.80}" for name, (a, b) in checks.items() if a != b]


def thought(item: dict[str, Any]) -> str:
    return "\n".join(p["text"] for p in item.get("content") or item.get("summary") or ())


def kinds_of(output: list[dict[str, Any]]) -> list[str]:
    """What the items of a response become, one after the other."""
    found: list[str] = []
    for item in output:
        match item["type"]:
            case "message":
                marked = item.get("phase") or any(p.get("annotations") for p in item["content"])
                joins = found[-1:] == ["text"]
                if any(p.get("text") for p in item["content"]):
                    found += ([] if joins else ["text"]) + (["claw_message"] if marked else [])
            case "function_call" | "custom_tool_call":
                found.append("call")
            case "reasoning":
                found += ["thinking"] if thought(item) else []
                found += (
                    ["reasoning"] if item.get("encrypted_content") or item.get("content") else []
                )
            case other:
                found.append(other)
    return found


def kind_of(block: AssistantBlock) -> str:
    match block:
        case Text():
            return "text"
        case Thinking():
            return "thinking"
        case ToolUse():
            return "call"
        case Opaque():
            return str(block.raw["type"])
        case _:
            return "?"


def chunkings(body: bytes) -> Iterator[list[bytes]]:
    """One byte, seven bytes, inside every character of several bytes, inside every line end."""
    for size in (1, 7) if len(body) < LONG else (7,):
        yield [body[i : i + size] for i in range(0, len(body), size)]
    inside = [i for i in range(1, len(body)) if body[i] & 0xC0 == 0x80]
    ends = [i for i in range(1, len(body)) if body[i] == 10]
    for cuts in (inside, ends):
        yield [body[a:b] for a, b in pairwise([0, *cuts, len(body)])]


def test_recorded_responses():
    total = agree = 0
    for name, case in cases("streams/*-responses/*.json"):
        response = case["response"]
        whole = outcome(case, None)
        if response["status"] < 400 and isinstance(whole, Reply):
            for chunks in chunkings(response["body_text"].encode()):
                assert decode("openai-responses", chunks) == whole, name
        total += 1
        if case["expected"]["ok"]:
            found = responses_differences(case, whole) if isinstance(whole, Reply) else [whole]
        else:
            found = ["no error"] if isinstance(whole, Reply) else []
        agree += not found
        if found:
            print(name, *found, sep="\n    ")
    print(f"{agree} of {total} agree")
    assert total > 150
    assert agree == total


QUOTES = str.maketrans({"\u2019": "'", "\u201c": '"', "\u201d": '"'})
"""One recorder wrote typographic quotes as plain ones."""

RESPONSES_CLIENT_CHANGED = {"017.json", "035.json", "054.json"}
"""The recorded client sent another thing than it got: ``queries`` for the ``paths`` of a
tool search (twice), and null for the encrypted content of reasoning."""


def plain(items: list[dict[str, Any]], known: set[str]) -> list[dict[str, Any]]:
    """Items without ids and states, messages as lists of parts; only of ``known`` types."""
    found: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        if kind not in known or kind == "additional_tools":
            continue
        kept = {
            name: value
            for name, value in item.items()
            if name not in {"id", "status", "phase", "call_id"} and value is not None
        }
        if kind == "function_call" and isinstance(item["arguments"], str):
            kept["arguments"] = json.loads(item["arguments"] or "{}")
        if kind == "function_call_output" and isinstance(item["output"], list):
            kept["output"] = [p["type"] for p in item["output"] if p["type"] != "input_text"]
        if kind == "message":
            content = item["content"]
            if isinstance(content, str):
                content = [{"text": content}]
            texts = [p.get("text", p.get("type")).translate(QUOTES) for p in content]
            if not any(texts):
                continue  # our own histories hold no empty messages
            kept = {"role": item["role"], "content": texts}
        found.append({**kept, "type": kind})
    return found


def from_the_user(items: list[dict[str, Any]]) -> list[UserMessage]:
    """What the recorded client appended itself, as our messages."""

    def media(part: dict[str, Any]) -> Text | Image:
        text = part.get("text")
        return Text(text) if text else Image("image/png", "p")

    results: list[UserBlock] = []
    said: list[UserMessage] = []
    for item in items:
        content = item.get("output", item.get("content"))
        parts = [Text(content)] if isinstance(content, str) else [media(p) for p in content or ()]
        if item.get("type") == "function_call_output":
            results.append(ToolResult(item["call_id"], tuple(parts)))
        elif item.get("role") == "user":
            said.append(UserMessage(tuple(parts)))
    return [UserMessage(tuple(results)), *said] if results else said


def test_recorded_responses_conversations():
    """What we send after a reply is what the recorded client appended.

    We send reasoning and the server's own items always; what older clients left out is
    not compared, nor are ids, nor texts' phases.
    """
    total = agree = 0
    for path in sorted(CASES.glob("conversations/openai-responses/*.json")):
        case = json.loads(path.read_bytes())
        for step in case["appended_by_recorded_client"]:
            turn, appended = case["turns"][step["turn"]], step["appended"]
            model = turn["request"]["model"]
            reply = decode("openai-responses", [turn["response"]["body_text"].encode()])
            said = AssistantMessage(
                reply.blocks, model=model, provider_metadata=reply.provider_metadata
            )
            body = encode_request(
                "openai-responses",
                (UserMessage((Text("x"),)), said, *from_the_user(appended)),
                model=model,
                blobs_get=lambda digest: b"png",
            )
            ours = body["input"][1:]
            if step["link"] != "prefix":  # the server kept its own part
                ours = [
                    i
                    for i in ours
                    if i["type"] == "function_call_output" or i.get("role") == "user"
                ]
            known = {item.get("type", "message") for item in appended}
            total += 1
            if plain(ours, known) == plain(appended, known):
                agree += 1
            else:
                print(path.name, step["turn"])
                assert path.name in RESPONSES_CLIENT_CHANGED
    print(f"{agree} of {total} agree")
    assert total > 50
    assert total - agree <= len(RESPONSES_CLIENT_CHANGED)


def test_the_openai_sdk_reads_the_same_from_the_same_bytes():
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    compared = 0
    for name, case in cases("streams/*-responses/*.json"):
        body = case["response"]["body_text"]
        if not case["expected"]["ok"] or body.lstrip().startswith("{"):
            continue

        def answer(request: Any, body: str = body) -> Any:
            headers = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, content=body.encode())

        transport = httpx2.MockTransport(answer)
        with openai.OpenAI(
            api_key="k",
            base_url="http://127.0.0.1/v1",
            max_retries=0,
            http_client=openai.DefaultHttpxClient(transport=transport),
        ) as client:
            *_, last = client.responses.create(model="m", input="x", stream=True)
        theirs, ours = last.response, outcome(case, None)
        assert isinstance(ours, Reply), name
        kinds = {"function_call", "custom_tool_call"}
        calls = [(item.call_id, item.name) for item in theirs.output if item.type in kinds]
        assert theirs.output_text == ours.text, name
        assert calls == [(use.id, use.name) for use in ours.tool_calls], name
        if theirs.usage and not ours.usage.estimated:
            assert theirs.usage.output_tokens == ours.usage.output_tokens, name
        compared += 1
    assert compared > 60


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
