"""Pictures that no provider takes never get into a conversation."""

from __future__ import annotations

from typing import Any

from claw.ports import ToolCall
from claw.testing import MemoryBlobs, ScriptedModel, calls, says
from claw.testing.pieces import FakeTool, conversation
from claw.types.messages import Image, Text, text_of
from claw.types.tools import ToolOutput

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89"
)


class Camera(FakeTool, kw_only=True):
    """Gives a picture under a wrong type, and what is none."""

    blobs: MemoryBlobs

    async def run(self, args: dict[str, Any], call: ToolCall) -> ToolOutput:
        pictures = (self.blobs.put(PNG), self.blobs.put(b"<svg/>"))
        return ToolOutput(tuple(Image("image/jpeg", digest) for digest in pictures))


async def test_a_tools_pictures_are_what_their_bytes_say():
    blobs = MemoryBlobs()
    model = ScriptedModel([calls(("shoot", {})), says("done")])
    talk = conversation(model, [Camera("shoot", blobs=blobs)], blobs=blobs)
    summary = await talk.run_turn("go")
    (result,) = summary.tool_results
    good, bad = result.content
    assert good == Image("image/png", blobs.put(PNG))
    assert isinstance(bad, Text)
    assert "left out" in bad.text


async def test_a_prompts_pictures_too():
    blobs = MemoryBlobs()
    model = ScriptedModel([says("done")])
    talk = conversation(model, blobs=blobs)
    await talk.run_turn((Text("look"), Image("image/png", blobs.put(b"GIF")), Image("x", "0" * 64)))
    (message,) = model.requests[0].messages
    assert not [block for block in message.content if isinstance(block, Image)]
    assert text_of(message.content).count("left out") == 2
