"""The system prompt: what is in it, and that nothing else decides its bytes."""

from __future__ import annotations

from claw.prompts.environment import Environment, GitContext
from claw.prompts.instructions import Instruction
from claw.prompts.system import build_system_prompt, instructions_section, with_instructions

GIT = GitContext(
    branch="main",
    head="abc1234",
    changed=3,
    changes=(" M a.py", "?? new file.txt"),
    commits=("abc1234 Latest", "0000001 First"),
)
HERE = Environment(cwd="/w", platform="Linux 6.1 (x86_64)", date="2026-11-30", git=GIT)
NOTES = (Instruction("/w/CLAUDE.md", "Use tabs."), Instruction("/w/a/AGENTS.md", "Or spaces."))


def test_everything_has_its_place() -> None:
    prompt = build_system_prompt(environment=HERE, instructions=NOTES, append="The very end.")
    expected = [
        "You are claw",
        "Working directory: /w",
        "Platform: Linux 6.1 (x86_64)",
        "Date: 2026-11-30",
        "branch main, at abc1234",
        "3 changed or untracked",
        "   M a.py",
        "  ?? new file.txt",
        "... and 1 more",
        "  0000001 First",
        "## /w/CLAUDE.md\n\nUse tabs.",
        "## /w/a/AGENTS.md\n\nOr spaces.",
        "The very end.",
    ]
    places = [prompt.index(part) for part in expected]
    assert places == sorted(places)
    assert prompt.endswith("The very end.")


def test_the_same_inputs_give_the_same_bytes() -> None:
    first = build_system_prompt(environment=HERE, instructions=NOTES)
    assert first == build_system_prompt(environment=HERE, instructions=list(NOTES))


def test_an_override_replaces_guidance_and_environment() -> None:
    prompt = build_system_prompt(
        environment=HERE, instructions=NOTES[:1], append="Last.", override="You translate."
    )
    assert prompt.startswith("You translate.\n\n# Instructions\n")
    assert "claw" not in prompt
    assert prompt.endswith("Use tabs.\n\nLast.")


def test_the_states_of_a_repository_are_told_apart() -> None:
    def lines(git: GitContext | None) -> str:
        place = Environment(cwd="/w", platform="p", date="d", git=git)
        return build_system_prompt(environment=place).partition("Date: d\n")[2]

    assert lines(None) == "Git: not a repository, or git does not answer"
    assert "branch main, no commits yet\nWorking tree: clean" in lines(
        GitContext("main", changed=0)
    )
    assert "no branch checked out, at ab" in lines(GitContext(head="ab", changed=0))
    assert "branch and changes unknown, at ab" in lines(GitContext(head="ab"))


def test_the_guidance_stays_short() -> None:
    prompt = build_system_prompt(environment=Environment(cwd="/w", platform="p", date="d"))
    assert 2_500 < len(prompt) < 5_000


def test_other_instructions_take_the_place_of_those_before():
    before = instructions_section([Instruction("/p/AGENTS.md", "Be quick.")])
    now = instructions_section([Instruction("/p/AGENTS.md", "Be slow.")])
    prompt = f"Opening.\n\n{before}\n\nAppended."
    assert with_instructions(prompt, before, now) == f"Opening.\n\n{now}\n\nAppended."
    assert with_instructions(prompt, before, before) == prompt
    assert with_instructions("Opening.", "", now) == f"Opening.\n\n{now}"
    assert "Be quick." not in with_instructions(prompt, before, "")


def test_instructions_that_nobody_remembers_are_followed_by_those_of_now():
    now = instructions_section([Instruction("/p/AGENTS.md", "Be slow.")])
    assert with_instructions(f"Opening.\n\n{now}", None, now) == f"Opening.\n\n{now}"
    assert with_instructions("Opening.", None, now).endswith(now)
    assert with_instructions("Opening.", None, "") == "Opening."
