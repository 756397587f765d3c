"""Who takes part in a seed besides publishers and receivers."""

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from tests.simulation import batching, erasing, histories, jobs, members, operating, refusing
from tests.simulation.actors import Plan, Poster, Publisher
from tests.simulation.asking import Outcomes, Requester, Responder
from tests.simulation.batching import Batcher
from tests.simulation.books import Books
from tests.simulation.console import Console
from tests.simulation.erasing import Eraser, Erasures, Follower
from tests.simulation.gluttons import Collector, Glutton, Nag
from tests.simulation.histories import Historian, Histories
from tests.simulation.jobs import Jobs
from tests.simulation.judges.batches import Batches
from tests.simulation.judges.deliveries import Deliveries
from tests.simulation.judges.layouts import Layouts
from tests.simulation.judges.operations import CHANNEL as TASKS
from tests.simulation.judges.operations import STAND_IN, Operations
from tests.simulation.judges.refusals import Refusals
from tests.simulation.logging_in import Entrance, Insider, Outsider
from tests.simulation.members import Attendance, Member, Watcher
from tests.simulation.operating import Operator
from tests.simulation.oracle import Oracle
from tests.simulation.rivals import Rival
from tests.simulation.upgrading import Upgrader
from tests.simulation.workers import Worker

Rules = dict[str, dict[str, Any]]
# What servers are told about the channels of all these.
RULES: Rules = {
    histories.PATTERN: histories.RULE,
    members.ROOM: members.RULE,
    jobs.CHANNEL: jobs.RULE,
    erasing.CHANNEL: erasing.RULE,
    erasing.ONCE: erasing.RULE_OF_ONCE,
}
# Others, by which histories may get to other shards.
ALL_RULES: tuple[Rules, ...] = (
    RULES,
    {
        **{pattern: rule for pattern, rule in RULES.items() if pattern != histories.PATTERN},
        **dict.fromkeys(histories.CHANNELS, histories.RULE),
    },
)
# The groups that may take part: with several shards, and everywhere.
_OF_SHARDS = READS, ASKS, MEETS, WORKS, ERASES = "reads", "asks", "meets", "works", "erases"
REFUSES, OPERATES, UPGRADES = "refuses", "operates", "upgrades"
LOGS_IN, BATCHES = "logs_in", "batches"
# How often each of those of several shards takes part, and of the others: an operator makes a seed
# half as dear again. Those that came later have a random stream each.
_OFTEN = 0.3
_OF_ALL = {REFUSES: 0.2, OPERATES: 0.1}
# How often an earlier release has left the store, and how often somebody then asks, since that
# release has requests elsewhere.
_UPGRADES, _ASKS = 0.2, 0.5
_OF_ALL_LATER = {LOGS_IN: 0.04, BATCHES: 0.04}
# How often there is somebody who publishes without a session.
_POSTS = 0.5
# How often two or three clients claim one name.
_RIVALS = 0.4
# How often somebody asks for more than there is.
_GLUTTONS = 0.3
# How often all shards are on one machine.
_ON_ONE_MACHINE = 0.6


class Actor(Protocol):
    """A client."""

    async def run(self) -> None: ...


