from careful import instructions, settings

from claw.testing import assert_offered, assert_system_contains, calls, says


def test_the_hook_refuses_a_todo(claw_session, scripted_model):
    write = ("Write", {"file_path": "a.py", "content": "# TODO"})
    run = claw_session(
        scripted_model(calls(write), says("I see.")), settings=settings(), mode="acceptEdits"
    )
    summary = run.turn("write a.py")
    assert "no TODO in files" in run.results(summary)[0]
    assert not (run.workspace / "a.py").exists()


def test_the_rule_lets_nobody_push(claw_session, scripted_model, assert_trajectory):
    push = ("Bash", {"command": "git status && git push origin main"})
    run = claw_session(
        scripted_model(calls(push), says("Not pushed.")), settings=settings(), mode="acceptEdits"
    )
    summary = run.turn("publish it")
    assert summary.permission_denials[0].tool_name == "Bash"
    assert_trajectory(run, "golden/no_push.json", match="structure")


def test_the_prompt_asks_for_tests(claw_session, offline_model, replay):
    run = claw_session(offline_model, files={"AGENTS.md": instructions()})
    run.turn("list files")
    assert_system_contains(run, "Run the tests before")
    assert_offered(run, "Bash")
    assert replay(run.journal).same
