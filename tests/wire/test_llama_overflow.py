"""A conversation that outgrows the window of a real llama.cpp server goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from claw.compaction.compactor import PruningCompactor
from claw.compaction.plan import Estimates
from claw.compaction.summarize import Summarizer
from claw.compaction.trigger import Policy
from claw.models.dialect import DIALECTS, Dialect
from claw.models.estimate import estimate_request, estimate_tokens
from claw.testing import conversation
from claw.types.events import Notice
from claw.types.messages import text_of
from claw.types.request import Sampling
from claw.types.results import AutoCompactionEvent
from tests.wire.test_llama_server import client, running

WINDOW = 1_024
PROMPT = "Remember the number {0}. " + "The sky is blue and the grass is green. " * 32


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    with running(str(WINDOW)) as address:
        yield address


@pytest.mark.long
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_turn_is_answered(small: str, dialect: Dialect):
    told: list[Notice] = []
    async with client(small, dialect) as model:
        compactor = PruningCompactor(
            Policy(auto=False),  # so that the server itself has to refuse
            Estimates(estimate_request, estimate_tokens),
            told.append,
            summarizer=Summarizer(model, "smollm2", estimate_tokens),
        )
        runtime = conversation(model, compactor=compactor, sampling=Sampling("smollm2", 24))
        compactions: list[AutoCompactionEvent] = []
        for number in range(5):
            summary = await runtime.run_turn(PROMPT.format(number))
            assert summary.stop_reason in ("completed", "output_limit"), summary.error
            compactions += summary.compactions
        assert {c.trigger for c in compactions} == {"overflow"}
        said = [text_of(message.content) for message in runtime.state.transcript.messages]
        assert sum("number 4." in text for text in said) == 1
