"""Measures the cost of a subscription's filter: `python -m bench.filters`."""

from collections.abc import Callable

from bench.rights import print_table, us
from holdfast.delivery.routing import conditions as measured
from holdfast.delivery.routing.selections import Candidate, Filter

TIMES = 100_000
CHANNEL = "/trades/ibm"
DATA = {"price": 120, "symbol": "IBM", "order": {"total": 17}, "note": "a" * 100}
PROPERTIES = {"phone": "1203"}
TEXTS = (
    "data.price > 100",
    "properties.phone LIKE '12%3'",
    "data.order.total BETWEEN 10 AND 20",
    "data.symbol MATCHES '^[A-Z]{3}$'",
    "data.price > 100 AND data.symbol LIKE 'I%' AND NOT properties.test = TRUE",
)


def candidate() -> Candidate:
    """Return a message that no filter has been asked about."""
    return Candidate(channel=CHANNEL, data=DATA, properties=PROPERTIES)


def check(text: str) -> Callable[[], object]:
    """Return a check of a new message; receivers with the same filter share its result."""
    filter = Filter(text)
    return lambda: candidate().passes(filter)


def main() -> None:
    costs = {"nothing but the message": us(candidate, TIMES)}
    costs |= {f"`{text}`": us(check(text), TIMES) for text in TEXTS}
    asked, shared = candidate(), Filter(TEXTS[0])
    costs["the same filter again"] = us(lambda: asked.passes(shared), TIMES)
    print_table("filter", costs, measured)


if __name__ == "__main__":
    main()
