"""The page of a session: its head, its figures, and everything that happened in order."""

from __future__ import annotations

from collections.abc import Iterable

from claw.types.usage import Usage
from claw.viewer.charts import charts
from claw.viewer.items import anchor, badge, dollars, duration, item, time
from claw.viewer.markup import Html, tag
from claw.viewer.shell import document, keys, toolbar
from claw.viewer.story import Call, Note, Said, Session, Step, Turn

__all__ = ["page"]


def page(session: Session) -> str:
    """The whole document. The same session gives the same bytes."""
    title = session.title or f"session {session.id}"
    return document(
        title,
        tag("a", "To the first turn", href="#timeline", class_="skip"),
        _header(session, title),
        toolbar("session"),
        charts(session.points, session.compactions),
        tag("div", _contents(session), _timeline(session), class_="columns"),
        keys(("j / k", "next, previous step"), ("o", "open or close what belongs to it")),
    )


# -- the head of the page ------------------------------------------------------------------


def _header(session: Session, title: str) -> Html:
    facts = (
        ("session", session.id),
        ("directory", session.cwd),
        ("begun", time(session.created)),
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
        ("cost", dollars(spent) if known else "unknown", "by list prices" if known else ""),
        ("time in turns", duration(sum(turn.ms for turn in turns)), ""),
    )
    for name, value, more in rows:
        detail = tag("small", more) if more else None
        yield tag("div", tag("dt", name), tag("dd", value, detail))


def _of(turn: Turn) -> Usage:
    return sum((step.usage for step in turn.steps), Usage())


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
    shown = (_turn(each) if isinstance(each, Turn) else item(each) for each in session.items)
    nothing = None if session.turns else tag("p", "Nothing was said in this session.")
    return tag("main", *shown, nothing, id="timeline", tabindex=-1, data_stops=".step")


def _turn(turn: Turn) -> Html:
    reason = turn.stop_reason.replace("_", " ") or "the session ends here"
    tone = "good" if turn.stop_reason == "completed" else "bad"
    facts = (
        time(turn.at),
        f"{turn.usage.context_tokens:,} tokens" if turn.usage.context_tokens else "",
        dollars(turn.cost) if turn.cost else "",
        duration(turn.ms) if turn.ms else "",
        f"mode {turn.mode}" if turn.mode != "default" else "",
        f"from {turn.origin}" if turn.origin not in ("user", "sdk") else "",
    )
    heading = tag(
        "div",
        tag("h2", f"Turn {turn.number}", id=f"{turn.anchor}-title"),
        badge(reason, tone),
        badge("left out by a rewind", "") if turn.left_out else None,
        tag("span", " · ".join(filter(None, facts)), class_="dim"),
        anchor(turn.anchor, f"turn {turn.number}"),
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


def _item(each: Said | Note | Step | Call) -> Html:
    return _step(each) if isinstance(each, Step) else item(each)


def _step(step: Step) -> Html:
    used = step.usage
    facts = [
        step.model,
        f"{used.context_tokens:,} tokens" if used.context_tokens else "",
        f"{used.cache_read_input_tokens:,} cached" if used.cache_read_input_tokens else "",
        dollars(step.cost) if step.cost else "",
        step.stop_reason if step.stop_reason not in ("end_turn", "tool_use", "stop") else "",
    ]
    heading = tag(
        "div",
        tag("h3", f"Step {step.number}"),
        tag("span", " · ".join(filter(None, facts)), class_="dim"),
        anchor(step.anchor, f"step {step.number}"),
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
