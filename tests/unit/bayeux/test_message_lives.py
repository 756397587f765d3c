"""A message leaves when its lifetime ends, wherever it waits, and is counted once."""

from functools import partial
from itertools import count
from typing import Any

import pytest

from holdfast.bayeux.expiry import expired_messages
from holdfast.delivery.guard.holds import ChannelHold
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, Server, Wire
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    again,
    batch,
    codes,
    connect,
    named,
    no,
    seqs,
    take,
)

FOREVER = -1
PLACES = 3


def server_of(**options: Any) -> RestartableServer:
    return RestartableServer(**{"max_queue": PLACES, "max_interval": 10_000_000, **options})


def publish(sender: Client, *numbers: int, life_ms: int = 1000, is_forced: bool = True) -> None:
    expiration = {"lifeTime": life_ms, "forceDestroy": is_forced}
    for number in numbers:
        sender.publish("/a", number, ext={"delivery": {"expiration": expiration}})
    sender.server.turn()


def expired(server: Server) -> int:
    assert server.balances()
    return server.bayeux.state.hub.counters.expired


def left(server: RestartableServer, name: str = "joe/1") -> tuple[int, int]:
    """How many entries a session has in its queue and in the store."""
    session = server.bayeux.state.sessions.named(name)
    assert session is not None
    return session.queue.count, len(server.store.queues[name])


def test_an_expired_message_leaves_the_queue_of_an_absent_session_and_the_store() -> None:
    server = server_of()
    named(server).disconnect()
    sender = server.connected()
    publish(sender, 1, 2, 3)
    server.advance(0.9)
    assert left(server) == (3, 3)
    server.advance(0.3)
    assert left(server) == (0, 0)
    assert expired(server) == 3
    publish(sender, 4, 5, 6, life_ms=FOREVER)
    assert codes(server) == []
    assert left(server) == (3, 3)


def test_messages_expire_in_the_order_of_their_lifetimes_and_not_of_their_arrival() -> None:
    server = server_of()
    named(server).disconnect()
    sender = server.connected()
    publish(sender, 1, life_ms=3000)
    publish(sender, 2, life_ms=1000)
    publish(sender, 3, life_ms=2000)
    for seconds in (1, 2, 3):
        server.advance(1.1)
        assert expired(server) == seconds


def test_no_connect_gets_a_message_that_has_expired_since_the_last_tick() -> None:
    server = server_of()
    client = named(server)
    sender = server.connected()
    publish(sender, 1, life_ms=1000)
    publish(sender, 2, life_ms=2000)
    server.now += 1.5
    assert connect(client, 1).data == [2]
    assert expired(server) == 1


def test_an_expired_message_without_force_destroy_is_delivered_late() -> None:
    server = server_of()
    client = named(server)
    publish(server.connected(), 1, is_forced=False)
    server.advance(5.0)
    assert expired(server) == 0
    assert connect(client, 1).data == [1]


def test_an_expired_message_leaves_a_queue_that_is_held_back() -> None:
    server = server_of()
    client = named(server)
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    publish(server.connected(), 1)
    server.advance(1.2)
    assert left(server) == (0, 0)


def test_an_expired_message_leaves_the_queue_while_its_channel_is_held() -> None:
    server = server_of()
    client = named(server)
    server.bayeux.state.guard.restore(
        "/a", ChannelHold(0, "nobody wants it", "operator/ann"), server.now
    )
    publish(server.connected(), 1)
    asked = client.connect()
    server.advance(1.2)
    assert asked.is_held
    assert left(server) == (0, 0)


def test_returned_messages_leave_the_queue_and_the_store_when_they_expire() -> None:
    server = server_of()
    client = named(server)
    publish(server.connected(), 1, 2, life_ms=5000)
    got = connect(client, 1)
    connect(client, batch(got), no(seqs(got)[0]))
    assert left(server) == (2, 2)
    server.advance(5.2)
    assert left(server) == (0, 0)
    assert expired(server) == 2


@pytest.mark.parametrize("life_ms", [500, 5000])
def test_a_message_in_flight_expires_only_after_contact_is_lost(life_ms: int) -> None:
    server = server_of(max_interval=2000)
    client = named(server, retries=-1)
    publish(server.connected(), 1, life_ms=life_ms)
    connect(client, 1)
    server.advance(1.5)
    assert left(server) == (1, 1), "a message in flight stays there"
    server.advance(4.0)
    assert left(server) == (0, 0)
    assert expired(server) == 1


def test_a_message_expires_if_the_reply_that_carries_it_cannot_be_sent() -> None:
    server = Server(DeliveryWire, partial(Ack, announces_batch=False), max_interval=100_000)
    client = server.connected()
    client.subscribe("/a")
    asked = client.connect()
    asked.wire.is_cut = True
    publish(server.connected(), 1)
    assert client.session.queue.count == 1
    server.advance(1.2)
    assert client.session.queue.count == 0
    assert expired(server) == 1


def with_expired_in_flight(server: RestartableServer) -> Client:
    """A client with a message in flight whose lifetime has ended."""
    client = named(server)
    publish(server.connected(), 1)
    assert connect(client, 1).data == [1]
    server.advance(2.0)
    assert left(server) == (1, 1)
    return client


def test_an_expired_message_leaves_when_it_returns_to_a_queue_that_is_held_back() -> None:
    server = server_of()
    client = with_expired_in_flight(server)
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    assert connect(client, 1).data == []
    server.advance(0.2)
    assert left(server) == (0, 0)


