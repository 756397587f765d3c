"""Whatever happens, the journal reports of every copy how it ended, and reports it once."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.journal.schema import Kind
from tests.effort import TIMES
from tests.unit.bayeux.delivery_receiver import CHANNELS
from tests.unit.bayeux.delivery_rules import DeliveryRules
from tests.unit.bayeux.delivery_store import Backing
from tests.unit.journal.ledger import JournaledStore, copies, ends


class JournaledMachine(DeliveryRules):
    """The delivery machine with a journal, which is compared with the model at the end."""

    def open_store(self) -> Backing:
        self.store = JournaledStore()
        return self.store

    def repair(self) -> None:
        super().repair()
        events = self.store.events()
        ended = ends(events)
        assert [copy for copy, kinds in ended.items() if len(kinds) > 1] == []
        published = [event for event in events if event.kind == Kind.PUBLISHED]
        first = Counter(event.msg for event in published if event.size)
        assert first == Counter({event.msg for event in published})
        totals = Counter(message for _, message in ended)
        assert not totals - copies(events)
        self.compare(ended)

    def compare(self, ended: dict[tuple[str, int], list[str]]) -> None:
        numbers = {
            id: event["data"]
            for id, event in self.store.about.items()
            if event["channel"] in CHANNELS
        }
        told = {(f"client/{key}", numbers.get(id)): kinds[0] for (key, id), kinds in ended.items()}
        for copy, fate in self.stage.model.fates.items():
            assert told.get(copy) == fate, (copy, told)


@pytest.mark.slow
@pytest.mark.timeout(120 * TIMES)
def test_the_journal_reports_once_how_each_copy_ended() -> None:
    run_state_machine_as_test(
        JournaledMachine,
        settings=settings(
            max_examples=20 * TIMES,
            stateful_step_count=40,
            # The machine without a journal takes other examples in each run.
            derandomize=TIMES == 1,
            report_multiple_bugs=False,
            phases=set(Phase) - {Phase.explain},
            suppress_health_check=list(HealthCheck),
        ),
    )
