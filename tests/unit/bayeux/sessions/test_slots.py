"""Session slots: sessions without a client give way to newcomers."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.session_states import SessionState
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.newcomers import assert_turned_away
from tests.unit.bayeux.second_lives import RestartableServer, codes, connect, named, publish, take

BUSY = "503::server_busy"
MOST = 8


def keys(server: RestartableServer) -> list[str]:
    return sorted(session.key for session in server.bayeux.state.sessions)


def leave_behind(server: RestartableServer, *names: str) -> None:
    """Create named sessions whose clients leave at once, one after the other."""
    for name in names:
        named(server, name=name).disconnect()
        server.turn()


def arrive(server: RestartableServer) -> Asked:
    asked = server.guest().handshake()
    server.turn()
    return asked


# Eviction


def test_the_session_that_was_left_first_gives_way_to_a_newcomer() -> None:
    server = RestartableServer(max_sessions=4, unconnected_share=50)
    leave_behind(server, "ann/1", "bob/1", "cid/1", "dan/1")
    named(server, name="bob/1").disconnect()
    named(server, name="ann/1").disconnect()
    assert arrive(server).reply["successful"]
    assert {"ann/1", "bob/1", "dan/1"} < set(keys(server))
    assert server.bayeux.slots.evicted == 1
    assert server.balances()


def test_messages_of_an_evicted_session_are_dead_lettered_and_its_client_is_to_handshake() -> None:
    server = RestartableServer(max_sessions=2, unconnected_share=0)
    client = named(server)
    publish(server, 1, 2)
    server.advance(11)
    server.connected()
    assert arrive(server).reply["successful"]
    assert codes(server) == ["resource.exhaust"] * 2
    assert all("its session slot was needed" in letter.reason for letter in server.store.letters)
    assert server.store.sessions == {}
    refused = connect(client, 1).reply
    assert refused["error"] == "402::session_unknown"
    assert refused["advice"]["reconnect"] == "handshake"
    assert server.balances()


def test_no_session_is_evicted_while_there_are_free_slots() -> None:
    server = RestartableServer(max_sessions=5, unconnected_share=0)
    leave_behind(server, "ann/1", "bob/1", "cid/1")
    arrive(server)
    server.advance(1)
    assert {"ann/1", "bob/1", "cid/1"} < set(keys(server))
    assert server.bayeux.slots.evicted == 0


def test_sessions_without_a_client_keep_their_share_of_the_slots() -> None:
    server = RestartableServer(max_sessions=4, unconnected_share=50)
    leave_behind(server, "ann/1", "bob/1")
    guests = [server.connected(), server.connected()]
    assert_turned_away(arrive(server), 3000)
    assert {"ann/1", "bob/1"} <= set(keys(server))
    assert not any(guest.session.is_gone for guest in guests)


def test_a_connected_session_is_not_evicted() -> None:
    server = RestartableServer(max_sessions=2, unconnected_share=0)
    clients = [named(server, name="ann/1"), server.connected()]
    assert arrive(server).reply["error"] == BUSY
    assert not any(client.session.is_gone for client in clients)


def test_a_session_that_was_just_taken_over_is_evicted_after_others() -> None:
    server = RestartableServer(max_sessions=2, unconnected_share=0)
    leave_behind(server, "ann/1", "bob/1")
    take(server.guest(), name="ann/1")
    server.turn()
    assert arrive(server).reply["successful"]
    assert "ann/1" in keys(server)
    assert "bob/1" not in keys(server)


def test_sessions_that_never_connected_give_way_to_newcomers_oldest_first() -> None:
    server = RestartableServer(max_sessions=64)
    strangers = [server.client().session for _ in range(64)]
    newcomers = [server.client() for _ in range(8)]
    assert [each.is_gone for each in strangers] == [True] * 8 + [False] * 56
    assert all(each.connect().reply["successful"] for each in newcomers)


def test_a_session_that_has_just_published_is_evicted_after_others() -> None:
    server = RestartableServer(max_sessions=64)
    first = server.client()
    strangers = [server.client().session for _ in range(63)]
    first.publish("/a", 1)
    server.client()
    assert not first.session.is_gone
    assert strangers[0].is_gone


def test_a_takeover_needs_no_free_session_slot() -> None:
    server = RestartableServer(max_sessions=2, unconnected_share=0)
    client = named(server, name="ann/1")
    publish(server, 1)
    client.disconnect()
    server.connected()
    asked = take(server.guest(), name="ann/1")
    assert asked.reply["ext"]["delivery"]["waiting"] == 1
    assert take(server.guest(), name="bob/1").reply["successful"], (
        "ann's new client has not connected"
    )
    assert server.bayeux.slots.evicted == 1


def test_no_session_is_evicted_for_a_handshake_that_is_refused() -> None:
    server = RestartableServer(max_sessions=2, unconnected_share=0, max_sessions_per_subject=1)
    leave_behind(server, "ann/1")
    named(server, name="joe/1")
    error = take(server.guest(), name="joe/2").reply["error"]
    assert error == "403:user.configuration.maxSession:sessions_exceeded"
    assert keys(server) == ["ann/1", "joe/1"]


def test_a_session_with_a_long_queue_is_evicted_in_a_tick_and_not_during_a_handshake() -> None:
    server = RestartableServer(max_sessions=1, unconnected_share=0)
    named(server).disconnect()
    publish(server, *range(100))
    assert arrive(server).reply["error"] == BUSY
    server.advance(0.1)
    assert codes(server) == ["resource.exhaust"] * 100
    assert arrive(server).reply["successful"]


@pytest.mark.slow
def test_the_share_of_sessions_without_a_client_is_exact() -> None:
    # 100 * 0.29 is less than 29.
    server = RestartableServer(max_sessions=100, unconnected_share=29, max_sessions_per_subject=100)
    leave_behind(server, *[f"ann/{number}" for number in range(1, 30)])
    for _ in range(71):
        server.connected()
    assert_turned_away(arrive(server), 3000)
    assert server.bayeux.slots.evicted == 0


def test_session_slots_are_freed_before_they_are_needed() -> None:
    server = RestartableServer(max_sessions=64, unconnected_share=50, max_sessions_per_subject=100)
    leave_behind(server, *(f"joe/{number + 1}" for number in range(62)))
    server.advance(0.1)
    assert len(server.bayeux.state.sessions) == 60, "a sixteenth is free"
    server.advance(1)
    assert len(server.bayeux.state.sessions) == 60


def test_no_session_is_evicted_while_dead_letters_cannot_be_stored() -> None:
    server = RestartableServer(max_sessions=1, unconnected_share=0)
    named(server).disconnect()
    publish(server, 1)
    server.store.is_full = True
    assert arrive(server).reply["error"] == BUSY
    server.advance(1)
    server.store.is_full = False
    assert keys(server) == ["joe/1"]
    assert arrive(server).reply["successful"]
    assert codes(server) == ["resource.exhaust"]


# Session timeouts


@pytest.mark.parametrize(("wish_ms", "given_ms"), [(7_200_000, 60_000), (0, 60_000), (1000, 1000)])
def test_a_session_timeout_is_limited_and_the_client_is_told(wish_ms: int, given_ms: int) -> None:
    server = RestartableServer(max_session_timeout=60_000)
    client = server.guest()
    asked = take(client, name={"name": "joe/1", "timeout": wish_ms})  # type: ignore[arg-type]
    assert asked.reply["ext"]["delivery"]["session"]["timeout"] == given_ms
    client.disconnect()
    server.advance(given_ms / 1000 + 0.5)
    assert keys(server) == []


def test_an_unnamed_session_lasts_no_longer_than_the_longest_session_timeout() -> None:
    server = RestartableServer(max_session_timeout=60_000)
    server.client(ext={"delivery": {"retries": -1, "delay": 10_000_000}})
    server.advance(80)
    assert keys(server) == []


def test_a_restored_session_lasts_no_longer_than_the_longest_session_timeout() -> None:
    server = RestartableServer(max_session_timeout=10 * 365 * 86_400_000)
    leave_behind(server, "joe/1")
    after = server.reborn(max_session_timeout=60_000)
    after.advance(61)
    assert keys(after) == []


# Restarts


def test_restored_sessions_are_evicted_in_the_order_in_which_they_were_left() -> None:
    server = RestartableServer(max_sessions=8, unconnected_share=50)
    names = ["eve/1", "ann/1", "dan/1", "bob/1", "cid/1"]
    for name in names:
        leave_behind(server, name)
        server.advance(1)
    after = server.reborn(max_sessions=5, unconnected_share=40)
    after.bayeux.life.unconnected.sort()
    for gone in names[:3]:
        assert gone in keys(after)
        after.connected()
        assert gone not in keys(after)
    assert arrive(after).reply["error"] == BUSY


@pytest.mark.slow
def test_restored_sessions_beyond_the_limit_soon_give_way_to_a_newcomer() -> None:
    server = RestartableServer(max_sessions=100, max_session_timeout=1_000_000_000_000)
    for number in range(100):
        assert take(server.guest(), name=f"thief{number}/1").reply["successful"]
    after = server.reborn(max_sessions=20, max_session_timeout=60_000)
    after.advance(11)
    assert len(after.bayeux.state.sessions) < 20
    assert arrive(after).reply["successful"]
    after.advance(61)
    assert keys(after) == []


# Against a simple model


class Model:
    """Sessions by the moment of their last message, in a list that is searched to its end."""

    def __init__(self) -> None:
        self.moment = 0
        self.heard: dict[str, int] = {}
        self.connected: set[str] = set()
        self.handshaken: set[str] = set()

    def hear(self, name: str) -> None:
        self.moment += 1
        self.heard[name] = self.moment

    def forget(self, name: str) -> None:
        del self.heard[name]
        self.connected.discard(name)
        self.handshaken.discard(name)

    def make_room(self, left_alone: int) -> bool:
        if len(self.heard) < MOST:
            return True
        absent = self.heard.keys() - self.connected - self.handshaken
        for group, most in ((self.handshaken, 1), (absent, left_alone)):
            if len(group) > most:
                self.forget(min(group, key=self.heard.__getitem__))
                return True
        return False


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["handshake", "connect", "leave", "publish", "end"]), st.integers(0, 11)
    ),
    max_size=80,
)


@pytest.mark.slow
@given(STEPS, st.integers(0, MOST))
def test_eviction_agrees_with_a_simple_model(steps: list[tuple[str, int]], left_alone: int) -> None:
    server = RestartableServer(
        max_sessions=MOST,
        unconnected_share=ceil(100 * left_alone / MOST),
        max_interval=1_000_000_000,
        timeout=1_000_000_000,
    )
    model = Model()
    clients: dict[str, Client] = {}
    for step, number in steps:
        name = f"joe{number}/1"
        client = clients.get(name)
        is_there = name in model.heard
        if step == "handshake":
            _handshake(server, model, clients, name, left_alone)
        elif client is not None and is_there and client.session.state is not SessionState.AWAY:
            _say(server, model, client, step, name)
        assert keys(server) == sorted(model.heard)
        assert len(server.bayeux.life.unconnected) == len(model.heard.keys() - model.connected)
    assert server.balances()


def _handshake(
    server: RestartableServer, model: Model, clients: dict[str, Client], name: str, left_alone: int
) -> None:
    clients[name] = server.guest()
    asked = take(clients[name], name=name)
    if name not in model.heard and not model.make_room(left_alone):
        assert asked.reply["error"] == BUSY
        return
    assert asked.reply["successful"]
    if name not in model.heard:
        model.handshaken.add(name)
    model.connected.discard(name)
    model.hear(name)


def _say(server: RestartableServer, model: Model, client: Client, step: str, name: str) -> None:
    if step == "connect":
        connect(client, 0)
        model.connected.add(name)
        model.handshaken.discard(name)
    elif step == "leave":
        client.disconnect()
        model.connected.discard(name)
        model.handshaken.discard(name)
    elif step == "publish":
        client.publish("/b", 1)
    else:
        client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
        server.turn()
        model.forget(name)
        return
    server.turn()
    model.hear(name)
