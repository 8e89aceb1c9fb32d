"""A session in the Agent Trajectory Interchange Format (ATIF-v1.8), which evaluation tools read.

The format is Harbor's RFC 0001 (https://github.com/harbor-framework/harbor, its file
``rfcs/0001-trajectory-format.md``), its models ``harbor.models.trajectories``. One reply is one
agent step, with its calls and their results. A compaction is a system step whose observation
replaces the context; what the model still sees then follows as ``is_copied_context``. A rewind, a
reply that was asked for again and a compaction without effect leave no step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from claw.errors import SessionError
from claw.types.entries import Compacted, ReplyReceived, SessionStarted, TurnStarted
from claw.types.messages import (
    AssistantBlock,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    UserBlock,
    text_of,
)
from claw.types.tools import ToolSpec
from claw.types.usage import Usage
from claw.viewer.atif_steps import Call, Price, Step, Steps, total_cost
from claw.viewer.fold import Placed
from claw.viewer.standing import standing
from claw.viewer.texts import SHOWN_PICTURES, Texts

__all__ = ["VERSION", "atif"]

VERSION = "ATIF-v1.8"

_COPIED = (
    "Steps with is_copied_context show again what a compaction kept, or were inherited from the "
    "session that this one is a copy of; they have no metrics."
)
_OUTSIDE = (
    "final_metrics.extra.outside_steps is what was spent besides the steps: on replies that were "
    "cut off and asked for again, on turns that a rewind left out, on summaries. "
    "total_cost_usd includes it."
)


def atif(
    records: Iterable[Placed],
    *,
    clean: Callable[[str], str],
    blob: Callable[[str], bytes | None],
    file: Callable[[str], str | None],
    price: Price,
    rules: Collection[str] = (),
) -> Iterator[str]:
    """The document in pieces, one line a step.

    ``clean`` takes the secrets out of a text; ``blob`` gives the bytes of a digest and ``file``
    the path where they lie, None where they are lost; ``price`` is what one request to a model
    costs. ``rules`` are the names of models that work by rules: their steps count no inference.
    Raises ``SessionError`` where there is no step to tell, and what ``records`` raises.
    """
    known = list(records)
    texts = Texts(clean, blob)
    started = (r.seq for r in known if isinstance(r.entry, SessionStarted) and r.entry.forked_from)
    inherited = max(started, default=0)
    steps = Steps(stored=texts.stored, price=price, rules=rules, inherited=inherited)
    stand = standing(known)
    for record in stand:
        steps.add(record)
    steps.end()
    if not steps.steps:
        raise SessionError(
            "nothing was said in this session yet: a trajectory has at least one step",
            hint="`--format jsonl` writes the records that there are.",
        )
    turns, kept = ([isinstance(r.entry, TurnStarted) for r in some] for some in (known, stand))
    if rewound := sum(turns) - sum(kept):
        steps.undone["rewound_turns"] = rewound
    own = [record for record in known if record.seq > inherited]
    return _Document(texts, file, steps).pieces(own, price, rules)


class _Document:
    def __init__(self, texts: Texts, file: Callable[[str], str | None], steps: Steps) -> None:
        self._texts = texts
        self._file = file
        self._told = steps

    def pieces(self, own: Sequence[Placed], price: Price, rules: Collection[str]) -> Iterator[str]:
        session, steps, clean = self._told.session, self._told.steps, self._texts.clean
        head = {
            "schema_version": VERSION,
            "session_id": clean(session.session_id),
            "trajectory_id": clean(session.session_id),
            "agent": self._agent(),
        }
        yield f'{_json(head)[:-1]}, "steps": [\n'
        for number, step in enumerate(steps, 1):
            yield _json(self._step(number, step)) + (",\n" if number < len(steps) else "\n")
        tail = self._final(own, price, rules)
        yield f"], {_json(tail)[1:]}\n"

    def _agent(self) -> dict[str, Any]:
        told, clean = self._told, self._texts.clean
        models = [step.model for step in told.steps if step.model]
        about: dict[str, Any] = {
            "name": "claw",
            "version": clean(told.session.claw_version) or "unknown",
        }
        if models:
            about["model_name"] = clean(models[-1])
        if tools := self._tools():
            about["tool_definitions"] = tools
        return about

    def _tools(self) -> list[dict[str, Any]]:
        """The tools on offer at the end, as functions of OpenAI's schema."""
        try:
            specs = msgspec.json.decode(self._texts.stored(self._told.tools) or "[]", type=_SPECS)
        except (msgspec.DecodeError, RecursionError):  # of another version, or damaged
            return []
        described = [
            {"name": s.name, "description": s.description, "parameters": s.input_schema}
            for s in specs
        ]
        return [{"type": "function", "function": self._texts.values(about)} for about in described]

    # -- steps -------------------------------------------------------------------------------

    def _step(self, number: int, step: Step) -> dict[str, Any]:
        told: dict[str, Any] = {"step_id": number}
        if _is_time(step.at):
            told["timestamp"] = step.at
        told["source"] = step.source
        extra = dict(step.extra)
        if step.source == "agent":
            self._reply(told, extra, step)
        else:
            told["message"] = self._content(step.blocks)
            if step.observed:
                told["observation"] = {"results": [{"content": self._content(step.observed)}]}
        if step.copied:
            told["is_copied_context"] = True
        if extra:
            told["extra"] = self._texts.values(extra)
        return told

    def _reply(self, told: dict[str, Any], extra: dict[str, Any], step: Step) -> None:
        clean = self._texts.clean
        if step.model:
            told["model_name"] = clean(step.model)
        if step.effort:
            told["reasoning_effort"] = clean(step.effort)
        told["message"] = clean(text_of(step.blocks))
        thoughts = [block.text for block in step.blocks if isinstance(block, Thinking)]
        if not step.by_rules and (thinking := "\n\n".join(filter(str.strip, thoughts))):
            told["reasoning_content"] = clean(thinking)
        if step.calls:
            told["tool_calls"] = [self._call(call) for call in step.calls]
            if results := [self._result(call) for call in step.calls if call.finished]:
                told["observation"] = {"results": results}
        if step.usage is not None and step.usage.context_tokens:
            told["metrics"] = _metrics(step.usage, step.cost)
        if not step.copied:
            told["llm_call_count"] = 0 if step.by_rules else 1
        hidden = sum(isinstance(block, RedactedThinking) for block in step.blocks)
        if hidden:
            extra["redacted_thinking"] = hidden
        opaque = [block for block in step.blocks if isinstance(block, Opaque)]
        if opaque:
            extra["opaque_blocks"] = [{"provider": b.provider, "raw": b.raw} for b in opaque]

    def _call(self, call: Call) -> dict[str, Any]:
        clean, use = self._texts.clean, call.use
        extra: dict[str, Any] = {}
        if use.raw_input is not None:
            extra["raw_input"] = use.raw_input
        if call.input is not None:
            extra["input_run"] = call.input
        if call.decisions:
            extra["decisions"] = call.decisions
        if call.hooks:
            extra["hooks"] = call.hooks
        if call.finished is None:
            extra["status"] = "outcome_unknown" if call.begun else "not_run"
        told: dict[str, Any] = {
            "tool_call_id": clean(use.id),
            "function_name": clean(use.name),
            "arguments": self._texts.values(use.input),
        }
        return {**told, "extra": self._texts.values(extra)} if extra else told

    def _result(self, call: Call) -> dict[str, Any]:
        """The whole text where it was kept; then what the model saw of it is in ``extra``."""
        done = call.finished
        assert done is not None
        content: tuple[UserBlock, ...] = done.content
        extra: dict[str, Any] = {"status": done.status}
        if done.ms:
            extra["ms"] = done.ms
        if done.spilled and (whole := self._texts.stored(done.spilled)) is not None:
            others = (block for block in content if not isinstance(block, Text))
            content = (Text(whole), *others)
            extra["text_in_context"] = self._texts.clean(text_of(done.content))
        elif done.spilled:
            extra["clipped"] = True
        if done.omitted:
            extra["omitted_bytes"] = done.omitted
        id = self._texts.clean(call.use.id)
        return {"source_call_id": id, "content": self._content(content), "extra": extra}

    def _content(self, blocks: Sequence[UserBlock | AssistantBlock]) -> str | list[dict[str, Any]]:
        """A text; parts only where there is something else, as many tools know only texts."""
        if not any(isinstance(block, Image | Document) for block in blocks):
            return self._texts.clean("\n".join(b.text for b in blocks if isinstance(b, Text)))
        return [self._part(b) for b in blocks if isinstance(b, Text | Image | Document)]

    def _part(self, block: Text | Image | Document) -> dict[str, Any]:
        clean = self._texts.clean
        if isinstance(block, Text):
            return {"type": "text", "text": clean(block.text)}
        shown = isinstance(block, Image) and block.media_type in SHOWN_PICTURES
        path = self._file(block.blob) if shown else None
        if path is not None and clean(path) == path:
            return {"type": "image", "source": {"media_type": block.media_type, "path": path}}
        return {"type": "text", "text": f"[{clean(block.media_type)}: not in this trajectory]"}

    # -- what all of it came to --------------------------------------------------------------

    def _final(self, own: Sequence[Placed], price: Price, rules: Collection[str]) -> dict[str, Any]:
        told = self._told
        used = sum((step.usage for step in told.steps if step.usage is not None), Usage())
        final: dict[str, Any] = {f"total_{name}": n for name, n in _tokens(used).items()}
        cost = total_cost(own, price)
        if cost is not None:
            final["total_cost_usd"] = cost
        final["total_steps"] = len(told.steps)
        outside = _less(_spent(own, rules), used)
        if outside.context_tokens:
            final["extra"] = {"outside_steps": _tokens(outside)}
        copied = any(step.copied for step in told.steps)
        notes = [
            note for note, is_due in ((_COPIED, copied), (_OUTSIDE, "extra" in final)) if is_due
        ]
        tail: dict[str, Any] = {"notes": " ".join(notes)} if notes else {}
        return {**tail, "final_metrics": final, "extra": self._texts.values(self._extra())}

    def _extra(self) -> dict[str, Any]:
        told = self._told
        session = told.session
        extra: dict[str, Any] = {"cwd": session.cwd, "created": session.created}
        if told.title:
            extra["title"] = told.title
        if session.forked_from:
            extra["forked_from"] = session.forked_from
        extra["turns"] = told.turns
        if told.hooks:
            extra["hooks"] = told.hooks
        if told.undone:
            extra["undone"] = told.undone
        return extra


