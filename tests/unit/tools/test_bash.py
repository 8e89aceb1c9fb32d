from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import ToolFailed
from claw.tools.terminal import plain_text
from tests.unit.tools.conftest import Bench


async def test_output_and_exit_code(bench: Bench) -> None:
    good = await bench.output("bash", command="printf 'alpha from bash'", timeout=1000)
    assert good.content[0].text == "alpha from bash\n[exit code 0]"  # type: ignore[union-attr]
    assert not good.is_error
    bad = await bench.output("Bash", command="echo out; echo err >&2; exit 3")
    assert bad.content[0].text == "out\nerr\n[exit code 3]"  # type: ignore[union-attr]
    assert bad.is_error
    assert "[ended by signal 9]" in await bench.run("Bash", command="kill -9 $$")
    assert "line 1: nope: command not found" in await bench.run("Bash", command="nope")


async def test_the_directory_carries_over(bench: Bench) -> None:
    (bench.root / "a b").mkdir()
    assert f"[working directory: {bench.root}/a b]" in await bench.run("Bash", command="cd 'a b'")
    assert f"{bench.root}/a b\n" in await bench.run("Bash", command="pwd")
    await bench.run("Bash", command="cd ..; exit 1")
    assert await bench.run("Bash", command="pwd") == f"{bench.root}\n[exit code 0]"
    await bench.run("Bash", command="(cd 'a b'); exec >/dev/null; cd 'a b'; echo x")
    assert f"{bench.root}/a b\n" in await bench.run("Bash", command="pwd")


async def test_the_directory_stays_in_the_workspace(bench: Bench) -> None:
    text = await bench.run("Bash", command="cd /; pwd")
    assert text.startswith("/\n")
    assert f"the next command starts in {bench.root}" in text
    assert f"{bench.root}\n" in await bench.run("Bash", command="pwd")


async def test_a_directory_that_is_deleted(bench: Bench) -> None:
    await bench.run("Bash", command="mkdir gone; cd gone; rmdir ../gone")
    text = await bench.run("Bash", command="pwd")
    assert text.startswith(f"{bench.root}\n")
    assert "is gone" in text


async def test_a_timeout_keeps_what_was_printed(bench: Bench) -> None:
    output = await bench.output("Bash", command="echo begun; sleep 100", timeout=300)
    assert output.is_error
    assert output.content[0].text == (  # type: ignore[union-attr]
        "begun\n[ended after 0.3 s, its timeout]"
    )


async def test_endless_and_wide_output(bench: Bench) -> None:
    text = await bench.run("Bash", command="yes", timeout=300)
    assert len(text) < 7_000_000
    assert "bytes omitted" in text
    wide = "head -c 250000 /dev/zero | tr '\\0' x; echo end"
    assert await bench.run("Bash", command=wide) == "x" * 250_000 + "end\n[exit code 0]"


async def test_background_children_are_ended_and_named(bench: Bench) -> None:
    began = time.monotonic()
    text = await bench.run("Bash", command="sleep 100 & echo started")
    assert time.monotonic() - began < 5
    assert text == "started\n[exit code 0]\n[a process that it left running was ended]"


async def test_nothing_asks_and_nothing_waits(bench: Bench) -> None:
    script = "read x; cat; cat /dev/tty; git init -q . && git commit --allow-empty; echo on"
    text = await bench.run("Bash", command=script, timeout=20_000)
    assert text.endswith("on\n[exit code 0]")
    with pytest.raises(ToolFailed, match="background"):
        await bench.run("Bash", command="sleep 1", run_in_background=True)


async def test_progress_is_shown_without_the_report(bench: Bench) -> None:
    await bench.run("Bash", command="echo one; sleep 0.3; echo two; cd /")
    assert "".join(bench.shown).startswith("one\n")
    assert "\x1e" not in "".join(bench.shown)
    assert str(bench.root) not in "".join(bench.shown)


async def test_a_cancel_reaches_the_command(bench: Bench, tmp_path: Path) -> None:
    task = asyncio.create_task(
        bench.output("Bash", command="trap '' TERM; echo x > begun; sleep 100; :")
    )
    for _ in range(500):
        if "begun" in os.listdir(bench.root):
            break
        await asyncio.sleep(0.01)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 10
    assert await bench.run("Bash", command="echo next") == "next\n[exit code 0]"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        (b" 10%\r 50%\r100%\ndone", "100%\ndone"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"spin\r", "spin"),
        (b"b\x08bo\x08ol\x08ld", "bold"),
        (b"bad \xff byte\0", "bad \ufffd byte"),
        (b"tab\tkept", "tab\tkept"),
        (b"\x1b]never ended\nnext", "\nnext"),
    ],
)
def test_terminal_output_becomes_plain(data: bytes, text: str) -> None:
    assert plain_text(data) == text


@given(st.binary(max_size=200))
def test_plain_text_has_no_controls(data: bytes) -> None:
    text = plain_text(data)
    assert not [c for c in text if (ord(c) < 32 and c not in "\t\n") or ord(c) == 127]
    assert text.count("\n") == data.decode("utf-8", "replace").count("\n")


async def test_what_was_not_kept_is_counted(bench: Bench) -> None:
    output = await bench.output("Bash", command="head -c 20000000 /dev/zero | tr '\\0' x")
    assert output.omitted > 10_000_000
    assert f"{output.omitted:,} bytes omitted" in output.content[0].text  # type: ignore[union-attr]
    assert (await bench.output("Bash", command="echo x")).omitted == 0
