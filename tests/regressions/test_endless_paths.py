"""A path of any length is refused in a short message, and none is made that is too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw.errors import ToolFailed
from claw.types.effects import ReadPath, WritePath
from claw.workspace.files import LocalWorkspace


@pytest.mark.parametrize(
    "path", ["x" * 10_000, "x/" * 5000 + "y", "./" * 5000 + "y", "/proc/" + "b/" * 1500 + "c"]
)
def test_short_messages(tmp_path: Path, path: str) -> None:
    workspace = LocalWorkspace(str(tmp_path))
    for use in (
        lambda: workspace.observe((WritePath(path), ReadPath(path))),
        lambda: workspace.read(path, limit=10),
        lambda: workspace.write(path, b"x", expect=None),
        lambda: workspace.files(path, limit=1),
    ):
        with pytest.raises(ToolFailed) as caught:
            use()
        assert len(caught.value.message) < 600
    assert not list(tmp_path.iterdir())
