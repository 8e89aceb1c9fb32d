"""Pictures of a session's figures: SVG that takes its colours and its width from the page.

Each is drawn twice, over the steps and over the time. Labels are no part of a picture,
so they stay readable on a telephone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from claw.viewer.markup import Html, tag
from claw.viewer.story import Point

__all__ = ["charts"]

WIDTH, HEIGHT = 1000, 100
ROOM = 16
"""Of the height, above the tallest column: for the label."""
MOST_COLUMNS = 400
"""More points than that share columns; the tallest one of each is drawn."""
_LAYERS = {
    "cached": "read from cache",
    "written": "written to cache",
    "fresh": "new input",
    "output": "output",
}


class _Series(msgspec.Struct, frozen=True):
    """What is drawn: for each point the heights of its layers, from the bottom."""

    title: str
    summary: str
    top: float
    top_label: str
    layers: tuple[str, ...]
    heights: Sequence[tuple[float, ...]]
    marks: Sequence[int] = ()


def charts(points: Sequence[Point], compactions: Sequence[int]) -> Html:
    """Context, share of the cache and cost; nothing where there was no reply."""
    if not points:
        return Html()
    choice = tag(
        "div",
        tag("button", "by step", type="button", data_axis="step", aria_pressed="true"),
        tag("button", "by time", type="button", data_axis="time", aria_pressed="false"),
        class_="choice",
        role="group",
        aria_label="What the pictures are drawn over",
    )
    series = (_context(points, compactions), _cache(points), _cost(points))
    figures = (_figure(each, points) for each in series if each is not None)
    return tag(
        "section",
        tag("div", tag("h2", "Figures"), choice, class_="heading"),
        tag("div", *figures, class_="figures"),
        class_="charts",
        aria_label="Figures",
    )


def _context(points: Sequence[Point], compactions: Sequence[int]) -> _Series:
    heights = [
        (
            float(point.usage.cache_read_input_tokens),
            float(point.usage.cache_creation_input_tokens),
            float(point.usage.input_tokens),
            float(point.usage.output_tokens),
        )
        for point in points
    ]
    top = max(map(sum, heights))
    label = _tokens(top)
    summary = f"at most {label} tokens, {_tokens(sum(heights[-1]))} at the end"
    return _Series("Context", summary, top, label, tuple(_LAYERS), heights, compactions)


def _cache(points: Sequence[Point]) -> _Series:
    shares = []
    for point in points:
        sent = point.usage.context_tokens - point.usage.output_tokens
        shares.append(100 * point.usage.cache_read_input_tokens / sent if sent else 0.0)
    summary = f"{sum(shares) / len(shares):.0f} % of a step's input on average"
    heights = [(share,) for share in shares]
    return _Series("Read from the prompt cache", summary, 100, "100 %", ("cached",), heights)


def _cost(points: Sequence[Point]) -> _Series | None:
    """None where no price is known."""
    sums = list(accumulate(point.cost or 0.0 for point in points))
    if not sums[-1]:
        return None
    label = f"${sums[-1]:.4f}" if sums[-1] < 1 else f"${sums[-1]:,.2f}"
    return _Series("Cost so far", label, sums[-1], label, ("spent",), [(each,) for each in sums])


def _figure(series: _Series, points: Sequence[Point]) -> Html:
    keys = [tag("span", _LAYERS[name], class_=f"key {name}") for name in series.layers[1:]]
    legend = [tag("span", _LAYERS[series.layers[0]], class_="key cached"), *keys] if keys else []
    caption = tag(
        "figcaption", tag("strong", series.title), " ", tag("span", series.summary), *legend
    )
    last = points[-1].seconds
    by_step = [float(at) for at in range(len(points) + 1)]
    by_time = [*(point.seconds for point in points), last + max(1.0, last / 50)]
    plots = (
        _plot("step", series, points, by_step, f"{len(points)} replies"),
        _plot("time", series, points, by_time, _duration(last)),
    )
    return tag("figure", caption, *plots, class_="tall" if keys else None)


def _plot(
    axis: str, series: _Series, points: Sequence[Point], edges: Sequence[float], end: str
) -> Html:
    """Point n reaches from edge n to edge n + 1."""
    first, length = edges[0], (edges[-1] - edges[0]) or 1.0
    xs = [round((edge - first) / length * WIDTH, 1) for edge in edges]
    columns = _columns(len(points))
    tallest = [max(series.heights[a:b], key=sum) for a, b in columns]
    places = [(xs[a], xs[b]) for a, b in columns]
    top = series.top or 1.0
    below = [0.0] * len(columns)
    drawn = [tag("path", d=f"M0 {ROOM}H{WIDTH}", class_="most")]
    for n, name in enumerate(series.layers):
        above = [low + heights[n] for low, heights in zip(below, tallest, strict=True)]
        drawn.append(tag("path", d=_area(places, below, above, top), class_=name))
        below = above
    drawn += (_line(xs[at]) for at in series.marks if at < len(xs))
    drawn += (_hit(points[a], *place) for (a, _), place in zip(columns, places, strict=True))
    picture = tag(
        "svg",
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{series.title}: {series.summary}",
    )
    labels = (
        tag("span", series.top_label, class_="top"),
        tag("span", "0", class_="zero"),
        tag("span", end, class_="end"),
    )
    return tag("div", picture, *labels, class_=f"plot by-{axis}")


def _columns(count: int) -> list[tuple[int, int]]:
    """Which points share a column, from and to."""
    width = -(-count // MOST_COLUMNS)
    return [(at, min(at + width, count)) for at in range(0, count, width)]


def _area(
    places: Sequence[tuple[float, float]],
    below: Sequence[float],
    above: Sequence[float],
    top: float,
) -> str:
    """A band of columns: along its upper edge to the right, and back along the lower one."""

    def scale(height: float) -> str:
        return f"{HEIGHT - (HEIGHT - ROOM) * height / top:.1f}"

    out = [f"M{places[0][0]} {scale(below[0])}"]
    out += (f"V{scale(high)}H{right}" for (_, right), high in zip(places, above, strict=True))
    back = list(zip(places, below, strict=True))
    out += (f"V{scale(low)}H{left}" for (left, _), low in reversed(back))
    return "".join(out) + "Z"


def _line(x: float) -> Html:
    title = tag("title", "compacted")
    return tag("path", title, d=f"M{x} 0V{HEIGHT}", class_="compacted")


def _hit(point: Point, left: float, right: float) -> Html:
    """The way from a column to its step."""
    used = point.usage
    read = f"{used.cache_read_input_tokens:,} read from cache"
    title = f"{point.label}: {used.context_tokens:,} tokens, {read}"
    if point.cost is not None:
        title += f", ${point.cost:.4f}"
    width = round(max(right - left, 0.5), 1)
    area = tag("rect", tag("title", title), x=str(left), y=0, width=str(width), height=HEIGHT)
    return tag("a", area, href=f"#{point.anchor}", tabindex=-1)


def _tokens(number: float) -> str:
    if number < 10_000:
        return f"{number:,.0f}"
    return f"{number / 1000:,.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
