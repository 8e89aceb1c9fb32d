from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.policy.redact import KnownSecrets, known_secrets

# Put together here, so that no scanner takes this file for a leak.
SHAPED = {
    "anthropic-key": "sk-ant-" + "api03-" + "a1B2" * 8,
    "openai-key": "sk-" + "proj-" + "a1B2" * 8,
    "github-token": "ghp" + "_" + "a1B2" * 9,
    "gitlab-token": "glpat" + "-" + "a1B2" * 5,
    "aws-access-key": "AKIA" + "A1B2" * 4,
    "slack-token": "xoxb" + "-" + "1234567890-abc",
    "google-key": "AIza" + "a1B2x" * 7,
    "huggingface-token": "hf" + "_" + "a1B2" * 9,
    "private-key": "-----BEGIN "
    + "RSA PRIVATE KEY-----\n   1\tMIIE\n-----END RSA PRIVATE KEY-----",
}
ENVIRONMENT = {
    "MY_API_KEY": "hunter2hunter2",
    "MY_API_KEY_OLD": "hunter2hunter2-and-more",
    "DB_PASSWORD": "correct horse",
    "SHORT_TOKEN": "abc",
    "KEYBOARD_LAYOUT": "dvorak-intl",
    "TOKEN_FILE": "/run/secrets/token",
    "PWD": "/home/somebody",
    "PLAIN": "nothing to hide",
}


def redactor() -> KnownSecrets:
    return KnownSecrets(known_secrets(ENVIRONMENT))


def test_variables_are_judged_by_their_names() -> None:
    assert sorted(known_secrets(ENVIRONMENT)) == ["DB_PASSWORD", "MY_API_KEY", "MY_API_KEY_OLD"]


def test_known_values_go_the_longest_first() -> None:
    text = "a hunter2hunter2-and-more b hunter2hunter2 c correct horse d nothing to hide"
    assert redactor().clean(text) == (
        "a [redacted:MY_API_KEY_OLD] b [redacted:MY_API_KEY] c [redacted:DB_PASSWORD] "
        "d nothing to hide"
    )


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_go_without_being_known(name: str) -> None:
    assert KnownSecrets({}).clean(f"x={SHAPED[name]}\n") == f"x=[redacted:{name}]\n"


@pytest.mark.parametrize(
    "text",
    ["task-0123456789abcdef0123456789", "sk-short", "disk-usage-report-for-all-hosts", "AKIAXXX",
     "BEGIN PRIVATE KEY", "ghp_x"],
)  # fmt: skip
def test_lookalikes_stay(text: str) -> None:
    assert KnownSecrets({}).clean(text) == text


def test_a_key_that_was_cut_off_goes_as_well() -> None:
    cut = "-----BEGIN " + "PRIVATE KEY-----\n" + "a1B2" * 16 + "\n" + "a1B2" * 16 + "\nrest"
    assert KnownSecrets({}).clean(cut) == "[redacted:private-key]\nrest"


def test_a_secret_that_looks_like_a_mark_changes_no_mark() -> None:
    odd = KnownSecrets({"PASSWORD": "redacted", "TOKEN": "PASSWORD"})
    once = odd.clean("the word redacted, and PASSWORD")
    assert once == "the word [redacted:PASSWORD], and [redacted:TOKEN]"
    assert odd.clean(once) == once


pieces = st.one_of(
    st.sampled_from([*SHAPED.values(), *ENVIRONMENT.values(), "sk-", "[redacted:X]", "-----"]),
    st.text(max_size=12),
)


@given(st.lists(pieces, max_size=8).map("".join))
def test_once_is_enough_and_nothing_known_is_left(text: str) -> None:
    once = redactor().clean(text)
    assert redactor().clean(once) == once
    for value in known_secrets(ENVIRONMENT).values():
        assert value not in once
