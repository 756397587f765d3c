"""What operators can do to sessions."""

import logging

import pytest

from holdfast.bayeux.services.commands import run, understand
from holdfast.bayeux.wire.grammar import CommandRefused
from holdfast.delivery.basics.counters import Reason
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.operated_server import (
    ask,
    connect,
    letters,
    publish,
    receiver,
    scope_of,
    value_of,
)

COUNTED = ("numSubscribe", "numUnSubscribe")


def test_a_session_is_held_back_until_an_operator_resumes_it() -> None:
    server = server_of()
    client = receiver(server)
    assert ask(server, "client/joe/1/?dispatcherActive=false").state == "OK"
    publish(server, 1)
    assert connect(client) == []
    assert value_of(server, "client/joe/1/?dispatcherActive") == "false"
    ask(server, "client/joe/1/?dispatcherActive=true")
    assert connect(client) == [1]


def test_the_log_names_the_operator_who_resumes_a_session_by_a_command(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    server = server_of()
    receiver(server)
    ask(server, "client/joe/1/?dispatcherActive=false")
    run(understand("client/joe/1/?dispatcherActive=true"), scope_of(server), "operator/ann")
    assert caplog.messages[-1] == "session joe/1 is resumed by operator/ann"


def test_the_first_operator_who_holds_a_session_back_stays_on_record() -> None:
    server = server_of()
    client = receiver(server)
    server.bayeux.life.hold_back(client.session, "disk full", "ann", server.now)
    ask(server, "client/joe/1/?dispatcherActive=false")
    assert client.session.dispatcher is not None
    assert client.session.dispatcher.hold_record is not None
    assert client.session.dispatcher.hold_record.who == "ann"


def test_the_log_says_at_info_level_who_ended_a_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    session = receiver(server).session
    with caplog.at_level(logging.INFO):
        ask(server, "client/joe/1/?killSession")
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert line.getMessage() == f"session {session.key} was ended by operator"


def test_a_killed_session_leaves_dead_letters_and_its_client_is_told() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    ask(server, "client/joe/1/?killSession")
    assert letters(server) == [1]
    reason = "Delivery to the receiver has ended: its session was ended by operator"
    assert server.keeper.letters[0].reason == reason
    assert "joe/1" not in server.keeper.sessions
    assert client.connect().reply["error"].startswith("402")
    assert server.balances()


def test_answers_of_services_do_not_become_dead_letters() -> None:
    server = server_of()
    client = receiver(server)
    server.for_extensions.deliver_event(
        client.session, {"channel": "/service/echo", "data": "hello"}
    )
    publish(server, 1)
    ask(server, "client/joe/1/?killSession")
    assert letters(server) == [1]
    assert server.bayeux.state.hub.counters.discarded[Reason.NO_LETTER] == 1
    assert server.balances()


def test_a_cleared_queue_is_empty_here_and_in_the_store() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2)
    assert value_of(server, "client/joe/1/?clearCallbackQueue") == "2"
    assert server.keeper.queues["joe/1"] == {}
    assert connect(client) == []
    assert server.balances()


@pytest.mark.parametrize(
    ("count", "left"),
    [(0, [1, 2, 3, 4]), (1, [2, 3, 4]), (2, [3, 4]), (3, [4]), (4, []), (9, [])],
)
def test_the_first_entries_can_be_removed_in_flight_returned_or_waiting(
    count: int, left: list[int]
) -> None:
    server = server_of()
    client = receiver(server, maxEntries=2)
    publish(server, 1, 2, 3, 4)
    connect(client)
    queue = client.session.queue
    queue.give_back(since=2)
    assert (len(queue.in_flight()), len(queue.returned), len(queue.new)) == (1, 1, 2)
    removed = value_of(server, f"client/joe/1/?removeFromCallbackQueue={count}")
    assert int(removed) == 4 - len(left)
    messages = [entry.message for entry in [*queue.in_flight().values(), *queue.returned.values()]]
    messages += queue.new
    assert queue.count == len(messages) == len(left)
    assert queue.size == sum(len(message.wire) for message in messages)
    assert server.keeper.queues["joe/1"].keys() == {message.id for message in messages}
    queue.give_back()
    assert [number for _ in range(4) for number in connect(client)] == left
    assert server.balances()


def test_entries_can_be_looked_at_and_taken_out() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, {"n": 1}, {"n": 2})
    seen = ask(server, "client/joe/1/?peekCallbackMessages=5").entries
    assert seen == [{"channel": "/a", "data": {"n": 1}}, {"channel": "/a", "data": {"n": 2}}]
    taken = ask(server, "client/joe/1/?callbackQueueEntries=maxEntries=1&consumable=true").entries
    assert taken == seen[:1]
    assert connect(client) == [{"n": 2}]
    assert server.balances()


def test_a_query_takes_no_more_entries_than_it_shows() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, *["x" * 400_000] * 4)
    text = "client/joe/1/?callbackQueueEntries=maxEntries=4&consumable=true"
    assert len(ask(server, text).entries or ()) == 2
    assert client.session.queue.count == 2


