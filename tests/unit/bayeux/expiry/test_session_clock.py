"""What time does to sessions that are held back, owe a verdict, or have lost their clients."""

import pytest

from holdfast.bayeux.sessions.status import expires_ms, hold_of
from holdfast.delivery.queues.dispatcher import DispatcherState as Contact
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    codes,
    connect,
    drain,
    named,
    no,
    ok,
    publish,
    seqs,
)


def test_a_queue_hold_without_an_end_replaces_one_with_an_end() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    until_ms = server.bayeux.state.node.now_ms() + 1000
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=until_ms
    )
    connect(client, 1, no(seq, message="disk full"))
    server.advance(3.0)
    dispatcher = client.session.dispatcher
    assert dispatcher is not None
    assert dispatcher.hold_record is not None
    assert dispatcher.hold_record.reason == "disk full"


def test_the_end_of_a_resumed_queue_hold_does_not_end_a_later_one() -> None:
    server = RestartableServer()
    client = named(server)
    until_ms = server.bayeux.state.node.now_ms() + 1000
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=until_ms
    )
    server.bayeux.life.resume(client.session, server.now)
    assert hold_of(client.session) is None
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    server.advance(3.0)
    assert not client.session.flows(server.now)


def test_a_queue_hold_ends_by_the_wall_clock_though_the_process_was_asleep() -> None:
    server = RestartableServer()
    client = named(server)
    until_ms = server.bayeux.state.node.now_ms() + 60_000
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=until_ms
    )
    publish(server, 1)
    asked = client.connect(ext={"ack": 1})
    server.advance(1.0)
    assert asked.is_held
    server.sleep(60.0)
    server.advance(0.3)
    assert asked.data == [1]


def test_a_queue_hold_does_not_end_early_while_timestamps_are_ahead_of_the_clock() -> None:
    server = RestartableServer()
    client = named(server)
    node = server.bayeux.state.node
    # As after a kill, or of another shard.
    node.hear(node.stamp() + 900_000_000)
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=node.now_ms() + 1000
    )
    server.advance(1.5)
    assert hold_of(client.session) is not None
    server.advance(0.5)
    assert hold_of(client.session) is None


def test_a_queue_hold_whose_end_is_past_ends_at_once() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    asked = client.connect(ext={"ack": 1})
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=1
    )
    server.advance(0.2)
    assert asked.data == [1]


@pytest.mark.parametrize("retries", [0, 2])
def test_a_message_without_a_verdict_fails_after_the_response_timeout(retries: int) -> None:
    server = RestartableServer()
    client = server.client(
        ext={"ack": True, "delivery": {"retries": retries, "delay": 1000, "responseTimeout": 1000}}
    )
    connect(client, 0)
    client.subscribe("/a")
    publish(server, 1, 2)
    first, second = seqs(connect(client, 1))
    connect(client, 2, pending=[first, second])
    server.advance(0.9)
    assert codes(server) == []
    server.advance(0.3)
    if not retries:
        assert codes(server) == ["communication.responseTimeout"] * 2
        return
    server.advance(0.5)
    assert drain(client, 3) == ([1, 2], [1, 0])


def test_a_client_that_comes_back_and_wants_a_message_later_gets_it_later() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    # It is silent for so long that contact with it is lost.
    server.advance(30.0)
    later = no(seq, "communication.busy", delay=3000)
    asked = client.connect(ext={"ack": 2, "delivery": {"verdicts": [later]}})
    server.advance(2.8)
    assert asked.is_held
    server.advance(0.4)
    assert asked.data == [1]


def test_verdicts_before_the_response_timeout_settle_their_messages() -> None:
    server = RestartableServer()
    client = named(server, ack=False, responseTimeout=1000)
    publish(server, 1, 2)
    first, second = seqs(connect(client, None))
    server.advance(0.8)
    connect(client, None, ok(first))
    server.advance(0.1)
    connect(client, None, ok(second))
    server.advance(3.0)
    assert (codes(server), client.session.queue.count) == ([], 0)


def test_a_held_back_session_without_contact_fails_only_after_its_session_timeout() -> None:
    server = RestartableServer()
    session = {"name": "joe/1", "timeout": 60_000}
    client = server.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": session, "retries": 0}})
    connect(client, 0)
    client.subscribe("/a")
    server.turn()
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    publish(server, 1)
    server.advance(60.0)
    assert not client.session.is_gone
    server.advance(15.0)
    assert client.session.is_gone
    assert codes(server) == ["communication.noConnection"]


def test_a_session_that_is_resumed_without_contact_gives_its_client_a_moment_to_return() -> None:
    server = RestartableServer()
    client = named(server, retries=0)
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    server.advance(15.0)
    server.bayeux.life.resume(client.session, server.now)
    assert client.session.dispatcher is not None
    assert client.session.dispatcher.state is Contact.POLLING
    publish(server, 1)
    server.advance(0.3)
    assert connect(client, 1).data == [1]


def test_a_connect_stays_held_if_the_lazy_message_was_cleared() -> None:
    server = RestartableServer()
    client = server.connected()
    client.subscribe("/a")
    server.for_extensions.publish("/a", 1, lazy_s=1.0)
    server.bayeux.life.clear(client.session)
    asked = client.connect()
    server.advance(2.0)
    assert asked.is_held
    assert client.session.lazy_due == 0.0


def test_a_held_back_session_without_terms_ends_after_a_day_without_contact() -> None:
    server = RestartableServer()
    client = server.client(ext={"ack": True})
    client.connect()
    client.subscribe("/a")
    publish(server, 1)
    state = server.bayeux.state
    seen_ms = state.node.now_ms()
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    server.advance(11.0)
    assert client.session.dispatcher is not None
    assert client.session.dispatcher.state is Contact.POLLING
    ends_ms = expires_ms(state.options, state.node, client.session, server.now)
    assert ends_ms is not None
    assert ends_ms - seen_ms == pytest.approx(24 * 3600_000 + 10_000, abs=200)
    server.now += 24 * 3600 - 2.0
    server.advance(0.1)
    assert not client.session.is_gone
    server.advance(2.0)
    assert client.session.is_gone
    assert codes(server) == ["communication.noConnection"]
    assert server.balances()


def test_a_held_back_session_without_terms_goes_on_if_its_client_returns_within_a_day() -> None:
    server = RestartableServer()
    client = server.client(ext={"ack": True})
    client.connect()
    client.subscribe("/a")
    publish(server, 1)
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    server.advance(11.0)
    server.now += 12 * 3600
    connect(client, 0)
    assert client.session.ends_at == 0.0
    server.bayeux.life.resume(client.session, server.now)
    assert connect(client, 0).data == [1]
