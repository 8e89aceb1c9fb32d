from __future__ import annotations

from claw.types.effects import Remember
from tests.unit.tools.conftest import Bench


async def test_the_person_sees_the_list(bench: Bench) -> None:
    todos = [
        {"content": "look", "status": "completed"},
        {"content": "change", "status": "in_progress", "activeForm": "Changing"},
        {"content": "test", "status": "pending"},
    ]
    output = await bench.output("TodoWrite", todos=todos)
    assert output.display == "[x] look\n[>] change\n[ ] test"
    assert "1 of 3" in await bench.run("TodoWrite", todos=todos)
    tool = bench.tools.get("TodoWrite")
    assert tool is not None
    assert tool.effects(tool.parse({"todos": todos})) == (Remember(),)
