"""A page as a document: one HTML file that needs nothing else and asks nobody.

The browser holds it to that: its security policy names the one script by its hash and
allows no request. Without the script it can be read and printed all the same.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources

from claw.viewer.markup import Html, plain, tag

__all__ = ["document", "keys", "toolbar"]


def document(title: str, *body: Html, styles: tuple[str, ...] = ("page.css",)) -> str:
    """The whole of it. ``body`` has a ``main`` whose ``data-stops`` the keys go to."""
    script, style = _template("page.js"), "".join(map(_template, styles))
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", plain(f"{title} - claw")),
        tag("style", Html(style)),
    )
    whole = tag("body", *body, tag("script", Html(script)))
    return f"<!doctype html>\n{tag('html', head, whole, lang='en')}\n"


@functools.cache
def _template(name: str) -> str:
    return resources.files("claw.viewer").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def toolbar(what: str) -> Html:
    """``what`` is searched."""
    search = tag(
        "form",
        tag(
            "input",
            type="search",
            id="query",
            placeholder="Search ( / )",
            aria_label=f"Search the {what}",
            autocomplete="off",
            spellcheck="false",
        ),
        tag("output", id="found", aria_live="polite"),
        _button("previous", "↑", "Previous match (N)"),
        _button("next", "↓", "Next match (n)"),
        role="search",
    )
    return tag(
        "div",
        search,
        _button("unfold", "Open all", None),
        _button("fold", "Close all", None),
        _button("theme", "◐", "Light or dark (t)"),
        _button("help", "?", "Keys (?)"),
        class_="toolbar",
        role="toolbar",
        aria_label="Tools of the page",
    )


def _button(id: str, label: str, title: str | None) -> Html:
    return tag("button", label, type="button", id=id, title=title, aria_label=title)


def keys(*first: tuple[str, str]) -> Html:
    """The list of keys, of which the first ones are the page's own."""
    listed = (
        *first,
        ("/", "search"),
        ("n / N", "next, previous match"),
        ("t", "light or dark"),
        ("Esc", "end the search, close this"),
        ("?", "this list"),
    )
    rows = (tag("div", tag("dt", tag("kbd", key)), tag("dd", what)) for key, what in listed)
    close = tag("form", tag("button", "Close"), method="dialog")
    return tag("dialog", tag("h2", "Keys"), tag("dl", *rows), close, id="keys", aria_label="Keys")
