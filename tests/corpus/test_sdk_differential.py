"""The same bytes through the vendors' SDKs and through claw: the same message out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from claw.models.dialect import DIALECTS
from tests.corpus.recorded import NEEDS_CORPUS, Case, Failure, cases, ours, outcome

pytestmark = [
    *NEEDS_CORPUS,
    # Their types warn of what servers send beside them.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

RAISES = "raises"
WE_RAISE = "we raise"

SDK_FAULTS = {
    # The output limit cut the call: the SDK fills in the rest of its JSON by a guess.
    "anthropic-messages/015": ({"calls"}, rb'"stop_reason":"max_tokens"'),
    # Usage where only this server puts it.
    "groq-chat/007": ({"usage"}, rb'"x_groq":\{[^{}]*"usage":\{'),
    "groq-chat/008": ({"usage"}, rb'"x_groq":\{[^{}]*"usage":\{'),
    "groq-chat/009": ({"usage"}, rb'"x_groq":\{[^{}]*"usage":\{'),
    # Any object is a completion to it.
    "misbehaving-server-chat/001": ({WE_RAISE}, rb'\A(?!.*"choices")'),
    # A call without an index.
    "mistral-chat/004": ({RAISES}, rb'"tool_calls":\[\{(?![^{}]*"index")'),
    # Content as a list of parts, and then as text.
    "mistral-chat/010": ({"text", "thinking"}, rb'"content":\[\{"type":"thinking"'),
    "mistral-chat/011": ({"thinking"}, rb'"content":\[\{"type":"thinking"'),
    # Another chunk after the one with the usage: the SDK forgets it.
    "openai-chat/033": ({"usage"}, rb'"usage":\{"prompt_tokens"[^\n]*\n\ndata: \{'),
    # The first call has the index 1.
    "openai-compatible-chat/001": ({RAISES}, rb'"tool_calls":\[\{"index":1,"id"'),
    # Lists whose entries have no index.
    "openrouter-chat/021": ({RAISES}, rb'"reasoning_details":\[\{(?![^{}]*"index")'),
    "openrouter-chat/027": ({RAISES}, rb'"annotations":\[\{(?![^{}]*"index")'),
    # "The limit is reached" as an error, after the finish reason that said so.
    "openrouter-chat/023": ({RAISES}, rb'"finish_reason":"length"(?s:.*)"error":\{'),
}
"""Where the SDK is wrong: the fields that differ, and what in the bytes shows it."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_streams_and_bodies(dialect: str, oracle: Any):
    seen = 0
    for case in cases("streams"):
        if case.dialect == dialect:
            differs = differences(oracle, case)
            expected, shown_by = SDK_FAULTS.get(case.name, (set(), b""))
            assert differs == expected, case.name
            assert re.search(shown_by, case.body), case.name
            seen += 1
    assert seen > 100


def differences(oracle: Any, case: Case) -> set[str]:
    """The fields in which the two readers differ."""
    theirs = oracle.read(case.dialect, case.status, case.headers, case.body)
    got = outcome(case, [case.body])
    if isinstance(got, Failure):
        return set() if theirs is None else {WE_RAISE}
    return {RAISES} if theirs is None else set(theirs.differences(ours(got)))


def test_the_faults_are_few():
    assert len(SDK_FAULTS) <= 20
