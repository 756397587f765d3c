"""Subjects, sessions, topics, histories, work and restarts against a naive broker."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.messages.session_record import HoldRecord, Recorded
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.delivery.topics.configured import TopicRecord
from tests.unit.bayeux.broker_rules import BrokerRules, Shelf
from tests.unit.bayeux.slow_store import number_in
from tests.unit.delivery.fake_keeper import FakeKeeper, Found
from tests.unit.journal.ledger import Writing


class KeeperShelf:
    """The store in memory."""

    def __init__(self, keeper: FakeKeeper) -> None:
        self.keeper = keeper

    @property
    def journal(self) -> DeliveryJournal:
        return self.keeper.writer if isinstance(self.keeper, Writing) else NO_JOURNAL

    def ends(self) -> Counter[str] | None:
        return self.keeper.ends() if isinstance(self.keeper, Writing) else None

    def reopen(self) -> None:
        while self.keeper.turn():
            pass

    def topic_records(self) -> Mapping[str, TopicRecord]:
        return self.keeper.topics

    def load(self, without_session: Callable[[str, Sequence[Message]], None]) -> Iterable[Found]:
        return self.keeper.load(without_session)

    def references(self) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for key in self.keeper.queues:
            for _, message in self.keeper.waiting(key):
                found.setdefault(number_in(message.wire), set()).add(key)
        return found

    def session_keys(self) -> set[str]:
        return set(self.keeper.sessions)

    def dead(self) -> Sequence[DeadLetter]:
        return self.keeper.letters


class Broker(BrokerRules):
    """With a store in memory, and a journal."""

    keeper: type[FakeKeeper] = Writing

    def open_shelf(self) -> Shelf:
        return KeeperShelf(self.keeper())


@pytest.mark.slow
def test_the_server_agrees_with_a_naive_broker_over_random_operations() -> None:
    run_state_machine_as_test(
        Broker,
        settings=settings(
            stateful_step_count=25,
            report_multiple_bugs=False,
            phases=set(Phase) - {Phase.explain},
            suppress_health_check=list(HealthCheck),
        ),
    )


class LosesReferences(FakeKeeper):
    def settle(self, key: str, ids: Sequence[int], outcome: object) -> None:
        """It forgets all entries of the queue."""
        self.drop(key, [*self.queues.get(key, ())])


class KeepsSettled(FakeKeeper):
    def settle(self, key: str, ids: Sequence[int], outcome: object) -> None:
        """It keeps settled entries."""


class LosesMoved(FakeKeeper):
    def move(self, moves: Sequence[Move]) -> None:
        """What leaves a queue arrives nowhere."""
        super().move([each._replace(targets=()) for each in moves])


class MovesByCopying(FakeKeeper):
    def move(self, moves: Sequence[Move]) -> None:
        """A moved message also stays in the queue that it leaves."""
        for each in moves:
            before = dict(self.queues.get(each.source, {}))
            super().move([each])
            self.queues[each.source] = before


class KeepsHistories(FakeKeeper):
    def leave_history(self, channel: str, id: int) -> None:
        """It keeps what leaves a history."""


class ForgetsHolds(FakeKeeper):
    def save(self, session: Recorded) -> None:
        """A restart resumes held sessions."""
        super().save(session)
        record = session.record()
        self.sessions[record.key] = replace(record, hold=HoldRecord())


class ForgetsTopics(FakeKeeper):
    def save_topics(self, topics: Mapping[str, TopicRecord | None]) -> None:
        """After a restart, topics have the configuration of their rules."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "keeper",
    [
        LosesReferences,
        KeepsSettled,
        LosesMoved,
        MovesByCopying,
        KeepsHistories,
        ForgetsHolds,
        ForgetsTopics,
    ],
)
def test_the_machine_finds_each_fault_of_a_broken_store(keeper: type[FakeKeeper]) -> None:
    class Broken(Broker):
        pass

    Broken.keeper = keeper
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Broken,
            settings=settings(
                max_examples=1000,
                stateful_step_count=40,
                derandomize=True,
                database=None,
                report_multiple_bugs=False,
                print_blob=False,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
