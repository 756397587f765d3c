"""A request that a turn has no time for continues in later ones, with the same outcome."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.delivery.basics.error_codes import DELIVERY_ENDED
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Wire, server_of
from tests.unit.bayeux.second_lives import RestartableServer, named, publish


def impatient() -> Server:
    """A server whose turns end after each step."""
    return Server(is_turn_over=lambda: True)


def publishes(*data: object) -> list[Json]:
    return [{"channel": "/a", "data": each} for each in data]


def test_other_clients_have_their_turn_between_two_messages_of_a_request() -> None:
    server = impatient()
    reader, hasty = server.connected(), server.connected()
    reader.subscribe("/a")
    asked = server.connected().send(*publishes(1, 3, 4))
    hasty.publish("/a", 2)
    assert asked.is_held
    server.turn()
    assert len(asked.replies) == 3
    assert reader.connect().data == [1, 2, 3, 4]


def test_requests_of_one_session_are_handled_in_the_order_in_which_they_came() -> None:
    server = impatient()
    reader = server.connected()
    reader.subscribe("/a")
    client = server.connected()
    asked = [client.send(*publishes(first, first + 1)) for first in (1, 3, 5)]
    asked.append(client.publish("/a", 7))
    assert [each.is_held for each in asked] == [True] * 4
    server.turn()
    assert [len(each.replies) for each in asked] == [2, 2, 2, 1]
    assert reader.connect().data == [1, 2, 3, 4, 5, 6, 7]


def test_replies_keep_the_order_of_their_messages_over_many_turns() -> None:
    server = impatient()
    client = server.connected()
    asked = client.send(
        {"channel": "/a", "data": 1}, {"channel": "/a"}, {"channel": "/b", "data": 2}
    )
    turns = 1
    while server.go_on():
        turns += 1
    assert turns == 3
    assert [reply["id"] for reply in asked.replies] == ["3", "4", "5"]
    assert [reply["successful"] for reply in asked.replies] == [True, False, True]


def test_a_request_of_one_message_takes_one_turn_however_long_that_lasts() -> None:
    server = impatient()
    assert not server.connected().publish("/a", 1).is_held


def test_a_request_that_takes_a_turn_to_read_is_handled_in_the_next_one() -> None:
    server = impatient()
    reader, client = server.connected(), server.connected()
    reader.subscribe("/a")
    asked = client.publish("/a", "x" * 20_000)
    follows = client.publish("/a", 2)
    assert (asked.is_held, follows.is_held) == (True, True)
    server.turn()
    assert (asked.reply["successful"], follows.reply["successful"]) == (True, True)
    assert reader.connect().data == ["x" * 20_000, 2]


def test_an_unfit_message_is_refused_alone_in_a_request_over_many_turns() -> None:
    server = impatient()
    reader, hasty = server.connected(), server.connected()
    reader.subscribe("/a")
    asked = server.connected().send(*publishes(1, "\ud800", 3))
    hasty.publish("/a", 2)
    assert asked.is_held
    server.turn()
    assert [reply["successful"] for reply in asked.replies] == [True, False, True]
    assert asked.replies[1]["error"] == "400::text_invalid"
    assert reader.connect().data == [2, 1, 3]


def test_a_request_found_to_be_invalid_json_in_a_later_turn_is_refused_without_effect() -> None:
    server = impatient()
    reader, client = server.connected(), server.connected()
    reader.subscribe("/a")
    say = '{{"channel":"/a","clientId":"{}","data":{}}}'
    body = ",".join(say.format(client.client_id, each) for each in ("1", '"\\ud800"', "NaN"))
    asked = client.send_bytes(f"[{body}]".encode())
    assert asked.is_held
    with pytest.raises(RequestRefused, match="request_malformed"):
        server.turn()
    assert reader.connect().is_held


def test_a_large_request_is_handled_at_once_if_there_is_time() -> None:
    assert not Server().connected().publish("/a", "x" * 100_000).is_held


def test_messages_beside_a_handshake_are_refused_in_later_turns_too() -> None:
    server = impatient()
    guest = server.guest()
    hello = {
        "channel": "/meta/handshake",
        "version": "1.0",
        "supportedConnectionTypes": ["websocket"],
    }
    asked = guest.send(*publishes(1, 2), hello)
    server.turn()
    assert asked.replies[0]["channel"] == "/meta/handshake"
    assert {reply["error"] for reply in asked.replies[1:]} == {"400::handshake_batched"}


def test_a_handshake_that_comes_with_others_announces_the_messages_that_come_with_its_reply() -> (
    None
):
    server = server_of(
        allow_message_delivery_during_handshake=True,
        is_turn_over=lambda: True,
        durable="none",
    )
    client = named(server, ack=False)
    publish(server, 1)
    hello = {
        "channel": "/meta/handshake",
        "version": "1.0",
        "supportedConnectionTypes": ["websocket"],
        "ext": {"delivery": {"session": "joe/1"}},
    }
    asked = server.guest(browser=client.browser).send(hello, *publishes(1, 2))
    publish(server, 2)
    assert asked.data == [1]
    assert asked.replies[0]["x-messages"] == 1


def test_an_unfinished_request_is_completed_although_its_client_closes_the_connection() -> None:
    server = impatient()
    reader = server.connected()
    reader.subscribe("/a")
    client = server.connected()
    asked = client.send(*publishes(1, 2), wire=Wire())
    server.abort(asked)
    server.turn()
    assert reader.connect().data == [1, 2]
    names = [f"/many/{number}" for number in range(100)]
    subscribing = client.subscribe(*names)
    server.abort(subscribing)
    server.turn()
    assert client.session.held_connect is None
    assert len(client.session.subscriptions) == 100


def test_the_remaining_messages_of_a_request_are_refused_if_its_session_ends_meanwhile() -> None:
    server = impatient()
    client = server.connected()
    asked = client.send(*publishes(1, 2, 3), wire=Wire())
    server.for_extensions.end_by_server(client.session)
    server.turn()
    goodbye, *replies = asked.elements
    assert goodbye == {"channel": "/meta/disconnect", "successful": True}
    assert [reply["successful"] for reply in replies] == [True, False, False]
    assert replies[1]["error"] == "402::session_unknown"
    assert server.balances()


# Very many channels in one message


def test_many_channels_of_one_subscribe_are_read_over_many_turns_and_subscribed_at_once() -> None:
    server = impatient()
    client = server.connected()
    asked = client.subscribe(*(f"/many/{number}" for number in range(1000)))
    assert asked.is_held
    assert not client.session.subscriptions
    server.turn()
    assert asked.reply["successful"] is True
    assert len(client.session.subscriptions) == 1000


def test_a_subscribe_to_many_channels_with_an_invalid_one_subscribes_to_none() -> None:
    server = impatient()
    client = server.connected()
    asked = client.subscribe(*(f"/many/{number}" for number in range(1000)), "none")
    server.turn()
    assert asked.reply["error"] == "403::subscription_invalid"
    assert not client.session.subscriptions
    assert client.subscribe("/a").reply["successful"] is True


def test_a_later_request_of_a_session_waits_while_its_subscribe_is_unfinished() -> None:
    server = impatient()
    client, other = server.connected(), server.connected()
    names = [f"/many/{number}" for number in range(200)]
    subscribing = client.subscribe(*names)
    taking_back = client.unsubscribe(names[0])
    assert other.publish("/a", 1).reply["successful"] is True
    assert subscribing.is_held
    assert taking_back.is_held
    server.turn()
    assert taking_back.reply["successful"] is True
    assert len(client.session.subscriptions) == 199


# Many held connects


def released(server: Server, waiting: list[Asked]) -> list[int]:
    """How many of these connects are answered after each turn, until there are no more turns."""
    told = []
    while server.flush():
        told.append(sum(not asked.is_held for asked in waiting))
    return told


def test_many_held_connects_are_released_over_several_turns_and_all_get_the_message() -> None:
    server = impatient()
    readers = [server.connected() for _ in range(40)]
    for reader in readers:
        reader.subscribe("/a")
    waiting = [reader.connect() for reader in readers]
    server.connected().publish("/a", 1)
    assert released(server, waiting) == [16, 32, 40]
    assert all(asked.data == [1] for asked in waiting)


def test_held_connects_of_sessions_with_many_messages_are_released_one_in_each_turn() -> None:
    server = impatient()
    readers = [server.connected() for _ in range(5)]
    for reader in readers:
        reader.subscribe("/a")
    waiting = [reader.connect() for reader in readers]
    for number in range(20):
        server.for_extensions.publish("/a", number)
    assert released(server, waiting) == [1, 2, 3, 4, 5]
    assert all(asked.data == [*range(20)] for asked in waiting)


@pytest.mark.parametrize("timeout", [0, 30_000])
def test_connects_that_come_late_in_a_turn_get_many_messages_one_in_each_turn(timeout: int) -> None:
    server = impatient()
    readers = [server.connected() for _ in range(5)]
    for reader in readers:
        reader.subscribe("/a")
    for number in range(20):
        server.for_extensions.publish("/a", number)
    server.turn()
    waiting = [reader.connect(advice={"timeout": timeout}) for reader in readers]
    assert all(asked.is_held for asked in waiting)
    assert released(server, waiting) == [1, 2, 3, 4, 5]
    assert all(asked.data == [*range(20)] for asked in waiting)


def test_a_connect_that_comes_late_in_a_turn_gets_a_few_messages_at_once() -> None:
    server = impatient()
    reader = server.connected()
    reader.subscribe("/a")
    for number in range(10):
        server.for_extensions.publish("/a", number)
    server.turn()
    assert reader.connect().data == [*range(10)]


def test_replies_that_have_waited_for_the_store_leave_over_several_turns_in_their_order() -> None:
    server = RestartableServer(is_turn_over=lambda: True)
    clients = [named(server, name=f"joe/{number}") for number in range(1, 6)]
    publish(server, 1, 2)
    server.keeper.is_prompt = False
    waiting = [client.connect(ext={"ack": 1}) for client in clients]
    assert all(asked.is_held for asked in waiting)
    server.keeper.turn()
    assert released(server, waiting) == [1, 2, 3, 4, 5]
    assert all(asked.data == [1, 2] for asked in waiting)


# Due sessions


def tick(server: Server, seconds: float) -> None:
    """Let this much time pass at once."""
    server.now += seconds
    server.bayeux.tick(server.now)


def clients_with_acks(server: Server, count: int) -> list[Client]:
    """Clients with acks, for each of which a message waits."""
    clients = [server.connected(ext={"ack": True}) for _ in range(count)]
    for client in clients:
        client.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    return clients


def test_sessions_that_expire_together_end_one_by_one_with_other_requests_in_between() -> None:
    server = RestartableServer(is_turn_over=lambda: True)
    lost = [client.session for client in clients_with_acks(server, 5)]
    tick(server, 11.0)
    other = server.connected()
    ended = []
    for _ in range(5):
        ended.append(sum(session.is_gone for session in lost))
        assert other.publish("/b", 1).reply["successful"] is True
        server.flush()
    assert ended == [1, 2, 3, 4, 5]
    server.turn()
    assert len(server.store.letters) == 5
    assert server.balances()


def test_clients_are_answered_before_long_work_continues() -> None:
    server = RestartableServer(is_turn_over=lambda: True)
    lost = [client.session for client in clients_with_acks(server, 5)]
    tick(server, 11.0)
    ended: list[int] = []

    def answer() -> None:
        ended.append(sum(session.is_gone for session in lost))

    for _ in range(3):
        server.flush(answer)
    assert ended == [1, 2, 3]
    server.turn()
    server.bayeux.flush(server.now, answer)
    assert len(ended) == 3, "there is no long work"


def test_a_due_session_whose_client_returns_before_its_check_does_not_expire() -> None:
    server = RestartableServer(is_turn_over=lambda: True)
    lost = clients_with_acks(server, 3)
    tick(server, 11.0)
    living = [session.client_id for session in server.bayeux.state.sessions]
    late = [client for client in lost if client.client_id in living]
    assert len(late) == 2
    for client in late:
        asked = client.connect(ext={"ack": 0}, advice={"timeout": 0})
        assert asked.replies[0]["successful"] is True
    server.turn()
    assert not any(client.session.is_gone for client in late)


def test_a_session_that_falls_due_while_others_are_checked_waits_for_its_turn() -> None:
    server = RestartableServer(is_turn_over=lambda: True)
    clients_with_acks(server, 5)
    waiting = server.connected()
    asked = waiting.connect(advice={"timeout": 11_100})
    tick(server, 11.0)
    tick(server, 0.2)
    assert asked.is_held
    server.turn()
    tick(server, 0.1)
    assert not asked.is_held


def test_many_dead_letters_are_published_in_order_over_several_turns() -> None:
    server = RestartableServer(is_turn_over=lambda: True)
    listener = server.client(ext={"ack": True})
    listener.session.identity.role = "operator"
    listener.subscribe("/sys/deadMessage")
    client = named(server)
    publish(server, *range(10))
    server.bayeux.life.ends.end_with_letters(
        client.session, DELIVERY_ENDED, text="its time is over", now=server.now
    )
    server.keeper.turn()
    server.flush()
    assert listener.session.queue.count == 1
    server.flush()
    assert listener.session.queue.count == 2
    server.turn()
    told = listener.connect(advice={"timeout": 0}).data
    assert [each["content"] for each in told[:10]] == list(range(10))


# Random requests

AT_ONCE = {"timeout": 0}

CHANNELS = st.sampled_from(["/a", "/b", "/*", "/a/b", "/service/x", "/meta/x", "bad"])
MESSAGES = st.one_of(
    st.builds(lambda name, data: {"channel": name, "data": data}, CHANNELS, st.integers(0, 9)),
    st.builds(
        lambda names: {"channel": "/meta/subscribe", "subscription": names}, st.lists(CHANNELS)
    ),
    st.builds(lambda name: {"channel": "/meta/unsubscribe", "subscription": name}, CHANNELS),
    st.just({"channel": "/meta/connect", "connectionType": "long-polling", "advice": AT_ONCE}),
    st.just({"channel": "/meta/disconnect"}),
)


def heard(messages: list[list[Json]], is_turn_over: Any) -> list[list[Json]]:
    """The answers to these requests, one after the other, and what a reader gets."""
    server = Server(is_turn_over=is_turn_over)
    client, reader = server.connected(), server.connected()
    reader.subscribe("/a", "/*")
    answers = []
    for request in messages:
        asked = client.send(*request)
        server.turn()
        answers.append(asked.elements)
    return [*answers, reader.connect(advice=AT_ONCE).elements]


@pytest.mark.slow
@given(st.lists(st.lists(MESSAGES, min_size=1, max_size=6), max_size=4), st.integers())
@settings(deadline=None)
def test_requests_have_the_same_outcome_wherever_they_are_interrupted(
    requests: list[list[Json]], seed: int
) -> None:
    chance = random.Random(seed)
    at_once = heard(requests, lambda: False)
    assert heard(requests, lambda: chance.random() < 0.5) == at_once
