"""A model without weights: rules that call the real tools and answer from their results.

It is what a fresh machine has before any model is connected, and what tests of
hooks and permission rules talk to: the same prompt in the same repository gives
the same bytes. It keeps nothing between requests; all it knows is the request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from claw.errors import RequestRejected
from claw.models.estimate import estimate_request, estimate_tokens
from claw.models.offline.plans import examples, plan_for
from claw.models.offline.rules import is_chinese, understand
from claw.models.offline.wording import Call, Result, Voice, failure
from claw.types.events import AssistantEvent, MessageStart, MessageStop, TextDelta
from claw.types.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
    text_of,
)
from claw.types.request import Request
from claw.types.tools import ToolSpec
from claw.types.usage import Usage

__all__ = ["CONNECT_HINT", "MODEL", "OfflineModel"]

MODEL = "offline"
MOST_CALLS = 12  # in one turn
LINES_PER_DELTA = 8

CONNECT_HINT = (
    "To connect a real one, set ANTHROPIC_API_KEY or OPENAI_API_KEY (with OPENAI_BASE_URL for a"
    " local server), or name one with `--model`."
)


class OfflineModel:
    """A ``ModelClient``. Raises ``RequestRejected`` for a prompt that no rule fits."""

    @property
    def window(self) -> int | None:
        return None

    def cost(self, usage: Usage, model: str) -> float | None:
        return 0.0

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        step = _next_step(request)
        yield MessageStart(model=MODEL)
        if isinstance(step, ToolUse):
            spent = estimate_tokens(step.name + repr(step.input))
            yield step
        else:
            spent = estimate_tokens(step)
            lines = step.splitlines(keepends=True)
            for at in range(0, len(lines), LINES_PER_DELTA):
                yield TextDelta("".join(lines[at : at + LINES_PER_DELTA]))
        yield Usage(
            input_tokens=estimate_request(request),
            output_tokens=spent,
            estimated=True,
        )
        yield MessageStop("tool_use" if isinstance(step, ToolUse) else "end_turn")


def _next_step(request: Request) -> ToolUse | str:
    """The call or the answer that follows from the prompt and the results so far."""
    at, prompt = _last_prompt(request.messages)
    say = Voice(is_chinese(prompt))
    understood = understand(prompt)
    if understood is None:
        raise RequestRejected(
            say(
                "The offline model works by rules, and none of them fits this prompt.\n"
                f"Try: {examples()} (`help` lists all).",
                "离线模型按规则工作，没有规则适合这条输入。\n"
                f"可以试试：{examples(chinese=True)}（`帮助` 列出全部）。",
            ),
            hint=CONNECT_HINT,
            provider=MODEL,
            model=MODEL,
        )
    task, only_first_sentence = understood
    made = _made(request.messages[at + 1 :])
    plan = plan_for(task, say)
    try:
        call = next(plan)
        while True:
            result = _result_of(made, call)
            if result is None:
                if len(made) >= MOST_CALLS:
                    return _signed(
                        say(f"I stop after {MOST_CALLS} calls.", f"调用 {MOST_CALLS} 次后停止。"),
                        say,
                    )
                spec = _offered(request.tools, call.name)
                if spec is None:
                    return _signed(
                        say(
                            f"This needs the tool `{call.name}`, which is not offered here.",
                            f"这需要 `{call.name}` 工具，但当前没有提供。",
                        ),
                        say,
                    )
                return ToolUse(f"{MODEL}_{_calls_in(request.messages) + 1}", spec.name, call.input)
            if result.is_error and not call.may_fail:
                return _signed(failure(call, result, say), say)
            call = plan.send(result)
    except StopIteration as end:
        answer: str = end.value
        if only_first_sentence:
            note = say("Only the first sentence was followed.", "只处理了第一句。")
            answer = f"{answer}\n\n{note}"
        return _signed(answer, say)


def _signed(answer: str, say: Voice) -> str:
    note = say(
        "_Offline model: it works by rules and does not reason._",
        "_离线模型：按规则工作，不做推理。_",
    )
    return f"{answer}\n\n{note}"


def _last_prompt(messages: Sequence[Message]) -> tuple[int, str]:
    """Where the last message with words of the user stands, and its first text.

    Blocks after the first one are context that something added.
    """
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if not isinstance(message, UserMessage):
            continue
        if any(isinstance(block, ToolResult) for block in message.content):
            continue
        for block in message.content:
            if isinstance(block, Text) and block.text.strip():
                return at, block.text
    return -1, ""


def _made(messages: Sequence[Message]) -> list[tuple[ToolUse, Result]]:
    """The calls of this turn with their results, in order."""
    results: dict[str, Result] = {}
    calls: list[ToolUse] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls.extend(message.tool_calls)
            continue
        for block in message.content:
            if isinstance(block, ToolResult):
                results[block.tool_use_id] = Result(text_of(block.content), block.is_error)
    return [(call, results[call.id]) for call in calls if call.id in results]


def _result_of(made: Sequence[tuple[ToolUse, Result]], call: Call) -> Result | None:
    """The result of a call that was made already; a plan may ask for the same one twice."""
    return next((result for use, result in made if use.input == call.input), None)


def _offered(tools: Sequence[ToolSpec], name: str) -> ToolSpec | None:
    return next((spec for spec in tools if name == spec.name or name in spec.aliases), None)


def _calls_in(messages: Sequence[Message]) -> int:
    return sum(len(m.tool_calls) for m in messages if isinstance(m, AssistantMessage))
