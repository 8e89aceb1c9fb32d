"""Which rule holds for which call: one line a case."""

from __future__ import annotations

import os
from typing import Any

import pytest

from claw.policy.permissions import ModePolicy
from claw.policy.rules import RuleProblem, parse_rule
from claw.types.effects import Effect, Execute, Facts, Observed, ReadPath, WritePath
from claw.types.permissions import PermissionMode, Rule
from claw.types.tools import ToolSpec

ROOT = "/w"
SPECS = (
    ToolSpec("Read", "", {}, aliases=("read_file",), read_only=True),
    ToolSpec("Grep", "", {}, aliases=("grep_search",), read_only=True),
    ToolSpec("Glob", "", {}, aliases=("glob_search",), read_only=True),
    ToolSpec("Write", "", {}, aliases=("write_file",)),
    ToolSpec("Edit", "", {}, aliases=("edit_file",)),
    ToolSpec("Bash", "", {}, aliases=("bash",)),
)


def spec(name: str) -> ToolSpec:
    return next(s for s in SPECS if s.name == name)


def observe(tool: str, subject: str, real: str | None = None) -> Facts:
    if tool == "Bash":
        return Facts((Observed(Execute(subject), real=ROOT),))
    effect: Effect = WritePath(subject) if tool in ("Write", "Edit") else ReadPath(subject)
    where = real or os.path.normpath(os.path.join(ROOT, os.path.expanduser(subject)))
    inside = where == ROOT or where.startswith(f"{ROOT}/")
    relative = os.path.relpath(where, ROOT) if inside else ""
    return Facts((Observed(effect, real=where, relative=relative, inside=inside),))


def rules(**by_behavior: Any) -> list[Rule]:
    parsed = [
        parse_rule(text, behavior, "test", SPECS)  # type: ignore[arg-type]
        for behavior, texts in by_behavior.items()
        for text in texts
    ]
    assert not [p for p in parsed if isinstance(p, RuleProblem)]
    return [rule for rule in parsed if isinstance(rule, Rule)]


def judge(
    tool: str, subject: str, mode: PermissionMode, real: str | None = None, **by_behavior: Any
) -> str:
    policy = ModePolicy(rules(**by_behavior))
    return policy.judge(spec(tool), observe(tool, subject, real), mode, ()).behavior


