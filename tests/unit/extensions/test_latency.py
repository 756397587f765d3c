"""The time from receipt to hand-over, as the console shows it, without waiting on purpose."""

from holdfast.delivery.guard import ChannelHold
from holdfast.delivery.latency import LatencySampler
from tests.unit.bayeux.harness import Asked, Client, House, Socket
from tests.unit.extensions.delivering import connect, house_of, no, publish, receiver


def watched() -> tuple[House, LatencySampler]:
    house = house_of()
    watch = house.bayeux.state.hub.watch = LatencySampler(house.now)
    return house, watch


def wait(client: Client) -> Asked:
    """A connect that is held until something comes."""
    return connect(client, advice={})


def longest(house: House, watch: LatencySampler) -> int | None:
    """In microseconds; to hand over at once takes one, because each look at the clock does."""
    times = watch.read(house.now)
    return None if times is None else times.longest


def test_waiting_for_a_queue_that_is_held_back_does_not_count_as_latency() -> None:
    house, watch = watched()
    client = receiver(house)
    waiting = wait(client)
    house.bayeux.life.hold_back(client.session, "until noon", "ann", house.now)
    for number in range(20):
        publish(house, number)
        house.advance(1.0)
        assert longest(house, watch) is None
    house.bayeux.life.resume(client.session, house.now)
    house.turn()
    assert len(waiting.data) == 20
    assert longest(house, watch) is None
    waiting = wait(client)
    publish(house, "at once")
    house.turn()
    assert waiting.data == ["at once"]
    assert longest(house, watch) == 1


def test_waiting_for_a_held_channel_does_not_count_as_latency() -> None:
    house, watch = watched()
    client = receiver(house)
    client.subscribe("/b")
    house.bayeux.state.guard.restore("/a", ChannelHold(0, "most refuse"), house.now)
    waiting = wait(client)
    publish(house, "held back")
    house.advance(3.0)
    assert longest(house, watch) is None
    publish(house, "at once", channel="/b")
    house.turn()
    assert waiting.data == ["at once"]
    assert longest(house, watch) == 1
    waiting = wait(client)
    house.advance(1.0)
    house.bayeux.life.channel_holds.release("/a", "operator", "operator/ann")
    house.turn()
    assert waiting.data == ["held back"]
    assert longest(house, watch) is None


def test_waiting_for_the_next_attempt_does_not_count_as_latency() -> None:
    house, watch = watched()
    client = receiver(house, retries=3)
    publish(house, "refused")
    (event,) = connect(client).events
    waiting = connect(client, no(event, "communication.noConnection", delay=10_000), advice={})
    publish(house, "behind it")
    house.advance(9.0)
    assert waiting.is_held
    house.advance(2.0)
    assert waiting.data == ["refused"]
    assert connect(client).data == ["behind it"]
    assert longest(house, watch) is None


def test_waiting_for_a_slow_connection_counts_as_latency() -> None:
    house, watch = watched()
    socket = Socket()
    client = house.client(socket=socket)
    client.connect()
    client.subscribe("/a")
    socket.is_full = True
    publish(house, 1)
    house.turn()
    house.advance(3.0)
    assert longest(house, watch) is None
    socket.is_full = False
    house.bayeux.drained(socket)
    house.turn()
    assert 3_000_000 <= (longest(house, watch) or 0) < 3_100_000
