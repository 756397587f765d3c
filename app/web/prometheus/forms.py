"""The forms of a page of metrics."""

import math
from collections.abc import Iterable
from enum import Enum
from typing import Final

_OPENMETRICS: Final = "application/openmetrics-text"
# The last line of a page of OpenMetrics.
END: Final = b"# EOF"


class Form(Enum):
    """A form of the page. Workers ask each other for it by its value."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"
    # With ids of messages as examples of times: for operators.
    WITH_EXAMPLES = "examples"

    @property
    def kind(self) -> str:
        """The type of its content."""
        return _KINDS[self]


_KINDS: Final = {
    Form.TEXT: "text/plain; version=0.0.4; charset=utf-8",
    Form.OPENMETRICS: f"{_OPENMETRICS}; version=1.0.0; charset=utf-8",
    Form.WITH_EXAMPLES: f"{_OPENMETRICS}; version=1.0.0; charset=utf-8",
}


def accepted_form(accept: str, *, is_operator: bool = False) -> Form:
    """Return the form that an `Accept` header asks for: OpenMetrics only by its name."""
    ranges = [each.partition(";") for each in accept.lower().split(",")]
    weights = {kind.strip(): _weight(rest) for kind, _, rest in ranges}
    wanted = weights.get(_OPENMETRICS, 0.0)
    if not wanted or wanted < weights.get("text/plain", 0.0):
        return Form.TEXT
    return Form.WITH_EXAMPLES if is_operator else Form.OPENMETRICS


def joined(parts: Iterable[bytes], form: Form) -> bytes:
    """Return the parts of a page as one; none of their families is in two of them."""
    end = END + b"\n"
    page = b"".join(part.removesuffix(end) for part in parts)
    return page if form is Form.TEXT else page + end


def _weight(parameters: str) -> float:
    """Return the weight among the parameters of a media range; zero if it is no number."""
    for each in parameters.split(";"):
        name, _, value = each.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if math.isfinite(weight) else 0.0
    return 1.0