def test_an_operator_can_change_the_session_timeout_and_restart_it() -> None:
    server = server_of()
    client = receiver(server)
    client.disconnect()
    ask(server, "client/joe/1/?sessionTimeout=2000")
    assert server.keeper.sessions["joe/1"].timeout_s == 2.0
    assert value_of(server, "client/joe/1/?sessionTimeoutExpireDate").startswith("2023-11-14")
    server.advance(1.0)
    ask(server, "client/joe/1/?refreshSession")
    server.advance(1.5)
    assert len(server.bayeux.state.sessions) == 1
    server.advance(1.0)
    assert len(server.bayeux.state.sessions) == 0


@pytest.mark.parametrize("timeout", ["999999999999999"])
def test_a_session_timeout_that_is_too_long_is_refused(timeout: str) -> None:
    server = server_of()
    client = receiver(server)
    with pytest.raises(CommandRefused, match="is too long"):
        ask(server, f"client/joe/1/?sessionTimeout={timeout}")
    assert client.session.terms is not None
    assert client.session.terms.timeout == 86_400_000


def test_a_plain_session_has_no_timeout_of_its_own() -> None:
    server = server_of()
    client = server.connected()
    with pytest.raises(CommandRefused, match="no agreed timeout"):
        ask(server, f"{client.session.name}/?sessionTimeout=1")
    ask(server, f"{client.session.name}/?refreshSession")


def test_an_operator_can_subscribe_and_unsubscribe_a_session() -> None:
    server = server_of()
    client = receiver(server)
    ask(server, "client/joe/1/?subscribe=/b/**")
    assert server.keeper.sessions["joe/1"].subscriptions == ["/a", "/b/**"]
    server.for_extensions.publish("/b/c", 1)
    server.turn()
    assert connect(client) == [1]
    listed = ["client/joe/1 /a", "client/joe/1 /b/**"]
    assert value_of(server, "client/joe/1/?subscriptions").split("\n") == listed
    assert value_of(server, "?subscriptionList").split("\n") == listed
    ask(server, "client/joe/1/?unSubscribe=/a")
    publish(server, 2)
    assert connect(client) == []
    assert server.keeper.sessions["joe/1"].subscriptions == ["/b/**"]
    counted = [value_of(server, f"client/joe/1/?{name}") for name in COUNTED]
    assert counted == ["2", "1"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("subscribe=/sys/deadMessage", "403:denied_by_security_policy"),
        ("subscribe=/service/admin", "must be a channel or a pattern"),
        ("subscribe=/meta/connect", "must be a channel or a pattern"),
        ("subscribe=news", "must be a channel or a pattern"),
        ("unSubscribe=/b", "no such subscription"),
    ],
)
def test_an_operator_cannot_add_a_forbidden_subscription_or_remove_a_missing_one(
    command: str, why: str
) -> None:
    server = server_of()
    client = receiver(server)
    with pytest.raises(CommandRefused, match=why):
        ask(server, f"client/joe/1/?{command}")
    assert client.session.subscriptions == {"/a"}


def test_an_operator_cannot_add_subscriptions_beyond_the_limit_of_a_session() -> None:
    server = server_of(max_subscriptions=1)
    client = receiver(server)
    with pytest.raises(CommandRefused, match="exceeded"):
        ask(server, "client/joe/1/?subscribe=/b")
    assert client.session.subscriptions == {"/a"}


def test_an_operator_can_disconnect_a_client_and_keep_its_session() -> None:
    server = server_of()
    client = receiver(server)
    held = client.connect(ext={"ack": client.session.queue.batch})
    ask(server, "client/joe/1/?disconnectClientKeepSession")
    assert held.reply["error"].startswith("402")
    assert held.reply["advice"]["reconnect"] == "handshake"
    assert client.connect().reply["advice"]["reconnect"] == "handshake"
    publish(server, 1)
    # Now there is no client to disconnect.
    ask(server, "client/joe/1/?disconnectClientKeepSession")
    client.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    assert connect(client) == [1]
    assert server.balances()


def test_the_client_of_a_session_without_a_name_cannot_be_disconnected_from_it() -> None:
    server = server_of()
    client = receiver(server, session=None)
    with pytest.raises(CommandRefused, match="without a name"):
        ask(server, f"{client.session.name}/?disconnectClientKeepSession")
    assert connect(client) == []


def test_many_sessions_of_a_subject_end_over_several_turns() -> None:
    is_over: list[bool] = []
    server = server_of(is_turn_over=lambda: bool(is_over))
    for number in range(1, 7):
        receiver(server, f"joe/{number}")
    receiver(server, "ann/1")
    publish(server, 1)
    is_over.append(True)
    ask(server, "client/joe/?killClient")
    assert len(server.bayeux.state.sessions) == 6
    server.turn()
    assert [session.key for session in server.bayeux.state.sessions] == ["ann/1"]
    assert letters(server) == [1] * 6
    assert server.balances()
