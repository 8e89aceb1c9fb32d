from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.policy.rules import RuleProblem, keeps_unread, names_tool, parse_rule, split_rules
from claw.types.permissions import Behavior, Rule
from claw.types.tools import ToolSpec

SPECS = (
    ToolSpec("Read", "", {}, aliases=("read_file",)),
    ToolSpec("Bash", "", {}),
    ToolSpec("TodoWrite", "", {}),
)


@pytest.mark.parametrize(
    ("text", "tool", "content"),
    [
        ("Bash", "Bash", ""),
        ("bash", "Bash", ""),
        (" BASH( npm test:* ) ", "Bash", "npm test:*"),
        ("Bash(*)", "Bash", ""),
        ("Bash()", "Bash", ""),
        ("read_file(./a (1).txt)", "Read", "./a (1).txt"),
        ("WebFetch(domain:example.com)", "WebFetch", "domain:example.com"),
        ("mcp__github__create_issue", "mcp__github__create_issue", ""),
        ("mcp__github__*", "mcp__github__*", ""),
    ],
)
def test_rules_are_read(text: str, tool: str, content: str) -> None:
    assert parse_rule(text, "allow", "here", SPECS) == Rule("allow", tool, content, "here")


@pytest.mark.parametrize(
    ("text", "behavior", "message", "hint"),
    [
        ("Bash(npm test", "deny", "not a rule", "Tool(content)"),
        ("Bash(x:*) in allow and deny", "deny", "not a rule", ""),
        ("", "deny", "not a rule", ""),
        ("Bsah(rm:*)", "deny", "no tool `Bsah`", "`Bash`"),
        ("__proto__", "allow", "no tool", ""),
        ("mcp__*", "allow", "name the server", "mcp__server__*"),
        ("Bash(git * main)", "allow", "at the end only", ":*"),
        ("TodoWrite(x)", "deny", "takes no content", "`TodoWrite`"),
    ],
)
def test_rules_that_can_never_match_are_reported(
    text: str, behavior: Behavior, message: str, hint: str
) -> None:
    problem = parse_rule(text, behavior, "settings.json:3", SPECS)
    assert isinstance(problem, RuleProblem)
    assert message in problem.message
    assert hint in problem.hint
    assert str(problem).startswith("settings.json:3: ")


@given(st.text(max_size=40), st.sampled_from(["allow", "ask", "deny"]))
def test_any_text_is_a_rule_or_a_problem(text: str, behavior: Behavior) -> None:
    assert isinstance(parse_rule(text, behavior, "", SPECS), Rule | RuleProblem)


@pytest.mark.parametrize(
    ("rule", "tool", "named"),
    [
        ("mcp__github__*", "mcp__github__create", True),
        ("mcp__github", "mcp__github__create", True),
        ("mcp__github", "mcp__github_evil__x", False),
        ("mcp__github__create", "mcp__github__delete", False),
        ("mcp__github", "mcp__GitHub__x", False),
        ("mcp__*", "mcp__x__y", True),
    ],
)
def test_rules_on_servers(rule: str, tool: str, named: bool) -> None:
    assert names_tool(Rule("deny", rule), ToolSpec(tool, "", {})) is named


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Read", ["Read"]),
        ("Read,Edit", ["Read", "Edit"]),
        ("Read Edit", ["Read", "Edit"]),
        ("Bash(npm test:*), Read", ["Bash(npm test:*)", "Read"]),
        ("Bash(git log a, b) Bash(x (y) z)", ["Bash(git log a, b)", "Bash(x (y) z)"]),
        ("Bash(npm test", ["Bash(npm test"]),
        (" , ", []),
    ],
)
def test_a_flag_holds_several_rules(text: str, rules: list[str]) -> None:
    assert split_rules(text) == rules


def test_searches_are_told_what_to_leave_out() -> None:
    rules = [
        Rule("deny", "Read", "./secrets/**"),
        Rule("deny", "Read"),
        Rule("ask", "Read", "a"),
        Rule("deny", "Bash", "rm:*"),
        Rule("deny", "Grep", "b"),
    ]
    hidden = [
        path for path in ("secrets/a", "secrets", "b", "x/b", "c") if keeps_unread(rules, path)
    ]
    assert hidden == ["secrets/a", "secrets", "b", "x/b"]
