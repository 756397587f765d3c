"""The end of a topic reaches sessions that were away, although the server stops meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.successors import Successors, following
from tests.integration.test_killed_point_to_point import Client

TOPIC = {"channels": {"/orders/*": {"topic": True}}}
ENDS = {"restarted": Successors.restart, "killed": Successors.kill}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_end_of_a_topic_reaches_a_session_that_was_away_over_a_restart(
    tmp_path: Path, end: Callable[[Successors], None]
) -> None:
    with following(tmp_path, **TOPIC) as servers:
        joe = Client(servers.last, ack=True, delivery={"session": "joe/1"})
        joe.send("/meta/subscribe", subscription=["/orders/7", "/orders/8"])
        joe.send("/meta/disconnect")
        bob = Client(servers.last)
        bob.send("/orders/7", data="still delivered")
        bob.send("/service/topics", data={"erase": "/orders/7"})
        end(servers)
        joe = Client(servers.last, ack=True, delivery={"session": "joe/1"})
        assert joe.agreed["resumed"]
        assert joe.agreed["lostSubscriptions"] == ["/orders/7"]
        last, erased, _ = joe.connect(0)
        assert last["data"] == "still delivered"
        assert erased["channel"] == "/orders/7"
        assert erased["ext"]["delivery"]["state"] == "ERASED"
        Client(servers.last).send("/orders/8", data="the other is there")
        *events, _ = joe.connect(1)
        assert [each["data"] for each in events] == ["the other is there"]
        joe = Client(servers.last, ack=True, delivery={"session": "joe/1"})
        assert "lostSubscriptions" not in joe.agreed
