"""The key numbers at the top of the page."""

from collections.abc import Iterator, Mapping
from html import escape

from holdfast.pipeline.html.columns import numbers
from holdfast.pipeline.reports.catalogue import Result
from holdfast.pipeline.reports.forms import number, with_unit


def tiles(results: Mapping[str, Result]) -> str:
    """Return the tiles for which the page has reports."""
    found = [*_of_funnel(results.get("funnel")), *_of_latency(results.get("latency"))]
    shown = "".join(
        f'<div class="tile{" bad" if is_bad else ""}"><b>{escape(value)}</b>{escape(name)}</div>'
        for name, value, is_bad in found
    )
    return f'<div class="tiles">{shown}</div>' if shown else ""


def _of_funnel(funnel: Result | None) -> Iterator[tuple[str, str, bool]]:
    if funnel is None or not funnel.rows:
        return
    sums = {name: sum(numbers(funnel, name)) for name in ("copies", "acked", "dead", "open")}
    yield "copies for receivers", number(sums["copies"]), False
    if sums["copies"]:
        # Rounded down, so that 100% means all.
        share = int(1000 * min(1, sums["acked"] / sums["copies"])) / 10
        yield "acked", f"{number(share)} %", False
    yield "dead", number(sums["dead"]), sums["dead"] > 0
    yield "open", number(sums["open"]), False


def _of_latency(latency: Result | None) -> Iterator[tuple[str, str, bool]]:
    if latency is None or not latency.rows:
        return
    busiest = {part: numbers(latency, f"delivery_{part}")[0] for part in ("p50", "p99")}
    yield "median on the busiest channel", with_unit(round(busiest["p50"], 1), " ms"), False
    yield "p99 on the busiest channel", with_unit(round(busiest["p99"], 1), " ms"), False
