"""Calls that a server handed out as text, and texts that only look a little like them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.runtime.unparsed import unparsed_call

OFFERED = ("Read", "Bash", "mcp__notes__read-all")

CALLS = {
    "hermes": '<tool_call>\n{"name": "Read", "arguments": {"path": "a"}}\n</tool_call>',
    "unclosed": '<tool_call>{"name": "Read", "arguments": {"path": "a"}}',
    "after words": 'I look.\n\n<tool_call>\n{"arguments": {}, "name": "Read"}\n</tool_call>',
    "glm": "<tool_call>Read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "coder": "<tool_call>\n<function=Read>\n<parameter=path>\na\n</parameter>\n</function>\n"
    "</tool_call>",
    "llama": '<function=Read>{"path": "a"}</function>',
    "llama 3": '<|python_tag|>{"name": "Read", "parameters": {"path": "a"}}',
    "llama 3 code": '<|python_tag|>Read.call(path="a")',
    "llama bare": '{"name": "Read", "parameters": {"path": "a"}}',
    "mistral": '[TOOL_CALLS] [{"name": "Read", "arguments": {"path": "a"}}]',
    "mistral new": 'Sure.[TOOL_CALLS]Read[ARGS]{"path": "a"}',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>Read\n"
    '```json\n{"path": "a"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek new": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="Read">\n</｜DSML｜invoke>',
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.Read:0"
    '<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>',
    "harmony": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
    'to=functions.Read <|constrain|>json<|message|>{"path": "a"}<|call|>',
    "granite": '<|tool_call|>[{"name": "Read", "arguments": {"path": "a"}}]',
    "command": '<|START_ACTION|>[{"tool_name": "Read", "parameters": {}}]<|END_ACTION|>',
    "xml": '<function_calls>\n<invoke name="Read">\n<parameter name="path">a</parameter>\n'
    "</invoke>\n</function_calls>",
    "minimax": '<minimax:tool_call>\n<invoke name="Read">\n</invoke>\n</minimax:tool_call>',
    "grok": '<xai:function_call name="Read"><parameter name="path">a</parameter>'
    "</xai:function_call>",
    "gemma": '```tool_code\nprint(Read(path="a"))\n```',
    "fence": '```json\n{"name": "Read", "arguments": {"path": "a"}}\n```',
    "openai": '{"type": "function", "function": {"name": "Read", "arguments": "{}"}}',
    "list": '[{"name": "Read", "arguments": {"path": "a"}}]',
    "our own": '{"tool": "Read", "input": {"path": "a"}}',
}

TEXTS = {
    "nothing": "",
    "prose": "I would call Read with <tool_call>, and then Bash (twice).",
    "quoted": 'Models write `<tool_call>{"name": "Read", "arguments": {}}</tool_call>`',
    "inline": 'The model wrote <tool_call>{"name": "Read", "arguments": {}}</tool_call>',
    "in a block": 'So it looks:\n\n```\n<tool_call>\n{"name": "Read", "arguments": {}}\n'
    "</tool_call>\n```",
    "token in a block": '```\n[TOOL_CALLS] [{"name": "Read", "arguments": {}}]\n```',
    "with an explanation": '<tool_call>{"name": "Read"}</tool_call> is how Qwen calls a tool.',
    "json with words": 'Use this:\n```json\n{"name": "Read", "arguments": {}}\n```',
    "another tool": '<tool_call>\n{"name": "Delete", "arguments": {}}\n</tool_call>',
    "longer name": '<tool_call>\n{"name": "Reader", "arguments": {}}\n</tool_call>',
    "some json": '{"name": "Read", "version": "1.0", "input": {}}',
    "a name only": '{"name": "Read"}',
    "package": '{"name": "Bash", "type": "module", "scripts": {}}',
    "list of numbers": "[1, 2, 3]",
    "html": "<div>\nRead\n</div>",
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_in_text_are_seen(name: str):
    assert unparsed_call(f"{CALLS[name]}\n", OFFERED) == "Read"


@pytest.mark.parametrize("name", CALLS)
def test_only_offered_tools_count(name: str):
    assert unparsed_call(CALLS[name], ("Write", "Rea", "ead")) == ""
    assert unparsed_call(CALLS[name], ()) == ""


@pytest.mark.parametrize("name", TEXTS)
def test_talking_of_calls_is_no_call(name: str):
    assert unparsed_call(TEXTS[name], OFFERED) == ""


def test_names_of_servers_tools():
    written = '<tool_call>{"name": "mcp__notes__read-all", "arguments": {}}</tool_call>'
    assert unparsed_call(written, OFFERED) == "mcp__notes__read-all"


@given(st.text(alphabet='<|>tool_call{}[]"`:Read\n ＞｜▁=', max_size=200))
def test_any_text_gives_an_offered_name_or_none(text: str):
    assert unparsed_call(text, OFFERED) in (*OFFERED, "")


def test_long_texts_take_no_time():
    for piece in ("<tool_call>", "<|python_tag|>", "```", "[", '{"name":', " "):
        assert unparsed_call("```" + piece * 5_000 + "}", OFFERED) == ""