ALLOWED_COMMANDS = [
    ("Bash(npm test:*)", "npm test", "allow"),
    ("Bash(npm test:*)", "npm  test --watch", "allow"),
    ("bash(npm test:*)", "npm test", "allow"),
    ("Bash(npm test *)", "npm test a", "allow"),
    ("Bash(npm test)", "npm test", "allow"),
    ("Bash(npm test)", "npm test --x", "ask"),
    ("Bash", "anything; at all", "allow"),
    ("Bash(*)", "anything; at all", "allow"),
    ("Bash(ls*)", "lsof -i", "allow"),
    ('Bash(git commit:*)', 'git commit -m "two words"', "allow"),
    ("Bash(npm test:*)", "npm testament", "ask"),
    ("Bash(npm test:*)", "npm test-all", "ask"),
    ("Bash(npm test:*)", "NPM test", "ask"),
    ("Bash(npm test:*)", "npm tеst", "ask"),  # a Cyrillic letter
    ("Bash(npm test:*)", "npm\u200b test", "ask"),
    ("Bash(npm test:*)", "X=1 npm test", "ask"),
    ("Bash(npm test:*)", "/tmp/npm test", "ask"),
    *(
        ("Bash(npm test:*)", f"npm test{more}", "ask")
        for more in (
            " && rm x", "; rm x", " || rm x", " | sh", " & rm x", "\nrm x", " > x", " < x",
            " $(rm x)", " `rm x`", " <(rm x)", " $HOME", " {a,b}", " *", " ~", " 2>&1", " \\; rm",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "command", "expected"), ALLOWED_COMMANDS)
@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
def test_an_allow_rule_covers_one_plain_command(
    rule: str, command: str, expected: str, mode: PermissionMode
) -> None:
    assert judge("Bash", command, mode, allow=[rule]) == expected


DENIED_COMMANDS = [
    "rm x", "  rm   x", "rm", "ls && rm x", "ls; rm x", "ls || rm x", "ls | rm x", "ls & rm x",
    "ls\nrm x", "(rm x)", "{ rm x; }", "echo $(rm x)", "echo `rm x`", "cat <(rm x)",
    "/bin/rm x", "../../bin/rm x", "\\rm x", "r\"m\" x", "'rm' x", "$'rm' x", "A=1 rm x",
    "command rm x", "env A=1 rm x", "sudo -u root rm x", "nohup rm x", "timeout 5 rm x",
    "xargs rm", "ls | xargs -n1 rm", "find . -exec rm {} +", "find . -exec /bin/rm {} \\;",
    "for f in *; do rm $f; done", "if true; then rm x; fi", "f(){ rm x; }; f",
    "bash -c 'rm x'", 'sh -c "ls; rm x"', "time rm x", "! rm x", "watch rm x", "r\\\nm x",
]  # fmt: skip


@pytest.mark.parametrize("command", DENIED_COMMANDS)
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "plan"])
def test_a_deny_rule_finds_its_command_in_every_part(command: str, mode: PermissionMode) -> None:
    assert judge("Bash", command, mode, deny=["Bash(rm:*)"], allow=["Bash"]) == "deny"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git push", "deny"),
        ("git -c a.b=c push origin", "deny"),
        ("git --no-pager push", "deny"),
        ("git --work-tree . --git-dir=.git push", "deny"),
        ("/usr/bin/git -C x push", "deny"),
        ("git log --grep push", "allow"),
        ("git commit -m push", "allow"),
    ],
)
def test_options_before_a_subcommand_hide_nothing(command: str, expected: str) -> None:
    assert judge("Bash", command, "bypassPermissions", deny=["Bash(git push:*)"]) == expected


@pytest.mark.parametrize("command", DENIED_COMMANDS)
def test_an_ask_rule_finds_it_as_well(command: str) -> None:
    assert judge("Bash", command, "bypassPermissions", ask=["Bash(rm:*)"]) == "ask"


@pytest.mark.parametrize(
    "command",
    ["echo 'rm -rf x'", "grep -rn 'rm -rf' .", "rmdir x", "ls rm", "git rm x", "echo $(date)"],
)
def test_a_deny_rule_leaves_others_alone(command: str) -> None:
    assert judge("Bash", command, "bypassPermissions", deny=["Bash(rm:*)"]) == "allow"


@pytest.mark.parametrize(
    "command",
    ["c=rm; $c x", "$(echo rm) x", "r$(echo m) x", "echo cm0= | base64 -d | sh", "eval $x",
     "env $c x", "bash x.sh", "`echo rm` x", "$'\\x72m' x"],
)  # fmt: skip
def test_a_command_that_cannot_be_read_is_asked_about_where_a_rule_might_concern_it(
    command: str,
) -> None:
    assert judge("Bash", command, "bypassPermissions", deny=["Bash(rm:*)"]) == "ask"
    assert judge("Bash", command, "bypassPermissions") == "allow"


