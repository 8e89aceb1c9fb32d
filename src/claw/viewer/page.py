"""The page: one HTML file that needs nothing else, runs no script but its own, asks nobody.

The browser holds it to that: its security policy names the one script by its hash and
allows no request. Without the script it can be read and printed all the same.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
from importlib import resources

from claw.types.usage import Usage
from claw.viewer.charts import charts
from claw.viewer.markdown import markdown
from claw.viewer.markup import Html, joined, plain, tag
from claw.viewer.story import Call, Clip, Note, Picture, Said, Session, Step, Trace, Turn

__all__ = ["page"]

_STATUS = {
    "ok": ("✓", "ok", "good"),
    "error": ("✕", "error", "bad"),
    "denied": ("⊘", "denied", "bad"),
    "interrupted": ("◼", "interrupted", "bad"),
    "not_run": ("–", "not run", ""),
    "outcome_unknown": ("?", "outcome unknown", "bad"),
}
_NOTES = {
    "retry": "↻",
    "compaction": "⇲",
    "interrupt": "◼",
    "rewind": "↶",
    "hook": "⚓",
    "change": "•",
    "fork": "→",
    "prompt": "§",
    "failure": "✕",
    "unknown": "?",
}
_LONG = 24  # lines of a text that get a box to scroll in


def page(session: Session) -> str:
    """The whole document. The same session gives the same bytes."""
    script, style = _template("page.js"), _template("page.css")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    title = session.title or f"session {session.id}"
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
    body = tag(
        "body",
        tag("a", "To the first turn", href="#timeline", class_="skip"),
        _header(session, title),
        _toolbar(),
        charts(session.points, session.compactions),
        tag("div", _contents(session), _timeline(session), class_="columns"),
        _help(),
        tag("script", Html(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


@functools.cache
def _template(name: str) -> str:
    return resources.files("claw.viewer").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


# -- the head of the page ------------------------------------------------------------------


def _header(session: Session, title: str) -> Html:
    facts = (
        ("session", session.id),
        ("directory", session.cwd),
        ("begun", _time(session.created)),
        ("model", ", ".join(session.models)),
        ("claw", session.version),
    )
    listed = [
        tag("div", tag("dt", name), tag("dd", tag("bdi", value))) for name, value in facts if value
    ]
    return tag(
        "header",
        tag("h1", tag("bdi", title)),
        tag("dl", *listed, class_="facts"),
        tag("dl", *_totals(session), class_="totals", aria_label="Totals"),
    )


def _totals(session: Session) -> Iterable[Html]:
    turns, steps, calls = session.turns, session.steps, session.calls
    usage = sum((turn.usage if turn.stop_reason else _of(turn) for turn in turns), Usage())
    costs = [turn.cost for turn in turns if turn.stop_reason]
    spent = sum(point.cost or 0.0 for point in session.points)
    known = bool(spent) or (bool(costs) and None not in costs)
    failed = sum(call.status not in ("ok", "denied") for call in calls)
    denied = sum(call.status == "denied" for call in calls)
    told = ", ".join(
        f"{count} {what}" for count, what in ((failed, "failed"), (denied, "denied")) if count
    )
    sent = usage.context_tokens - usage.output_tokens
    cached = f"{100 * usage.cache_read_input_tokens / sent:.0f} % from cache" if sent else ""
    rows = (
        ("turns", f"{len(turns):,}", ""),
        ("steps", f"{len(steps):,}", ""),
        ("tool calls", f"{len(calls):,}", told),
        ("tokens in", f"{sent:,}", cached),
        ("tokens out", f"{usage.output_tokens:,}", "estimated" if usage.estimated else ""),
        ("cost", _dollars(spent) if known else "unknown", "by list prices" if known else ""),
        ("time in turns", _duration(sum(turn.ms for turn in turns)), ""),
    )
    for name, value, more in rows:
        detail = tag("small", more) if more else None
        yield tag("div", tag("dt", name), tag("dd", value, detail))


def _of(turn: Turn) -> Usage:
    return sum((step.usage for step in turn.steps), Usage())


def _toolbar() -> Html:
    search = tag(
        "form",
        tag(
            "input",
            type="search",
            id="query",
            placeholder="Search ( / )",
            aria_label="Search the session",
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


def _help() -> Html:
    keys = (
        ("j / k", "next, previous step"),
        ("o", "open or close what belongs to it"),
        ("/", "search"),
        ("n / N", "next, previous match"),
        ("t", "light or dark"),
        ("Esc", "end the search, close this"),
        ("?", "this list"),
    )
    rows = (tag("div", tag("dt", tag("kbd", key)), tag("dd", what)) for key, what in keys)
    close = tag("form", tag("button", "Close"), method="dialog")
    return tag("dialog", tag("h2", "Keys"), tag("dl", *rows), close, id="keys", aria_label="Keys")


def _contents(session: Session) -> Html:
    entries = (
        tag(
            "li",
            tag(
                "a",
                tag("span", str(turn.number), class_="number"),
                " ",
                tag("bdi", turn.prompt or "(no prompt)"),
                href=f"#{turn.anchor}",
                class_="gone" if turn.left_out else None,
            ),
        )
        for turn in session.turns
    )
    return tag("nav", tag("h2", "Turns"), tag("ol", *entries), aria_label="Turns")


# -- the timeline --------------------------------------------------------------------------


def _timeline(session: Session) -> Html:
    shown = (_turn(item) if isinstance(item, Turn) else _note(item) for item in session.items)
    nothing = None if session.turns else tag("p", "Nothing was said in this session.")
    return tag("main", *shown, nothing, id="timeline", tabindex=-1)


def _turn(turn: Turn) -> Html:
    reason = turn.stop_reason.replace("_", " ") or "the session ends here"
    tone = "good" if turn.stop_reason == "completed" else "bad"
    facts = (
        _time(turn.at),
        f"{turn.usage.context_tokens:,} tokens" if turn.usage.context_tokens else "",
        _dollars(turn.cost) if turn.cost else "",
        _duration(turn.ms) if turn.ms else "",
        f"mode {turn.mode}" if turn.mode != "default" else "",
        f"from {turn.origin}" if turn.origin not in ("user", "sdk") else "",
    )
    heading = tag(
        "div",
        tag("h2", f"Turn {turn.number}", id=f"{turn.anchor}-title"),
        _badge(reason, tone),
        _badge("left out by a rewind", "") if turn.left_out else None,
        tag("span", " · ".join(filter(None, facts)), class_="dim"),
        _anchor(turn.anchor, f"turn {turn.number}"),
        class_="heading",
    )
    return tag(
        "section",
        heading,
        *map(_item, turn.items),
        class_="turn gone" if turn.left_out else "turn",
        id=turn.anchor,
        aria_labelledby=f"{turn.anchor}-title",
    )


def _item(item: Said | Note | Step | Call) -> Html:
    match item:
        case Said():
            return _said(item)
        case Note():
            return _note(item)
        case Step():
            return _step(item)
        case Call():
            return _call(item)


def _step(step: Step) -> Html:
    used = step.usage
    facts = [
        step.model,
        f"{used.context_tokens:,} tokens" if used.context_tokens else "",
        f"{used.cache_read_input_tokens:,} cached" if used.cache_read_input_tokens else "",
        _dollars(step.cost) if step.cost else "",
        step.stop_reason if step.stop_reason not in ("end_turn", "tool_use", "stop") else "",
    ]
    heading = tag(
        "div",
        tag("h3", f"Step {step.number}"),
        tag("span", " · ".join(filter(None, facts)), class_="dim"),
        _anchor(step.anchor, f"step {step.number}"),
        class_="heading",
    )
    return tag(
        "article",
        heading,
        *map(_item, step.items),
        class_="step",
        id=step.anchor,
        tabindex=-1,
        aria_label=f"Step {step.number}",
    )


def _said(said: Said) -> Html:
    shown = [*map(_picture, said.pictures), _left_out(said.body)]
    gone = " gone" if said.taken_back else ""
    if said.by == "thinking":
        name = "Thinking" if not gone else "Thinking, sampled again"
        return _details(name, tag("div", markdown(said.body.text), *shown, class_="md"), "thinking")
    who = {"user": "You", "assistant": "", "hook": "A hook", "runtime": "A reminder"}[said.by]
    if gone:
        who = "Cut off, sampled again"
    label = tag("p", who, class_="who") if who else None
    return tag(
        "div", label, tag("div", markdown(said.body.text), *shown, class_="md"),
        class_=f"said {said.by}{gone}",
    )  # fmt: skip


def _note(note: Note) -> Html:
    head = joined([_icon(_NOTES[note.kind]), tag("bdi", note.title)])
    if not note.details:
        return tag("p", head, class_=f"note {note.kind}")
    parts = (
        tag("div", tag("h4", name), _text_or_markdown(name, clip)) for name, clip in note.details
    )
    return _details(head, joined(parts), f"note {note.kind}")


def _text_or_markdown(name: str, clip: Clip) -> Html:
    if name == "summary":
        return tag("div", markdown(clip.text), _left_out(clip), class_="md")
    return _pre(clip)


def _call(call: Call) -> Html:
    status = call.status or ("outcome_unknown" if call.begun else "not_run")
    icon, word, tone = _STATUS[status]
    summary = joined(
        [
            tag("span", tag("span", icon, aria_hidden="true"), f" {word}", class_=f"badge {tone}"),
            Html(" "),
            tag("strong", tag("bdi", call.name)),
            Html(" "),
            tag("code", call.about, class_="about"),
            tag("span", _duration(call.ms), class_="dim ms") if call.ms else Html(),
        ]
    )
    body = [tag("ul", *map(_trace, call.traces), class_="traces")] if call.traces else []
    if call.asked is not None:
        body += (tag("h4", "Asked for"), _pre(call.asked))
    if call.input.text not in ("", "{}"):
        body += (tag("h4", "Input"), _pre(call.input))
    if call.change is not None:
        body += (tag("h4", "Change"), _diff(call.change))
    if call.result.text or call.result.left_out or call.pictures:
        body += (tag("h4", "Result"), _pre(call.result), *map(_picture, call.pictures))
    is_open = tone == "bad" or call.change is not None
    return _details(summary, joined(body), f"call {tone}", is_open=is_open)


def _trace(trace: Trace) -> Html:
    detail = tag("span", trace.detail, class_="detail") if trace.detail else None
    return tag("li", tag("bdi", trace.title), detail, class_=f"{trace.kind} {trace.tone}".strip())


# -- small pieces --------------------------------------------------------------------------


def _details(summary: str, body: Html, class_: str, *, is_open: bool = False) -> Html:
    return tag("details", tag("summary", summary), body, class_=class_, open=is_open)


def _pre(clip: Clip) -> Html:
    if not clip.text:
        return joined([tag("p", "(empty)", class_="dim")])
    long = clip.text.count("\n") > _LONG
    box = tag("pre", clip.text, class_="long" if long else None, tabindex=0 if long else None)
    return joined([box, _left_out(clip)])


def _diff(clip: Clip) -> Html:
    """Each line coloured by its first character, which stays for those who see no colour."""
    kinds = {"+": "ins", "-": "del"}
    lines = (
        tag("span", f"{line}\n", class_="hunk" if line.startswith("@@") else "same")
        if (kind := kinds.get(line[:1])) is None
        else tag(kind, f"{line}\n")
        for line in clip.text.split("\n")
    )
    long = clip.text.count("\n") > _LONG
    class_ = "diff long" if long else "diff"
    return joined(
        [tag("pre", *lines, class_=class_, tabindex=0 if long else None), _left_out(clip)]
    )


def _left_out(clip: Clip) -> Html:
    if not clip.left_out:
        return Html()
    return tag("p", f"… {clip.left_out:,} more characters are in the session only", class_="more")


def _picture(picture: Picture) -> Html:
    if picture.data is None:
        return tag("p", f"[{picture.media_type}, not on this page]", class_="more")
    data = base64.b64encode(picture.data).decode()
    return tag(
        "img", src=f"data:{picture.media_type};base64,{data}", alt="a picture", loading="lazy"
    )


def _badge(label: str, tone: str) -> Html:
    return tag("span", label, class_=f"badge {tone}".strip())


def _icon(icon: str) -> Html:
    return tag("span", icon, class_="icon", aria_hidden="true")


def _anchor(anchor: str, what: str) -> Html:
    return tag("a", "#", href=f"#{anchor}", class_="anchor", aria_label=f"Link to {what}")


def _time(at: str) -> str:
    """``2026-11-30 14:20 UTC``."""
    return f"{at[:10]} {at[11:16]} UTC" if len(at) >= 16 else at


def _dollars(amount: float) -> str:
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"


def _duration(ms: int) -> str:
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return (
        f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
    )
