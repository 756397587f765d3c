"""What judges know of a world besides what clients tell them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.simulation.books import Letter
from tests.simulation.oracle import Publish
from tests.simulation.process import Process


@dataclass(frozen=True, slots=True)
class Facts:
    """Answers what judges ask about a world."""

    # The true time.
    now: Callable[[], float]
    # All dead letters that are stored, and the keys of the messages on a channel that wait for
    # somebody.
    letters: Callable[[], Sequence[Letter]]
    kept: Callable[[str], frozenset[str]]
    # The server that has the session with a client id, and whether the server of a machine waits
    # for another one to end.
    home_of: Callable[[str], Process | None]
    stands_by: Callable[[str], bool]
    # Whether a failover may have lost what was written between these times, and whether the only
    # store of an accepted message may have lost it.
    may_have_lost: Callable[[float, float], bool]
    may_be_gone: Callable[[Publish], bool]
    # Notes that something has happened.
    mark: Callable[[str], None]
