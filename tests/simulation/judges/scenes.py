"""What judges know of the worlds in which their tests plant broken promises."""

from collections.abc import Callable
from typing import Any

from tests.simulation.judges.facts import Facts


def facts_at(now: Callable[[], float], **known: Any) -> Facts:
    """Return the facts of a world in which nothing is stored and nothing is lost, but for these."""
    calm: dict[str, Any] = {
        "letters": list,
        "kept": lambda _: frozenset(),
        "home_of": lambda _: None,
        "stands_by": lambda _: False,
        "may_have_lost": lambda *_: False,
        "may_be_gone": lambda _: False,
        "mark": lambda _: None,
    }
    return Facts(now, **{**calm, **known})
