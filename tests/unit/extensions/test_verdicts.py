"""Verdicts of receivers on single messages, and their effects."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.sessions.status import hold_of
from holdfast.delivery.basics.session_states import SessionState
from holdfast.delivery.letters.dead import fingerprint
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Json, Server, server_of
from tests.unit.bayeux.operated_server import letters
from tests.unit.extensions.delivering import codes, connect, no, ok, publish, receiver


def test_a_verdict_ok_settles_one_message_and_leaves_the_others() -> None:
    server = server_of()
    client = receiver(server, ack=False)
    publish(server, 1, 2)
    first, _ = connect(client, ack=None).events
    connect(client, ok(first), ack=None)
    assert server.bayeux.state.hub.counters.acked == 1
    assert client.session.queue.count == 1
    assert server.balances()


@pytest.mark.parametrize(
    "code",
    ["user.update.error", "user.update.deadMessage", "user.clientCode", "user.illegalArgument"],
)
def test_a_refused_message_is_dead_and_the_next_ones_flow(code: str) -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2, 3)
    events = connect(client).events
    assert connect(client, no(events[1], code, "not mine")).events == []
    assert codes(server) == [code]
    assert letters(server) == [2]
    assert "not mine" in server.keeper.letters[0].reason
    assert server.bayeux.state.hub.counters.acked == 2
    assert client.session.state is SessionState.CONNECTED
    assert server.balances()


def test_verdicts_precede_the_ack_in_their_message_whatever_extension_was_installed_first() -> None:
    server = Server(partial(Ack, announces_batch=False), DeliveryWire)
    client = receiver(server)
    publish(server, 1, 2)
    refused, _ = connect(client).events
    connect(client, no(refused, "user.update.error"))
    assert letters(server) == [1]
    assert server.bayeux.state.hub.counters.acked == 1
    assert server.balances()


@pytest.mark.parametrize("code", ["resource.exhaust", "internal.unknown", "nonsense", None, 7])
def test_a_code_that_receivers_cannot_give_counts_as_their_internal_error(code: Any) -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    connect(client, no(connect(client).events[0], code))
    assert codes(server) == ["user.update.internalError"]


@pytest.mark.parametrize("code", ["user.paper.empty", "user.update.paper", "user.x-1.y_2.z.0"])
def test_a_receivers_own_code_is_kept_in_its_letter_and_attempts(code: str) -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2)
    connect(client, no(connect(client).events[0], code, "tray 2"))
    (letter,) = server.keeper.letters
    assert (letter.code, letter.fingerprint) == (code, fingerprint("/a", code))
    assert letter.reason == "An error or a decision of the client: tray 2"
    assert [(each.outcome, each.code, each.text) for each in letter.attempts] == [
        (code, code, "tray 2")
    ]
    assert server.bayeux.state.counters.refused == {"user": 1}
    assert server.balances()


def test_a_code_below_holdback_holds_the_queue_back() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2)
    connect(client, no(connect(client).events[0], "user.update.holdback.paper"))
    assert (codes(server), client.session.queue.count) == ([], 2)
    assert hold_of(client.session) is not None


@pytest.mark.slow
def test_very_many_verdicts_are_read_in_one_turn_and_take_effect_in_the_next() -> None:
    server = server_of()
    client = receiver(server, ack=False)
    publish(server, *range(1_001))
    events = connect(client, ack=None).events
    asked = connect(client, *map(ok, events), ack=None)
    assert client.session.queue.count == 1_001
    assert server.go_on()
    assert client.session.queue.count == 0
    assert asked.reply["successful"]
    assert server.balances()


def test_a_verdict_on_an_unknown_entry_is_counted_and_changes_nothing() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    connect(client)
    for seq in (99, 99.0, 0, -1, 10**18):
        said = {"seq": seq, "state": "OK"}
        assert connect(client, said, ack=0, delivery={"pending": [1]}).reply["successful"]
    assert server.bayeux.state.hub.counters.verdicts_unknown == 5
    assert client.session.queue.count == 1


@pytest.mark.parametrize(
    "form",
    [lambda said: [said], lambda said: {"verdicts": [said]}, lambda said: said],
    ids=["list", "object", "single"],
)
def test_verdicts_can_be_published_and_the_reply_waits_until_they_are_settled(
    form: Callable[[Json], Any],
) -> None:
    server = server_of()
    client = receiver(server, ack=False, session="joe/1")
    publish(server, 1)
    server.turn()
    (event,) = connect(client, ack=None).events
    asked = client.publish("/service/delivery", form(ok(event)))
    assert asked.is_held
    server.turn()
    assert asked.reply["successful"] is True
    assert server.keeper.queues["joe/1"] == {}


def test_a_verdict_of_denied_access_ends_the_session_and_dead_letters_its_queue() -> None:
    server = server_of()
    client = receiver(server, retries=-1)
    publish(server, 1, 2)
    events = connect(client).events
    publish(server, 3)
    reply = connect(client, no(events[0], "user.security.authentication.accessDenied")).reply
    assert reply["error"].startswith("402")
    assert letters(server) == [1, 2, 3]
    assert client.session.is_gone
    assert server.balances()


def test_a_refusal_ends_all_delivery_if_on_user_exception_is_dead() -> None:
    server = server_of()
    client = receiver(server, onUserException="dead")
    publish(server, 1, 2)
    events = connect(client).events
    connect(client, no(events[0], "user.update.error"))
    publish(server, 3)
    assert letters(server) == [1, 2, 3]
    assert not client.session.is_gone
    assert connect(client).events == []
    assert server.balances()


def test_a_channel_can_do_without_dead_letters() -> None:
    server = server_of(channels={"/a": ChannelSettings(dead_letters=False)})
    client = receiver(server)
    publish(server, 1)
    connect(client, no(connect(client).events[0], "user.update.error"))
    assert codes(server) == []
    assert server.balances()


def test_a_channel_can_have_refused_messages_redelivered_before_they_are_dead() -> None:
    server = server_of(channels={"/a": ChannelSettings(attempts=3, backoff=1000)})
    client = receiver(server)
    publish(server, 1, 2)
    (first, _) = connect(client).events
    assert connect(client, no(first, "user.update.error")).data == []
    server.advance(1.1)
    answer = connect(client)
    assert answer.data == [1]
    connect(client, no(answer.events[0], "user.update.error"))
    server.advance(2.1)
    answer = connect(client)
    connect(client, no(answer.events[0], "user.update.error"))
    assert letters(server) == [1]
    (letter,) = server.keeper.letters
    assert [attempt.outcome for attempt in letter.attempts] == ["user.update.error"] * 3
    assert server.balances()


def test_dead_letters_are_delivered_to_operators_and_never_become_dead_letters() -> None:
    server = server_of()
    watcher = server.client(ext={"ack": True, "delivery": True})
    connect(watcher)
    assert watcher.subscribe("/sys/deadMessage").reply["error"].startswith("403")
    watcher.session.identity.role = "operator"
    watcher.subscribe("/sys/deadMessage")
    client = receiver(server)
    publish(server, {"x": 1})
    connect(client, no(connect(client).events[0], "user.update.error", "broken"))
    server.turn()
    (event,) = connect(watcher).events
    told = event["data"]
    assert told["content"] == {"x": 1}
    assert (told["channel"], told["errorCode"]) == ("/a", "user.update.error")
    assert told["receiver"] == client.session.name
    assert "broken" in told["reason"]
    assert event["ext"]["delivery"]["properties"]["__oid"] == "/a"
    connect(watcher, no(event, "user.update.error"))
    server.turn()
    assert len(server.keeper.letters) == 1
    assert server.balances()


def test_a_subscription_to_everything_does_not_include_system_channels() -> None:
    server = server_of()
    curious = server.connected()
    curious.subscribe("/**")
    client = receiver(server)
    publish(server, 1)
    connect(client, no(connect(client).events[0], "user.update.error"))
    server.turn()
    assert curious.connect().data == [1]
