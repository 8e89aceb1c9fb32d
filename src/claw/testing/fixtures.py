"""What the plugin's fixtures give: apart from it, so that it is loaded when a test asks for one."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import pytest

from claw.engine.replay_page import page_of_replay
from claw.engine.replaying import replay as run_again
from claw.errors import ClawError, ReplayMismatch
from claw.models.scripted import ScriptReply
from claw.ports import ModelClient
from claw.recordings.trajectory import diff, dumps
from claw.recordings.verify import Replayed
from claw.testing.flags import RECORD, UPDATE
from claw.testing.harness import Harness
from claw.testing.matching import broken, load_contract, structure
from claw.testing.recording import Recording, RecordingFailed, replace_file
from claw.testing.stash import ENVIRONMENT, PASSED
from claw.types.entries import KnownEntry
from claw.types.request import Request
from claw.types.results import TurnSummary

__all__ = ["Match", "Session", "check_golden", "recordings", "replayer", "sessions", "trajectories"]

Match = Literal["exact", "structure", "contract"]


class HasTrajectory(Protocol):
    def trajectory(self) -> dict[str, Any]:
        """The normalised record."""


class Session:
    """A ``Harness`` for tests without an event loop; closed when the test ends."""

    def __init__(
        self, folder: Path, model: Sequence[ScriptReply] | ModelClient, options: dict[str, Any]
    ) -> None:
        __tracebackhide__ = True
        self.harness = Harness(folder, model, **options)
        # With a factory of its own, it leaves the loop of another plugin where it is.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        try:
            self._runner.run(self.harness.__aenter__())
        except BaseException as error:
            self._runner.close()  # nobody else will: there is no session to close
            if isinstance(error, RecordingFailed | ClawError):
                raise error.with_traceback(None) from None  # its words say it, not our frames
            raise

    def turn(self, prompt: str) -> TurnSummary:
        """Run one turn to its end."""
        __tracebackhide__ = True
        try:
            return self._runner.run(self.harness.turn(prompt))
        except RecordingFailed as failure:
            raise failure.with_traceback(None) from None

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


def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """What ``claw_session`` calls; at its end, the sessions are closed."""
    opened: list[Session] = []

    def open_session(model: Sequence[ScriptReply] | ModelClient, **options: Any) -> Session:
        __tracebackhide__ = True
        if asyncio._get_running_loop() is not None:
            pytest.fail("in an async test use `claw.testing.Harness`, not `claw_session`")
        folder = tmp_path / f"session-{len(opened) + 1}"
        opened.append(Session(folder, model, options))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close(complete=_passed(request))


def recordings(request: pytest.FixtureRequest) -> Iterator[Callable[..., Recording]]:
    """What ``recorded_model`` calls; at its end, the recordings are written."""
    opened: list[Recording] = []

    def open_recording(name: str, **options: Any) -> Recording:
        path = Path(request.path).parent / name
        records = bool(request.config.getoption(RECORD))
        env = request.config.stash[ENVIRONMENT]
        if records:
            _refuse_another(request, path)
        try:
            recording = Recording(path, record=records, **{"env": env, **options})
            recording.open()
        except ClawError as error:
            raise _said(error) from None
        opened.append(recording)
        return recording

    yield open_recording
    if _passed(request):
        for recording in opened:
            try:
                recording.finish()
            except (RecordingFailed, ClawError) as error:
                raise _said(error) from None


def replayer(tmp_path: Path) -> Callable[[str | os.PathLike[str]], Replayed]:
    """What ``replay`` calls."""

    def check(path: str | os.PathLike[str]) -> Replayed:
        report = run_again(path)
        try:
            report.check()
        except ReplayMismatch as error:
            page = tmp_path / "replay.html"
            page.write_bytes(page_of_replay(os.fspath(path), report, str))
            error.add_note(f"Both sides are in {page}")
            raise
        return report

    return check


def trajectories(request: pytest.FixtureRequest) -> Callable[..., None]:
    """What ``assert_trajectory`` calls."""

    def check(run: HasTrajectory, name: str, match: Match = "exact") -> None:
        __tracebackhide__ = True
        if match not in get_args(Match):
            levels = ", ".join(f'"{level}"' for level in get_args(Match))
            raise ValueError(f"`match` is {match!r}: it has to be one of {levels}")
        path = Path(request.path).parent / name
        if match == "contract":
            try:
                contract = load_contract(path)
            except ClawError as error:
                raise _said(error) from None
            if problems := broken(run.trajectory(), contract):
                raise AssertionError(f"not as {path.name} demands:\n" + "\n".join(problems))
            return
        record = run.trajectory()
        check_golden(path, record if match == "exact" else structure(record), request.config)

    return check


def check_golden(path: Path, record: dict[str, Any], config: pytest.Config) -> None:
    """Fails with a diff where ``record`` is not what the file says."""
    __tracebackhide__ = True
    text = dumps(record)
    if config.getoption(UPDATE):
        replace_file(path, text)
    if not path.is_file():
        raise AssertionError(f"no golden file {path.name}: run with {UPDATE}")
    if changes := diff(path.read_text(encoding="utf-8", errors="replace"), text):
        raise AssertionError(f"not as in {path.name} ({UPDATE} rewrites it):\n{changes}")


def _refuse_another(request: pytest.FixtureRequest, path: Path) -> None:
    """The first test to name a file claims it, for all processes of this run."""
    base = request.getfixturevalue("tmp_path_factory").getbasetemp()
    # A worker of xdist has a folder of its own, in one that it shares with the others.
    shared = base.parent if hasattr(request.config, "workerinput") else base
    claim = shared / f"claw-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()}"
    try:
        with claim.open("x", encoding="utf-8") as file:
            file.write(request.node.nodeid)
    except FileExistsError:
        # It is empty for as long as the other process has not yet written.
        first = claim.read_text(encoding="utf-8") or "another test"
        if first != request.node.nodeid:
            pytest.fail(f"{first} is recorded in {path.name} already: give each test its own")


def _passed(request: pytest.FixtureRequest) -> bool:
    return bool(request.node.stash.get(PASSED, False))


def _said(error: Exception) -> BaseException:
    """A failure in its words alone."""
    hint = error.hint if isinstance(error, ClawError) else ""
    return pytest.fail.Exception("\n".join(filter(None, (str(error), hint))), pytrace=False)
