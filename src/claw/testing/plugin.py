"""The pytest plugin: test your own hooks, permission rules, prompts and tools.

::

    def test_nothing_is_pushed(claw_session, scripted_model):
        model = scripted_model(calls(("Bash", {"command": "git push"})), says("done"))
        run = claw_session(model, settings={"permissions": {"deny": ["Bash(git push:*)"]}})
        summary = run.turn("publish it")
        assert summary.permission_denials[0].tool_name == "Bash"

``claw_session`` is for tests without an event loop; in one, use ``claw.testing.Harness``.

Every run of pytest loads this file, wherever claw is installed. So the rest of claw is
imported in the fixtures, for the tests that ask for one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from claw.testing.flags import RECORD, UPDATE
from claw.testing.stash import ENVIRONMENT, PASSED

if TYPE_CHECKING:
    from claw.models.offline.client import OfflineModel
    from claw.models.scripted import ScriptedModel
    from claw.recordings.verify import Replayed
    from claw.testing.fixtures import Session
    from claw.testing.recording import Recording


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("claw")
    group.addoption(UPDATE, action="store_true", help="rewrite golden files; then read the diff")
    group.addoption(
        RECORD, action="store_true", help="ask your model, and write recordings of what it says"
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    # Before any test isolates itself: a recording asks the model that is configured here.
    session.config.stash[ENVIRONMENT] = dict(os.environ)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture
def claw_session(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., Session]]:
    """Opens sessions in a home and a workspace of their own: ``claw_session(model, ...)``.

    ``model`` is a list of replies, a recording or a client; options are those of ``Harness``.
    """
    from claw.testing.fixtures import sessions

    yield from sessions(request, tmp_path)


@pytest.fixture
def scripted_model() -> Callable[..., ScriptedModel]:
    """Makes a model that gives these replies: ``scripted_model(calls(...), says(...))``."""
    from claw.models.scripted import ScriptedModel

    return lambda *replies: ScriptedModel(replies)


@pytest.fixture
def offline_model() -> OfflineModel:
    """The model without a network, a key or chance."""
    from claw.models.offline.client import OfflineModel

    return OfflineModel()


@pytest.fixture
def recorded_model(request: pytest.FixtureRequest) -> Iterator[Callable[..., Recording]]:
    """A model from a recording beside the test: ``recorded_model("greets.json")``.

    With ``--claw-record`` it asks the model that claw is configured for, and writes the
    file when the test has passed. Options are those of ``Recording``.
    """
    from claw.testing.fixtures import recordings

    yield from recordings(request)


@pytest.fixture
def replay(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Replayed]:
    """Replays a session and fails where it goes another way: ``replay(run)``, or a file.

    ``replay(run, live="policy,hooks")`` judges today's parts by it: those of the session's own
    home, or for a file those of the environment. More options are those of
    ``claw.engine.live.Live``. Paths begin beside the test.

    Where it fails, a page that shows both sides is left in the test's ``tmp_path``.
    """
    from claw.testing.fixtures import replayer

    return replayer(request, tmp_path)


@pytest.fixture
def assert_trajectory(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compares a run with a golden file beside the test: ``assert_trajectory(run, "a.json")``.

    ``match="structure"`` ignores wording, and where rules and hooks stand; with
    ``match="contract"`` the file is a ``Contract`` that you write yourself.
    ``--claw-update`` rewrites the others.
    """
    from claw.testing.fixtures import trajectories

    return trajectories(request)
