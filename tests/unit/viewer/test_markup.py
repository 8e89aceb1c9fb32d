"""Foreign text stays text, and everything in it is seen."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.viewer.markup import Html, plain, tag, text


class Reader(HTMLParser):
    """Tags, and the text with its entities resolved."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text())
def test_text_makes_no_tags_but_marks(foreign: str) -> None:
    assert set(Reader(text(foreign)).tags) <= {"span"}


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_what_can_be_seen_reads_as_it_was(foreign: str) -> None:
    assert Reader(text(foreign)).text == foreign


@given(st.text(), st.text())
def test_an_attribute_stays_one(name: str, value: str) -> None:
    made = tag("a", name, title=value)
    assert made.startswith('<a title="')
    assert made.count('"') == 2 + text(name).count('"')
    assert "<" not in made[1 : made.index('">')]


@pytest.mark.parametrize(
    ("char", "seen"),
    [
        ("\x1b", "␛"),
        ("\r", "␍"),
        ("\0", "␀"),
        ("\x7f", "␡"),
        ("\x9b", "U+009B"),
        ("\u202e", "U+202E"),
        ("\u2066", "U+2066"),
        ("\u200b", "U+200B"),
        ("\ufeff", "U+FEFF"),
        ("\U000e0041", "U+E0041"),
        ("\ud800", "U+D800"),
    ],
)
def test_what_hides_or_reorders_is_written_out(char: str, seen: str) -> None:
    assert Reader(text(f"a{char}b")).text == f"a{seen}b"
    assert plain(f"a{char}b") == f"a{seen}b"
    assert char not in tag("a", title=char)


def test_line_ends_tabs_and_joiners_stay() -> None:
    assert text("a\r\nb\tc") == "a\nb\tc"
    assert text("👩\u200d💻") == "👩\u200d💻"


def test_markup_goes_in_as_it_stands_and_absent_attributes_do_not() -> None:
    inner = tag("b", "x & y")
    assert tag("p", inner, None, "<", class_="k", open=False, hidden=True, aria_label=None) == (
        '<p class="k" hidden><b>x &amp; y</b>&lt;</p>'
    )
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert isinstance(inner, Html)
