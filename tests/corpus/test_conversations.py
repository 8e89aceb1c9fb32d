"""Recorded tool loops: what we send after a reply is what the recorded client appended.

The reply comes from the recorded bytes; what follows it (results, further prompts, calls
that the client made up itself) is the recorded client's. Ids are renamed by their order,
null and empty fields and blank texts are left out, arguments are compared as values.
Reasoning, citations and annotations are compared one way: what the client sent back is in
what we send; we may send back more of the reply than it did.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw.errors import ModelError
from claw.testing import decode_stream, encode_request
from claw.types.messages import (
    AssistantBlock,
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolResult,
    ToolUse,
    UserBlock,
    UserMessage,
)
from claw.types.reply import Reply

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[3] / "shared")
CASES = SHARED / "cases" / "conversations"
DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_dir(), reason=f"no outside corpora at {SHARED}"),
]

Json = dict[str, Any]


class Step:
    """One reply and what the recorded client appended after it."""

    def __init__(self, name: str, case: Json, step: Json) -> None:
        turn = case["turns"][step["turn"]]
        self.name = name
        self.provider = case["provider"]
        self.link = step["link"]
        self.appended: list[Json] = step["appended"]
        self.body: str = turn["response"]["body_text"]
        self.status: int = turn["response"]["status"]
        self.model: str = turn["request"]["model"]

    def reply(self, dialect: str) -> Reply:
        return decode_stream(dialect, [self.body.encode()], status=self.status)


def steps(api: str) -> Iterator[Step]:
    for path in sorted(CASES.glob(f"{api}/*.json")):
        case = json.loads(path.read_bytes())
        for step in case["appended_by_recorded_client"]:
            yield Step(f"{api}/{path.stem}/{step['turn']}", case, step)


# What the client appended, as our messages


def media(part: Any) -> Text | Image:
    """Pictures are not compared byte for byte: the recordings hold none, or only an address."""
    text = part if isinstance(part, str) else part.get("text")
    return Text(text) if text else Image("image/png", "p")


def parts(content: Any) -> tuple[Text | Image, ...]:
    return tuple(media(part) for part in ([content] if isinstance(content, str) else content or ()))


def anthropic_rest(appended: list[Json]) -> list[Message]:
    said: list[Message] = []
    for message in appended:
        if message["role"] != "user":
            continue
        content = message["content"]
        blocks: list[UserBlock] = []
        for block in [content] if isinstance(content, str) else content:
            if isinstance(block, dict) and block["type"] == "tool_result":
                blocks.append(
                    ToolResult(
                        block["tool_use_id"],
                        parts(block.get("content")),
                        block.get("is_error", False),
                    )
                )
            else:
                blocks.append(media(block))
        said.append(UserMessage(tuple(blocks)))
    return said


def chat_rest(appended: list[Json]) -> list[Message]:
    said: list[Message] = []
    for message in appended[own_part(appended) :]:
        if message["role"] == "tool":
            result = ToolResult(message["tool_call_id"], parts(message["content"]))
            before = said[-1] if said else None
            if isinstance(before, UserMessage) and isinstance(before.content[0], ToolResult):
                said[-1] = UserMessage((*before.content, result))
            else:
                said.append(UserMessage((result,)))
        elif message["role"] == "user":
            said.append(UserMessage(parts(message["content"])))
        else:
            texts = parts(message.get("content"))
            made_up: list[AssistantBlock] = [text for text in texts if isinstance(text, Text)]
            for call in message.get("tool_calls") or ():
                function = call["function"]
                made_up.append(
                    ToolUse(call["id"], function["name"], json.loads(function["arguments"]))
                )
            said.append(AssistantMessage(tuple(made_up)))
    return said


def own_part(appended: list[Json]) -> int:
    """How many messages the client made of the reply: a text and its calls may be two."""
    count = 0
    while count < len(appended) and appended[count]["role"] == "assistant":
        count += 1
    return count


def responses_rest(appended: list[Json]) -> list[Message]:
    results: list[UserBlock] = []
    said: list[Message] = []
    for item in appended:
        if item.get("type") == "function_call_output":
            results.append(ToolResult(item["call_id"], parts(item["output"])))
        elif item.get("role") == "user":
            said.append(UserMessage(parts(item["content"])))
    return [UserMessage(tuple(results)), *said] if results else said


REST = {
    "anthropic": anthropic_rest,
    "openai-chat": chat_rest,
    "openai-responses": responses_rest,
}


# What carries no meaning is taken out


def bare(value: Any) -> Any:
    """Without null and empty fields, which say the same as their absence."""
    if isinstance(value, dict):
        kept = {k: bare(v) for k, v in value.items() if v is not None and k != "cache_control"}
        return {k: v for k, v in kept.items() if v not in ([], "", False)}
    return [bare(item) for item in value] if isinstance(value, list) else value


def texts_of(content: Any) -> list[Any]:
    """A content's parts: texts as they are, media only as that; blank ones left out."""
    found: list[Any] = []
    for part in [content] if isinstance(content, str) else content or ():
        text = part if isinstance(part, str) else part.get("text")
        if text is None:
            found.append("media")
        elif text.strip():
            found.append(text)
    return found


