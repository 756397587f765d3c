"""The naive broker beside a server with a real store, which holds exactly what must be kept."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest
from hypothesis.stateful import run_state_machine_as_test

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.topics.configured import TopicRecord
from tests.store.servers import ValkeyServer
from tests.store.valkey_backing import ValkeyBacking, machine_settings
from tests.unit.bayeux.broker_rules import BrokerRules, Shelf
from tests.unit.bayeux.delivery_store import number_in
from tests.unit.delivery.fake_keeper import Found

if TYPE_CHECKING:
    from holdfast.delivery.ports.store_port import StorePort


class ValkeyKeeper:
    """A Valkey that answers whenever a turn ends."""

    def __init__(self, backing: ValkeyBacking) -> None:
        self.backing = backing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backing.keeper, name)

    def turn(self) -> bool:
        return self.backing.answer()


class ValkeyShelf:
    """The store on a Valkey."""

    def __init__(self, backing: ValkeyBacking) -> None:
        self.backing = backing
        self.keeper = cast("StorePort", ValkeyKeeper(backing))

    def reopen(self) -> None:
        self.backing.reopen()

    def topic_records(self) -> Mapping[str, TopicRecord]:
        return self.backing.topics()

    def load(self, without_session: Callable[[str, Sequence[Message]], None]) -> Iterable[Found]:
        return self.backing.load(without_session)

    def references(self) -> dict[int, set[str]]:
        return self.backing.references()

    def session_keys(self) -> set[str]:
        return self.backing.session_keys()

    def dead(self) -> Sequence[DeadLetter]:
        return self.backing.dead()


def attempts_in(machine: BrokerRules) -> dict[str, dict[int, int]]:
    """By queue or history, how often each of its stored messages was handed over."""
    found: dict[str, dict[int, int]] = {}
    model = machine.model
    for queue in model.queues:
        entries = machine.session(queue).queue.entries()
        attempts = {number_in(each.message.wire): each.attempts for each in entries}
        kept = [copy.sent.number for copy in queue.copies if copy.is_kept]
        if kept:
            found[queue.key] = {number: attempts[number] for number in kept}
    for channel, history in model.histories.items():
        numbers = [sent.number for sent in history if sent.is_durable]
        if numbers:
            found[channel] = dict.fromkeys(numbers, 0)
    return found


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_store_has_exactly_what_a_naive_broker_would_keep(durable_valkey: ValkeyServer) -> None:
    loop = asyncio.new_event_loop()

    class Stored(BrokerRules):
        """With a Valkey."""

        backings: ClassVar[list[ValkeyBacking]] = []

        def open_shelf(self) -> Shelf:
            self.backings.append(ValkeyBacking(durable_valkey, loop))
            return ValkeyShelf(self.backings[-1])

        def everything_is_where_it_must_be(self) -> None:
            super().everything_is_where_it_must_be()
            assert self.backings[-1].attempts() == attempts_in(self)

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                while self.backings:
                    self.backings.pop().close()

    run_state_machine_as_test(Stored, settings=machine_settings(40))
    loop.close()
