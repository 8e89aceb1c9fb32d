"""`claw view` and the page that `claw export` writes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.cli.running import Ended, Workplace

SECRET = "swordfish-42"


@pytest.fixture
async def session(place: Workplace) -> Path:
    model = place.script(
        {"calls": [{"name": "Bash", "input": {"command": f"echo {SECRET}"}}]}, f"It is {SECRET}."
    )
    ended = await place.run(
        "-p", f"say {SECRET}", "--model", model, "--permission-mode", "bypassPermissions"
    )
    assert ended.code == 0, ended.err
    (path,) = place.home.glob(".claw/sessions/*/*.jsonl")
    return path


async def view(place: Workplace, *args: str, **env: str) -> Ended:
    """With temporary files of its own, and an opener that only notes what it is given."""
    tools = place.home / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("xdg-open", "open"):
        (tools / name).write_text(f'#!/bin/sh\necho "$1" >> "{place.home}/opened"\n')
        (tools / name).chmod(0o755)
    temporary = place.home / "tmp"
    temporary.mkdir(exist_ok=True)
    path = f"{tools}:{place.env['PATH']}"
    return await place.run("view", *args, env={"PATH": path, "TMPDIR": str(temporary), **env})


def opened(place: Workplace) -> list[str]:
    note = place.home / "opened"
    return note.read_text().splitlines() if note.exists() else []


async def test_it_writes_a_private_page_and_opens_it(place: Workplace, session: Path) -> None:
    ended = await view(place, "latest")
    assert (ended.code, ended.err) == (0, "")
    page = Path(ended.out.removesuffix("\n"))
    assert page.parent == place.home / "tmp"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert page.read_text().startswith("<!doctype html>")
    assert f"say {SECRET}" in page.read_text()
    assert opened(place) == [str(page)]


async def test_it_opens_nothing_where_that_is_not_wanted(place: Workplace, session: Path) -> None:
    ended = await view(place, session.stem, "--no-open", "--output", "page.html")
    assert ended.out == f"{place.work / 'page.html'}\n"
    assert opened(place) == []
    assert stat.S_IMODE((place.work / "page.html").stat().st_mode) == 0o600
    told = await view(place, "latest", "--no-open", "-o", "page.html", "--output-format", "json")
    size = (place.work / "page.html").stat().st_size
    assert told.json == {"path": str(place.work / "page.html"), "bytes": size}


async def test_an_opener_that_cannot_is_a_hint(place: Workplace, session: Path) -> None:
    await view(place, "latest")
    for name in ("xdg-open", "open"):
        (place.home / "tools" / name).write_text("#!/bin/sh\nexit 3\n")
    path = f"{place.home / 'tools'}:{place.env['PATH']}"
    ended = await place.run("view", "latest", "-o", "page.html", env={"PATH": path})
    assert ended.code == 0
    assert "could not open it" in ended.err
    assert ended.out == f"{place.work / 'page.html'}\n"


async def test_secrets_are_taken_out_of_the_page(place: Workplace, session: Path) -> None:
    for args in (
        ("view", "latest", "--no-open", "-o", "a.html"),
        ("export", "latest", "--format", "html"),
    ):
        ended = await place.run(*args, env={"MY_PASSWORD": SECRET})
        assert ended.code == 0, ended.err
        html = ended.out if args[0] == "export" else (place.work / "a.html").read_text()
        assert SECRET not in html
        assert "[redacted:MY_PASSWORD]" in html


async def test_an_exported_page_is_the_page(place: Workplace, session: Path) -> None:
    await view(place, "latest", "--no-open", "-o", "a.html")
    for name in ("--format", "--output-format"):
        assert (await place.run("export", "latest", name, "html", "-o", "b.html")).code == 0
        assert (place.work / "b.html").read_bytes() == (place.work / "a.html").read_bytes()
    assert (await place.run("export", "latest", "--format", "pdf")).code == 2


async def test_a_damaged_or_unknown_session(place: Workplace, session: Path) -> None:
    lines = session.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"kind"', b'"kinb"')
    session.write_bytes(b"".join(lines))
    damaged = await view(place, "latest", "-o", "page.html")
    assert (damaged.code, damaged.out) == (1, "")
    assert "is damaged in line 3" in damaged.err
    assert "--salvage" in damaged.err
    unknown = await view(place, "20991231-none")
    assert (unknown.code, unknown.out) == (1, "")
    assert "20991231-none" in unknown.err
    (place.work / "notes.txt").write_text("hello\n")
    foreign = await view(place, str(place.work / "notes.txt"))
    assert foreign.code == 1
    assert "no session" in foreign.err
    assert opened(place) == []
    assert not (place.work / "page.html").exists()
    assert os.listdir(place.home / "tmp") == []


async def test_a_page_never_replaces_the_session(place: Workplace, session: Path) -> None:
    before = session.read_bytes()
    for target in (str(session), str(place.work), "/no/such/dir/x.html"):
        assert (await view(place, "latest", "-o", target)).code == 1, target
    assert session.read_bytes() == before
    assert opened(place) == []


async def test_nowhere_to_write(place: Workplace, session: Path) -> None:
    ended = await place.run("view", "latest", "-o", "/dev/null/x")
    assert ended.code == 1
    assert "cannot write" in ended.err
