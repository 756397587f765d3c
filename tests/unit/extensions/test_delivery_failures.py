"""Lost connections, receivers that fail for now, and letters that cannot be stored."""

import pytest

from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.operated_server import letters
from tests.unit.extensions.delivering import codes, connect, no, ok, publish, receiver, redelivered


def test_a_lost_session_without_retries_leaves_dead_letters_and_ends() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    connect(client)
    publish(server, 2)
    server.advance(11.0)
    assert codes(server) == ["communication.noConnection"] * 2
    assert letters(server) == [1, 2]
    assert client.session.is_gone
    assert connect(client).reply["advice"]["reconnect"] == "handshake"
    assert server.balances()


def test_a_session_lost_with_an_empty_queue_expires_without_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    client = receiver(server)
    server.advance(11.0)
    assert client.session.is_gone
    assert server.bayeux.state.sessions.ended["expire"] == 1
    assert server.bayeux.state.hub.counters.refused.total() == 0
    assert caplog.records == []
    assert connect(client).reply["advice"]["reconnect"] == "handshake"


def test_a_lost_session_with_retries_is_awaited_and_gets_everything() -> None:
    server = server_of()
    client = receiver(server, retries=3, delay=1000)
    publish(server, 1)
    connect(client)
    publish(server, 2)
    server.advance(11.0)
    dispatcher = client.session.dispatcher
    assert dispatcher is not None
    assert dispatcher.state.value == "POLLING"
    answer = connect(client, ack=1)
    assert (answer.data, redelivered(answer)) == ([1], [1])
    assert connect(client).data == [2]
    assert dispatcher.state.value == "ALIVE"
    assert server.balances()


def test_the_last_failed_attempt_ends_the_session() -> None:
    server = server_of(max_interval=1000)
    client = receiver(server, retries=2, delay=1000)
    publish(server, 1)
    server.advance(1.2)
    assert not client.session.is_gone
    server.advance(1.2)
    assert not client.session.is_gone
    server.advance(0.4)
    assert client.session.is_gone
    assert codes(server) == ["communication.noConnection.dead"]


def test_a_communication_failure_leads_to_a_redelivery_after_the_delay() -> None:
    server = server_of()
    client = receiver(server, retries=3, delay=1000)
    publish(server, 1, 2)
    events = connect(client).events
    refusal = no(events[0], "communication.noConnection")
    ext = {"ack": client.session.queue.batch, "delivery": {"verdicts": [refusal]}}
    asked = client.connect(ext=ext)
    server.advance(0.3)
    assert asked.is_held
    server.advance(0.2)
    assert (asked.data, redelivered(asked)) == ([1], [1])
    asked = connect(client, *map(ok, asked.events))
    assert (asked.data, redelivered(asked)) == ([2], [0])
    connect(client, *map(ok, asked.events))
    assert server.balances()
    assert codes(server) == []


def test_a_communication_failure_ends_a_session_without_retries() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2)
    events = connect(client).events
    connect(client, no(events[0], "communication.timeout"))
    assert codes(server) == ["communication.timeout"] * 2
    assert client.session.is_gone


def test_a_receiver_without_a_verdict_in_time_is_ended_with_a_dead_letter() -> None:
    server = server_of()
    client = receiver(server, ack=False, responseTimeout=1000)
    publish(server, 1)
    (event,) = connect(client, ack=None).events
    server.advance(1.2)
    assert codes(server) == ["communication.responseTimeout"]
    assert client.session.is_gone
    assert connect(client, ok(event), ack=None).reply["successful"] is False


def test_a_pending_message_is_redelivered_only_after_the_response_timeout() -> None:
    server = server_of()
    client = receiver(server, retries=-1, responseTimeout=5000)
    publish(server, 1, 2)
    connect(client)
    publish(server, 3)
    answer = connect(client, delivery={"pending": [1]})
    assert answer.data == [3]
    assert server.bayeux.state.hub.counters.acked == 1
    for _ in range(5):
        server.advance(0.9)
        assert connect(client, delivery={"pending": [1]}).data == []
    server.advance(1.0)
    assert connect(client, delivery={"pending": [1]}).data == [1]


def test_a_lost_reply_is_redelivered_with_a_count_and_is_no_failure() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    connect(client)
    answer = connect(client, ack=1)
    assert answer.data == [1]
    assert redelivered(answer) == [1]
    assert answer.events[0]["ext"]["delivery"]["seq"] == 2
    assert codes(server) == []


def test_a_verdict_counts_for_the_last_hand_over_only() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    (event,) = connect(client).events
    connect(client, ack=1)
    connect(client, no(event, "user.update.error"), ack=2)
    assert codes(server) == []
    assert server.bayeux.state.hub.counters.verdicts_unknown == 1


def test_a_refusal_settles_nothing_and_may_be_repeated_while_no_letter_can_be_stored() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    (event,) = connect(client).events
    server.keeper.is_full = True
    reply = connect(client, no(event, "user.update.error")).reply
    assert reply["error"] == "503:communication.noConnection:store_unavailable"
    assert reply["advice"]["reconnect"] == "retry"
    assert reply["advice"]["interval"] > 0
    assert client.session.queue.count == 1
    server.keeper.is_full = False
    connect(client, no(event, "user.update.error"), ack=2)
    assert codes(server) == ["user.update.error"]
    assert server.balances()


def test_a_session_is_not_given_up_while_its_letters_cannot_be_stored() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    server.keeper.is_full = True
    server.advance(20.0)
    assert not client.session.is_gone
    server.keeper.is_full = False
    server.advance(2.0)
    assert client.session.is_gone
    assert codes(server) == ["communication.noConnection"]
    assert server.balances()
