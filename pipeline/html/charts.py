"""Pictures of numbers, as SVG that needs nothing from outside and fits any width."""

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH = 760
_ROW = 24
_LABEL = 250
_ROOM = _WIDTH - _LABEL - 80
_HEIGHT = 220
_LEFT = 56
_BOTTOM = 24
# What does not fit beside a bar ends in dots; the whole of it is told to whoever points at it.
_LONGEST = 34
_MOST = 20


def bars(rows: Sequence[tuple[str, float]], *, unit: str = "") -> str:
    """A bar for each of the first rows."""
    return stacked([label for label, _ in rows], {"": [value for _, value in rows]}, unit=unit)


def stacked(labels: Sequence[str], series: Mapping[str, Sequence[float]], *, unit: str = "") -> str:
    """A bar for each label, made of a piece for each series."""
    shown = labels[:_MOST]
    sums = [sum(values[row] for values in series.values()) for row in range(len(shown))]
    whole = max(sums, default=0) or 1
    parts = []
    for row, label in enumerate(shown):
        y = row * _ROW
        parts.append(_label(label, y))
        x = float(_LABEL)
        for colour, (name, values) in enumerate(series.items()):
            width = values[row] / whole * _ROOM
            told = f"{label}: {name} {number(values[row])}{unit}"
            parts.append(_piece(x, y, width, colour, told))
            x += width
        parts.append(_text(x + 6, y + 16, f"{number(sums[row])}{unit}"))
    legend = _legend(series) if len(series) > 1 else ""
    return legend + _svg(parts, len(shown) * _ROW)


def ranges(rows: Sequence[tuple[str, Sequence[float]]], *, unit: str = "") -> str:
    """From the first of each row's numbers to its last, with marks between; ten times is a step."""
    shown = [(label, [max(value, 0.01) for value in values]) for label, values in rows[:_MOST]]
    numbers = [value for _, values in shown for value in values]
    low, high = math.log10(min(numbers, default=1)), math.log10(max(numbers, default=10))
    span = (high - low) or 1

    def place(value: float) -> float:
        return _LABEL + (math.log10(value) - low) / span * _ROOM

    parts = []
    for row, (label, values) in enumerate(shown):
        y = row * _ROW
        parts.append(_label(label, y))
        begin, end = place(values[0]), place(values[-1])
        told = f"{label}: " + ", ".join(f"{number(value)}{unit}" for value in values)
        parts.append(_piece(begin, y, max(end - begin, 2), 0, told, opacity=0.35))
        parts += [_piece(place(value) - 1.5, y, 3, 0, told) for value in values[:-1]]
        parts.append(_text(end + 6, y + 16, f"{number(values[-1])}{unit}"))
    return _svg(parts, len(shown) * _ROW)


def lines(times: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """A line for each series over time."""
    highest = max((value for values in series.values() for value in values), default=0) or 1
    step = (_WIDTH - _LEFT - 8) / max(1, len(times) - 1)
    room = _HEIGHT - _BOTTOM - 8
    parts = [
        f'<line class="axis" x1="{_LEFT}" y1="{8 + room}" x2="{_WIDTH}" y2="{8 + room}"/>',
        _text(0, 16, number(highest)),
        _text(0, 8 + room, "0"),
    ]
    for colour, (name, values) in enumerate(series.items()):
        points = [
            f"{_LEFT + place * step:.1f},{8 + room - value / highest * room:.1f}"
            for place, value in enumerate(values)
        ]
        # One point is no line.
        points = points * 2 if len(points) == 1 else points
        told = f"<title>{escape(name)}: {number(max(values, default=0))} at most</title>"
        parts.append(f'<polyline class="l{colour}" points="{" ".join(points)}">{told}</polyline>')
    if times:
        parts.append(_text(_LEFT, _HEIGHT - 6, times[0]))
        parts.append(_text(_WIDTH, _HEIGHT - 6, times[-1], end=True))
    return _legend(series) + _svg(parts, _HEIGHT)


def number(value: float) -> str:
    """As people write it: 1,234 or 0.25."""
    if value == int(value) or abs(value) >= 1000:
        return f"{round(value):,}"
    return f"{value:.3g}"


def _svg(parts: Sequence[str], height: int) -> str:
    inner = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {max(height, _ROW)}" role="img">{inner}</svg>'


def _label(text: str, y: float) -> str:
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return (
        f'<text x="{_LABEL - 8}" y="{y + 16}" text-anchor="end">'
        f"<title>{escape(text)}</title>{escape(short)}</text>"
    )


def _text(x: float, y: float, text: str, *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text class="told" x="{x:.1f}" y="{y}"{anchor}>{escape(text)}</text>'


def _piece(x: float, y: float, width: float, colour: int, told: str, *, opacity: float = 1) -> str:
    return (
        f'<rect class="c{colour}" x="{x:.1f}" y="{y + 4}" width="{width:.1f}" '
        f'height="{_ROW - 8}" opacity="{opacity}"><title>{escape(told)}</title></rect>'
    )


def _legend(series: Mapping[str, Sequence[float]]) -> str:
    items = "".join(
        f'<span><i class="b{colour}"></i>{escape(name)}</span>'
        for colour, name in enumerate(series)
    )
    return f'<p class="legend">{items}</p>'
