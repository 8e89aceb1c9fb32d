"""Recorded replies of real servers, damaged: as ``tests/wire/test_fuzz.py``, from these seeds."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest

from tests.wire.fuzzing import Seed, sweep

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[3] / "shared")
CASES = SHARED / "cases"
DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
}
LONGEST = 20_000
BLOCK = 2500

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_dir(), reason=f"no outside corpora at {SHARED}"),
]


@functools.cache
def recorded() -> list[Seed]:
    seeds: list[Seed] = []
    for path in sorted(CASES.glob("stream*/**/*.json")):
        case = json.loads(path.read_bytes())
        body = case["response"]["body_text"].encode()
        if case.get("api") in DIALECTS and 0 < len(body) < LONGEST:
            seeds.append(Seed(DIALECTS[case["api"]], body))
    return seeds


async def test_damaged_recordings():
    assert len(recorded()) > 300
    await sweep(recorded(), 0, 400)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", range(8))
async def test_many_damaged_recordings(block):
    await sweep(recorded(), 100_000 + block * BLOCK, BLOCK)