def test_an_expired_message_in_flight_leaves_after_a_takeover_before_any_connect() -> None:
    server = server_of()
    with_expired_in_flight(server)
    take(server.guest())
    server.advance(0.2)
    assert left(server) == (0, 0)


def test_a_message_expires_if_the_reply_that_redelivers_it_cannot_be_sent() -> None:
    server = server_of()
    client = named(server)
    publish(server.connected(), 1)
    connect(client, 1)
    wire = Wire()
    wire.is_cut = True
    assert connect(client, 1, wire=wire).is_held
    server.now += 2.0
    server.bayeux.tick(server.now)
    assert left(server) == (1, 1)
    server.turn()
    server.advance(0.2)
    assert left(server) == (0, 0)


def test_an_expired_message_leaves_a_plain_session_without_a_held_connect() -> None:
    server = Server(DeliveryWire, max_interval=100_000)
    client = server.connected()
    client.subscribe("/a")
    publish(server.connected(), 1)
    server.advance(1.2)
    assert client.session.queue.count == 0
    assert expired(server) == 1


def test_a_message_whose_lifetime_ends_while_the_store_is_silent_expires_when_it_answers() -> None:
    server = server_of()
    client = named(server)
    server.store.is_silent = True
    publish(server.connected(), 1)
    server.advance(2.0)
    server.store.answer_late(server.store.outcome)
    server.turn()
    server.advance(0.2)
    assert left(server) == (0, 0)
    assert expired(server) == 1
    assert connect(client, 1).data == []


def test_a_message_that_expires_while_the_store_is_away_leaves_it_when_it_is_back() -> None:
    server = server_of()
    named(server).disconnect()
    publish(server.connected(), 1, 2)
    server.store.go_away()
    server.advance(1.2)
    assert left(server) == (0, 2)
    server.store.come_back()
    assert left(server) == (0, 0)
    assert expired(server) == 2


def test_the_lifetime_of_a_message_goes_on_while_the_process_is_frozen() -> None:
    server = server_of()
    named(server).disconnect()
    publish(server.connected(), 1, life_ms=60_000)
    # The laptop slept, or the process was frozen: for the core, no time has passed.
    server._stamps = count(server._stamp() + 60 * 10**9)
    server.advance(0.2)
    assert left(server) == (0, 0)
    assert expired(server) == 1


# Restarts


def test_a_message_whose_lifetime_ends_while_no_server_runs_expires_at_the_start() -> None:
    server = server_of()
    named(server).disconnect()
    publish(server.connected(), 1)
    publish(server.connected(), 2, life_ms=10_000)
    server.now += 5.0
    server = server.reborn()
    assert left(server) == (1, 1)
    assert expired(server) == 1
    server.advance(5.1)
    assert left(server) == (0, 0)
    assert expired(server) == 2


def test_a_message_in_flight_over_a_restart_is_redelivered_though_its_lifetime_is_over() -> None:
    server = server_of()
    client = named(server)
    publish(server.connected(), 1)
    assert connect(client, 1).data == [1]
    server.now += 5.0
    server = server.reborn()
    server.advance(1.0)
    assert connect(again(client, server), 1).data == [1]


# Full queues


def test_expired_messages_make_room_before_a_full_queue_refuses_anything() -> None:
    server = server_of()
    named(server).disconnect()
    sender = server.connected()
    publish(sender, 1)
    publish(sender, 2, 3, life_ms=FOREVER)
    server.now += 1.0
    publish(sender, 4, life_ms=FOREVER)
    assert left(server) == (3, 3)
    assert expired(server) == 1
    publish(sender, 5, life_ms=FOREVER)
    assert codes(server) == ["resource.overflow.queue.entries"]


def test_expired_messages_leave_room_in_a_queue_that_is_full_by_bytes() -> None:
    server = server_of(max_queue=100, max_queue_bytes=400)
    named(server).disconnect()
    sender = server.connected()
    for _ in range(20):
        publish(sender, 1)
    assert set(codes(server)) == {"resource.overflow.queue.bytes"}
    server.store.letters.clear()
    server.now += 1.0
    sender.publish("/a", "x" * 300)
    server.turn()
    assert codes(server) == []
    assert left(server) == (1, 1)


def test_a_message_whose_lifetime_is_over_expires_at_a_full_queue_instead_of_overflowing() -> None:
    server = server_of()
    named(server).disconnect()
    sender = server.connected()
    publish(sender, 1, 2, 3, life_ms=FOREVER)
    publish(sender, 4, life_ms=0)
    assert codes(server) == []
    assert left(server) == (3, 3)
    assert expired(server) == 1


# Work per tick


def test_each_tick_expires_a_limited_number_of_messages_until_none_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expired_messages, "_MOST", 20)
    server = server_of(max_queue=100, max_sessions_per_subject=100)
    for number in range(1, 16):
        named(server, name=f"joe/{number}").disconnect()
    sender = server.connected()
    publish(sender, *range(30))
    server.advance(1.0)
    counts = [expired(server)]
    while counts[-1] < 15 * 30:
        server.now += 0.1
        server.bayeux.tick(server.now)
        counts.append(expired(server))
        assert 0 < counts[-1] - counts[-2] <= 20
    assert not server.bayeux.state.hub.counters.dead


def test_the_end_of_a_session_cancels_the_expiry_timer_of_its_queue() -> None:
    server = server_of()
    client = named(server)
    publish(server.connected(), 1, life_ms=10**9)
    watched, session = server.bayeux.life.message_expiry._timer_of, client.session
    timer = watched[session]
    assert timer.alarm
    server.for_extensions.end_by_server(session)
    assert (timer.alarm, session in watched) == (0, False)
