"""Queues of subjects and work queues with a real store: what is kept there is what memory has."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from holdfast.delivery.dead_letters import DeadLetter
from holdfast.delivery.store_port import StorePort
from holdfast.store.loading import Orphaned
from tests.store.servers import ValkeyServer
from tests.store.valkey_backing import ValkeyBacking
from tests.unit.bayeux.delivery_store import number_in
from tests.unit.bayeux.harness import House
from tests.unit.bayeux.test_subjects_machine import Subjects
from tests.unit.bayeux.test_work_queues_machine import WorkQueue
from tests.unit.delivery.fake_keeper import Found


class ValkeyKeeper:
    """A Valkey that answers whenever a turn ends."""

    def __init__(self, backing: ValkeyBacking) -> None:
        self.backing = backing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backing.keeper, name)

    def turn(self) -> bool:
        return self.backing.answer()

    def load(self, orphaned: Orphaned) -> list[Found]:
        """What the next process finds."""
        self.backing.reopen()
        return self.backing.load(orphaned)

    @property
    def letters(self) -> Sequence[DeadLetter]:
        return self.backing.dead()


@pytest.fixture(scope="module")
def durable_valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer(appendonly="yes", appendfsync="always") as server:
        yield server


def the_store_has_what_memory_has(house: House) -> None:
    """Each queue that is kept, with the attempts to deliver each message, and no other."""
    state = house.bayeux.state
    here = {
        receiver.key: {
            number_in(entry.message.wire): entry.attempts for entry in receiver.queue.entries()
        }
        for receiver in (*state.sessions, *state.waiting_places.queues())
        if receiver.is_durable and receiver.queue.count
    }
    assert cast("ValkeyKeeper", house.keeper).backing.attempts() == here


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("machine", [Subjects, WorkQueue])
def test_shared_queues_are_in_the_store_as_in_memory(
    durable_valkey: ValkeyServer, machine: type[Subjects | WorkQueue]
) -> None:
    loop = asyncio.new_event_loop()

    class Stored(machine):  # type: ignore[valid-type, misc]
        """With a Valkey."""

        backings: ClassVar[list[ValkeyBacking]] = []

        def open_store(self) -> StorePort:
            self.backings.append(ValkeyBacking(durable_valkey, loop))
            return cast("StorePort", ValkeyKeeper(self.backings[-1]))

        def check_store(self) -> None:
            the_store_has_what_memory_has(self.house)

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                while self.backings:
                    self.backings.pop().close()

    run_state_machine_as_test(
        cast("type[RuleBasedStateMachine]", Stored),
        settings=settings(
            max_examples=30,
            stateful_step_count=25,
            report_multiple_bugs=False,
            phases=set(Phase) - {Phase.explain},
            suppress_health_check=list(HealthCheck),
        ),
    )
    loop.close()
