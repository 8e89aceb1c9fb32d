"""What the plugin's fixtures give: apart from it, so that it is loaded when a test asks for one."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import pytest

from claw.engine.live import Live, Part
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
        return self.harness.journal

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


def replayer(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Replayed]:
    """What ``replay`` calls."""
    beside = Path(request.path).parent

    def check(
        session: Session | str | os.PathLike[str],
        live: str | Iterable[Part] | None = None,
        **options: Any,
    ) -> Replayed:
        if isinstance(session, Session):
            path, env = session.journal, session.harness.env
        elif isinstance(session, str | os.PathLike):
            path, env = beside / session, dict(os.environ)
        else:
            raise TypeError(f"{session!r} is no `claw_session` and no session's file")
        today = None
        if live is not None:
            for name in {"settings_file", "cwd"} & options.keys():
                options[name] = os.fspath(beside / options[name])
            today = Live(_parts(live), **{"env": env, **options})
        elif options:
            raise ValueError(f'`{min(options)}` is for live parts: name them, `live="policy"`')
        report = run_again(os.fspath(path), today)
        try:
            report.check()
        except ReplayMismatch as error:
            page = tmp_path / "replay.html"
            page.write_bytes(page_of_replay(os.fspath(path), report, str))
            error.add_note(f"Both sides are in {page}")
            raise
        return report

    return check


def _parts(live: str | Iterable[Part]) -> frozenset[Part]:
    """Raises ``ValueError`` for what is no part, and for none: it would pass for nothing."""
    known = get_args(Part)
    named = [name.strip() for name in live.split(",")] if isinstance(live, str) else [*live]
    if strange := [name for name in named if name not in known]:
        raise ValueError(f"`live` has `{strange[0]}`: the parts are {', '.join(known)}")
    if not named:
        raise ValueError(f"`live` names no part: they are {', '.join(known)}")
    return frozenset(part for part in known if part in named)


def trajectories(request: pytest.FixtureRequest) -> Callable[..., None]:
    """What ``assert_trajectory`` calls."""

    def check(run: HasTrajectory, name: str, match: Match = "exact") -> None:
        __tracebackhide__ = True
        if match not in get_args(Match):
            levels = ", ".join(f'"{level}"' for level in get_args(Match))
            raise ValueError(f"`match` is {match!r}: it has to be one of {levels}")
        if not hasattr(run, "trajectory"):
            raise TypeError(f"{run!r} is no run: a `claw_session` or a `Harness` is one")
        path = Path(request.path).parent / name
        if match == "contract":
            try:
                contract = load_contract(path)
            except ClawError as error:
                raise _said(error) from None
            requests: list[Request] = getattr(run, "requests", [])
            offered = [spec for sent in requests for spec in sent.tools]
            try:
                problems = broken(run.trajectory(), contract, offered)
            except ClawError as error:
                raise _said(error) from None
            if problems:
                raise AssertionError(f"not as {path.name} demands:\n" + "\n".join(problems))
            return
        record = run.trajectory() if match == "exact" else structure(run.trajectory())
        if request.config.getoption(UPDATE):
            _refuse_other_content(request, path, dumps(record))
        check_golden(path, record, request.config)

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
    first = _claimed(request, path, request.node.nodeid)
    if first != request.node.nodeid:
        pytest.fail(f"{first} is recorded in {path.name} already: give each test its own")


def _refuse_other_content(request: pytest.FixtureRequest, path: Path, text: str) -> None:
    """What is rewritten twice in one run has to come out alike, or the next run would fail."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if _claimed(request, path, digest) != digest:
        pytest.fail(f"{path.name} was rewritten with another content in this run: one file a test")


def _claimed(request: pytest.FixtureRequest, path: Path, by: str) -> str:
    """Who claimed the file first, in all processes of this run."""
    base: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
    # A worker of xdist has a folder of its own, in one that it shares with the others.
    shared = base.parent if hasattr(request.config, "workerinput") else base
    claim = shared / f"claw-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()}"
    written = claim.with_name(f"{claim.name}.{os.getpid()}")
    written.write_text(by, encoding="utf-8")
    try:
        os.link(written, claim)  # whoever finds it finds it whole
    except FileExistsError:
        return claim.read_text(encoding="utf-8")
    finally:
        written.unlink()
    return by


def _passed(request: pytest.FixtureRequest) -> bool:
    return bool(request.node.stash.get(PASSED, False))


def _said(error: Exception) -> BaseException:
    """A failure in its words alone."""
    hint = error.hint if isinstance(error, ClawError) else ""
    return pytest.fail.Exception("\n".join(filter(None, (str(error), hint))), pytrace=False)
