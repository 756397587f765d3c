"""A message leaves when its lifetime ends, wherever it waits, and is counted once."""

from functools import partial
from itertools import count
from typing import Any

import pytest

from holdfast.bayeux import message_expiry
from holdfast.delivery.guard import ChannelHold
from holdfast.delivery.queue import QueueLimits
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, House, Wire
from tests.unit.bayeux.second_lives import (
    KeptHouse,
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
PLACES = QueueLimits(entries=3)


def house_of(**options: Any) -> KeptHouse:
    return KeptHouse(**{"queue_limits": PLACES, "max_interval_s": 10_000.0, **options})


def publish(sender: Client, *numbers: int, life_ms: int = 1000, is_forced: bool = True) -> None:
    expiration = {"lifeTime": life_ms, "forceDestroy": is_forced}
    for number in numbers:
        sender.publish("/a", number, ext={"delivery": {"expiration": expiration}})
    sender.house.turn()


def expired(house: House) -> int:
    assert house.balances()
    return house.bayeux.state.hub.counters.expired


def left(house: KeptHouse, name: str = "joe/1") -> tuple[int, int]:
    """How many entries a session has in its queue and in the store."""
    session = house.bayeux.state.sessions.named(name)
    assert session is not None
    return session.queue.count, len(house.store.queues[name])


def test_an_expired_message_leaves_the_queue_of_an_absent_session_and_the_store() -> None:
    house = house_of()
    named(house).disconnect()
    sender = house.connected()
    publish(sender, 1, 2, 3)
    house.advance(0.9)
    assert left(house) == (3, 3)
    house.advance(0.3)
    assert left(house) == (0, 0)
    assert expired(house) == 3
    publish(sender, 4, 5, 6, life_ms=FOREVER)
    assert codes(house) == []
    assert left(house) == (3, 3)


def test_messages_expire_in_the_order_of_their_lifetimes_and_not_of_their_arrival() -> None:
    house = house_of()
    named(house).disconnect()
    sender = house.connected()
    publish(sender, 1, life_ms=3000)
    publish(sender, 2, life_ms=1000)
    publish(sender, 3, life_ms=2000)
    for seconds in (1, 2, 3):
        house.advance(1.1)
        assert expired(house) == seconds


def test_an_expired_message_without_force_destroy_is_delivered_late() -> None:
    house = house_of()
    client = named(house)
    publish(house.connected(), 1, is_forced=False)
    house.advance(5.0)
    assert expired(house) == 0
    assert connect(client, 1).data == [1]


def test_an_expired_message_leaves_a_queue_that_is_held_back() -> None:
    house = house_of()
    client = named(house)
    house.bayeux.life.hold_back(client.session, "maintenance", "operator", house.now)
    publish(house.connected(), 1)
    house.advance(1.2)
    assert left(house) == (0, 0)


def test_an_expired_message_leaves_the_queue_while_its_channel_is_held() -> None:
    house = house_of()
    client = named(house)
    house.bayeux.state.guard.restore("/a", ChannelHold(0, "nobody wants it"), house.now)
    publish(house.connected(), 1)
    asked = client.connect()
    house.advance(1.2)
    assert asked.is_held
    assert left(house) == (0, 0)


def test_returned_messages_leave_the_queue_and_the_store_when_they_expire() -> None:
    house = house_of()
    client = named(house)
    publish(house.connected(), 1, 2, life_ms=5000)
    got = connect(client, 1)
    connect(client, batch(got), no(seqs(got)[0]))
    assert left(house) == (2, 2)
    house.advance(5.2)
    assert left(house) == (0, 0)
    assert expired(house) == 2


@pytest.mark.parametrize("life_ms", [500, 5000])
def test_a_message_in_flight_expires_only_after_contact_is_lost(life_ms: int) -> None:
    house = house_of(max_interval_s=2.0)
    client = named(house, retries=-1)
    publish(house.connected(), 1, life_ms=life_ms)
    connect(client, 1)
    house.advance(1.5)
    assert left(house) == (1, 1), "a message in flight stays there"
    house.advance(4.0)
    assert left(house) == (0, 0)
    assert expired(house) == 1


def test_a_message_expires_if_the_reply_that_carries_it_cannot_be_sent() -> None:
    house = House(DeliveryWire, partial(Ack, announces_batch=False), max_interval_s=100.0)
    client = house.connected()
    client.subscribe("/a")
    asked = client.connect()
    asked.wire.is_cut = True
    publish(house.connected(), 1)
    assert client.session.queue.count == 1
    house.advance(1.2)
    assert client.session.queue.count == 0
    assert expired(house) == 1


def with_expired_in_flight(house: KeptHouse) -> Client:
    """A client with a message in flight whose lifetime has ended."""
    client = named(house)
    publish(house.connected(), 1)
    assert connect(client, 1).data == [1]
    house.advance(2.0)
    assert left(house) == (1, 1)
    return client


def test_an_expired_message_leaves_when_it_returns_to_a_queue_that_is_held_back() -> None:
    house = house_of()
    client = with_expired_in_flight(house)
    house.bayeux.life.hold_back(client.session, "maintenance", "operator", house.now)
    assert connect(client, 1).data == []
    house.advance(0.2)
    assert left(house) == (0, 0)


def test_an_expired_message_in_flight_leaves_after_a_takeover_before_any_connect() -> None:
    house = house_of()
    with_expired_in_flight(house)
    take(house.guest())
    house.advance(0.2)
    assert left(house) == (0, 0)


def test_a_message_expires_if_the_reply_that_redelivers_it_cannot_be_sent() -> None:
    house = house_of()
    client = named(house)
    publish(house.connected(), 1)
    connect(client, 1)
    wire = Wire()
    wire.is_cut = True
    assert connect(client, 1, wire=wire).is_held
    house.now += 2.0
    house.bayeux.tick(house.now)
    assert left(house) == (1, 1)
    house.turn()
    house.advance(0.2)
    assert left(house) == (0, 0)


def test_an_expired_message_leaves_a_plain_session_without_a_held_connect() -> None:
    house = House(DeliveryWire, max_interval_s=100.0)
    client = house.connected()
    client.subscribe("/a")
    publish(house.connected(), 1)
    house.advance(1.2)
    assert client.session.queue.count == 0
    assert expired(house) == 1


def test_a_message_whose_lifetime_ends_while_the_store_is_silent_expires_when_it_answers() -> None:
    house = house_of()
    client = named(house)
    house.store.is_silent = True
    publish(house.connected(), 1)
    house.advance(2.0)
    house.store.answer_late(house.store.outcome)
    house.turn()
    house.advance(0.2)
    assert left(house) == (0, 0)
    assert expired(house) == 1
    assert connect(client, 1).data == []


def test_a_message_that_expires_while_the_store_is_away_leaves_it_when_it_is_back() -> None:
    house = house_of()
    named(house).disconnect()
    publish(house.connected(), 1, 2)
    house.store.go_away()
    house.advance(1.2)
    assert left(house) == (0, 2)
    house.store.come_back()
    assert left(house) == (0, 0)
    assert expired(house) == 2


def test_the_lifetime_of_a_message_goes_on_while_the_process_is_frozen() -> None:
    house = house_of()
    named(house).disconnect()
    publish(house.connected(), 1, life_ms=60_000)
    # The laptop slept, or the process was frozen: for the core, no time has passed.
    house._stamps = count(house._stamp() + 60 * 10**9)
    house.advance(0.2)
    assert left(house) == (0, 0)
    assert expired(house) == 1


# Restarts


def test_a_message_whose_lifetime_ends_while_no_server_runs_expires_at_the_start() -> None:
    house = house_of()
    named(house).disconnect()
    publish(house.connected(), 1)
    publish(house.connected(), 2, life_ms=10_000)
    house.now += 5.0
    house = house.reborn()
    assert left(house) == (1, 1)
    assert expired(house) == 1
    house.advance(5.1)
    assert left(house) == (0, 0)
    assert expired(house) == 2


def test_a_message_in_flight_over_a_restart_is_redelivered_though_its_lifetime_is_over() -> None:
    house = house_of()
    client = named(house)
    publish(house.connected(), 1)
    assert connect(client, 1).data == [1]
    house.now += 5.0
    house = house.reborn()
    house.advance(1.0)
    assert connect(again(client, house), 1).data == [1]


# Full queues


def test_expired_messages_make_room_before_a_full_queue_refuses_anything() -> None:
    house = house_of()
    named(house).disconnect()
    sender = house.connected()
    publish(sender, 1)
    publish(sender, 2, 3, life_ms=FOREVER)
    house.now += 1.0
    publish(sender, 4, life_ms=FOREVER)
    assert left(house) == (3, 3)
    assert expired(house) == 1
    publish(sender, 5, life_ms=FOREVER)
    assert codes(house) == ["resource.overflow.queue.entries"]


def test_expired_messages_leave_room_in_a_queue_that_is_full_by_bytes() -> None:
    house = house_of(queue_limits=QueueLimits(bytes=400))
    named(house).disconnect()
    sender = house.connected()
    for _ in range(20):
        publish(sender, 1)
    assert set(codes(house)) == {"resource.overflow.queue.bytes"}
    house.store.letters.clear()
    house.now += 1.0
    sender.publish("/a", "x" * 300)
    house.turn()
    assert codes(house) == []
    assert left(house) == (1, 1)


def test_a_message_whose_lifetime_is_over_expires_at_a_full_queue_instead_of_overflowing() -> None:
    house = house_of()
    named(house).disconnect()
    sender = house.connected()
    publish(sender, 1, 2, 3, life_ms=FOREVER)
    publish(sender, 4, life_ms=0)
    assert codes(house) == []
    assert left(house) == (3, 3)
    assert expired(house) == 1


# Work per tick


def test_each_tick_expires_a_limited_number_of_messages_until_none_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_expiry, "_MOST", 20)
    house = house_of(queue_limits=QueueLimits(entries=100), max_sessions_per_subject=100)
    for number in range(1, 16):
        named(house, name=f"joe/{number}").disconnect()
    sender = house.connected()
    publish(sender, *range(30))
    house.advance(1.0)
    counts = [expired(house)]
    while counts[-1] < 15 * 30:
        house.now += 0.1
        house.bayeux.tick(house.now)
        counts.append(expired(house))
        assert 0 < counts[-1] - counts[-2] <= 20
    assert not house.bayeux.state.hub.counters.dead


def test_the_end_of_a_session_cancels_the_expiry_timer_of_its_queue() -> None:
    house = house_of()
    client = named(house)
    publish(house.connected(), 1, life_ms=10**9)
    timer = client.session.expiry_timer
    assert timer is not None
    assert timer.alarm
    house.server.end_by_server(client.session)
    assert not timer.alarm
