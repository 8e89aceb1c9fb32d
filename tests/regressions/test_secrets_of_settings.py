"""Keys that the settings name are secrets too, whatever their names look like."""

from pathlib import Path

from claw.testing import Harness, calls, says

KEY, HEADER = "plain-looking-value", "another-plain-value"


async def test_profile_keys_and_headers_are_redacted(tmp_path: Path) -> None:
    hook = {"type": "command", "command": f"true {HEADER}"}
    settings = {
        "providers": {
            "mine": {
                "dialect": "openai-chat",
                "baseUrl": "http://127.0.0.1:1/v1",
                "apiKeyEnv": "MY_LLM",
                "headers": {"X-Team": HEADER},
            }
        },
        "hooks": {"Stop": [{"hooks": [hook]}]},
    }
    files = {"config.txt": f"a {KEY} b {HEADER} c\n"}
    script = [calls(("Read", {"file_path": "config.txt"})), says("ok")]
    env = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "MY_LLM": KEY}
    async with Harness(tmp_path, script, settings=settings, files=files, env=env) as run:
        (text,) = run.results(await run.turn("go"))
        assert "a [redacted:MY_LLM] b [redacted:mine.X-Team] c" in text
        folder = Path(run.house.journal_path or "").parent
        kept = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
        assert KEY.encode() not in kept
        assert HEADER.encode() not in kept
