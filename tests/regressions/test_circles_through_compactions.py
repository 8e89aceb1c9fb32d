"""A model that goes round in circles is found out, also where each result is compacted away."""

from __future__ import annotations

from pathlib import Path

from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.transport import HttpTransport
from claw.policy.headless import HeadlessApprover
from claw.testing import FakeTool, Harness, Received, StrictServer, calls, says
from claw.testing.strict_server import AnyReply


def circling(received: Received) -> AnyReply:
    if not received.body.get("tools"):
        return says("Something was looked at.")
    return calls(("Look", {"at": 1}))


async def test_it_ends(tmp_path: Path):
    look = FakeTool("Look", "a finding " * 2_000)  # a result fills most of the window
    transport = HttpTransport()
    async with StrictServer([circling] * 60, window=8_000, extends=False, check=False) as server:
        model = OpenAIChatClient(transport, base_url=f"{server.base_url}/v1")
        approver = HeadlessApprover()
        async with Harness(tmp_path, model, tools=[look], approver=approver) as run:
            summary = await run.turn("look")
    await transport.aclose()
    assert summary.compactions
    assert (summary.stop_reason, look.runs) == ("no_progress", 5)
