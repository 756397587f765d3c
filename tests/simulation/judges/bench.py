"""All judges of a world that look at more than one kind of client."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.simulation.judges.answers import Answers
from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.logs import Complaints
from tests.simulation.process import Process
from tests.simulation.schedule import Schedule

# For so long servers may begin, and clients find nobody.
_BEGINS_S = 5.0


class Bench:
    """The judges, who hear everything from the beginning, and are asked in the end.

    Args:
        now: Returns the true time.
        home_of: Returns the server that has the session with a client id.
        stands_by: Returns whether the server of a machine waits for another one to end.
    """

    def __init__(
        self,
        now: Callable[[], float],
        home_of: Callable[[str], Process | None],
        stands_by: Callable[[str], bool],
    ) -> None:
        self.excuses = Excuses()
        self.excuses.add("the start", 0.0, _BEGINS_S, heals_s=0.0)
        self.answers = Answers(now, home_of, stands_by)
        self.complaints = Complaints()

    @contextmanager
    def sitting(self) -> Iterator[None]:
        """Hear everything that happens meanwhile."""
        with self.complaints.heard():
            yield

    def know(self, schedule: Schedule, *, has_shards: bool) -> None:
        """Note what will go wrong."""
        self.answers.has_shards = has_shards
        for each in schedule.occurrences:
            self.excuses.add(each.fault.__name__, each.at_s, each.duration_s)

    def violations(self) -> list[str]:
        """Return all broken promises."""
        self.excuses.begin_again()
        return [*self.complaints.violations(self.excuses), *self.answers.violations(self.excuses)]
