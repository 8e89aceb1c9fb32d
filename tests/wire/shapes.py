"""Streams written for the readers' comparison: every kind of thing that the dialects can say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

__all__ = [
    "SHAPES",
    "WORDS",
    "WORK",
    "anthropic_stream",
    "chat_stream",
    "responses_stream",
    "spliced",
]

Json = dict[str, Any]


def _sse(events: Iterable[Json], last: str = "") -> bytes:
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return "".join([*lines, last]).encode()


# The Messages API


def anthropic_stream(*content: list[Json], stop: str = "end_turn", **more: Any) -> bytes:
    """``content`` are the events of one block each; ``more`` goes into the delta or the usage."""
    usage = {"input_tokens": 9, "output_tokens": 1, **more.pop("first", {})}
    message: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    delta = {"stop_reason": stop, "stop_sequence": None, **more.pop("delta", {})}
    events: list[Json] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, block in enumerate(content):
        events += [{**event, "index": index} for event in block]
    events.append(
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7, **more}},
    )
    return _sse([*events, {"type": "message_stop"}])


def _block(kind: str, *deltas: Json, **fields: Any) -> list[Json]:
    begun: Json = {"type": "content_block_start", "content_block": {"type": kind, **fields}}
    steps: list[Json] = [{"type": "content_block_delta", "delta": delta} for delta in deltas]
    return [begun, *steps, {"type": "content_block_stop"}]


def _text(*parts: str, cited: Iterable[Json] = ()) -> list[Json]:
    notes = ({"type": "citations_delta", "citation": note} for note in cited)
    said = ({"type": "text_delta", "text": part} for part in parts)
    return _block("text", *notes, *said, text="")


def _thinking(*parts: str, signature: str) -> list[Json]:
    thought = ({"type": "thinking_delta", "thinking": part} for part in parts)
    signed = {"type": "signature_delta", "signature": signature}
    return _block("thinking", *thought, signed, thinking="", signature="")


def _tool(kind: str, name: str, *parts: str, **more: Any) -> list[Json]:
    written = ({"type": "input_json_delta", "partial_json": part} for part in parts)
    return _block(kind, *written, id=f"id_{name}", name=name, input={}, **more)


PAGE = {
    "type": "web_search_result",
    "url": "https://a.example",
    "title": "A",
    "encrypted_content": "e",
    "page_age": None,
}
CITATION = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "A",
    "cited_text": "so it is",
    "encrypted_index": "x",
}
RAN = {
    "type": "bash_code_execution_result",
    "stdout": "1\n",
    "stderr": "",
    "return_code": 0,
    "content": [],
}

ANTHROPIC = {
    "text": anthropic_stream(_text("Hello ", "wörld 🌍")),
    "thinking": anthropic_stream(_thinking("hm ", "yes", signature="Ab+/="), _text("so")),
    "redacted thinking": anthropic_stream(
        _block("redacted_thinking", data="Zm9v"), _thinking("then", signature="s"), _text("so")
    ),
    "calls": anthropic_stream(
        _text("I look."),
        _tool("tool_use", "Read", "", '{"path"', ': "ä.txt"', ', "n": [1, 2.5, null]}'),
        _tool("tool_use", "Pwd"),
        stop="tool_use",
    ),
    "server tools and citations": anthropic_stream(
        _tool("server_tool_use", "web_search", '{"query": ', '"a"}'),
        _block("web_search_tool_result", tool_use_id="id_web_search", content=[PAGE]),
        _text("It is ", "so.", cited=[CITATION, CITATION]),
    ),
    "code execution": anthropic_stream(
        _tool("server_tool_use", "bash_code_execution", '{"command": "ls"}'),
        _block("bash_code_execution_tool_result", tool_use_id="id_b", content=RAN),
        _block("container_upload", file_id="file_1"),
        _text("done"),
        stop="pause_turn",
    ),
    "remote tools": anthropic_stream(
        _tool("mcp_tool_use", "look", '{"a": 1}', server_name="s"),
        _block(
            "mcp_tool_result",
            tool_use_id="id_look",
            is_error=False,
            content=[{"type": "text", "text": "1", "citations": None}],
        ),
        _text("done"),
    ),
    "compaction": anthropic_stream(
        _block("compaction", {"type": "compaction_delta", "content": "short"}, content=None),
        _text("on we go"),
    ),
    "refusal": anthropic_stream(_text("I"), stop="refusal"),
    "stop sequence": anthropic_stream(
        _text("a"), stop="stop_sequence", delta={"stop_sequence": "END"}
    ),
    "window exceeded": anthropic_stream(_text("a"), stop="model_context_window_exceeded"),
    "usage with cache": anthropic_stream(
        _text("a"),
        first={"cache_read_input_tokens": 800, "cache_creation_input_tokens": 20},
        input_tokens=11,
        cache_read_input_tokens=801,
    ),
}

# Chat Completions


def chat_stream(*deltas: Json, finish: str | None = "stop", usage: Json | None = None) -> bytes:
    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**head, "choices": [choice]}

    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x"}
    first = {"role": "assistant", "content": None}
    chunks = [chunk(first), *map(chunk, deltas), chunk({}, finish)]
    if usage:
        chunks.append({**head, "choices": [], "usage": usage})
    return _sse(chunks, "data: [DONE]\n\n")


def _call(index: int, id: str = "", name: str = "", arguments: str = "") -> Json:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    call = {"index": index, "function": function}
    return {"tool_calls": [{**call, "id": id, "type": "function"} if id else call]}


def _completion(message: Json, finish: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-x"}
    return json.dumps(
        {**head, "choices": [choice], "usage": CHAT_USAGE}, ensure_ascii=False
    ).encode()


CHAT_USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 4,
    "total_tokens": 34,
    "prompt_tokens_details": {"cached_tokens": 20, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
FUNCTION = {"id": "a", "type": "function", "function": {"name": "N", "arguments": '{"x": "ü"}'}}

CHAT = {
    "text and usage": chat_stream({"content": "Hello "}, {"content": "🌍"}, usage=CHAT_USAGE),
    "calls side by side": chat_stream(
        {"content": "I look."},
        _call(0, "a", "Read"),
        _call(1, "b", "Pwd"),
        _call(0, arguments='{"path": '),
        _call(1, arguments="{}"),
        _call(0, arguments='"x"}'),
        finish="tool_calls",
    ),
    "the old call": chat_stream(
        {"function_call": {"name": "N", "arguments": ""}},
        {"function_call": {"arguments": '{"x": 1}'}},
        finish="function_call",
    ),
    "refusal": chat_stream({"refusal": "I "}, {"refusal": "cannot."}, usage=CHAT_USAGE),
    "content filter": chat_stream({"content": "a"}, finish="content_filter"),
    "length": chat_stream({"content": "a"}, finish="length"),
    "reasoning": chat_stream(
        {"reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "so"}
    ),
    "reasoning by its other name": chat_stream({"reasoning": "hm"}, {"content": "so"}),
    "whole": _completion({"content": "so", "tool_calls": [FUNCTION]}, "tool_calls"),
    "whole with a custom call": _completion(
        {"content": None, "tool_calls": [CUSTOM, FUNCTION]}, "tool_calls"
    ),
    "whole refusal": _completion({"content": None, "refusal": "I cannot."}, "stop"),
}

# The Responses API

RESPONSES_USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 37,
}


def responses_stream(*items: Json, status: str = "completed", **more: Any) -> bytes:
    """Each item is a finished one; ``steps`` in it are the events before it is."""
    events: list[Json] = [{"type": "response.created", "response": _response([], "in_progress")}]
    done = []
    for at, item in enumerate(items):
        steps = item.pop("steps", [])
        place = {"output_index": at, "item_id": item["id"]}
        begun = {"content": [], "summary": [], "arguments": "", "input": ""}
        start = {name: begun.get(name, value) for name, value in item.items()}
        events.append({"type": "response.output_item.added", "output_index": at, "item": start})
        events += [{**step, **place} for step in steps]
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
        done.append(item)
    last = _response(done, status, usage=RESPONSES_USAGE, **more)
    events.append({"type": f"response.{status}", "response": last})
    return _sse({**event, "sequence_number": n} for n, event in enumerate(events))


def _response(output: list[Json], status: str, **more: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-x",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
        **more,
    }


def _step(kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", **fields}


def _message(*parts: str, notes: Iterable[Json] = (), **more: Any) -> Json:
    text = "".join(parts)
    part = {"type": "output_text", "text": text, "annotations": list(notes), "logprobs": []}
    at = {"content_index": 0}
    steps = [
        _step("content_part.added", **at, part={**part, "text": "", "annotations": []}),
        *(_step("output_text.delta", **at, delta=piece, logprobs=[]) for piece in parts),
        *(
            _step("output_text.annotation.added", **at, annotation_index=n, annotation=note)
            for n, note in enumerate(notes)
        ),
        _step("output_text.done", **at, text=text, logprobs=[]),
        _step("content_part.done", **at, part=part),
    ]
    message = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant"}
    return {**message, "content": [part], "steps": steps, **more}


def _refusal(*parts: str) -> Json:
    text = "".join(parts)
    message = _message()
    pieces = [_step("refusal.delta", content_index=0, delta=piece) for piece in parts]
    steps = [*pieces, _step("refusal.done", content_index=0, refusal=text)]
    return {**message, "content": [{"type": "refusal", "refusal": text}], "steps": steps}


def _reasoning(*summaries: str, clear: str = "", sealed: str | None = "enc+/=") -> Json:
    steps = []
    for n, summary in enumerate(summaries):
        at = {"summary_index": n}
        part = {"type": "summary_text", "text": summary}
        steps += [
            _step("reasoning_summary_part.added", **at, part={**part, "text": ""}),
            _step("reasoning_summary_text.delta", **at, delta=summary),
            _step("reasoning_summary_text.done", **at, text=summary),
            _step("reasoning_summary_part.done", **at, part=part),
        ]
    item: Json = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": summary} for summary in summaries],
        "encrypted_content": sealed,
    }
    if clear:
        steps.append(_step("reasoning_text.delta", content_index=0, delta=clear))
        steps.append(_step("reasoning_text.done", content_index=0, text=clear))
        item["content"] = [{"type": "reasoning_text", "text": clear}]
    return {**item, "steps": steps}


def _function(id: str, *parts: str) -> Json:
    whole = "".join(parts)
    steps = [_step("function_call_arguments.delta", delta=piece) for piece in parts]
    steps.append(_step("function_call_arguments.done", name="N", arguments=whole))
    item = {"id": f"fc_{id}", "type": "function_call", "status": "completed", "call_id": id}
    return {**item, "name": "N", "arguments": whole, "steps": steps}


def _custom(id: str, text: str) -> Json:
    steps = [
        _step("custom_tool_call_input.delta", delta=text),
        _step("custom_tool_call_input.done", input=text),
    ]
    item = {"id": f"ct_{id}", "type": "custom_tool_call", "call_id": id, "name": "sql"}
    return {**item, "input": text, "steps": steps}


def _hosted(kind: str, *steps: str, **fields: Any) -> Json:
    events = [_step(f"{kind}.{step}") for step in steps]
    return {"id": f"{kind}_1", "type": kind, "status": "completed", **fields, "steps": events}


URL = {
    "type": "url_citation",
    "url": "https://a.example",
    "title": "A",
    "start_index": 0,
    "end_index": 2,
}

RESPONSES = {
    "text": responses_stream(_message("Hello ", "wörld 🌍")),
    "phases and annotations": responses_stream(
        _message("I look.", phase="commentary"),
        {**_message("It is", " so.", notes=[URL]), "id": "msg_2", "phase": "final_answer"},
    ),
    "reasoning": responses_stream(_reasoning("first", "then"), _message("so")),
    "reasoning in the clear": responses_stream(_reasoning(clear="hm", sealed=None), _message("so")),
    "calls": responses_stream(
        _message("I look."), _function("a", '{"x": ', '"ü"}'), _function("b", "{}")
    ),
    "a custom call": responses_stream(_custom("a", "SELECT 1")),
    "refusal": responses_stream(_refusal("I ", "cannot.")),
    "output limit": responses_stream(
        _message("half", status="incomplete"),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    ),
    "the server's own tools": responses_stream(
        _hosted(
            "web_search_call",
            *("in_progress", "searching", "completed"),
            action={"type": "search", "query": "a"},
        ),
        _hosted(
            "file_search_call", "in_progress", "searching", "completed", queries=["a"], results=None
        ),
        _hosted(
            "code_interpreter_call",
            *("in_progress", "interpreting", "completed"),
            code="1",
            container_id="c",
            outputs=[{"type": "logs", "logs": "1"}],
        ),
        _hosted("image_generation_call", "in_progress", "generating", "completed", result="aGk="),
        _hosted("mcp_list_tools", "in_progress", "completed", server_label="s", tools=[]),
        _hosted(
            "mcp_call",
            *("in_progress", "completed"),
            server_label="s",
            name="look",
            arguments="{}",
            output="1",
        ),
        _message("done"),
    ),
}

SHAPES: dict[tuple[str, str], bytes] = {
    **{("anthropic", name): body for name, body in ANTHROPIC.items()},
    **{("openai-chat", name): body for name, body in CHAT.items()},
    **{("openai-responses", name): body for name, body in RESPONSES.items()},
}
"""By dialect and name."""

WORDS = "平台 🌍 é"


def _work(dialect: str, stop: str) -> bytes:
    """A text and two calls, with characters of every length in UTF-8 everywhere."""
    first, then = f'{{"path": "{WORDS[:4]}', f'{WORDS[4:]}"}}'
    match dialect:
        case "anthropic":
            calls = (_tool("tool_use", "Read", first, then), _tool("tool_use", "Pwd", "{}"))
            return anthropic_stream(_text(*WORDS), *calls, stop=stop)
        case "openai-chat":
            fragments = (_call(0, "a", "Read", first), _call(0, arguments=then))
            says = ({"content": piece} for piece in WORDS)
            last = _call(1, "b", "Pwd", "{}")
            return chat_stream(*says, *fragments, last, finish=stop)
        case _:
            more = {"incomplete_details": {"reason": stop}} if stop != "completed" else {}
            status = "incomplete" if more else "completed"
            items = (_message(*WORDS), _function("a", first, then), _function("b", "{}"))
            return responses_stream(*items, status=status, **more)


WORK = {
    ("anthropic", "whole"): _work("anthropic", "tool_use"),
    ("anthropic", "limit"): _work("anthropic", "max_tokens"),
    ("anthropic", "refused"): _work("anthropic", "refusal"),
    ("openai-chat", "whole"): _work("openai-chat", "tool_calls"),
    ("openai-chat", "limit"): _work("openai-chat", "length"),
    ("openai-chat", "refused"): _work("openai-chat", "content_filter"),
    ("openai-responses", "whole"): _work("openai-responses", "completed"),
    ("openai-responses", "limit"): _work("openai-responses", "max_output_tokens"),
    ("openai-responses", "refused"): _work("openai-responses", "content_filter"),
}
"""``WORDS`` and two calls, by dialect and by how it ends."""


def spliced(body: bytes, event: Json, at: int) -> bytes:
    """A stream with another event after the first ``at`` ones."""
    events = body.split(b"\n\n")
    return b"\n\n".join([*events[:at], _sse([event]).removesuffix(b"\n\n"), *events[at:]])