def plain_anthropic(messages: list[Json]) -> list[Json]:
    plain: list[Json] = []
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            said = {**bare(block), "role": message["role"]}
            match block["type"]:
                case "text":
                    if not block["text"].strip():
                        continue
                case "image":
                    said.pop("source")
                case "tool_result":
                    said["content"] = texts_of(block.get("content"))
                case "tool_use":
                    said["input"] = block["input"]
            plain.append(said)
    return plain


def plain_chat(messages: list[Json]) -> list[Json]:
    plain: list[Json] = []
    for message in messages:
        content = message.get("content")
        if message["role"] == "assistant" and isinstance(content, str):
            # One client writes reasoning in front of the text, and this is not compared.
            content = re.sub(r"\A<think>\n.*?\n</think>\n*", "", content, flags=re.DOTALL)
        texts = texts_of(content)
        if all(isinstance(text, str) for text in texts):
            texts = ["\n\n".join(texts)] if texts else []
        calls = [
            {
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"] or "{}"),
                "extra": call.get("extra_content"),
            }
            for call in message.get("tool_calls") or ()
        ]
        details = message.get("reasoning_details")
        said = bare({**message, "content": texts, "details": details})
        said["tool_calls"] = calls
        for name in ("reasoning", "reasoning_content", "reasoning_details"):
            said.pop(name, None)
        if texts or calls:
            plain.append(said)
    return plain


def plain_responses(items: list[Json]) -> list[Json]:
    plain: list[Json] = []
    for item in items:
        kind = item.get("type", "message")
        said = {k: v for k, v in item.items() if k not in {"id", "status", "phase"}}
        if kind == "message":
            said = {"role": item["role"], "content": quotes(texts_of(item["content"]))}
            if not said["content"]:
                continue
        elif kind == "function_call":
            said["arguments"] = json.loads(item["arguments"] or "{}")
        elif kind == "function_call_output":
            said["output"] = quotes(texts_of(item["output"]))
        else:
            said.pop("call_id", None)  # the server's own: null, or whatever the client wrote
        values = {"arguments": said["arguments"]} if "arguments" in said else {}
        plain.append({**bare(said), **values, "type": kind})
    return plain


def quotes(content: list[Any]) -> list[Any]:
    """One recorder wrote typographic quotes as plain ones."""
    table = str.maketrans({"\u2019": "'", "\u201c": '"', "\u201d": '"'})
    return [text.translate(table) if isinstance(text, str) else text for text in content]


PLAIN = {
    "anthropic": plain_anthropic,
    "openai-chat": plain_chat,
    "openai-responses": plain_responses,
}


def numbered(items: list[Json]) -> list[Json]:
    """Call ids as their number: each client and each provider has its own."""
    seen: dict[str, int] = {}

    def number(item: Json) -> Json:
        renamed: Json = {
            name: seen.setdefault(item[name], len(seen))
            for name in ("id", "tool_use_id", "tool_call_id", "call_id")
            if name in item
        }
        if "tool_calls" in item:
            renamed["tool_calls"] = [number(call) for call in item["tool_calls"]]
        return {**item, **renamed}

    return [number(item) for item in items]


ONE_WAY = {"citations", "details", "encrypted_content", "extra", "summary"}
"""Fields of which the recorded clients may have left out something."""

MAY_BE_LEFT_OUT = {"thinking", "redacted_thinking", "reasoning"}


