"""The JSON result, its exit codes, and the words for how a turn ended."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from claw.cli.render.envelope import dumps, error_before_turn
from claw.cli.render.json_result import compact_result, json_result
from claw.cli.render.outcome import exit_code, failure, subtype
from claw.types.messages import AssistantMessage, Text, ToolResult, ToolUse
from claw.types.permissions import PermissionDenial
from claw.types.results import AutoCompactionEvent, Cost, Failure, StopReason, TurnSummary
from claw.types.usage import PromptCacheEvent, Usage

KEYS = [
    *("type", "subtype", "is_error", "result", "model", "session_id", "iterations", "num_turns"),
    *("stop_reason", "usage", "session_usage", "cost", "total_cost_usd", "duration_ms"),
    *("duration_api_ms", "tool_uses", "tool_results", "prompt_cache_events"),
    *("permission_denials", "auto_compaction", "errors", "schema"),
]

SUMMARY = TurnSummary(
    stop_reason="completed",
    assistant_messages=(
        AssistantMessage((Text("look"), ToolUse("c1", "read_file", {"path": "x"})), "m"),
        AssistantMessage((Text("the "), Text("end")), "m"),
    ),
    tool_results=(ToolResult("c1", (Text("content"),)),),
    iterations=2,
    usage=Usage(10, 5),
    session_usage=Usage(20, 9),
    cost=Cost(),
    permission_denials=(),
    prompt_cache_events=(),
    compactions=(),
    duration_ms=12,
    duration_api_ms=7,
    error=None,
)


def test_the_json_result_has_exactly_its_keys():
    result = json_result(SUMMARY, model="m", session_id="s")
    assert list(result) == KEYS
    assert result["subtype"] == "success"
    assert result["result"] == "the end"
    assert result["num_turns"] == result["iterations"] == 2
    assert result["tool_uses"] == [{"id": "c1", "name": "read_file", "input": {"path": "x"}}]
    assert result["tool_results"] == [
        {"tool_use_id": "c1", "tool_name": "read_file", "output": "content", "is_error": False}
    ]
    assert result["cost"] == {"usd": None, "known": False}
    assert result["usage"]["cache_read_input_tokens"] == 0
    assert result["auto_compaction"] is None
    assert result["errors"] == []
    dumps(result)


def test_the_json_result_tells_of_everything_that_happened():
    summary = replace(
        SUMMARY,
        cost=Cost(0.25, True),
        permission_denials=(PermissionDenial("Bash", "c2", "no", "mode"),),
        compactions=(AutoCompactionEvent(4, 100, 10, "auto"),),
        prompt_cache_events=(PromptCacheEvent(True, "", 9000, 1000, 8000),),
    )
    result = json_result(summary, model="m", session_id="s")
    assert result["total_cost_usd"] == 0.25
    assert result["cost"] == {"usd": 0.25, "known": True}
    assert result["permission_denials"] == [
        {
            "tool_name": "Bash",
            "tool_use_id": "c2",
            "reason": "no",
            "source": "mode",
            "status": "denied",
        }
    ]
    assert result["auto_compaction"] == {
        "removed_messages": 4,
        "tokens_before": 100,
        "tokens_after": 10,
        "notice": "[auto-compacted: removed 4 messages]",
    }
    assert result["prompt_cache_events"][0]["token_drop"] == 8000


def test_an_error_before_the_turn_has_the_same_keys():
    envelope = error_before_turn("config", "no key", "set one")
    assert list(envelope) == KEYS
    assert envelope["is_error"] is True
    assert envelope["errors"] == [{"kind": "config", "message": "no key", "hint": "set one"}]


def test_the_compact_result():
    result = compact_result(SUMMARY, model="m", session_id="s")
    assert list(result) == [
        *("result", "compact", "is_error", "errors", "model", "usage", "session_id")
    ]
    assert result["compact"] is True


CODES = {
    "completed": ("success", 0),
    "output_limit": ("error_output_limit", 3),
    "refused": ("error_refused", 1),
    "max_turns_reached": ("error_max_turns", 3),
    "max_budget_reached": ("error_max_budget", 3),
    "max_time_reached": ("error_max_time", 3),
    "no_progress": ("error_no_progress", 3),
    "context_overflow": ("error_during_execution", 1),
    "blocked": ("error_blocked", 1),
    "permission_denied": ("error_permission", 4),
    "interrupted": ("error_interrupted", 130),
    "error": ("error_during_execution", 1),
}


@pytest.mark.parametrize("reason", get_args(StopReason))
def test_every_stop_reason_has_its_subtype_and_exit_code(reason: StopReason):
    summary = replace(SUMMARY, stop_reason=reason)
    assert (subtype(summary), exit_code(summary)) == CODES[reason]
    assert json_result(summary, model="", session_id="")["is_error"] == (reason != "completed")
    assert (failure(summary) is None) == (reason == "completed")


def test_an_error_of_the_turn_says_it_better_than_the_table():
    summary = replace(
        SUMMARY, stop_reason="error", error=Failure("authentication", "no key", "set one")
    )
    assert failure(summary) == Failure("authentication", "no key", "set one")
