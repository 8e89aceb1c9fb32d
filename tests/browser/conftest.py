from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, Tab, find_chromium
from tests.comparing import comparisons
from tests.viewing import everything, hostile, page_of, page_of_many

Open = Callable[..., Tab]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = find_chromium()
    if program is None:
        pytest.skip("there is no chromium here")
    with Chromium(program, tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ``everything.html``, ``hostile.html``, ``many.html`` and comparisons."""
    folder = tmp_path_factory.mktemp("pages")
    for make in (everything, hostile):
        path = asyncio.run(make(folder / make.__name__))
        (folder / f"{make.__name__}.html").write_text(page_of(path), encoding="utf-8")
    (folder / "many.html").write_text(page_of_many(2_000), encoding="utf-8")
    for name, replayed in comparisons(folder / "replays"):
        (folder / f"{name}.html").write_text(replayed, encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser: Chromium, pages: Path) -> Iterator[Open]:
    """Open a page by name; at the end of the test none of them has complained or asked anyone."""
    tabs: list[Tab] = []
    if not browser.alive:  # one that died takes only its own test with it
        browser.restart()

    def open(name: str, anchor: str = "", **window: int | bool) -> Tab:
        url = (pages / f"{name}.html").as_uri()
        tabs.append(browser.open(f"{url}{anchor}", **window))  # type: ignore[arg-type]
        return tabs[-1]

    yield open
    for tab in tabs:
        assert tab.complaints == []
        assert len(tab.requests) <= 1, tab.requests  # the page itself
        tab.close()
