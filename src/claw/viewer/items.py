"""What happened, as markup: the same on every page."""

from __future__ import annotations

import base64

from claw.viewer.markdown import markdown
from claw.viewer.markup import Html, joined, tag
from claw.viewer.story import Call, Clip, Note, Picture, Said, Trace

__all__ = ["anchor", "badge", "details", "dollars", "duration", "icon", "item", "left_out", "time"]

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


def item(shown: Said | Note | Call, *, closed: bool = False) -> Html:
    """``closed``: it shows its one line only, whatever came of it."""
    match shown:
        case Said():
            return _said(shown)
        case Note():
            return _note(shown, closed=closed)
        case Call():
            return _call(shown, closed=closed)


def _said(said: Said) -> Html:
    shown = [*map(_picture, said.pictures), left_out(said.body)]
    gone = " gone" if said.taken_back else ""
    if said.by == "thinking":
        name = "Thinking" if not gone else "Thinking, sampled again"
        return details(name, tag("div", markdown(said.body.text), *shown, class_="md"), "thinking")
    who = {"user": "You", "assistant": "", "hook": "A hook", "runtime": "A reminder"}[said.by]
    if gone:
        who = "Cut off, sampled again"
    label = tag("p", who, class_="who") if who else None
    return tag(
        "div", label, tag("div", markdown(said.body.text), *shown, class_="md"),
        class_=f"said {said.by}{gone}",
    )  # fmt: skip


def _note(note: Note, *, closed: bool) -> Html:
    head = joined([icon(_NOTES[note.kind]), tag("bdi", note.title)])
    if not note.details:
        return tag("p", head, class_=f"note {note.kind}")
    parts = (
        tag("div", tag("h4", name), _text_or_markdown(name, clip)) for name, clip in note.details
    )
    is_open = note.kind == "failure" and not closed
    return details(head, joined(parts), f"note {note.kind}", is_open=is_open)


def _text_or_markdown(name: str, clip: Clip) -> Html:
    if name == "summary":
        return tag("div", markdown(clip.text), left_out(clip), class_="md")
    return _pre(clip)


def _call(call: Call, *, closed: bool) -> Html:
    status = call.status or ("outcome_unknown" if call.begun else "not_run")
    icon, word, tone = _STATUS[status]
    summary = joined(
        [
            tag("span", tag("span", icon, aria_hidden="true"), f" {word}", class_=f"badge {tone}"),
            Html(" "),
            tag("strong", tag("bdi", call.name)),
            Html(" "),
            tag("code", call.about, class_="about"),
            tag("span", duration(call.ms), class_="dim ms") if call.ms else Html(),
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
    is_open = not closed and (tone == "bad" or call.change is not None)
    return details(summary, joined(body), f"call {tone}", is_open=is_open)


def _trace(trace: Trace) -> Html:
    detail = tag("span", trace.detail, class_="detail") if trace.detail else None
    return tag("li", tag("bdi", trace.title), detail, class_=f"{trace.kind} {trace.tone}".strip())


# -- small pieces --------------------------------------------------------------------------


def details(summary: str, body: Html, class_: str, *, is_open: bool = False) -> Html:
    return tag("details", tag("summary", summary), body, class_=class_, open=is_open)


def _pre(clip: Clip) -> Html:
    if not clip.text:
        return joined([tag("p", "(empty)", class_="dim")])
    long = clip.text.count("\n") > _LONG
    box = tag("pre", clip.text, class_="long" if long else None, tabindex=0 if long else None)
    return joined([box, left_out(clip)])


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
    return joined([tag("pre", *lines, class_=class_, tabindex=0 if long else None), left_out(clip)])


def left_out(clip: Clip) -> Html:
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


def badge(label: str, tone: str) -> Html:
    return tag("span", label, class_=f"badge {tone}".strip())


def icon(icon: str) -> Html:
    return tag("span", icon, class_="icon", aria_hidden="true")


def anchor(anchor: str, what: str) -> Html:
    return tag("a", "#", href=f"#{anchor}", class_="anchor", aria_label=f"Link to {what}")


def time(at: str) -> str:
    """``2026-11-30 14:20 UTC``."""
    return f"{at[:10]} {at[11:16]} UTC" if len(at) >= 16 else at


def dollars(amount: float) -> str:
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"


def duration(ms: int) -> str:
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return (
        f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
    )
