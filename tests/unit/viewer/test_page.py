"""The page as a document: closed to the outside, sound inside."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from claw.types.entries import ToolFinished
from claw.types.messages import Image, Text, ToolUse
from claw.types.usage import Usage
from claw.viewer.page import page
from tests.unit.viewer.test_fold import asks, replies, the_call, told, turn
from tests.viewing import folded, page_of


class Document(HTMLParser):
    """Elements with their attributes, and the content of scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "script":
            self._in_script = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    def all(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


@pytest.fixture(params=["all_kinds", "hostile_session"])
def document(request: pytest.FixtureRequest) -> Document:
    return Document(page_of(request.getfixturevalue(request.param)))


def test_it_runs_one_script_which_its_policy_names(document: Document) -> None:
    (script,) = document.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [a["content"] for t, a in document.elements if a.get("http-equiv")]
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert [tag for tag, _ in document.elements].count("style") == 1


def test_nothing_in_it_loads_or_runs(document: Document) -> None:
    tags = {tag for tag, _ in document.elements}
    assert not tags & {"iframe", "object", "embed", "base", "link", "audio", "video", "source"}
    for tag, attributes in document.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert not {"srcdoc", "action", "formaction", "background", "srcset"} & set(attributes), tag
    assert all(src.startswith("data:image/") for src in document.all("src"))
    assert all(re.match(r"#|https?://", href) for href in document.all("href"))


def test_links_inside_lead_somewhere_and_ids_are_unique(document: Document) -> None:
    ids = document.all("id")
    assert len(ids) == len(set(ids))
    inside = {href[1:] for href in document.all("href") if href.startswith("#")}
    assert inside
    assert inside <= set(ids)
    assert set(document.all("aria-labelledby")) <= set(ids)


def test_hidden_characters_are_seen(hostile_session: str) -> None:
    html = page_of(hostile_session)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", html)
    assert "U+202E" in html
    assert "␛" in html


def test_a_surrogate_can_be_written() -> None:
    html = page(told(turn(1, asks(1), replies(1, Text("a\ud800b")))))
    assert "U+D800" in html
    html.encode("utf-8")


def test_deep_input_has_an_end() -> None:
    deep: object = "x"
    for _ in range(900):
        deep = [deep]
    call = the_call(told(turn(1, asks(1), replies(1, ToolUse("c", "T", {"a": deep})))))
    assert "…" in call.input.text


def test_pictures_are_on_the_page_unless_they_are_no_pictures() -> None:
    def shown(media_type: str) -> str:
        done = ToolFinished("c", (Image(media_type, "d"),), "ok")
        entries = turn(1, asks(1), replies(1, ToolUse("c", "Read", {})), done)
        return page(told(entries, blob=lambda digest: b"<svg/>"))

    assert "data:image/png;base64,PHN2Zy8+" in shown("image/png")
    for other in ("image/svg+xml", 'image/png" onload="x', "text/html"):
        assert "<img" not in shown(other)
        assert "not on this page" in shown(other)


def test_figures_of_no_tokens_and_of_many_steps() -> None:
    assert "<figure" not in page(told(turn(1)))
    nothing = replies(1)
    assert "<svg" in page(told(turn(1, asks(1), nothing)))
    many = [entry for n in range(1, 1500) for entry in (asks(n), replies(n))]
    html = page(told(turn(1, *many, cost=2.5), price=lambda usage, model: 0.001))
    svg = html[html.index("<svg") : html.index("</svg>")]
    assert svg.count("<rect") <= 400
    assert "$2.50" in html


def test_totals_count_what_was_sent(all_kinds: str) -> None:
    session = folded(all_kinds)
    sent = sum((turn.usage for turn in session.turns), Usage())
    html = page(session)
    assert f"<dd>{sent.context_tokens - sent.output_tokens:,}" in html
    assert "2 failed, 2 denied" in html
