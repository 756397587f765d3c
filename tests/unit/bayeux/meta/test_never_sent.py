"""A verdict on a message that was never sent is successful, and the reply names its number."""

import pytest

from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.second_lives import RestartableServer, connect, named, ok, publish, seqs


def with_a_message(*, ack: bool = True) -> tuple[RestartableServer, Client, int]:
    """A client that was handed one message, and its number."""
    server = RestartableServer()
    client = named(server, ack=ack)
    publish(server, 1)
    [seq] = seqs(connect(client, 1 if ack else None))
    return server, client, seq


def test_a_connect_says_which_numbers_were_never_sent() -> None:
    _, client, seq = with_a_message(ack=False)
    refused = {"seq": 0, "errorCode": "user.update.error"}
    asked = connect(client, None, ok(seq), ok(seq + 5), refused)
    reply = asked.elements[-1]
    assert reply["successful"]
    assert reply["ext"]["delivery"] == {"unknown": [seq + 5, 0]}


def test_a_verdict_that_comes_twice_is_not_named() -> None:
    _, client, seq = with_a_message(ack=False)
    for _ in range(2):
        assert "delivery" not in connect(client, None, ok(seq)).elements[-1].get("ext", {})


@pytest.mark.parametrize("ack", [False, True])
def test_the_service_says_so_too(ack: bool) -> None:
    server, client, seq = with_a_message(ack=ack)
    asked = client.publish("/service/delivery", [ok(seq), ok(seq + 1)])
    server.turn()
    reply: Json = asked.elements[-1]
    assert reply["successful"]
    assert reply["ext"]["delivery"] == {"unknown": [seq + 1]}


def test_no_more_than_a_hundred_are_named() -> None:
    _, client, seq = with_a_message(ack=False)
    asked = connect(client, None, *(ok(seq + more) for more in range(1, 500)))
    assert len(asked.elements[-1]["ext"]["delivery"]["unknown"]) == 100