class Cast:
    """The groups that take part.

    Args:
        seed: Decides it.
        is_full: Whether those of several shards may take part.
        is_abroad: Whether several machines have the shards.
        divides: Whether the deployment is divided otherwise meanwhile.
        groups: Those that do, if the seed does not decide.
    """

    def __init__(
        self,
        seed: int | str,
        *,
        is_full: bool,
        is_abroad: bool = False,
        divides: bool = False,
        groups: frozenset[str] = frozenset(),
    ) -> None:
        self._random = random = Random(f"{seed} cast")
        chosen = {each for each in _OF_SHARDS if random.random() < _OFTEN and is_full}
        self._posts = random.random() < _POSTS
        self._rivals = Random(f"{random.random()} rivals").random() < _RIVALS
        # Whether all shards have the same clocks, as those of one machine; and right ones.
        self.is_on_one_machine = random.random() < _ON_ONE_MACHINE and is_full and not is_abroad
        self._is_full, self._is_abroad = is_full, is_abroad
        self._may_move = divides or not is_full
        self.trusts_clocks = True
        chosen |= {each for each, share in _OF_ALL.items() if random.random() < share}
        if not divides and random.random() < _UPGRADES:
            chosen |= {UPGRADES, ASKS} if random.random() < _ASKS else {UPGRADES}
        chosen |= {
            each
            for each, share in _OF_ALL_LATER.items()
            if Random(f"{seed} {each}").random() < share
        }
        self._groups = groups or frozenset(chosen)
        self.actors: list[Actor] = []
        # Those of them that publish.
        self.publishers: list[Publisher | Batcher] = []
        self._histories: Histories | None = None
        self._outcomes: Outcomes | None = None
        self._attendance: Attendance | None = None
        self._jobs: Jobs | None = None
        self._erasures: Erasures | None = None

    @property
    def has_groups(self) -> bool:
        """Whether any group takes part."""
        return bool(self._groups)

    @property
    def has_operators(self) -> bool:
        """Whether somebody administers the deployment."""
        return bool({OPERATES, UPGRADES} & self._groups)

    @property
    def upgrades(self) -> bool:
        """Whether an earlier release has left the store."""
        return UPGRADES in self._groups

    @property
    def has_logins(self) -> bool:
        """Whether clients log in."""
        return LOGS_IN in self._groups

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels on which publishers publish for this cast."""
        return histories.CHANNELS if READS in self._groups else ()

    def make(
        self,
        plan: Plan,
        oracle: Oracle,
        books: Books,
        refusals: Refusals,
        operations: Operations,
        batches: Batches,
        deliveries: Deliveries,
        token_at: Callable[[str], str],
        layouts: Layouts | None,
        entrance: Entrance | None,
    ) -> None:
        """Make the clients.

        Args:
            token_at: Returns the token of operators at an address.
            layouts: Judges the upgrade, if there is one.
            entrance: Where clients get tokens, if they log in.
        """
        self._make_others(plan, oracle)
        if READS in self._groups:
            self._let_read(plan, oracle)
        if ASKS in self._groups:
            self._let_ask(plan, oracle)
        if MEETS in self._groups:
            self._let_meet(plan, oracle)
        if WORKS in self._groups:
            self._let_work(plan, oracle, books)
        if ERASES in self._groups:
            self._let_erase(plan, oracle)
        self._let_refuse(plan, oracle, refusals, batches)
        if OPERATES in self._groups:
            self._let_operate(plan, oracle, operations, token_at)
        if layouts is not None:
            self.actors.append(Upgrader(Console(plan, operations, token_at), layouts))
        if entrance is not None:
            self._let_log_in(plan, oracle, deliveries, entrance)
        self.actors += self.publishers

    def _make_others(self, plan: Plan, oracle: Oracle) -> None:
        """Make those who are in no group."""
        if self._posts:
            self.actors.append(Poster("post0", plan, oracle))
        if Random(f"{self._random.random()} glutton").random() < _GLUTTONS:
            self.actors.append(Glutton(plan))
            if not (self._is_full or self.has_logins):
                # Each shard counts its own names, and a login may have any of its subject's.
                self.actors.append(Collector(plan, oracle.may_have_lost))
            self.actors.append(Nag(plan, oracle.may_have_lost))
        if self._rivals:
            self.actors += [Rival("rival/1", plan) for _ in self._some(2, 3)]

    def _let_read(self, plan: Plan, oracle: Oracle) -> None:
        self._histories = truth = Histories(
            oracle.published, oracle.is_in_doubt, oracle.may_be_gone
        )
        self.actors += [Historian(f"reader{n}", plan, truth, oracle.now) for n in self._some(1, 2)]

    def _let_ask(self, plan: Plan, oracle: Oracle) -> None:
        self._outcomes = truth = Outcomes(oracle.now, oracle.may_have_lost)
        truth.may_move = self._may_move
        self.actors += [Requester(f"asker{n}", plan, truth) for n in self._some(1, 2)]
        self.actors += [Responder(f"answerer{n}", plan, truth) for n in self._some(1, 2)]

    def _let_meet(self, plan: Plan, oracle: Oracle) -> None:
        self._attendance = truth = Attendance(oracle)
        self.actors += [
            Member(f"member{n}", plan, truth, is_named=self._random.random() < 0.5)
            for n in self._some(1, 3)
        ]
        self.actors += [Watcher(f"watcher{n}", plan, truth) for n in self._some(1, 2)]

    def _let_work(self, plan: Plan, oracle: Oracle, books: Books) -> None:
        self._jobs = truth = Jobs(oracle, books)
        self.publishers += [
            Publisher(f"boss{n}", plan, oracle, channels=(jobs.CHANNEL,)) for n in self._some(1, 2)
        ]
        self.actors += [
            Worker(
                *(f"worker{n}", plan, jobs.TRADE, truth, oracle.now),
                is_named=self._random.random() < 0.5,
            )
            for n in self._some(2, 4)
        ]

    def _let_refuse(self, plan: Plan, oracle: Oracle, refusals: Refusals, batches: Batches) -> None:
        """Let clients refuse messages one by one, or some of a batch."""
        if REFUSES in self._groups:
            self._let_refuse_some(plan, oracle, refusals)
        if BATCHES in self._groups:
            self._let_batch(plan, oracle, batches)

    def _let_refuse_some(self, plan: Plan, oracle: Oracle, refusals: Refusals) -> None:
        channels = (refusing.CHANNEL,)
        self.publishers += [
            Publisher(f"order{n}", plan, oracle, channels=channels, options=refusing.mortal)
            for n in self._some(1, 2)
        ]
        self.actors += [
            Worker(
                *(f"refuser{n}", plan, refusing.TRADE, refusals, oracle.now),
                is_named=True,
            )
            for n in self._some(1, 3)
        ]

    def _let_operate(
        self, plan: Plan, oracle: Oracle, operations: Operations, token_at: Callable[[str], str]
    ) -> None:
        self.publishers.append(Publisher("task0", plan, oracle, channels=(TASKS,)))
        self.actors += [
            Worker(f"doer{n}", plan, operating.TRADE, operations, oracle.now, is_named=True)
            for n in self._some(1, 2)
        ]
        stand_in = Worker(
            *(STAND_IN, plan, operating.TRADE_OF_STAND_IN, operations, oracle.now), is_named=True
        )
        self.actors.append(stand_in)
        self.actors.append(Operator(plan, operations, Console(plan, operations, token_at)))

    def _let_batch(self, plan: Plan, oracle: Oracle, batches: Batches) -> None:
        self.publishers += [Batcher(f"batcher{n}", plan, oracle, batches) for n in self._some(1, 2)]
        self.actors += [
            Worker(f"sorter{n}", plan, batching.TRADE, batches, oracle.now, is_named=True)
            for n in self._some(1, 2)
        ]

    def _let_log_in(
        self, plan: Plan, oracle: Oracle, deliveries: Deliveries, entrance: Entrance
    ) -> None:
        self.publishers.append(entrance.keeper("keeper0", plan, oracle))
        self.actors += [
            Insider(f"insider{n}", plan, oracle, deliveries, entrance) for n in self._some(1, 2)
        ]
        self.actors += [Outsider(f"outsider{n}", plan, entrance) for n in self._some(1, 2)]

    def _let_erase(self, plan: Plan, oracle: Oracle) -> None:
        self._erasures = truth = Erasures(oracle)
        self.publishers.append(Publisher("herald0", plan, oracle, channels=(erasing.CHANNEL,)))
        self.actors += [Follower(f"follower{n}", plan, truth) for n in self._some(1, 3)]
        self.actors.append(Poster("setter0", plan, oracle, channels=(erasing.ONCE,)))
        made = (erasing.MADE_ONCE,)
        self.actors.append(Poster("setter1", plan, oracle, channels=made, topic=erasing.MADE))
        self.publishers.append(Publisher("maker0", plan, oracle, options=erasing.making))
        self.actors.append(Eraser(plan, truth, oracle))

    def _some(self, least: int, most: int) -> range:
        """Return the numbers of some clients."""
        return range(self._random.randint(least, most))

    @property
    def have_one_clock(self) -> bool:
        """Whether all servers have the same clock, which no one sets."""
        return self.is_on_one_machine and self.trusts_clocks

    def violations(self, since: float) -> list[str]:
        """Return all broken promises; the last fault ended at this time."""
        histories, outcomes = self._histories, self._outcomes
        is_right, are_one = self.trusts_clocks, self.have_one_clock
        return [
            *(histories.violations(since, trusts_clocks=is_right) if histories is not None else ()),
            *(outcomes.violations(trusts_clocks=are_one) if outcomes is not None else ()),
            *self._who_is_there(),
            *(self._jobs.violations() if self._jobs is not None else ()),
            *(self._erasures.violations() if self._erasures is not None else ()),
        ]

    def _who_is_there(self) -> list[str]:
        """Return what watchers do not know."""
        if self._attendance is None:
            return []
        return self._attendance.violations(trusts_clocks=self.trusts_clocks and not self._is_abroad)
