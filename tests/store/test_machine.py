"""The machine of deliveries with a real store, which matches memory."""

import asyncio
from typing import ClassVar

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.effort import TIMES
from tests.store.servers import ValkeyServer
from tests.store.valkey_backing import ValkeyBacking, machine_settings
from tests.unit.bayeux.delivery_rules import DeliveryRules
from tests.unit.bayeux.delivery_store import Backing


@pytest.mark.slow
@pytest.mark.timeout(120 * TIMES)
def test_a_real_store_matches_memory_after_any_operations(durable_valkey: ValkeyServer) -> None:
    loop = asyncio.new_event_loop()

    class StoreMachine(DeliveryRules):
        """With a Valkey."""

        backings: ClassVar[list[ValkeyBacking]] = []

        def open_store(self) -> Backing:
            self.backings.append(ValkeyBacking(durable_valkey, loop))
            return self.backings[-1]

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                while self.backings:
                    self.backings.pop().close()

    run_state_machine_as_test(StoreMachine, settings=machine_settings(20 * TIMES))
    loop.close()
