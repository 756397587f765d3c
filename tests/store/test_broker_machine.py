"""The naive broker beside a server with a real store, which holds exactly what must be kept."""

import asyncio
from typing import ClassVar

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.store.servers import ValkeyServer
from tests.store.valkey_backing import ValkeyBacking, machine_settings
from tests.unit.bayeux.broker_rules import BrokerRules, Shelf
from tests.unit.bayeux.slow_store import number_in


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
            return self.backings[-1]

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
