"""``Harness``: a real conversation, with your settings and files, and a model that you lend.

Hooks, permission rules, tools, the system prompt and the journal are the real ones,
in a home and a workspace of their own. Only the model is scripted, and the clock
and the session's name are fixed, so that a run can be compared with a golden file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from msgspec.structs import replace

from claw.app.furnish import House, furnish
from claw.app.wishes import Lent, Wishes
from claw.errors import ConfigError
from claw.models.scripted import ScriptedModel, ScriptReply
from claw.ports import Approver, Clock, ModelClient, Tool
from claw.recordings.trajectory import trajectory
from claw.sessions.blobs import blobs_dir
from claw.sessions.load import read_entries
from claw.testing.checked_model import CheckedModel
from claw.testing.clock import FakeClock
from claw.testing.recording import Recording, RecordingFailed
from claw.types.entries import KnownEntry
from claw.types.messages import text_of
from claw.types.request import Request
from claw.types.results import TurnSummary
from claw.workspace.clock import SystemClock

__all__ = ["Harness"]

SESSION = "session"


class Harness:
    """``async with Harness(tmp_path, [calls(...), says(...)]) as run: await run.turn("...")``.

    ``model`` is a script, a ``Recording`` or any client. ``files`` are written to the workspace
    first; ``settings`` become the user's settings file, and mistakes in any settings are a
    ``ConfigError`` when the conversation opens; ``tools`` are offered besides claw's
    own, of which ``only`` names those to offer; ``wishes`` are the other fields of
    ``claw.app.wishes.Wishes`` (``mode``, ``allow``, ...).
    """

    def __init__(
        self,
        folder: Path,
        model: Sequence[ScriptReply] | ModelClient,
        *,
        files: Mapping[str, str | bytes] | None = None,
        settings: Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        tools: Sequence[Tool] = (),
        only: Sequence[str] | None = None,
        clock: Clock | None = None,
        **wishes: Any,
    ) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        if isinstance(wishes.get("allow"), str) or isinstance(wishes.get("deny"), str):
            raise TypeError('`allow` and `deny` are lists of rules: `allow=["Bash"]`')
        if isinstance(only, str):
            raise TypeError(f"`only` is a list of tools: `only=[{only!r}]`")
        if isinstance(model, str | bytes):  # a sequence, too, but of no replies
            raise TypeError(
                f"`model` is the text {model!r}: it has to be a list of replies "
                f"(`[says({model!r})]`), a recording or a client"
            )
        scripted = ScriptedModel(model) if isinstance(model, Sequence) else model
        self.script = scripted if isinstance(scripted, ScriptedModel) else None
        self.model = CheckedModel(scripted)
        self._approver = approver
        self._tools = tuple(tools)
        self._recording = model if isinstance(model, Recording) else None
        asks = self._recording is not None and self._recording.records  # a server's waits are real
        self._clock = clock or (SystemClock() if asks else FakeClock())
        own = (tool.spec.name for tool in self._tools)
        self._wishes = {**wishes, "tools": None if only is None else (*only, *own)}
        self._house: House | None = None
        self.workspace.mkdir(parents=True, exist_ok=True)
        (self.home / ".claw").mkdir(parents=True, exist_ok=True, mode=0o700)
        if files is not None and not isinstance(files, Mapping):
            raise TypeError("`files` maps paths in the workspace to what is in them")
        for name, content in (files or {}).items():
            if os.path.isabs(name) or ".." in Path(name).parts or not Path(name).parts:
                raise ValueError(
                    f"`files`: {name!r} is no file of the workspace: name it from there, `a.py`"
                )
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        if settings is not None:
            (self.home / ".claw/settings.json").write_bytes(msgspec.json.encode(settings))

    @property
    def house(self) -> House:
        assert self._house is not None, "use the harness in `async with`"
        return self._house

    @property
    def requests(self) -> list[Request]:
        """What was sent to the model."""
        return self.model.requests

    @property
    def entries(self) -> list[KnownEntry]:
        """The session's journal, read back from disk."""
        records = [record.entry for record in read_entries(str(self.journal))]
        return [entry for entry in records if isinstance(entry, KnownEntry)]

    @property
    def journal(self) -> Path:
        """The session's file. Raises ``ValueError`` where there is none, or none yet."""
        path = self.house.journal_path
        if path is None:
            raise ValueError("a session that is kept in memory only has no journal")
        if not os.path.exists(path):
            raise ValueError("nothing is on record yet: run a turn first")
        return Path(path)

    async def turn(self, prompt: str) -> TurnSummary:
        """Run one turn to its end."""
        __tracebackhide__ = True
        try:
            return await self.house.runtime.run_turn(prompt)
        except RecordingFailed as failure:
            raise failure.with_traceback(None) from None  # its words say where, not our frames

    def results(self, summary: TurnSummary) -> list[str]:
        """The texts of a turn's tool results, in order."""
        return [text_of(result.content) for result in summary.tool_results]

    def trajectory(self) -> dict[str, Any]:
        """The normalised record of the session so far, for a golden file."""
        return trajectory(self.entries, {path: f"${{{name}}}" for path, name in self._places()})

    async def __aenter__(self) -> Harness:
        wishes: dict[str, Any] = {
            "cwd": str(self.workspace),
            "session_id": SESSION,
            "origin": "sdk",
            "env": self.env,
        }
        if "session" in self._wishes:
            del wishes["session_id"]
        lent = Lent(model=self.model, clock=self._clock, tools=self._tools)
        if self._recording is not None:
            lent = replace(lent, name=self._recording.model)
        self._house = await furnish(
            Wishes(**{**wishes, **self._wishes}), approver=self._approver, lent=lent
        )
        try:
            _refuse_mistakes(self._house)
            if self._recording is not None:
                self._recording.enter(self._places(), self._house.blobs, self._house.stack)
        except BaseException:
            await self._house.close()
            raise
        self._house.runtime.listen(self.model.heard)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.house.close()
        if error is None and self.script is not None:
            self.script.assert_finished()

    def _places(self) -> list[tuple[str, str]]:
        """Paths and their names; of a name the real path comes last."""
        named = ((self.home, "HOME"), (self.workspace, "CWD"))
        places = [(str(at), name) for path, name in named for at in (path, path.resolve())]
        journal = self.house.journal_path
        return [*places, (blobs_dir(journal), "BLOBS")] if journal else places

    @property
    def env(self) -> dict[str, str]:
        """A bare environment: nothing of the machine's own settings or keys."""
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
        return {**kept, "HOME": str(self.home)}


def _refuse_mistakes(house: House) -> None:
    """A rule or a hook that is not there would let a test of it pass."""
    wrong = [
        notice.text
        for notice in house.notices
        if notice.level == "warning" and notice.code in ("settings", "rule", "hook")
    ]
    if wrong:
        raise ConfigError("\n".join(("the settings of this test have mistakes:", *wrong)))
