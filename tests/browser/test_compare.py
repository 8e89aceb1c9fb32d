"""The page of a replay in a real browser; ``visit`` also holds it to silence."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Tab
from tests.browser.conftest import Open
from tests.browser.test_page import CONTRAST, FOCUSED, found

PAGES = ["stopped", "judged", "attacked", "alike", "replayed-many"]
DIFFERENCES = "document.querySelectorAll('.row.differs').length"


def seen(tab: Tab, selector: str) -> bool:
    """Whether the first of them is in the window."""
    box = f"document.querySelector({selector!r}).getBoundingClientRect()"
    return bool(tab.run(f"(b => b.height > 0 && b.top >= 0 && b.top < innerHeight)({box})"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens(visit: Open, name: str) -> None:
    tab = visit(name)
    assert tab.run("document.compatMode") == "CSS1Compat"
    assert tab.run("document.querySelector('.verdict').offsetHeight") > 20
    assert (tab.run(DIFFERENCES) == 0) == (name == "alike")


def test_a_hostile_replay_executes_nothing(visit: Open) -> None:
    tab = visit("attacked")
    tab.run("document.getElementById('unfold').click()")
    tab.press("/", "owned", "Enter")
    tab.settle()
    assert tab.run("window.owned") is None
    assert tab.run("document.getElementById('bait')") is None
    assert tab.run("document.querySelectorAll('script').length") == 1
    assert tab.run("getComputedStyle(document.querySelector('main')).display") != "none"


def test_differences_by_keyboard(visit: Open) -> None:
    tab = visit("replayed-many")
    last = tab.run(DIFFERENCES)
    reached = []
    for key in ("j", "j", "k", "j"):
        tab.press(key)
        reached.append(tab.run(FOCUSED))
    assert reached == [f"difference-{n}" for n in (1, 2, 1, 2)]
    tab.settle()
    assert seen(tab, "#difference-2")
    assert tab.run("location.hash") == "#difference-2"
    tab.press(*"j" * (last + 3))
    assert tab.run(FOCUSED) == f"difference-{last}"


@pytest.mark.parametrize("key", ["o", "Enter"])
def test_a_difference_is_opened_and_closed(visit: Open, key: str) -> None:
    tab = visit("judged")
    inside = "[...document.querySelectorAll('#difference-2 details')].map(d => d.open)"
    tab.press("j", "j")
    assert set(tab.run(inside)) == {False}
    tab.press(key)
    assert set(tab.run(inside)) == {True}
    tab.press(key)
    assert set(tab.run(inside)) == {False}


def test_enter_follows_a_link_as_ever(visit: Open) -> None:
    tab = visit("judged")
    tab.run("document.querySelector('nav a[href=\"#difference-2\"]').focus()")
    tab.press("Enter")
    tab.settle()
    assert tab.run("location.hash") == "#difference-2"
    assert tab.run(FOCUSED) == "difference-2"


def test_what_is_the_same_is_folded_until_asked_for(visit: Open) -> None:
    tab = visit("alike")
    run = "document.querySelector('details.run')"
    assert tab.run(f"{run}.open") is False
    tab.press("o")
    assert tab.run(f"{run}.open") is True
    assert "Now publish it." in tab.run(f"{run}.innerText")


def test_the_picture_leads_to_steps_that_are_folded(visit: Open) -> None:
    tab = visit("replayed-many")
    tab.run("document.querySelector('.strip a[href=\"#turn-9-step-3\"]').click()")
    tab.settle()
    assert tab.run("document.getElementById('turn-9-step-3').closest('details').open")
    assert seen(tab, "#turn-9-step-3")
    tab.press("j")
    assert tab.run(FOCUSED) == "difference-3"


def test_search_opens_what_hides_it(visit: Open) -> None:
    tab = visit("stopped")
    tab.press("/", "compileall", "Enter")
    tab.settle()
    assert found(tab).startswith("1 / ")
    here = "[...CSS.highlights.get('here')][0].getBoundingClientRect()"
    assert tab.run(f"{here}.height") > 0


def test_help_names_its_keys(visit: Open) -> None:
    tab = visit("judged")
    tab.press("?")
    assert tab.run("document.getElementById('keys').open")
    assert "next, previous difference" in tab.run("document.getElementById('keys').innerText")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["stopped", "judged", "alike"])
def test_text_has_contrast(visit: Open, name: str, dark: bool) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    assert visit(name, dark=dark).run(CONTRAST) == []


@pytest.mark.parametrize("dark", [False, True])
def test_it_follows_the_system(visit: Open, dark: bool) -> None:
    ground = "+getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0]"
    assert (visit("judged", dark=dark).run(ground) < 60) == dark


@pytest.mark.parametrize("name", ["judged", "attacked"])
@pytest.mark.parametrize("width", [320, 600, 1000, 1800])
def test_it_never_scrolls_sideways(visit: Open, name: str, width: int) -> None:
    tab = visit(name, width=width)
    tab.run("document.getElementById('unfold').click()")
    tab.settle()
    assert tab.run("document.documentElement.scrollWidth") <= width


def test_sides_stand_beside_each_other_where_there_is_room(visit: Open) -> None:
    sides = "[...document.querySelectorAll('#difference-2 > .pair > .side')]"
    lefts = f"new Set({sides}.map(s => s.getBoundingClientRect().left)).size"
    assert visit("judged", width=1200).run(lefts) == 2
    assert visit("judged", width=500).run(lefts) == 1


def test_print_shows_the_differences_and_not_the_rest(visit: Open) -> None:
    tab = visit("judged")
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run("document.querySelectorAll('.run[open], .run [open]').length") == 0
    assert tab.run("document.querySelector('#difference-2 .call').open")
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert not tab.run("document.querySelector('#difference-2 .call').open")


def test_it_can_be_read_without_its_script(visit: Open) -> None:
    tab = visit("judged", script=False)
    assert "First at turn 1, step 0" in tab.run("document.querySelector('.verdict').innerText")
    assert tab.run("document.querySelector('#difference-1').offsetHeight") > 50


def test_a_long_replay_is_quick(visit: Open) -> None:
    tab = visit("replayed-many")
    loaded = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    assert tab.run(loaded) < 5_000  # benchmarks/viewer.py measures it
