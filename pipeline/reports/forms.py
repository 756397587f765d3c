"""Values of reports as people write them."""

from datetime import datetime

from holdfast.units import Form

# How much of a time is written; times are UTC.
_TIMES = {
    Form.DAY: "%Y-%m-%d",
    Form.HOUR: "%Y-%m-%d %H:%M UTC",
    Form.MINUTE: "%Y-%m-%d %H:%M UTC",
    Form.TIME: "%Y-%m-%d %H:%M:%S UTC",
}
# The forms of numbers.
NUMBERS = frozenset({Form.COUNT, Form.NUMBER, Form.BYTES, Form.MS, Form.SHARE})
_SIZES = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def written(value: object, form: Form) -> str:
    """Write a value of a result; an empty text if it is not known."""
    if value is None:
        return ""
    if form in _TIMES:
        return datetime.fromisoformat(str(value)).strftime(_TIMES[form])
    if not isinstance(value, (int, float)):
        return str(value)
    match form:
        case Form.MS:
            return with_unit(value, " ms")
        case Form.SHARE:
            return f"{number(round(100 * value, 2))} %"
        case Form.BYTES:
            return with_unit(value, " B")
        case _:
            return number(value)


def message_name(origin: object, msg: int) -> str:
    """Return the id of a message as `holdfast message` takes it, and as events have it."""
    return f"{origin}-{msg:019d}"


def number(value: float) -> str:
    """Format a number for readers: 1,234 or 0.25."""
    if value == int(value) or abs(value) >= 1000:
        return f"{round(value):,}"
    return f"{value:.3g}"


def with_unit(value: float, unit: str = "") -> str:
    """Format a number with its unit: many milliseconds are seconds or minutes, many bytes KiB."""
    if unit == " B":
        size, larger = next(((s, u) for s, u in _SIZES if value >= s), (1, "B"))
        return f"{number(round(value / size, 1))} {larger}"
    if unit != " ms" or value < 1000:
        return f"{number(value)}{unit}"
    seconds = value / 1000
    return f"{number(round(seconds, 1))} s" if seconds < 120 else f"{number(seconds // 60)} min"
