"""Exchanges of real servers, recorded in sessions: every reply is the same when it is replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from claw.app.furnish import furnish
from claw.app.wishes import Lent, Wishes
from claw.engine.replaying import replay_session
from claw.models.http import HttpRequest, HttpResponse
from claw.testing import FakeClock
from tests.corpus.recorded import NEEDS_CORPUS, Case, cases
from tests.replay.wires import client

pytestmark = NEEDS_CORPUS
EVERY = 16


class Answering:
    """A transport with the same answer to every request, in pieces of five bytes."""

    def __init__(self, case: Case) -> None:
        self.case = case

    async def send(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(self.case.status, self.case.headers, self._chunks(), self.aclose)

    async def _chunks(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self.case.body), 5):
            yield self.case.body[at : at + 5]

    async def aclose(self) -> None:
        """Nothing is open."""


async def replays(folder: Path, case: Case) -> bool:
    folder.mkdir()
    model = client(case.dialect, Answering(case), "http://127.0.0.1", record_wire=True)
    wishes = Wishes(cwd=str(folder), env={"HOME": str(folder)}, max_steps=2)
    house = await furnish(wishes, lent=Lent(model=model, clock=FakeClock()))
    await house.runtime.run_turn("go")
    await house.close()
    assert house.journal_path is not None
    return (await replay_session(house.journal_path)).same


@pytest.mark.parametrize("every", [EVERY, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.no_replay("each is replayed here")
async def test_every_reply_is_decoded_as_it_was(tmp_path: Path, every: int):
    chosen = [*cases("streams"), *cases("stream_errors")][::every]
    assert len(chosen) > 20
    same = {case.name: await replays(tmp_path / str(n), case) for n, case in enumerate(chosen)}
    assert [name for name, is_so in same.items() if not is_so] == []
