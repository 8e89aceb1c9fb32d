"""Prompts are routed by their words: pure, ranked, the same every time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.routing import EXPLICIT, Registry, explicit_command, route_prompt
from claw.types.commands import CommandSpec
from claw.types.tools import ToolSpec

COMMANDS = (
    CommandSpec("compact", "Put a summary in place of what came before."),
    CommandSpec("review", "Look for faults in the changes.", source="user"),
    CommandSpec("session", "Show this session.", words=("会话",)),
)
TOOLS = (
    ToolSpec("Read", "Reads a text file.", {}, aliases=("read_file",), read_only=True),
    ToolSpec("Grep", "Searches file contents with a regular expression.", {}, read_only=True),
    ToolSpec("Bash", "Runs a command in a shell.", {}),
    ToolSpec("TodoWrite", "Keeps a todo list.", {}),
    ToolSpec("mcp__tickets__fetch", "Fetches a ticket. 查询工单。", {}),
)
REGISTRY = Registry("builtin", COMMANDS, TOOLS, {"Grep": ("find", "查找")})
NAMES = [spec.name for spec in (*COMMANDS, *TOOLS)]

prompts = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [*NAMES, "file", "searches", "a", "the", "ls", "summary", "查找", "会话", "/review"]
        ),
        max_size=8,
    ).map(" ".join),
)


def names(prompt: str, **options: int) -> list[str]:
    return [match.name for match in route_prompt(prompt, REGISTRY, **options)]


@settings(deadline=None)
@given(prompts, st.integers(-2, 12), st.randoms(use_true_random=False))
def test_the_order_of_the_registry_does_not_matter(prompt: str, limit: int, rng: random.Random):
    commands, tools = list(COMMANDS), list(TOOLS)
    rng.shuffle(commands)
    rng.shuffle(tools)
    other = Registry("builtin", tuple(commands), tuple(tools), REGISTRY.words)
    assert route_prompt(prompt, other, limit) == route_prompt(prompt, REGISTRY, limit)
    assert other.digest == REGISTRY.digest


@settings(deadline=None)
@given(prompts, st.integers(-2, 12))
def test_matches_are_few_unique_and_scored(prompt: str, limit: int):
    found = route_prompt(prompt, REGISTRY, limit)
    assert len(found) <= max(limit, 0)
    assert found == route_prompt(prompt, REGISTRY, 100)[: max(limit, 0)]
    assert len({(match.kind, match.name) for match in found}) == len(found)
    assert all(1 <= match.score <= 100 for match in found)
    assert all(match.score < EXPLICIT for match in found[1:])


@settings(deadline=None)
@given(prompts)
def test_the_best_of_each_kind_come_before_the_rest(prompt: str):
    found = route_prompt(prompt, REGISTRY, 100)
    rest = found[1:] if found and found[0].score == EXPLICIT else found
    for kind in ("command", "tool"):
        of_kind = [match for match in rest if match.kind == kind]
        if of_kind:
            assert of_kind[0].score == max(match.score for match in of_kind)
            assert rest.index(of_kind[0]) < 2
    others = [m for m in rest if m not in {next(x for x in rest if x.kind == m.kind)}]
    assert others == sorted(others, key=lambda m: (-m.score, m.kind, m.name))


@settings(deadline=None)
@given(st.sampled_from(COMMANDS), st.text(max_size=40))
def test_an_explicit_command_is_first(spec: CommandSpec, rest: str):
    first = route_prompt(f"/{spec.name} {rest}", REGISTRY)[0]
    assert (first.kind, first.name, first.score, first.source) == (
        "command",
        spec.name,
        EXPLICIT,
        spec.source,
    )


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.text("bcdfgq", min_size=1, max_size=4))
def test_parts_of_words_match_nothing(name: str, more: str):
    longer = name.replace("_", "").lower() + more
    assert names(longer) == []
    assert names(more + longer) == []


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "in", "the", "ls", "of", "what", "is", "I", "?", "x"])))
def test_small_words_match_nothing(words: list[str]):
    assert names(" ".join(words)) == []


def test_a_first_word_is_a_command_only_with_its_slash():
    assert route_prompt("/COMPACT now", REGISTRY)[0].score == EXPLICIT
    assert route_prompt("compact now", REGISTRY)[0].score < EXPLICIT
    assert names("/unknown") == []
    assert names("/etc/review/x.md explain")[:1] != ["compact"]


@pytest.mark.parametrize(
    ("prompt", "called"),
    [
        ("/mode plan", ("mode", "plan")),
        ("  /todos", ("todos", "")),
        ("/review a\nb", ("review", "a\nb")),
        ("/etc/hosts", None),
        ("// comment", None),
        ("mode", None),
        ("/", None),
        ("", None),
    ],
)
def test_what_is_an_explicit_command(prompt: str, called: tuple[str, str] | None):
    assert explicit_command(prompt) == called


@pytest.mark.parametrize(
    ("prompt", "first"),
    [
        ("search the files", "Grep"),
        ("READ it", "Read"),
        ("what does read_file do?", "Read"),
        ("my todo list", "TodoWrite"),
        ("在仓库里查找session_lock", "Grep"),
        ("用Bash运行", "Bash"),
        ("查询工单", "mcp__tickets__fetch"),
        ("这个会话", "session"),
    ],
)
def test_words_find_what_they_name(prompt: str, first: str):
    assert names(prompt)[:1] == [first]


def test_rare_words_count_for_more():
    found = {match.name: match.score for match in route_prompt("file expression", REGISTRY)}
    assert found["Grep"] > found["Read"]


def test_the_tools_of_a_server_say_so():
    (match,) = route_prompt("tickets", REGISTRY)
    assert match.source == "mcp:tickets"


def test_the_digest_tells_of_changes():
    assert REGISTRY.digest != Registry("builtin", COMMANDS[:2], TOOLS, REGISTRY.words).digest
    assert REGISTRY.digest != Registry("builtin", COMMANDS, TOOLS).digest