PATHS = [
    # rule, tool, path, real path, behaviour in acceptEdits
    ("Read(./secrets/**)", "Read", "secrets/key", None, "deny"),
    ("Read(./secrets/**)", "Read", "secrets/a/b/key", None, "deny"),
    ("Read(./secrets/**)", "Read", "src/../secrets/key", None, "deny"),
    ("Read(./secrets/**)", "Read", "/w/secrets/key", None, "deny"),
    ("Read(./secrets/**)", "Read", "secrets//key", None, "deny"),
    ("Read(./secrets/**)", "Read", "link", "/w/secrets/key", "deny"),
    ("Read(link)", "Read", "link", "/w/other", "deny"),
    ("Read(./secrets/**)", "Grep", "secrets", None, "deny"),
    ("Read(./secrets/**)", "Glob", "secrets/sub", None, "deny"),
    ("Read(secrets/**)", "Read", "src/secrets/key", None, "allow"),
    ("Read(secrets)", "Read", "src/secrets/key", None, "deny"),
    ("Read(./secrets)", "Read", "secrets/key", None, "deny"),
    ("Read(./secrets/)", "Read", "secrets/key", None, "deny"),
    ("Read(./secrets/**)", "Read", "secrets2/key", None, "allow"),
    ("Read(**/.env*)", "Read", ".env", None, "deny"),
    ("Read(**/.env*)", "Read", "a/b/.env.local", None, "deny"),
    ("Read(**/.env*)", "Read", "environment.md", None, "allow"),
    ("Read(a?b)", "Read", "a/b", None, "allow"),
    ("Read(a?b)", "Read", "axb", None, "deny"),
    ("Read(*.pem)", "Read", "deep/down/x.pem", None, "deny"),
    ("Read([ab].txt)", "Read", "a.txt", None, "deny"),
    ("Read([!ab].txt)", "Read", "a.txt", None, "allow"),
    ("Read([z-a].txt)", "Read", "a.txt", None, "allow"),
    ("Read(//etc/**)", "Read", "/etc/passwd", None, "deny"),
    ("Read(/etc/passwd)", "Read", "/etc/passwd", None, "deny"),
    ("Read(/src/**)", "Read", "src/x", None, "deny"),
    ("Read(~/.ssh/**)", "Read", "~/.ssh/id", None, "deny"),
    ("Read(**)", "Grep", ".", None, "deny"),
    ("Read", "Grep", ".", None, "allow"),
    ("Read", "Read", "x", None, "deny"),
    ("read_file(./x)", "Read", "x", None, "deny"),
    ("Edit(src/**)", "Edit", "src/x", None, "deny"),
    ("Edit(src/**)", "Write", "src/x", None, "deny"),
    ("write_file(src/**)", "Edit", "src/x", None, "deny"),
    ("Edit(src/**)", "Read", "src/x", None, "allow"),
]


@pytest.mark.parametrize(("rule", "tool", "path", "real", "expected"), PATHS)
def test_deny_rules_on_paths(
    rule: str, tool: str, path: str, real: str | None, expected: str
) -> None:
    assert judge(tool, path, "acceptEdits", real, deny=[rule]) == expected
    wide = judge(tool, path, "bypassPermissions", real, deny=[rule], allow=[tool])
    assert wide == expected


@pytest.mark.parametrize(
    ("rule", "tool", "path", "real", "expected"),
    [
        ("Edit(src/**)", "Edit", "src/x", None, "allow"),
        ("Edit(src/**)", "Write", "src/x", None, "allow"),
        ("Edit(src/**)", "Edit", "lib/x", None, "ask"),
        ("Edit(src/**)", "Edit", "src/../../outside/x", None, "ask"),
        ("Edit(src/**)", "Edit", "src/link", "/outside/src/x", "ask"),
        ("Edit(*.md)", "Edit", "/outside/x.md", None, "ask"),
        ("Edit(/etc/x)", "Edit", "/etc/x", None, "ask"),
        ("Edit(//etc/x)", "Edit", "/etc/x", None, "allow"),
        ("Read(//etc/**)", "Read", "/etc/passwd", None, "allow"),
        ("Read(//etc/**)", "Grep", "/etc/ssl", None, "allow"),
        ("Read(//etc/**)", "Read", "/etcetera", None, "ask"),
        ("Read", "Read", "/etc/passwd", None, "allow"),
    ],
)
def test_allow_rules_on_paths(
    rule: str, tool: str, path: str, real: str | None, expected: str
) -> None:
    assert judge(tool, path, "default", real, allow=[rule]) == expected