def agrees(ours: list[Json], theirs: list[Json], link: str) -> bool:
    kinds = {item.get("type") for item in theirs}
    optional = MAY_BE_LEFT_OUT | {k for i in ours if is_servers(k := str(i.get("type")))}
    ours = [i for i in ours if i.get("type") in kinds or i.get("type") not in optional]
    if link != "prefix":  # the server kept its own part
        ours = [i for i in ours if i["type"] == "function_call_output" or i.get("role") == "user"]
    theirs = [item for item in theirs if item.get("type") != "additional_tools"]
    pairs = list(zip(numbered(ours), numbered(theirs), strict=False))
    return len(ours) == len(theirs) and all(covers(a, b) for a, b in pairs)


def is_servers(kind: str) -> bool:
    return kind.endswith(("_call", "_output")) and not kind.startswith("function_call")


def covers(ours: Json, theirs: Json) -> bool:
    for name in ours.keys() | theirs.keys():
        if name not in ONE_WAY:
            if ours.get(name) != theirs.get(name):
                return False
        elif name in theirs:
            had, sent = ours.get(name), theirs[name]
            if isinstance(sent, list):
                if not all(part in (had or []) for part in sent):
                    return False
            elif had != sent:
                return False
    return True


# The recorded client sent another thing than it got


def lost_text(step: Step) -> bool:
    """The text that streamed in is not the one that went back."""
    chunks = [json.loads(line[6:]) for line in step.body.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    got = "".join(delta.get("content") or "" for delta in deltas)
    return bool(got.strip()) and not step.appended[0]["content"].strip()


def renamed_arguments(step: Step) -> bool:
    """A tool search came with ``paths``; ``queries`` went back."""
    call = next(item for item in step.appended if item["type"] == "tool_search_call")
    arguments: list[str] = list(call["arguments"])
    return arguments == ["queries"] and not re.search(r'\bqueries\\*"\s*:', step.body)


DEVIATED = {
    "openai-chat/047/0": lost_text,
    "openai-responses/017/0": renamed_arguments,
    "openai-responses/035/0": renamed_arguments,
}


def call_ids(appended: list[Json]) -> list[str]:
    """The ids that the client gave the calls, in their order."""
    ids: list[str] = []
    for item in appended:
        content = item.get("content")
        blocks = content if isinstance(content, list) else []
        ids += [item["call_id"]] if item.get("type") == "function_call" else []
        ids += [call["id"] for call in item.get("tool_calls") or ()]
        ids += [block["id"] for block in blocks if block["type"] == "tool_use"]
    return ids


def next_request(dialect: str, step: Step, reply: Reply, said_by: str) -> list[Json]:
    said = AssistantMessage(reply.blocks, model=said_by, provider_metadata=reply.provider_metadata)
    appended = json.dumps(step.appended)
    # Some clients gave the calls ids of their own: the results go by ours.
    for theirs, ours in zip(call_ids(step.appended), reply.tool_calls, strict=False):
        appended = appended.replace(json.dumps(theirs), json.dumps(ours.id))
    body = encode_request(
        dialect,
        (UserMessage((Text("x"),)), said, *REST[dialect](json.loads(appended))),
        model=step.model,
        blobs_get=lambda digest: b"png",
    )
    sent: list[Json] = (body.get("messages") or body["input"])[1:]
    return sent


@pytest.mark.parametrize("said_by", ["asked", "answered", "unknown"])
@pytest.mark.parametrize(("api", "least"), [*zip(DIALECTS, (30, 60, 55), strict=True)])
def test_the_next_request_appends_what_the_recorded_client_appended(api, least, said_by):
    dialect, total = DIALECTS[api], 0
    for step in steps(api):
        try:
            reply = step.reply(dialect)
        except ModelError:
            assert '"error"' in step.body, step.name  # no reply that one could go on from
            continue
        model = {"asked": step.model, "answered": reply.model, "unknown": ""}[said_by]
        ours = PLAIN[dialect](next_request(dialect, step, reply, model))
        theirs = PLAIN[dialect](step.appended)
        total += 1
        if step.name in DEVIATED:
            assert DEVIATED[step.name](step), step.name
            assert not agrees(ours, theirs, step.link), f"{step.name} agrees by now"
        else:
            assert agrees(ours, theirs, step.link), f"{step.name}\n{ours}\n{theirs}"
    assert total >= least
