"""Histories to Responses requests."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from claw.models.encode import encode_request
from claw.models.openai_responses.decode import MESSAGE
from claw.models.wire_text import to_bytes
from claw.testing.validate import validate_responses
from claw.types.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.tools import ToolSpec

MODEL = "gpt-5"


def user(*content: Any) -> UserMessage:
    return UserMessage(tuple(Text(c) if isinstance(c, str) else c for c in content))


def assistant(*content: Any, model: str = MODEL, **metadata: Any) -> AssistantMessage:
    blocks = tuple(Text(c) if isinstance(c, str) else c for c in content)
    return AssistantMessage(blocks, model=model, provider_metadata=metadata)


def result(id: str, *content: Any, is_error: bool = False) -> ToolResult:
    blocks = tuple(Text(c) if isinstance(c, str) else c for c in content)
    return ToolResult(id, blocks, is_error)


def encode(*messages: Message, **options: Any) -> dict[str, Any]:
    return encode_request("openai-responses", messages, **{"model": MODEL, **options})


def items(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    """The items of what follows the first message, which is the user's."""
    body = encode(user("x"), *messages, **options)
    assert validate_responses(body) == []
    found: list[dict[str, Any]] = body["input"][1:]
    return found


def own(kind: str, **more: Any) -> Opaque:
    return Opaque("openai", {"type": kind, "id": f"{kind}_1", **more})


REASONING = own("reasoning", summary=[], encrypted_content="enc")


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def test_a_whole_body():
    body = encode(
        user("do it"),
        assistant(REASONING, "I will.", ToolUse("a", "Read", {"p": 1}), ToolUse("b", "Bash", {})),
        user(result("a", "one"), result("b", "two", is_error=True), "be quick"),
        tools=(ToolSpec("Read", "reads", {"type": "object"}),),
        system="be good",
        max_tokens=99,
        effort="high",
    )
    assert body == {
        "model": MODEL,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "instructions": "be good",
        "max_output_tokens": 99,
        "reasoning": {"effort": "high"},
        "parallel_tool_calls": True,
        "tools": [
            {
                "type": "function",
                "name": "Read",
                "description": "reads",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "do it"}],
            },
            REASONING.raw,
            said("I will."),
            {"type": "function_call", "call_id": "a", "name": "Read", "arguments": '{"p":1}'},
            {"type": "function_call", "call_id": "b", "name": "Bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "one"},
            {"type": "function_call_output", "call_id": "b", "output": "Error: two"},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "be quick"}],
            },
        ],
    }
    assert validate_responses(body) == []


def test_nothing_that_is_not_there():
    body = encode(user("x"), system=" \n", model="gpt-4o", effort="high")
    assert set(body) == {"model", "store", "stream", "input"}


def test_a_limit_that_the_api_would_refuse_is_raised_to_its_smallest():
    assert encode(user("x"), max_tokens=1)["max_output_tokens"] == 16


def test_blank_texts_and_empty_messages_vanish():
    assert items(assistant(" \n", ""), user("b", "  ")) == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "b"}]}
    ]


def test_reasoning_goes_back_to_its_own_model_only():
    content = (Thinking("hm", "sig"), RedactedThinking("z"), REASONING, "so")
    assert items(assistant(*content, model="openai/gpt-5-2025-08-07")) == [
        REASONING.raw,
        said("so"),
    ]
    assert items(assistant(*content, model="gpt-4.1")) == [said("so")]


def test_reasoning_that_led_to_nothing_is_left_out():
    assert items(assistant(REASONING), user("y"))[0]["role"] == "user"
    assert items(assistant("so", REASONING, REASONING, " "), user("y"))[0] == said("so")


def test_items_of_other_providers_are_left_out():
    assert items(assistant(Opaque("anthropic", {"type": "reasoning"}), "so")) == [said("so")]


def test_the_servers_tools_go_back_unless_they_wait_for_an_answer():
    search, listed = own("web_search_call"), own("tool_search_call", call_id=None)
    shell = own("shell_call", call_id="s")
    output = own("shell_call_output", call_id="s", output=[])
    message = assistant(search, listed, shell, output, own("local_shell_call", call_id="l"), "so")
    sent = items(message)
    assert sent == [search.raw, listed.raw, shell.raw, output.raw, said("so")]


def test_a_message_gets_its_phase_and_annotations_back():
    cited = [{"type": "url_citation", "url": "u"}]
    parts = [{"length": 5, "annotations": cited}, {"length": 2, "annotations": []}]
    marker = Opaque("openai", {"type": MESSAGE, "phase": "commentary", "parts": parts})
    before, text = items(assistant("It is known, so", marker, "and on"))[:2]
    assert before == said("It is kn")
    assert text == {
        **said("own, "),
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "own, ", "annotations": cited},
            {"type": "output_text", "text": "so"},
        ],
    }
    # A text that has been changed since is only a text.
    assert items(assistant("so", marker)) == [said("so")]
    assert items(assistant(marker, "so")) == [said("so")]
    assert items(assistant("It is known", marker, model="other")) == [said("It is known")]


def test_what_goes_back_with_a_call():
    message = assistant(
        ToolUse("a", "N"), ToolUse("b", "N"), calls={"1": {"namespace": "n", "odd": 1}}
    )
    one, two, *_ = items(message, user(result("a", "y"), result("b", "y")))
    assert "namespace" not in one
    assert two["namespace"] == "n"
    assert "odd" not in two


def test_images_and_documents():
    blobs = {"p": b"\x89PNG", "d": b"%PDF"}
    image, document = Image("image/png", "p"), Document("application/pdf", "d", "A")
    png, pdf = (b64encode(blobs[name]).decode() for name in "pd")
    sent = items(
        user("see", image, document),
        assistant(ToolUse("a", "R")),
        user(result("a", image), "thanks"),
        blobs_get=blobs.__getitem__,
    )
    picture = {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{png}",
        "detail": "auto",
    }
    assert sent[0]["content"] == [
        {"type": "input_text", "text": "see"},
        picture,
        {
            "type": "input_file",
            "filename": "A",
            "file_data": f"data:application/pdf;base64,{pdf}",
        },
    ]
    assert sent[2]["output"] == [picture]


def test_ids_names_and_surrogates_that_the_api_would_refuse():
    odd = "functions.Read:0 " + "x" * 80
    use = ToolUse(odd, "no such.tool" + "y" * 80, {"k\ud800": "v\ud800"}, "{bad")
    messages = (user("x\ud800"), assistant("b\udfff", use), user(result(odd, "1\ud83d")))
    _, _, call, output = encode(*messages)["input"]
    assert call["call_id"] == output["call_id"]
    assert len(call["call_id"]) <= 64
    assert len(call["name"]) == 64
    assert b"\\ud8" not in to_bytes(encode(*messages))
