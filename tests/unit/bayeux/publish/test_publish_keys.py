"""Publishes with keys: accepted once, however often their publishers send them."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.sessions.restoring import restore
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Asked, Client, Json, Server

DAY_S = 24 * 3600.0


def server_of(before: Server | None = None, **options: Any) -> Server:
    """A server; one that comes after another has its store."""
    keeper = None if before is None else before.keeper
    server = Server(
        DeliveryWire, partial(Ack, announces_batch=False), keeper=keeper, after=before, **options
    )
    if before is not None:
        for record in list(server.keeper.sessions.values()):
            restore(server.bayeux.life, record, server.keeper.waiting(record.key), server.now)
        server.turn()
    return server


def subscriber(server: Server) -> Client:
    """A client for which nothing is stored."""
    client = server.client()
    client.subscribe("/a")
    return client


def named(server: Server, name: str) -> Client:
    client = server.guest()
    client.handshake(ext={"delivery": {"session": name}})
    return client


def send(client: Client, key: str, data: Any = 1, **options: Any) -> Asked:
    return client.publish("/a", data, ext={"delivery": {"key": key, **options}})


def sent(client: Client, key: str, data: Any = 1, **options: Any) -> Json:
    asked = send(client, key, data, **options)
    client.server.turn()
    return asked.reply


def received(reply: Json) -> str:
    """When the server received the message, as the reply says."""
    assert reply["successful"]
    assert reply["ext"]["delivery"]["state"] == "OK"
    return str(reply["ext"]["delivery"]["rcvTimestamp"])


def heard(client: Client) -> list[Any]:
    """What has arrived for the client."""
    return client.publish("/nobody").data


def test_a_repeated_publish_gets_the_first_reply_and_reaches_nobody() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    first = sent(alice, "k")
    again = sent(alice, "k", "other data")
    assert received(again) == received(first)
    assert heard(bob) == [1]
    counters = server.bayeux.state.hub.counters
    # The publish in `heard` counts, too.
    assert (counters.published, counters.repeated) == (2, 1)
    assert server.balances()


def test_the_reply_to_a_publish_with_options_says_when_the_server_received_it() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    reply = alice.publish("/a", 1, ext={"delivery": {"priority": 9}}).reply
    assert received(reply).isdigit()
    assert "ext" not in alice.publish("/a", 2).reply
    assert (heard(bob), server.keeper.bodies) == ([1, 2], {})


def test_a_repeat_and_a_later_publish_wait_while_the_first_publish_is_pending() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    first, second = send(alice, "k"), send(alice, "k")
    third = alice.publish("/a", "without a key")
    assert first.is_held
    assert second.is_held
    assert third.is_held
    server.turn()
    assert received(first.reply) == received(second.reply)
    assert heard(bob) == [1, "without a key"]


def test_a_publish_that_the_store_refuses_does_not_use_up_its_key() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    server.keeper.outcome = PersistOutcome.REFUSED
    assert "store_unavailable" in sent(alice, "k")["error"]
    server.keeper.outcome = PersistOutcome.KEPT
    server.keeper.is_available = False
    assert "store_unavailable" in sent(alice, "k")["error"]
    server.keeper.is_available = True
    assert received(sent(alice, "k"))
    assert heard(bob) == [1]


def test_a_publish_that_is_too_large_does_not_use_up_its_key() -> None:
    server = server_of(max_message_size=100)
    alice, bob = server.client(), subscriber(server)
    assert "message_too_large" in sent(alice, "k", "x" * 100)["error"]
    assert received(sent(alice, "k", "short"))
    assert heard(bob) == ["short"]


def test_a_publish_with_an_unknown_outcome_succeeds_when_it_is_repeated() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    keeper = server.keeper
    keeper.is_silent = True
    first = send(alice, "k")
    keeper.answer_late(PersistOutcome.UNKNOWN)
    server.turn()
    assert "unknown" in first.reply["error"]
    keeper.is_silent = False
    again = send(alice, "k")
    keeper.answer_late(PersistOutcome.KEPT)
    server.turn()
    assert received(again.reply)
    assert heard(bob) == [1]


def test_a_late_answer_of_the_store_to_a_repeat_changes_nothing() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    sent(alice, "k")
    server.keeper.is_silent = True
    again = send(alice, "k")
    server.keeper.answer_late(PersistOutcome.UNKNOWN)
    server.keeper.answer_late(PersistOutcome.REPEATED)
    server.turn()
    assert "unknown" in again.reply["error"]
    assert heard(bob) == [1]


@pytest.mark.parametrize("persistent", [None, True, False])
def test_a_repeat_is_recognised_after_a_restart(persistent: bool | None) -> None:
    options = {} if persistent is None else {"persistent": persistent}
    server = server_of()
    joe, alice = named(server, "joe/1"), named(server, "ann/1")
    joe.subscribe("/a")
    first = sent(alice, "k", **options)
    other = server_of(server)
    again = sent(named(other, "ann/1"), "k", **options)
    assert received(again) == received(first)
    (waiting,) = (each.queue.new for each in other.bayeux.state.sessions if each.key == "joe/1")
    # Of a message that is not persistent, only the key is stored.
    assert len(waiting) == (persistent is not False)


def test_a_passing_message_leaves_only_its_key_in_the_store() -> None:
    server = server_of()
    joe, alice = named(server, "joe/1"), server.client()
    joe.subscribe("/a")
    sent(alice, "k", persistent=False)
    (message,) = joe.session.queue.new
    assert not message.is_durable
    assert server.keeper.waiting("joe/1") == []
    assert len(server.keeper.keyed) == 1


def test_a_key_counts_as_new_after_a_day() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    first = sent(alice, "k", 1)
    server.now += DAY_S - 1
    assert received(sent(alice, "k", 2)) == received(first)
    server.now += 2
    assert received(sent(alice, "k", 3)) != received(first)
    assert heard(bob) == [1, 3]


def test_a_wall_clock_that_jumps_a_day_ahead_makes_no_key_new() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    first = sent(alice, "k", 1)
    server.sleep(25 * 3600)
    assert received(sent(alice, "k", 2)) == received(first)
    assert heard(bob) == [1]


# Whose key it is


def test_equal_keys_of_unrelated_clients_are_no_repeats() -> None:
    server = server_of()
    bob = subscriber(server)
    for number in range(3):
        sent(server.client(), "k", number)
    assert heard(bob) == [0, 1, 2]


def test_a_repeat_from_another_session_of_a_browser_is_recognised() -> None:
    server = server_of()
    bob, alice = subscriber(server), server.client()
    first = sent(alice, "k")
    page = server.client(browser=alice.browser)
    assert page.client_id != alice.client_id
    assert received(sent(page, "k")) == received(first)
    assert heard(bob) == [1]


def test_a_repeat_from_another_session_of_a_subject_is_recognised() -> None:
    server = server_of()
    bob = subscriber(server)
    first = sent(named(server, "joe/1"), "k")
    for name in ("joe/2", "joe"):
        assert received(sent(named(server, name), "k")) == received(first)
    assert heard(bob) == [1]


def test_keys_that_look_like_those_of_other_identities_are_no_repeats() -> None:
    server = server_of()
    bob = subscriber(server)
    sent(named(server, "joe/1"), "k", 1)
    sent(named(server, "jo/1"), "e\nk", 2)
    sent(server.client(browser="subject joe"), "k", 3)
    assert heard(bob) == [1, 2, 3]


def test_the_store_gets_a_digest_instead_of_keys_and_cookies() -> None:
    server = server_of()
    alice = server.client(browser="a-secret-cookie")
    sent(alice, "a-secret-key" * 20)
    (digest,) = server.keeper.keyed
    assert (len(digest), "secret" in digest) == (20, False)


def test_a_repeat_on_a_channel_without_the_right_to_publish_is_refused() -> None:
    server = server_of()
    alice = server.client()
    sent(alice, "k")
    reply = alice.publish("/sys/a", 1, ext={"delivery": {"key": "k"}}).reply
    assert reply["error"].startswith("403")


def test_a_publish_without_a_key_leaves_nothing_in_the_store() -> None:
    server = server_of()
    alice, bob = server.client(), subscriber(server)
    for _ in range(2):
        assert alice.publish("/a", 1).reply["successful"]
    assert (heard(bob), server.keeper.bodies, server.keeper.keyed) == ([1, 1], {}, {})


# Against a model

people = st.sampled_from(["ann/1", "ann/2", "joe/1"])
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("send"), people, st.sampled_from("kl"), st.sampled_from([None, True, False])
        ),
        st.tuples(st.just("turn")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("pass"), st.sampled_from([60.0, DAY_S / 2, DAY_S])),
        # The wall clock jumps.
        st.tuples(st.just("jump"), st.sampled_from([3600.0, 25 * 3600.0])),
        st.tuples(st.just("refuse"), st.booleans()),
    ),
    max_size=25,
)


@pytest.mark.slow
@given(steps)
def test_a_message_with_a_key_is_delivered_once_a_day_whatever_happens(
    given_steps: list[tuple[Any, ...]],
) -> None:
    server = server_of()
    named(server, "eve/1").subscribe("/a")
    taken: dict[tuple[str, str], float] = {}
    expected: list[int] = []
    for number, (what, *words) in enumerate(given_steps):
        match str(what):
            case "send":
                who, key, persistent = words
                options = {} if persistent is None else {"persistent": persistent}
                send(named(server, who), key, number, **options)
                mine = (who.partition("/")[0], key)
                is_new = server.now - taken.get(mine, -DAY_S) > DAY_S
                if is_new and server.keeper.outcome is PersistOutcome.KEPT:
                    taken[mine] = server.now
                    expected.append(number)
            case "turn":
                server.turn()
            case "restart":
                # Passing messages were queued, and are gone with the server.
                server.turn()
                assert waiting(server) == expected
                server = server_of(server)
                expected = waiting(server)
            case "pass":
                server.now += words[0]
            case "jump":
                server.sleep(words[0])
            case _:
                server.keeper.outcome = PersistOutcome.REFUSED if words[0] else PersistOutcome.KEPT
    server.turn()
    assert waiting(server) == expected


def waiting(server: Server) -> list[int]:
    (queue,) = (each.queue for each in server.bayeux.state.sessions if each.key == "eve/1")
    return sorted(int(message.wire.split(b'"data":')[1].rstrip(b"}")) for message in queue.new)
