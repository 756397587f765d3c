"""Who takes part in a seed besides publishers and receivers."""

from random import Random
from typing import Protocol

from tests.simulation import histories, members
from tests.simulation.actors import Plan, Poster
from tests.simulation.asking import Outcomes, Requester, Responder
from tests.simulation.histories import Historian, Histories
from tests.simulation.members import Attendance, Member, Watcher
from tests.simulation.oracle import Oracle

# What servers are told about the channels of all these.
RULES = {histories.PATTERN: histories.RULE, members.ROOM: members.RULE}
# The groups that may take part with several shards.
READS, ASKS, MEETS = "reads", "asks", "meets"
# How often each takes part.
_OFTEN = 0.3
# How often there is somebody who publishes without a session.
_POSTS = 0.5
# How often all shards are on one machine.
_ON_ONE_MACHINE = 0.6


class Actor(Protocol):
    """A client."""

    async def run(self) -> None: ...


class Cast:
    """The groups that take part: readers of histories, those who ask and answer, and a room.

    Args:
        is_full: Whether any take part; `groups` are those that do, if the seed does not decide.
    """

    def __init__(
        self, random: Random, *, is_full: bool, groups: frozenset[str] = frozenset()
    ) -> None:
        self._random = random
        chosen = {each for each in (READS, ASKS, MEETS) if random.random() < _OFTEN}
        self._groups = (groups or chosen) if is_full else frozenset()
        self._posts = random.random() < _POSTS
        # Whether all shards have the same clocks, as those of one machine; and right ones.
        self.is_on_one_machine = random.random() < _ON_ONE_MACHINE
        self.trusts_clocks = True
        self.actors: list[Actor] = []
        self._histories: Histories | None = None
        self._outcomes: Outcomes | None = None
        self._attendance: Attendance | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels on which publishers publish for this cast."""
        return histories.CHANNELS if READS in self._groups else ()

    def make(self, plan: Plan, oracle: Oracle) -> None:
        """Make the clients."""
        random = self._random
        if self._posts:
            self.actors.append(Poster("post0", plan, oracle))
        if READS in self._groups:
            self._histories = truth = Histories(oracle.published, oracle.is_in_doubt)
            self.actors += [
                Historian(f"reader{n}", plan, truth, oracle.now)
                for n in range(random.randint(1, 2))
            ]
        if ASKS in self._groups:
            self._outcomes = outcomes = Outcomes(oracle.now, oracle.may_have_lost)
            self.actors += [
                Requester(f"asker{n}", plan, outcomes) for n in range(random.randint(1, 2))
            ]
            self.actors += [
                Responder(f"answerer{n}", plan, outcomes) for n in range(random.randint(1, 2))
            ]
        if MEETS in self._groups:
            self._attendance = attendance = Attendance()
            self.actors += [
                Member(f"member{n}", plan, attendance, is_named=random.random() < 0.5)
                for n in range(random.randint(1, 3))
            ]
            self.actors += [
                Watcher(f"watcher{n}", plan, attendance) for n in range(random.randint(1, 2))
            ]

    def violations(self, since: float) -> list[str]:
        """Return all broken promises; the last fault ended at this time."""
        outcomes = self._outcomes
        trusts_clocks = self.is_on_one_machine and self.trusts_clocks
        return [
            *(self._histories.violations(since) if self._histories is not None else ()),
            *(outcomes.violations(trusts_clocks=trusts_clocks) if outcomes is not None else ()),
            *(self._attendance.violations() if self._attendance is not None else ()),
        ]
