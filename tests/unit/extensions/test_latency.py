"""The time from receipt to hand-over, as the console shows it, without waiting on purpose."""

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.routing.latency import LatencySampler
from tests.unit.bayeux.harness import Asked, Client, Server, Socket, server_of
from tests.unit.extensions.delivering import connect, no, publish, receiver


def watched() -> tuple[Server, LatencySampler]:
    server = server_of()
    watch = server.bayeux.state.hub.watch = LatencySampler(server.now)
    return server, watch


def wait(client: Client) -> Asked:
    """A connect that is held until something comes."""
    return connect(client, advice={})


def longest(server: Server, watch: LatencySampler) -> int | None:
    """In microseconds; to hand over at once takes one, because each look at the clock does."""
    times = watch.read(server.now)
    return None if times is None else times.longest


def test_waiting_for_a_queue_that_is_held_back_does_not_count_as_latency() -> None:
    server, watch = watched()
    client = receiver(server)
    waiting = wait(client)
    server.bayeux.life.hold_back(client.session, "until noon", who="ann", now=server.now)
    for number in range(20):
        publish(server, number)
        server.advance(1.0)
        assert longest(server, watch) is None
    server.bayeux.life.resume(client.session, server.now)
    server.turn()
    assert len(waiting.data) == 20
    assert longest(server, watch) is None
    waiting = wait(client)
    publish(server, "at once")
    server.turn()
    assert waiting.data == ["at once"]
    assert longest(server, watch) == 1


def test_waiting_for_a_held_channel_does_not_count_as_latency() -> None:
    server, watch = watched()
    client = receiver(server)
    client.subscribe("/b")
    server.bayeux.state.guard.restore(
        "/a", ChannelHold(0, "most refuse", "operator/ann"), server.now
    )
    waiting = wait(client)
    publish(server, "held back")
    server.advance(3.0)
    assert longest(server, watch) is None
    publish(server, "at once", channel="/b")
    server.turn()
    assert waiting.data == ["at once"]
    assert longest(server, watch) == 1
    waiting = wait(client)
    server.advance(1.0)
    server.bayeux.life.channel_holds.release("/a", "operator", "operator/ann")
    server.turn()
    assert waiting.data == ["held back"]
    assert longest(server, watch) is None


def test_waiting_for_the_next_attempt_does_not_count_as_latency() -> None:
    server, watch = watched()
    client = receiver(server, retries=3)
    publish(server, "refused")
    (event,) = connect(client).events
    waiting = connect(client, no(event, "communication.noConnection", delay=10_000), advice={})
    publish(server, "behind it")
    server.advance(9.0)
    assert waiting.is_held
    server.advance(2.0)
    assert waiting.data == ["refused"]
    assert connect(client).data == ["behind it"]
    assert longest(server, watch) is None


def test_waiting_for_a_slow_connection_counts_as_latency() -> None:
    server, watch = watched()
    socket = Socket()
    client = server.client(socket=socket)
    client.connect()
    client.subscribe("/a")
    socket.is_full = True
    publish(server, 1)
    server.turn()
    server.advance(3.0)
    assert longest(server, watch) is None
    socket.is_full = False
    server.bayeux.life.drained(socket)
    server.turn()
    assert 3_000_000 <= (longest(server, watch) or 0) < 3_100_000
