"""Glob and Grep, with ripgrep and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claw.errors import ToolFailed
from claw.tools.catalog import ToolList
from claw.tools.glob import Glob
from claw.tools.grep import Grep
from claw.tools.patterns import literal_prefix, path_matcher
from claw.tools.plain_search import PlainSearch
from claw.tools.query import Searcher
from claw.tools.ripgrep import Ripgrep, find_ripgrep
from claw.types.effects import ReadPath
from tests.unit.tools.conftest import Bench

FILES = {
    "fixture.txt": "alpha parity line\nbeta line\ngamma parity line\n",
    "src/app.py": "def main():\n    return 1\n\n\ndef Main2():\n    return 2\n",
    "src/deep/x.ts": "const main = 1\n",
    ".hidden/y.py": "main\n",
    ".env": "KEY=main\n",
    "with space.txt": "words\n",
    "dash-1-name.txt": "dashes\n",
}


@pytest.fixture(params=["ripgrep", "plain"])
def search(request: pytest.FixtureRequest, bench: Bench) -> Bench:
    """A bench whose Glob and Grep use ripgrep, or do without."""
    rg = find_ripgrep(str(bench.root))
    if rg is None and request.param == "ripgrep":
        pytest.skip("ripgrep is not installed")
    for name, text in FILES.items():
        (bench.root / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.root / name).write_text(text)
    searcher: Searcher = PlainSearch(bench.workspace, lambda path: False)
    if rg is not None and request.param == "ripgrep":
        searcher = Ripgrep(rg, str(bench.root), bench.processes, lambda path: False)
    bench.tools = ToolList([Glob(bench.workspace, searcher), Grep(bench.workspace, searcher)])
    return bench


def listed(text: str) -> list[str]:
    return [line for line in text.split("\n")[1:] if not line.startswith("[")]


async def test_files_with_matches(search: Bench) -> None:
    text = await search.run("Grep", pattern="main")
    assert text.startswith("Found 3 files\n")
    assert listed(text) == [".hidden/y.py", "src/app.py", "src/deep/x.ts"]


async def test_occurrences_are_counted(search: Bench) -> None:
    text = await search.run("grep_search", pattern="a", path="fixture.txt", output_mode="count")
    assert text.startswith("Found 7 occurrences in 1 file\nfixture.txt:7")


async def test_content_with_context(search: Bench) -> None:
    text = await search.run(
        "Grep", pattern="main", path="src", output_mode="content", **{"-A": 1, "-i": True}
    )
    assert listed(text) == [
        "src/app.py:1:def main():",
        "src/app.py-2-    return 1",
        "--",
        "src/app.py:5:def Main2():",
        "src/app.py-6-    return 2",
        "--",
        "src/deep/x.ts:1:const main = 1",
    ]
    assert text.startswith("Found 3 matching lines in 2 files")


async def test_matches_over_lines(search: Bench) -> None:
    text = await search.run(
        "Grep", pattern=r"main\(\):.*return 1", multiline=True, output_mode="content"
    )
    assert listed(text) == ["src/app.py:1:def main():", "src/app.py:2:    return 1"]


@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", [".hidden/y.py", "src/app.py"]),
        ("src/**/*.ts", ["src/deep/x.ts"]),
        ("*.{py,ts}", [".hidden/y.py", "src/app.py", "src/deep/x.ts"]),
        ("!*.py", ["src/deep/x.ts"]),
    ],
)
async def test_a_glob_narrows(search: Bench, glob: str, files: list[str]) -> None:
    assert listed(await search.run("Grep", pattern="main", glob=glob)) == files


async def test_results_are_bounded(search: Bench) -> None:
    (search.root / "many.txt").write_text("hit\n" * 1000)
    text = await search.run("Grep", pattern="hit", output_mode="content", head_limit=3)
    assert listed(text) == [f"many.txt:{n}:hit" for n in (1, 2, 3)]
    assert "the first 3 are shown" in text
    (search.root / "wide.txt").write_text("w" * 250_000 + "\n")
    assert len(await search.run("Grep", pattern="w+", output_mode="content")) < 2000


async def test_secrets_are_searched_only_when_named(search: Bench) -> None:
    assert "No matches" in await search.run("Grep", pattern="KEY")
    assert listed(await search.run("Grep", pattern="KEY", path=".env")) == [".env"]


async def test_patterns_are_never_options(search: Bench) -> None:
    assert "No matches" in await search.run("Grep", pattern="--pre=./x.sh")
    assert "dash-1-name.txt:1:dashes" in await search.run(
        "Grep", pattern="-*dashes", output_mode="content"
    )


async def test_what_is_wrong_is_said(search: Bench) -> None:
    with pytest.raises(ToolFailed, match="search failed"):
        await search.run("Grep", pattern="(")
    with pytest.raises(ToolFailed, match="does not exist"):
        await search.run("Grep", pattern="x", path="nowhere")
    with pytest.raises(ToolFailed, match="does not exist"):
        await search.run("Glob", pattern="nowhere/*.py")
    with pytest.raises(ToolFailed, match="type"):
        await search.run("Grep", pattern="x", type="no-such-type")


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("**/*.py", [".hidden/y.py", "src/app.py"]),
        ("*.ts", ["src/deep/x.ts"]),
        ("src/*", ["src/app.py"]),
        ("./*.txt", ["dash-1-name.txt", "fixture.txt", "with space.txt"]),
        ("src/app.py", ["src/app.py"]),
        ("src/**", ["src/app.py", "src/deep/x.ts"]),
        ("{src,lib}/*.py", ["src/app.py"]),
        ("[fw]*.txt", ["fixture.txt", "with space.txt"]),
    ],
)
async def test_glob(search: Bench, pattern: str, files: list[str]) -> None:
    assert listed(await search.run("Glob", pattern=pattern)) == files
    if "/" in pattern and not pattern.startswith("."):
        assert listed(await search.run("Glob", pattern=f"{search.root}/{pattern}")) == files


async def test_links_are_not_followed(search: Bench) -> None:
    (search.root / "loop").symlink_to(".")
    (search.root / "away").symlink_to("/")
    assert listed(await search.run("Glob", pattern="**/app.py")) == ["src/app.py"]


async def test_ignored_files_are_left_out(bench: Bench) -> None:
    if find_ripgrep(str(bench.root)) is None:
        pytest.skip("ripgrep is not installed")
    (bench.root / ".git").mkdir()
    (bench.root / ".git" / "x.py").write_text("main")
    (bench.root / ".gitignore").write_text("build/\n*.log\n")
    (bench.root / "build").mkdir()
    (bench.root / "build" / "o.py").write_text("main")
    (bench.root / "a.log").write_text("main")
    (bench.root / "a.py").write_text("main")
    assert listed(await bench.run("Glob", pattern="**/*.py")) == ["a.py"]
    assert listed(await bench.run("Glob", pattern="*.log")) == ["No files match"][1:]
    assert listed(await bench.run("Grep", pattern="main")) == ["a.py"]
    assert listed(await bench.run("Grep", pattern="main", glob="*.{py,log}")) == ["a.py"]
    assert listed(await bench.run("Grep", pattern="main", type="py")) == ["a.py"]


async def test_the_users_configuration_does_not_count(bench: Bench, tmp_path: Path) -> None:
    (bench.root / "a.txt").write_text("Alpha\n")
    (bench.root / ".ripgreprc").write_text("--ignore-case\n")
    assert "No matches" in await bench.run("Grep", pattern="alpha")


def test_the_walk_starts_where_it_is_judged(bench: Bench) -> None:
    tool = bench.tools.get("Glob")
    assert tool is not None
    for pattern, start in [
        ("../**", "./.."),
        ("/etc/*.conf", "/etc"),
        ("~/x/*", "~/x"),
        ("**", "."),
    ]:
        [effect] = tool.effects(tool.parse({"pattern": pattern}))
        assert isinstance(effect, ReadPath)
        assert os.path.normpath(effect.path) == os.path.normpath(start)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "x/a.py"], ["a.pyc", "a.py/b"]),
        ("a/**/b", ["a/b", "a/x/y/b"], ["ab", "c/a/b"]),
        ("[!a]?.t", ["xy.t"], ["ay.t", "x/.t"]),
        ("a{b,c{d,e}}", ["ab", "acd", "ace"], ["a", "abc"]),
        ("a\\*", ["a*"], ["ab"]),
        ("[]x]", ["]", "x"], ["y"]),
        ("a{b", ["a{b"], ["ab"]),
        ("a.b+(c)", ["a.b+(c)"], ["aab"]),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    matches = path_matcher(pattern)
    assert [path for path in (*yes, *no) if matches(path)] == yes


def test_patterns_do_not_explode() -> None:
    assert not path_matcher("{a,b}" * 20)("a" * 19 + "c")
    with pytest.raises(ToolFailed, match="complex"):
        path_matcher("*a" * 30)
    assert literal_prefix("a/b/*.py") == ("a/b", "*.py")
    assert literal_prefix("/a*/b") == ("/", "a*/b")
