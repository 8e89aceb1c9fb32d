"""The session page in a real browser: every test also holds it to silence (``visit``)."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Tab
from tests.browser.conftest import Open

FOCUSED = "document.activeElement.id"


def found(tab: Tab) -> str:
    return str(tab.run("document.getElementById('found').value"))


def highlighted(tab: Tab, name: str) -> list[str]:
    texts = f"[...(CSS.highlights.get('{name}') ?? [])].map(String)"
    return list(tab.run(texts))


@pytest.mark.parametrize("name", ["everything", "hostile", "many"])
def test_a_page_opens(visit: Open, name: str) -> None:
    tab = visit(name)
    assert tab.run("document.querySelectorAll('.turn').length") > 0
    assert tab.run("document.compatMode") == "CSS1Compat"


def test_a_hostile_session_executes_nothing(visit: Open) -> None:
    tab = visit("hostile")
    tab.press("o", "/", "owned", "Enter")
    tab.settle()
    tab.run("document.querySelectorAll('main a').forEach(a => a.dispatchEvent(new Event('focus')))")
    assert tab.run("window.owned") is None
    assert tab.run("document.getElementById('bait')") is None
    assert tab.run("document.querySelectorAll('script').length") == 1
    assert tab.run("getComputedStyle(document.querySelector('main')).display") != "none"


def test_the_policy_holds_against_what_gets_in_all_the_same(visit: Open) -> None:
    tab = visit("everything")
    tab.run(
        "document.addEventListener('securitypolicyviolation', e => "
        "(window.refused ??= []).push(e.effectiveDirective));"
        "document.body.insertAdjacentHTML('beforeend', "
        "'<img src=x onerror=\"window.owned = 1\"><img src=http://127.0.0.1:9/x.png>');"
        "const s = document.createElement('script'); s.text = 'window.owned = 2';"
        "document.body.append(s)"
    )
    tab.settle()
    assert tab.run("window.owned") is None
    assert {"img-src", "script-src-elem"} <= set(tab.run("window.refused"))
    assert len(tab.requests) == 1
    tab.forget()  # the complaints were asked for


def test_steps_by_keyboard(visit: Open) -> None:
    tab = visit("everything")
    seen = []
    for key in ("j", "j", "k", "j", "j"):
        tab.press(key)
        seen.append(tab.run(FOCUSED))
    assert seen == [f"turn-1-step-{n}" for n in (1, 2, 1, 2, 3)]
    assert tab.run("location.hash") == "#turn-1-step-3"
    assert 0 <= tab.run("document.activeElement.getBoundingClientRect().top") < 200
    tab.press(*"k" * 9)
    assert tab.run(FOCUSED) == "turn-1-step-1"
    tab.press(*"j" * 40)
    last = tab.run("[...document.querySelectorAll('.step')].at(-1).id")
    assert tab.run(FOCUSED) == last


def test_opening_and_closing(visit: Open) -> None:
    tab = visit("everything")
    inside = "[...document.querySelectorAll('#turn-1-step-3 details')].map(d => d.open)"
    tab.press("j", "j", "j", "o")
    assert set(tab.run(inside)) == {True}
    tab.press("o")
    assert set(tab.run(inside)) == {False}
    tab.run("document.getElementById('unfold').click()")
    assert tab.run("document.querySelectorAll('main details:not([open])').length") == 0
    tab.run("document.getElementById('fold').click()")
    assert tab.run("document.querySelectorAll('main details[open]').length") == 0


def test_search_forwards_and_back(visit: Open) -> None:
    tab = visit("everything")
    tab.press("/")
    assert tab.run(FOCUSED) == "query"
    tab.press("LOCK.ACQUIRE(")
    tab.settle()
    matches = highlighted(tab, "found")
    assert matches
    assert {match.lower() for match in matches} == {"lock.acquire("}
    assert found(tab) == f"{len(matches)} found"
    tab.press("Enter")
    assert found(tab) == f"1 / {len(matches)}"
    assert highlighted(tab, "here") == matches[:1]
    here = "[...CSS.highlights.get('here')][0].getBoundingClientRect()"
    tab.settle()
    assert 0 < tab.run(f"{here}.top") < 900
    assert tab.run(f"{here}.height") > 0  # what hid it is open now
    tab.run("document.activeElement.blur()")
    tab.press("n")
    assert found(tab) == f"2 / {len(matches)}"
    tab.press("N", "N")
    assert found(tab) == f"{len(matches)} / {len(matches)}"
    tab.press("/", "Escape")
    assert found(tab) == ""
    assert highlighted(tab, "found") == []


def test_search_crosses_markup_but_not_paragraphs(visit: Open) -> None:
    tab = visit("everything")
    tab.press("/", "taken twice: once in session.py", "Enter")
    tab.settle()
    assert found(tab).startswith("1 / ")
    tab.press("Escape", "/", "taken?Fix", "Enter")
    tab.settle()
    assert found(tab) == "0 found"


def test_typing_is_no_command(visit: Open) -> None:
    tab = visit("everything")
    tab.press("/", "jotn?")
    assert tab.run("document.getElementById('query').value") == "jotn?"
    assert tab.run("location.hash") == ""
    assert not tab.run("document.getElementById('keys').open")


def test_help_opens_and_closes(visit: Open) -> None:
    tab = visit("everything")
    tab.press("?")
    assert tab.run("document.getElementById('keys').open")
    tab.press("j")
    assert tab.run("location.hash") == ""
    tab.press("Escape")
    assert not tab.run("document.getElementById('keys').open")


def test_tab_reaches_all_with_a_visible_focus(visit: Open) -> None:
    tab = visit("everything")
    tab.run("document.getElementById('fold').click()")
    reached = []
    for _ in range(200):
        tab.press("Tab")
        here = "document.activeElement"
        if tab.run(f"{here} === document.body"):
            break
        assert tab.run(f"getComputedStyle({here}).outlineStyle") != "none", tab.run(
            f"{here}.outerHTML"
        )
        assert tab.run(f"({here}.innerText || {here}.ariaLabel || '').trim() !== ''")
        reached.append(tab.run(f"{here}.id || {here}.tagName"))
    wanted = {"query", "previous", "next", "unfold", "fold", "theme", "help", "SUMMARY", "A"}
    assert wanted <= set(reached)
    assert reached.count("SUMMARY") == tab.run(
        "document.querySelectorAll('summary').length"
    ) - tab.run("document.querySelectorAll('details details > summary').length")


@pytest.mark.parametrize("dark", [False, True])
def test_it_follows_the_system_and_the_button(visit: Open, dark: bool) -> None:
    def brightness(tab: Tab) -> int:
        return int(
            tab.run("+getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0]")
        )

    tab = visit("everything", dark=dark)
    assert (brightness(tab) < 60) == dark
    tab.press("t")
    assert (brightness(tab) < 60) != dark
    tab.run("document.getElementById('theme').click()")
    assert (brightness(tab) < 60) == dark


CONTRAST = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color, under = [255, 255, 255]) => {
    canvas.fillStyle = `rgb(${under})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const ground = (e) =>
    e ? rgb(getComputedStyle(e).backgroundColor, ground(e.parentElement)) : [255, 255, 255];
  const light = (c) => {
    const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = c.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const owner = node.parentElement;
    if (!node.data.trim() || owner.closest("script, style, svg")) continue;
    const under = ground(owner);
    const [a, b] = [light(under), light(rgb(getComputedStyle(owner).color, under))].sort();
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push([ratio, owner.className, node.data.slice(0, 30)]);
  }
  return low;
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(visit: Open, dark: bool) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    assert visit("everything", dark=dark).run(CONTRAST) == []


@pytest.mark.parametrize("name", ["everything", "hostile"])
@pytest.mark.parametrize("width", [320, 400, 1600])
def test_it_never_scrolls_sideways(visit: Open, name: str, width: int) -> None:
    tab = visit(name, width=width)
    tab.run("document.getElementById('unfold').click()")
    tab.settle()
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("document.body.getBoundingClientRect().width") <= 72 * 16


def test_links_lead_to_a_step(visit: Open) -> None:
    tab = visit("many", "#turn-3-step-2")
    tab.settle()
    assert tab.run(FOCUSED) == "turn-3-step-2"
    top = "document.getElementById('turn-3-step-2').getBoundingClientRect().top"
    assert 0 <= tab.run(top) < 300
    tab.press("j")
    assert tab.run(FOCUSED) == "turn-3-step-3"
    tab.run("document.querySelector('.charts a').dispatchEvent(new MouseEvent('click'))")
    assert tab.run("location.hash") == "#turn-1-step-1"


def test_figures_change_their_axis(visit: Open) -> None:
    tab = visit("everything")
    shown = (
        "[...document.querySelectorAll('.plot')].filter(p => p.offsetParent).map(p => p.className)"
    )
    assert set(tab.run(shown)) == {"plot by-step"}
    tab.run("document.querySelector('button[data-axis=time]').click()")
    assert set(tab.run(shown)) == {"plot by-time"}
    assert tab.run("document.querySelector('button[data-axis=time]').ariaPressed") == "true"


def test_print_opens_all_and_hides_the_tools(visit: Open) -> None:
    tab = visit("everything")
    closed = tab.run("document.querySelectorAll('details:not([open])').length")
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.run("document.querySelector('.toolbar').offsetParent") is None
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run("document.querySelectorAll('main details:not([open])').length") == 0
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run("document.querySelectorAll('details:not([open])').length") == closed


def test_it_can_be_read_without_its_script(visit: Open) -> None:
    tab = visit("everything", script=False)
    assert tab.run("document.querySelector('main').textContent.includes('The lock is taken')")
    assert tab.run("document.querySelector('.step').offsetHeight") > 50
    assert tab.run("document.querySelector('summary').click()") is None


def test_a_long_session_is_quick(visit: Open) -> None:
    tab = visit("many")
    loaded = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    assert tab.run(loaded) < 5_000  # benchmarks/viewer.py measures it
    tab.press("/", "journal.open", "Enter")
    tab.settle()
    assert found(tab).startswith("1 / ")
