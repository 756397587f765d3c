"""Parses times on the command line."""

import re
import time
from datetime import date, datetime, timedelta

import typer

_SPAN = re.compile(r"(\d{1,9})(s|m|h|d)")
# Days that begin at midnight here.
_DAYS_AGO = {"today": 0, "yesterday": 1}
_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def moment(text: str | None, *, ago: bool) -> int | None:
    """Return a time in ms since 1970: of a date, of `today` or `yesterday`, or so far from now."""
    if text is None:
        return None
    if span := _SPAN.fullmatch(text.strip()):
        ms = int(span[1]) * _MS[span[2]]
        return now_ms() + (-ms if ago else ms)
    if (days := _DAYS_AGO.get(text.strip())) is not None:
        day = date.today() - timedelta(days)
        return int(datetime(day.year, day.month, day.day).timestamp() * 1000)
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except ValueError:
        message = f"{text!r} is not a time: write 2h, yesterday, or 2026-11-20T08:00"
        raise typer.BadParameter(message) from None


def span_s(text: str) -> float:
    """Return the seconds of a span."""
    if span := _SPAN.fullmatch(text.strip()):
        return int(span[1]) * _MS[span[2]] / 1000
    raise typer.BadParameter(f"{text!r} is not a span of time: write 30s, 10m or 2h")


def is_span(text: str) -> bool:
    """Return whether the text is a span of time."""
    return _SPAN.fullmatch(text.strip()) is not None


def now_ms() -> int:
    """Return the current time in ms since 1970."""
    return time.time_ns() // 1_000_000