_SPECS = list[ToolSpec]


def _metrics(usage: Usage, cost: float | None) -> dict[str, Any]:
    told: dict[str, Any] = dict(_tokens(usage))
    if cost is not None:
        told["cost_usd"] = cost
    extra: dict[str, Any] = {}
    if usage.cache_creation_input_tokens:
        extra["cache_creation_input_tokens"] = usage.cache_creation_input_tokens
    if usage.estimated:
        extra["estimated"] = True
    return {**told, "extra": extra} if extra else told


def _tokens(usage: Usage) -> dict[str, int]:
    """In the format's convention: the prompt with all that was cached."""
    return {
        "prompt_tokens": usage.context_tokens - usage.output_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_input_tokens,
    }


def _spent(records: Sequence[Placed], rules: Collection[str]) -> Usage:
    """All that was asked of language models."""
    usage = Usage()
    for record in records:
        match record.entry:
            case ReplyReceived(model=model) as entry if model not in rules:
                usage += entry.usage
            case Compacted() as entry:
                usage += entry.usage
    return usage


def _less(all: Usage, some: Usage) -> Usage:
    return Usage(
        all.input_tokens - some.input_tokens,
        all.output_tokens - some.output_tokens,
        all.cache_read_input_tokens - some.cache_read_input_tokens,
        all.cache_creation_input_tokens - some.cache_creation_input_tokens,
    )


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
