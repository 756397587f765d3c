"""All judges of a world that look at more than one kind of client."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf

from tests.simulation.books import Books
from tests.simulation.judges.answers import Answers
from tests.simulation.judges.batches import Batches
from tests.simulation.judges.counts import Counts, Served, pages_of
from tests.simulation.judges.deliveries import Deliveries
from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.judges.layouts import Layouts
from tests.simulation.judges.leases import Leases
from tests.simulation.judges.logins import Logins
from tests.simulation.judges.logs import Complaints
from tests.simulation.judges.names import Names
from tests.simulation.judges.operations import Operations
from tests.simulation.judges.order import Order
from tests.simulation.judges.refusals import Refusals
from tests.simulation.oracle import Publish
from tests.simulation.process import Process
from tests.simulation.schedule import Schedule
from tests.simulation.session import Attempt
from tests.simulation.store.groups import Group
from tests.simulation.talker import Denied, Lost, Message

# For so long servers may begin, and clients find nobody.
_BEGINS_S = 5.0


class Bench:
    """The judges, who hear everything from the beginning, and are asked in the end.

    Args:
        leases: Hears what servers write and read.
    """

    def __init__(self, facts: Facts, leases: Leases) -> None:
        self._facts = facts
        self.leases = leases
        leases.home_of = facts.home_of
        self.has_groups = False
        self.excuses = Excuses()
        self.excuses.add("the start", 0.0, _BEGINS_S, heals_s=0.0)
        self.answers = Answers(facts)
        self.deliveries = Deliveries(facts.now)
        self.names = Names(facts.now)
        self.order = Order()
        self.refusals = Refusals(facts)
        self.operations = Operations(facts)
        self.answers.was_ended = self.operations.has_ended
        self.logins = Logins(facts)
        self.batches = Batches(facts)
        self.complaints = Complaints()
        # If an earlier release has left the store.
        self.layouts: Layouts | None = None

    def judge_layouts(self, former: int, books: Books) -> None:
        """Look at stores that an earlier release has left in this layout."""
        self.layouts = Layouts(self._facts, former, books.written, books.unrecorded)

    @contextmanager
    def sitting(self) -> Iterator[None]:
        """Hear everything that happens meanwhile."""
        with self.complaints.heard():
            yield

    # What clients ask for

    def now(self) -> float:
        return self.answers.now()

    def begins(self, attempt: Attempt) -> None:
        self.answers.begins(attempt)

    def answered(self, attempt: Attempt, reply: Message) -> None:
        self.answers.answered(attempt, reply)
        self.names.answered(attempt, reply)

    def failed(self, attempt: Attempt, fault: Lost | Denied) -> None:
        self.answers.failed(attempt, fault)

    def uses(self, place: tuple[str, int], client_id: str) -> None:
        self.leases.uses(place, client_id)

    # What it means

    def know(
        self,
        schedule: Schedule,
        struck: Mapping[float, Group],
        *,
        has_shards: bool,
        has_hosts: bool = False,
    ) -> None:
        """Note what will go wrong, and, by its time, which store each fault will concern."""
        self.answers.has_shards = self.operations.has_shards = has_shards
        self.answers.has_hosts = has_hosts
        self.order.know(schedule, struck)
        for each in schedule.occurrences:
            self.excuses.add(each.fault.__name__, each.at_s, each.duration_s)

    def violations(
        self,
        published: Mapping[str, Publish],
        named: frozenset[str],
        had_one_speaker: bool,
        servers: Sequence[Process],
        *,
        have_one_clock: bool,
    ) -> list[str]:
        """Return all broken promises.

        Args:
            published: All messages by key.
            named: The receivers that have a name.
            had_one_speaker: Whether no server has taken the place of another one that lived.
            servers: Those that clients come to, at rest.
            have_one_clock: Whether all had the same clock, which nobody has set.
        """
        excuses = self.excuses
        excuses.begin_again()
        served = self._served(published)
        served.own = servers[0].world.coverage.own_messages if servers else 0
        # A server that waited for the end of another one has not counted everything.
        count = len(servers) if self.answers.has_shards else int(had_one_speaker)
        excuses.judges("reply for its lease", self.leases.judged)
        return [
            *self.complaints.violations(excuses),
            *self.answers.violations(excuses),
            *self.names.violations(excuses),
            *self.deliveries.violations(published, named, excuses),
            *self.refusals.violations(published, excuses, have_one_clock=have_one_clock),
            *self.operations.violations(published, excuses, have_one_clock=have_one_clock),
            *self.batches.violations(published, excuses, have_one_clock=have_one_clock),
            *(self.layouts.violations(excuses) if self.layouts is not None else ()),
            *self.logins.violations(excuses),
            *Counts(pages_of(servers), served, excuses).violations(self.now(), count=count),
        ]

    def _served(self, published: Mapping[str, Publish]) -> Served:
        accepted = sum(bool(each.id) for each in published.values())
        # Servers publish by themselves what concerns some groups.
        attempted = inf if self.has_groups else self.answers.attempts
        since = min((each.begun_at for each in published.values()), default=0.0)
        return Served(accepted, attempted, since)
