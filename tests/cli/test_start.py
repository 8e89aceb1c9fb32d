"""What works without any turn: help, version, usage errors; and how little it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from claw.version import __version__
from tests.cli.running import Workplace

NEVER = {
    *("claw.engine", "claw.routing", "jsonschema", "referencing"),
    *("concurrent.futures.thread", "ctypes", "httpx2", "importlib.metadata", "jinja2"),
    *("multiprocessing", "platformdirs", "prompt_toolkit", "psutil", "pydantic", "pygments"),
    *("rapidfuzz", "rich", "sqlite3", "tempfile", "tomlkit", "unittest", "xml", "yaml"),
}
HEAVY = {
    *("asyncio", "claw.app", "ctypes", "httpx2", "logging", "msgspec", "multiprocessing"),
    *("prompt_toolkit", "pydantic", "rich", "sqlite3", "ssl", "tempfile", "unittest", "yaml"),
}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_little(option: str):
    program = (
        "import sys; from claw.cli.main import run; code = run([sys.argv[1]]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, option], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stderr.split())


def test_a_turn_loads_no_more_than_it_needs(place: Workplace):
    program = (
        "import sys; from claw.cli.main import run; code = run(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "-p", "hi", "--model", place.script("hello")],
        capture_output=True,
        text=True,
        check=True,
        env=place.env,
        cwd=place.work,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout == "hello\n"
    assert not NEVER & set(done.stderr.split())


async def test_the_version(place: Workplace):
    ended = await place.run("--version")
    assert (ended.code, ended.out) == (0, f"claw {__version__}\n")


async def test_help_teaches(place: Workplace):
    ended = await place.run("--help")
    assert ended.code == 0
    for word in ("Examples:", "--output-format", "--continue", "doctor", "Limits of a turn:"):
        assert word in ended.out


@pytest.mark.parametrize("command", ["config", "doctor", "models"])
async def test_commands_have_their_own_help(place: Workplace, command: str):
    ended = await place.run(command, "--help")
    assert ended.code == 0
    assert f"claw {command}" in ended.out


async def test_no_prompt_and_no_terminal(place: Workplace):
    ended = await place.run("-p", "--model", place.script("hi"))
    assert ended.code == 2
    assert ended.out == ""
    assert len(ended.err.splitlines()) <= 2
    assert (await place.run("--model", place.script("hi"), stdin="")).code == 2


async def test_a_word_close_to_a_command_is_no_prompt(place: Workplace):
    ended = await place.run("confg", "--model", place.script("never"))
    assert ended.code == 2
    assert "claw config" in ended.err
    assert ended.out == ""


async def test_help_is_no_prompt(place: Workplace):
    ended = await place.run("help", "--model", place.script("never"))
    assert ended.code == 2
    assert "claw --help" in ended.err


async def test_any_other_single_word_is_a_prompt(place: Workplace):
    ended = await place.run("explain", "--model", place.script("I explain."))
    assert (ended.code, ended.out) == (0, "I explain.\n")


@pytest.mark.parametrize(
    "args",
    [
        ("--nonsense",),
        ("--output-format", "xml"),
        ("--max-turns", "none"),
        ("--permission-mode", "x"),
        ("--continue", "--resume", "x"),
        ("--include-partial-messages",),
    ],
)
async def test_wrong_usage_is_said_once_with_exit_2(place: Workplace, args: tuple[str, ...]):
    ended = await place.run("-p", "hi", *args)
    assert ended.code == 2
    assert ended.out == ""
    assert "--help" in ended.err
    assert "Traceback" not in ended.err


async def test_a_usage_error_in_a_json_form_is_json(place: Workplace):
    ended = await place.run("-p", "hi", "--output-format", "json", "--nonsense")
    assert ended.code == 2
    assert ended.json["subtype"] == "error_before_turn"
    assert ended.json["errors"][0]["kind"] == "usage"


@pytest.mark.parametrize("form", ["json", "stream-json"])
async def test_an_error_before_the_turn_in_a_json_form_is_json(place: Workplace, form: str):
    ended = await place.run("-p", "hi", f"--output-format={form}", "--model", "script:/no/file")
    assert ended.code == 1
    assert ended.json["subtype"] == "error_before_turn"
    assert ended.json["is_error"] is True
    assert ended.json["errors"][0]["kind"] == "config"


async def test_the_home_directory_is_refused_as_a_workspace(place: Workplace):
    model = place.script("hi")
    refused = await place.run("-p", "hi", "--model", model, cwd=place.home)
    assert refused.code == 1
    assert "--allow-broad-cwd" in refused.err
    allowed = await place.run("-p", "hi", "--model", model, "--allow-broad-cwd", cwd=place.home)
    assert allowed.code == 0
    elsewhere = await place.run(
        "-p", "hi", "--model", model, "--cwd", str(place.work), cwd=place.home
    )
    assert elsewhere.code == 0
