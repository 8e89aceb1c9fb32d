"""Markdown of people and models, and what somebody may try with it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.viewer.markdown import markdown
from tests.unit.viewer.test_markup import Reader

TAGS = {
    *("a", "blockquote", "code", "div", "em", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"),
        ("# A *b* ##\n### C", "<h4>A <em>b</em></h4><h6>C</h6>"),
        (
            "**a** `b<c` ~~d~~ _e_",
            "<p><strong>a</strong> <code>b&lt;c</code> <s>d</s> <em>e</em></p>",
        ),
        ("snake_case_name 2*3*4 a * b", "<p>snake_case_name 2<em>3</em>4 a * b</p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li><p>b</p><ul><li>c</li></ul></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("- [x] a\n- [ ] b", "<ul><li>☑ a</li><li>☐ b</li></ul>"),
        ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
        ("```py\n<x>\n\n*y*\n```\nz", "<pre><code>&lt;x&gt;\n\n*y*</code></pre><p>z</p>"),
        ("~~~\nnever closed", "<pre><code>never closed</code></pre>"),
        ("---", "<hr>"),
        (r"\*a\* <b>", "<p>*a* &lt;b&gt;</p>"),
        ("a | b", "<p>a | b</p>"),
    ],
)
def test_what_it_makes(source: str, made: str) -> None:
    assert markdown(source) == made


def test_a_table() -> None:
    made = markdown("| a | b |\n|---|:-:|\n| 1 | x\\|y |\n\nafter")
    assert '<th scope="col">a</th>' in made
    assert "<td>x|y</td>" in made
    assert made.endswith("<p>after</p>")


def test_links_lead_to_the_web_and_say_where() -> None:
    made = markdown("[a](https://x.org/y_(z)), https://x.org/b. ![pic](https://x.org/p.png)")
    assert made.count("<a ") == 3
    assert markdown("<https://x.org>").count("&lt;") == 0
    assert 'href="https://x.org/y_(z)" title="https://x.org/y_(z)"' in made
    assert 'href="https://x.org/b"' in made
    assert "<img" not in made


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example",
        "&#106;avascript:x",
        "https:",
        "\x01javascript:x",
        "https://x.org/\u202egnp",
    ],
)
def test_other_links_are_text(target: str) -> None:
    assert "<a " not in markdown(f"[click]({target})")


@given(st.text(alphabet="ab \n\t#*_`~>|-+.[]()!<>\"'\\1:/&\u202e\0"))
def test_anything_gives_only_these_tags(source: str) -> None:
    assert set(Reader(markdown(source)).tags) <= TAGS


@given(st.text(alphabet=st.characters(categories=("L", "N"))))
def test_words_are_not_lost(source: str) -> None:
    assert Reader(markdown(source)).text == source


@pytest.mark.parametrize(
    "piece",
    [
        "> ",
        "- ",
        "*a ",
        "**a",
        "`a``",
        "[",
        "[a](",
        "_a ",
        "~~a",
        "| a ",
        "https://",
        "\\",
        "#",
        "-",
        "|-",
        " ",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    begun = time.monotonic()
    markdown(piece * (50_000 // len(piece)))
    markdown(f"{piece}\n" * 10_000)
    markdown(f"# {piece * 10_000}x")
    assert time.monotonic() - begun < 10
