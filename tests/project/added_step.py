"""What a server says of messages that leave their queues by a step of this kind, as JSON.

`test_steps.py` runs it with sources whose table of steps has one row more.
"""

import json
import sys
from dataclasses import asdict

from holdfast.cli import message, output
from holdfast.delivery.messages.outcomes import OUTCOMES
from holdfast.journal.schema import BOOKS, SETTLED
from holdfast.pipeline.copies import LAST_ENDS
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.message_views import step_of
from holdfast.web.prometheus.metric_families import BayeuxCollector
from holdfast.web.scheduling.speaking import OwnStoreRight
from tests.unit.bayeux.harness import Server
from tests.unit.bayeux.publish.test_delays import reader
from tests.unit.journal.test_delays import balances, events, journaled


def happen(server: Server, kind: str, *, persistent: bool) -> None:
    """Publish a message, which leaves the queue of a session by this step."""
    joe = reader(server, f"joe/{1 + persistent}")
    server.client().publish("/a", 1, ext={"delivery": {"persistent": persistent}})
    server.turn()
    [gone] = joe.session.queue.messages()
    joe.session.queue.remove_messages([gone])
    server.bayeux.state.ledger.settled(joe.session, [gone], OUTCOMES[kind])
    server.turn()
    joe.unsubscribe("/a")


def metrics(server: Server) -> dict[str, float]:
    """The settled entries by outcome."""
    return {
        sample.labels["outcome"]: sample.value
        for metric in BayeuxCollector(server.bayeux, {}, Alerts(), OwnStoreRight()).collect()
        if metric.name == "holdfast_entries_settled"
        for sample in metric.samples
    }


def main(kind: str) -> None:
    server = journaled()
    for persistent in (False, True):
        happen(server, kind, persistent=persistent)
    counters = server.bayeux.state.counters
    found = [each for each in events(server) if each.kind == kind]
    told = {
        "counted": counters.books()[kind],
        "metric": metrics(server)[kind],
        "journal": len(found),
        "in_books": kind in BOOKS[kind],
        "is_end": kind in SETTLED and kind in LAST_ENDS,
        "balances": server.balances() and balances(server),
    }
    output.is_terminal = lambda: True
    output.print_items(message.STEP_COLUMNS, [asdict(step_of(each)) for each in found])
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
