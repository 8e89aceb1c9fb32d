"""The pytest plugin: test your own hooks, permission rules, prompts and tools.

::

    def test_nothing_is_pushed(claw_session, scripted_model):
        model = scripted_model(calls(("Bash", {"command": "git push"})), says("done"))
        run = claw_session(model, settings={"permissions": {"deny": ["Bash(git push:*)"]}})
        summary = run.turn("publish it")
        assert summary.permission_denials[0].tool_name == "Bash"

Fixtures are for tests without an event loop; in one, use ``claw.testing.Harness``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import pytest

from claw.engine.replaying import replay as run_again
from claw.models.offline.client import OfflineModel
from claw.models.scripted import ScriptedModel, ScriptReply
from claw.ports import ModelClient
from claw.recordings.trajectory import diff, dumps
from claw.recordings.verify import Replayed
from claw.testing.harness import Harness
from claw.testing.matching import Contract, broken, structure
from claw.types.entries import KnownEntry
from claw.types.request import Request
from claw.types.results import TurnSummary

__all__ = ["Match", "Session", "check_golden"]

Match = Literal["exact", "structure", "contract"]
UPDATE = "--claw-update"


class HasTrajectory(Protocol):
    def trajectory(self) -> dict[str, Any]:
        """The normalised record."""


class Session:
    """A ``Harness`` for tests without an event loop; closed when the test ends."""

    def __init__(
        self, folder: Path, model: Sequence[ScriptReply] | ModelClient, options: dict[str, Any]
    ) -> None:
        self._runner = asyncio.Runner()
        self.harness = Harness(folder, model, **options)
        self._runner.run(self.harness.__aenter__())

    def turn(self, prompt: str) -> TurnSummary:
        """Run one turn to its end."""
        return self._runner.run(self.harness.turn(prompt))

    @property
    def workspace(self) -> Path:
        return self.harness.workspace

    @property
    def requests(self) -> list[Request]:
        """What was sent to the model."""
        return self.harness.requests

    @property
    def entries(self) -> list[KnownEntry]:
        """All that was put on record."""
        return self.harness.entries

    @property
    def journal(self) -> Path:
        """The session's file: a recording, which ``replay`` takes."""
        path = self.harness.house.journal_path
        assert path is not None, "an ephemeral session has no journal"
        return Path(path)

    @property
    def system(self) -> str:
        """The system prompt."""
        return self.harness.house.system

    def offers(self, tool: str) -> bool:
        """Whether the model is offered a tool of this name."""
        return any(spec.name == tool for spec in self.harness.house.tools)

    def results(self, summary: TurnSummary) -> list[str]:
        """The texts of a turn's tool results, in order."""
        return self.harness.results(summary)

    def trajectory(self) -> dict[str, Any]:
        return self.harness.trajectory()

    def close(self, *, complete: bool = True) -> None:
        """``complete``: replies of the script that nobody asked for are an error."""
        if not complete:
            self.harness.script = None
        try:
            self._runner.run(self.harness.__aexit__(None, None, None))
        finally:
            self._runner.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("claw")
    group.addoption(UPDATE, action="store_true", help="rewrite golden files; then read the diff")


@pytest.fixture
def claw_session(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Opens sessions in a home and a workspace of their own: ``claw_session(model, ...)``.

    ``model`` is a list of replies or a client; options are those of ``Harness``.
    """
    opened: list[Session] = []

    def open_session(model: Sequence[ScriptReply] | ModelClient, **options: Any) -> Session:
        folder = tmp_path / f"session-{len(opened) + 1}"
        opened.append(Session(folder, model, options))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close()


@pytest.fixture
def scripted_model() -> Callable[..., ScriptedModel]:
    """Makes a model that gives these replies: ``scripted_model(calls(...), says(...))``."""
    return lambda *replies: ScriptedModel(replies)


@pytest.fixture
def offline_model() -> OfflineModel:
    """The model without a network, a key or chance."""
    return OfflineModel()


@pytest.fixture
def replay() -> Callable[[str | os.PathLike[str]], Replayed]:
    """Replays a recording and fails where it goes another way: ``replay(run.journal)``."""

    def check(path: str | os.PathLike[str]) -> Replayed:
        report = run_again(path)
        report.check()
        return report

    return check


@pytest.fixture
def assert_trajectory(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compares a run with a golden file beside the test: ``assert_trajectory(run, "a.json")``.

    ``match="structure"`` ignores wording; with ``match="contract"`` the file is a
    ``Contract`` that you write yourself. ``--claw-update`` rewrites the others.
    """

    def check(run: HasTrajectory, name: str, match: Match = "exact") -> None:
        path = Path(request.path).parent / name
        if match == "contract":
            contract = msgspec.json.decode(path.read_bytes(), type=Contract)
            problems = broken(run.trajectory(), contract)
            assert not problems, f"not as {path.name} demands:\n" + "\n".join(problems)
            return
        record = run.trajectory()
        check_golden(path, record if match == "exact" else structure(record), request.config)

    return check


def check_golden(path: Path, record: dict[str, Any], config: pytest.Config) -> None:
    """Fails with a diff where ``record`` is not what the file says."""
    text = dumps(record)
    if config.getoption(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"no golden file {path.name}: run with {UPDATE}"
    changes = diff(path.read_text(encoding="utf-8"), text)
    assert not changes, f"not as in {path.name} ({UPDATE} rewrites it):\n{changes}"
