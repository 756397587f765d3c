"""Charts in plain HTML: they fit any width, and text keeps its size on a phone.

Curves are stretched SVG, so they contain no text.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from holdfast.pipeline.reports.forms import number, with_unit

_MOST = 12
_WIDTH, _HEIGHT = 1000, 180
_LEAST_MS = 0.01


def bars(rows: Sequence[tuple[str, float]], *, unit: str = "", colour: int = 0) -> str:
    """Draw a bar for each of the first rows."""
    series = {"": [value for _, value in rows]}
    return stacked([label for label, _ in rows], series, unit=unit, colour=colour)


def stacked(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    unit: str = "",
    colour: int = 0,
) -> str:
    """Draw a bar for each label, with a segment for each series."""
    shown = labels[:_MOST]
    sums = [sum(values[row] for values in series.values()) for row in range(len(shown))]
    whole = max(sums, default=0) or 1
    parts = []
    for row, label in enumerate(shown):
        pieces = [
            _piece(values[row] / whole, place, f"{name} {with_unit(values[row], unit)}".strip())
            for place, (name, values) in enumerate(series.items(), colour)
            if values[row] > 0
        ]
        parts.append(_row(label, pieces, with_unit(sums[row], unit)))
    legend = _legend(series) if len(series) > 1 else ""
    return legend + _rows(parts)


def ranges(rows: Sequence[tuple[str, Sequence[float]]], *, unit: str = " ms") -> str:
    """Draw a range from each row's first number to its last, on a logarithmic scale."""
    shown = [(label, [max(value, _LEAST_MS) for value in values]) for label, values in rows[:_MOST]]
    numbers = [value for _, values in shown for value in values]
    low = math.floor(math.log10(min(numbers, default=1)))
    high = max(low + 1, math.ceil(math.log10(max(numbers, default=10))))

    def place(value: float) -> float:
        return (math.log10(value) - low) / (high - low)

    parts = []
    for label, values in shown:
        begin, end = place(values[0]), place(values[-1])
        words = " · ".join(with_unit(value, unit) for value in values)
        pieces = [_span(begin, end, words)]
        pieces += [f'<i class="mark" style="left:{place(value):.2%}"></i>' for value in values]
        parts.append(_row(label, pieces, with_unit(values[-1], unit)))
    ticks = "".join(
        f'<span style="left:{(step - low) / (high - low):.2%}">{with_unit(10.0**step, unit)}</span>'
        for step in range(low, high + 1)
    )
    scale = f'<div class="row scale"><span></span><span class="track">{ticks}</span><b></b></div>'
    return _rows([*parts, scale])


def lines(times: Sequence[str], series: Mapping[str, Sequence[float]], *, colour: int = 0) -> str:
    """Draw a line for each series over time; the area under the first is filled."""
    highest = max((value for values in series.values() for value in values), default=0) or 1
    curves = []
    for place, (name, values) in enumerate(series.items(), colour):
        points = _points(values, highest)
        title = f"<title>{escape(name)}: {number(max(values, default=0))} at most</title>"
        if place == colour and points:
            area = f"0,{_HEIGHT} {points} {_WIDTH},{_HEIGHT}"
            curves.append(f'<polygon class="f{place}" points="{area}"/>')
        curves.append(f'<polyline class="l{place}" points="{points}">{title}</polyline>')
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(", ".join(series))}">{"".join(curves)}</svg>'
    )
    ends = f"<span>{escape(times[0])}</span><span>{escape(times[-1])}</span>" if times else ""
    return (
        f"{_legend(series, colour)}"
        f'<div class="curve"><span class="top">{number(highest)}</span>{svg}</div>'
        f'<div class="ends">{ends}</div>'
    )


def _points(values: Sequence[float], highest: float) -> str:
    # A line needs two points.
    drawn = [*values] * 2 if len(values) == 1 else values
    step = _WIDTH / max(1, len(drawn) - 1)
    room = _HEIGHT - 4
    return " ".join(
        f"{place * step:.1f},{_HEIGHT - value / highest * room:.1f}"
        for place, value in enumerate(drawn)
    )


def _rows(parts: Iterable[str]) -> str:
    return f'<div class="rows">{"".join(parts)}</div>'


def _row(label: str, pieces: Sequence[str], value: str) -> str:
    name = escape(label)
    return (
        f'<div class="row"><span class="label" title="{name}">{name}</span>'
        f'<span class="track">{"".join(pieces)}</span><b>{escape(value)}</b></div>'
    )


def _piece(share: float, colour: int, words: str) -> str:
    return f'<i class="b{colour}" style="width:{share:.2%}" title="{escape(words)}"></i>'


def _span(begin: float, end: float, words: str) -> str:
    place = f"left:{begin:.2%};width:{end - begin:.2%}"
    return f'<i class="span" style="{place}" title="{escape(words)}"></i>'


def _legend(series: Mapping[str, Sequence[float]], colour: int = 0) -> str:
    items = "".join(
        f'<span><i class="b{place}"></i>{escape(name)}</span>'
        for place, name in enumerate(series, colour)
    )
    return f'<p class="legend">{items}</p>'
