"""What the judge of histories takes for a broken promise, and what not."""

import pytest

from tests.simulation.histories import CHANNELS, Histories, Visit
from tests.simulation.oracle import Publish


@pytest.mark.parametrize(("accepted_at", "is_wrong"), [(3.0, True), (9.0, False)])
def test_only_what_a_store_has_kept_and_answered_late_comes_behind_later_ones(
    *, accepted_at: float, is_wrong: bool
) -> None:
    channel = CHANNELS[0]
    published = {key: Publish("ann", n, channel, 1.0) for n, key in enumerate("ab")}
    for publish in published.values():
        publish.id, publish.accepted_at = "7", accepted_at
    judge = Histories(published, lambda _: False, lambda _: False)
    judge.expects("joe")
    visit = Visit("joe", may_repeat=False)
    judge.received(visit, channel, "b", 2)
    judge.received(visit, channel, "a", 1)
    judge.told("joe", 10.0)
    found = judge.violations(9.0, trusts_clocks=True)
    assert found == (["histories: joe got a behind a later one"] if is_wrong else [])
