"""Everything that the vendors' SDKs know of their dialects, through them and through claw."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from claw.models.decode import decode
from claw.types.messages import Opaque
from tests.corpus.recorded import ours
from tests.wire.shapes import SHAPES, anthropic_stream, responses_stream, spliced

# Their types warn of what servers send beside them.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")


@pytest.mark.parametrize(("dialect", "name"), SHAPES)
def test_what_a_dialect_can_say(dialect: str, name: str, oracle: Any):
    body = SHAPES[dialect, name]
    kind = "application/json" if body.startswith(b"{") else "text/event-stream"
    theirs = oracle.read(dialect, 200, {"content-type": kind}, body)
    assert theirs is not None
    assert theirs.differences(ours(decode(dialect, [body]))) == {}


@pytest.mark.parametrize(("dialect", "name"), SHAPES)
def test_what_a_dialect_can_say_says_something(dialect: str, name: str):
    """So that what is equal above is not two times nothing."""
    said = ours(decode(dialect, [SHAPES[dialect, name]]))
    assert said.text or said.calls
    assert said.stop


def variants(path: str, name: str) -> list[str]:
    """The types of a union of an SDK's models, by their discriminator."""
    module = pytest.importorskip(path)
    union = get_args(getattr(module, name))[0]
    return [get_args(model.model_fields["type"].annotation)[0] for model in get_args(union)]


def test_every_block_of_the_messages_api_is_kept():
    path = "anthropic.types.beta.beta_raw_content_block_start_event"
    own = {"text", "thinking", "redacted_thinking", "tool_use"}
    kinds = set(variants(path, "ContentBlock")) - own
    assert len(kinds) > 10
    for kind in kinds:
        block = {"type": kind, "id": "b1", "tool_use_id": "t1", "content": [{"type": "x"}]}
        begun = {"type": "content_block_start", "content_block": block}
        reply = decode("anthropic", [anthropic_stream([begun, {"type": "content_block_stop"}])])
        assert reply.blocks == (Opaque("anthropic", block),), kind


OWN_ITEMS = {"message", "reasoning", "function_call", "custom_tool_call"}


def test_every_item_of_the_responses_api_is_kept():
    path = "openai.types.responses.response_output_item"
    kinds = set(variants(path, "ResponseOutputItem")) - OWN_ITEMS
    assert len(kinds) > 20
    for kind in kinds:
        item = {"type": kind, "id": "i1", "status": "completed", "output": [{"type": "x"}]}
        reply = decode("openai-responses", [responses_stream(dict(item))])
        assert reply.blocks == (Opaque("openai", item),), kind


SPEAKING = {
    "response.output_item",
    "response.output_text",
    "response.refusal",
    "response.reasoning_text",
    "response.reasoning_summary_text",
    "response.function_call_arguments",
    "response.custom_tool_call_input",
}
ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}


def test_no_event_of_the_responses_api_disturbs_a_reply():
    """What is neither an end nor a piece of text may come at any time and changes nothing."""
    kinds = variants("openai.types.responses.response_stream_event", "ResponseStreamEvent")
    assert len(kinds) > 50
    body = SHAPES["openai-responses", "phases and annotations"]
    whole = decode("openai-responses", [body])
    for kind in set(kinds) - ENDS:
        stem = kind.rpartition(".")[0]
        if stem in SPEAKING:
            continue
        event = {"type": kind, "output_index": 0, "item_id": "msg_1", "delta": "no", "text": "no"}
        for at in range(1, 9):
            assert decode("openai-responses", [spliced(body, event, at)]) == whole, (kind, at)
