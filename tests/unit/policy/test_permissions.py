from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.policy.headless import HeadlessApprover
from claw.policy.permissions import ModePolicy
from claw.types.effects import Execute, Facts, Observed, ReadPath, Remember, WritePath
from claw.types.permissions import MODES, PermissionMode, Question, Rule
from claw.types.tools import ToolSpec

BASH = ToolSpec("Bash", "", {})
EDIT = ToolSpec("Edit", "", {})
READ = ToolSpec("Read", "", {}, read_only=True)

paths = st.from_regex(r"[a-z.]{1,6}(/[a-z.]{1,6}){0,2}", fullmatch=True).filter(
    lambda path: path == os.path.normpath(path) and not path.startswith("..")
)
observed = st.one_of(
    st.builds(lambda c: Observed(Execute(c)), st.text(max_size=20)),
    st.builds(
        lambda p, inside, private: Observed(
            ReadPath(p), f"/w/{p}" if inside else f"/{p}", p if inside else "", inside, "", private
        ),
        paths,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        lambda p, protected: Observed(WritePath(p), f"/w/{p}", p, True, protected),
        paths,
        st.sampled_from(["", "because"]),
    ),
    st.just(Observed(Remember())),
)
rules = st.builds(
    Rule,
    st.sampled_from(["allow", "ask", "deny"]),
    st.sampled_from(["Bash", "Edit", "Read", "Write", "Grep"]),
    st.one_of(st.just(""), paths, st.text(alphabet="ab*?[]!-/ :~.", max_size=8)),
)
calls = st.tuples(
    st.sampled_from([BASH, EDIT, READ]),
    st.builds(Facts, st.lists(observed, max_size=3).map(tuple)),
    st.sampled_from(MODES),
)


@given(calls, st.lists(rules, max_size=6), st.randoms(use_true_random=False))
def test_more_deny_and_ask_rules_never_widen_and_order_does_not_count(
    call: tuple[ToolSpec, Facts, PermissionMode], many: list[Rule], random: object
) -> None:
    strictness = {"allow": 0, "ask": 1, "deny": 2}
    spec, facts, mode = call
    narrowing = [rule for rule in many if rule.behavior != "allow"]
    widening = [rule for rule in many if rule.behavior == "allow"]
    plain = ModePolicy().judge(spec, facts, mode, ())
    narrowed = ModePolicy(narrowing).judge(spec, facts, mode, ())
    everything = ModePolicy(many).judge(spec, facts, mode, ())
    backwards = ModePolicy(many[::-1]).judge(spec, facts, mode, ())
    assert strictness[narrowed.behavior] >= strictness[plain.behavior]
    assert everything.behavior == backwards.behavior
    if narrowed.behavior != plain.behavior:  # some deny or ask rule decided: it stands
        assert everything.behavior == narrowed.behavior
    if mode in ("plan", "read-only"):
        assert everything.behavior == narrowed.behavior
    split = ModePolicy(narrowing).judge(spec, facts, mode, widening)
    assert split.behavior == everything.behavior


@given(calls)
def test_what_is_offered_allows_this_call_again_and_is_shown_whole(
    call: tuple[ToolSpec, Facts, PermissionMode],
) -> None:
    spec, facts, _ = call
    policy = ModePolicy()
    offered = policy.offer(spec, facts)
    if offered is None or policy.judge(spec, facts, "default", ()).behavior == "deny":
        return
    assert offered.behavior == "allow"
    assert policy.judge(spec, facts, "default", (offered,)).behavior == "allow"


@pytest.mark.parametrize(
    ("spec", "seen", "offered"),
    [
        (BASH, Observed(Execute("npm test")), "Bash(npm test)"),
        (BASH, Observed(Execute("npm test | sh")), None),
        (BASH, Observed(Execute("rm *")), None),
        (EDIT, Observed(WritePath("a b"), "/w/a b", "a b"), "Edit(./a b)"),
        (EDIT, Observed(WritePath("../x"), "/x", "", False), "Edit(//x)"),
        (EDIT, Observed(WritePath("[x]"), "/w/[x]", "[x]"), None),
        (EDIT, Observed(WritePath(".git/x"), "/w/.git/x", ".git/x", True, "git"), None),
    ],
)
def test_offers(spec: ToolSpec, seen: Observed, offered: str | None) -> None:
    rule = ModePolicy().offer(spec, Facts((seen,)))
    assert (str(rule) if rule else None) == offered


def test_an_offer_covers_no_other_command() -> None:
    policy = ModePolicy()
    rule = policy.offer(BASH, Facts((Observed(Execute("go test ./...")),)))
    assert rule is not None
    for other in ("go test ./... | sh", "go test ./... ; ls", "go test ./x"):
        facts = Facts((Observed(Execute(other)),))
        assert policy.judge(BASH, facts, "default", (rule,)).behavior == "ask"


async def test_with_nobody_there_the_answer_is_no_and_says_what_would_help() -> None:
    answer = await HeadlessApprover().ask(Question("id", "Bash", "ls", "`Bash` may change things"))
    assert not answer.allow
    assert not answer.asked
    assert "`Bash` may change things" in answer.reason
    assert "--allowedTools" in answer.reason
