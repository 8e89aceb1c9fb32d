"""What a request costs, and that nothing is guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.models.catalog import ALIASES, KNOWN
from claw.models.prices import cost, price_of
from claw.types.usage import Usage

TOKENS = st.integers(0, 2_000_000)
USAGES = st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS)
UNPRICED = {"gpt-5.6-sol"}  # its introductory price has run out


@pytest.mark.parametrize(
    ("usage", "model", "dollars"),
    [
        (Usage(1_000_000), "claude-opus-5", 5.0),
        (Usage(0, 1_000_000), "claude-opus-5", 25.0),
        (Usage(0, 0, 1_000_000), "claude-opus-5", 0.50),
        (Usage(0, 0, 0, 1_000_000), "claude-opus-5", 6.25),
        (Usage(1_000, 500), "claude-sonnet-5-5", 0.007),
        (Usage(1_000, 500), "gpt-5", 0.00625),
        (Usage(), "claude-haiku-4-5", 0.0),
    ],
)
def test_tokens_times_price(usage: Usage, model: str, dollars: float) -> None:
    assert cost(usage, model) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("model", "edge", "below", "above"),
    [
        ("claude-haiku-5-5", 100_000, 0.10, 0.50),
        ("gpt-6-sol", 272_000, 2.0, 4.0),
        ("grok-4.7", 199_999, 2.0, 4.0),
    ],
)
def test_a_long_request_costs_more_as_a_whole(
    model: str, edge: int, below: float, above: float
) -> None:
    assert cost(Usage(edge), model) == pytest.approx(edge * below / 1e6)
    assert cost(Usage(edge + 1), model) == pytest.approx((edge + 1) * above / 1e6)
    # What comes from the cache counts for the length; what is written out does not.
    read, long = cost(Usage(0, 0, edge), model), cost(Usage(1, 0, edge), model)
    assert (long or 0.0) > 1.5 * (read or 0.0) > 0
    assert cost(Usage(edge, 10**6), model) == pytest.approx(
        edge * below / 1e6 + (cost(Usage(0, 10**6), model) or 0.0)
    )


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5-20250929",
        "anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-sonnet-4-5@20250929",
    ],
)
def test_one_model_by_its_many_names(name: str) -> None:
    assert price_of(name) == price_of("claude-sonnet-4-5") is not None


@pytest.mark.parametrize(
    "name",
    ["", "gpt-5.5-pro", "gpt-5-chat-latest", "claude-opus-5-9", "openai/gpt-oss-120b", "qwen3:8b"],
)
def test_what_is_not_known_stays_unknown(name: str) -> None:
    """A variant of a known model may cost ten times as much."""
    assert cost(Usage(1, 1), name) is None


def test_a_list_price_holds_where_it_was_made() -> None:
    assert cost(Usage(1_000_000), "moonshotai/kimi-k3", ("claude-", "grok-")) is None
    assert cost(Usage(1_000_000), "anthropic/claude-opus-5", ("claude-",)) == pytest.approx(5.0)
    assert cost(Usage(1_000_000), "claude-opus-5", ()) is None


def test_what_the_catalogue_names_has_a_price() -> None:
    assert {name for name in (*KNOWN, *ALIASES.values()) if price_of(name) is None} == UNPRICED


@given(USAGES, USAGES, st.sampled_from(["claude-haiku-5-5", "gpt-6-sol", "gpt-4o"]))
def test_more_tokens_never_cost_less(usage: Usage, more: Usage, model: str) -> None:
    few, many = cost(usage, model), cost(usage + more, model)
    assert few is not None
    assert many is not None
    assert 0 <= few <= many
