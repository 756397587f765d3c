"""Replies that wait for the store: their order, their clients, their number."""

import pytest

from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.delivery.messages.storing import PersistOutcome
from tests.unit.bayeux.harness import Json, Server, Socket, Wire, server_of
from tests.unit.bayeux.second_lives import (
    connect,
    named,
    no,
    ok,
    publish,
    seqs,
    take,
)
from tests.unit.extensions.delivering import redelivered


@pytest.mark.parametrize("mode", [{}, {"end": True}, {"end": True, "discard": True}])
def test_a_disconnect_is_answered_behind_a_connect_whose_reply_waits_for_the_store(
    mode: Json,
) -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    server.keeper.is_prompt = False
    client.socket = Socket()
    client.connect(ext={"ack": 1})
    client.send({"channel": "/meta/disconnect", "ext": {"delivery": mode}})
    assert client.hear() == []
    server.turn()
    replies = client.hear()
    assert [reply["channel"] for reply in replies] == ["/meta/connect", "/meta/disconnect"]
    assert [reply["successful"] for reply in replies] == [True, True]


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_disconnect_from_a_session_that_was_lost_meanwhile_is_answered_behind_the_connect(
    *, is_ended: bool
) -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    server.keeper.is_prompt = False
    client.socket = Socket()
    client.publish("/a", 2)
    client.connect(ext={"ack": 1})
    client.disconnect()
    if is_ended:
        server.for_extensions.log_out(client.session)
    else:
        take(server.guest(browser=client.browser))
    server.turn()
    channels = [reply["channel"] for reply in client.hear()]
    assert channels == ["/a", "/meta/connect", "/meta/disconnect"]


@pytest.mark.parametrize(
    "message",
    [
        {"channel": "/meta/subscribe", "subscription": "/b"},
        {"channel": "/meta/unsubscribe", "subscription": "/a"},
        {"channel": "/service/delivery", "data": []},
    ],
)
def test_a_disconnect_is_answered_behind_other_replies_that_wait_for_the_store(
    message: Json,
) -> None:
    server = server_of()
    client = named(server)
    client.socket = Socket()
    client.send(message)
    client.disconnect()
    assert client.hear() == []
    server.turn()
    replies = client.hear()
    assert [reply["channel"] for reply in replies] == [message["channel"], "/meta/disconnect"]
    assert [reply["successful"] for reply in replies] == [True, True]


def test_a_session_that_the_server_ends_gets_its_goodbye_with_the_reply_to_a_kept_call() -> None:
    def serve(call: ServiceCall) -> None:
        call.is_kept = True
        server.for_extensions.end_by_server(call.session)

    server = server_of()
    server.bayeux.state.services.add("/service/end", serve)
    asked = server.connected().publish("/service/end", 1)
    server.turn()
    assert [each["channel"] for each in asked.elements] == ["/meta/disconnect", "/service/end"]
    assert server.balances()


def test_a_session_that_the_server_ends_gets_its_goodbye_with_a_connect_that_waited() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    server.keeper.is_prompt = False
    asked = client.connect(ext={"ack": 1})
    server.for_extensions.end_by_server(client.session)
    server.turn()
    assert [each["channel"] for each in asked.elements] == ["/meta/disconnect", "/meta/connect"]
    assert server.balances()


def test_a_session_that_the_server_ends_leaves_nothing_uncounted_while_two_connects_wait() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    server.keeper.is_prompt = False
    client.connect(ext={"ack": 1})
    held = client.connect(ext={"ack": 2})
    assert held.is_held
    server.for_extensions.end_by_server(client.session)
    server.turn()
    assert held.reply["advice"]["reconnect"] == "none"
    assert server.balances()


def test_the_end_of_a_session_is_counted_although_a_publish_of_a_former_client_is_pending() -> None:
    server = server_of()
    named(server, name="jim/1")
    client = named(server)
    session = client.session
    server.keeper.is_silent = True
    asked = client.publish("/a", 1)
    take(server.guest(browser=client.browser))
    server.for_extensions.end_by_server(session)
    server.turn()
    server.keeper.answer_late(PersistOutcome.KEPT)
    server.turn()
    assert asked.reply["successful"]
    assert server.balances()


def test_the_ack_of_a_connect_that_overtook_a_subscribe_settles_no_message() -> None:
    server = server_of()
    client = server.guest()
    take(client)
    # cometd.js does not wait for this reply before it connects.
    client.subscribe("/a")
    overtaking = client.connect(ext={"ack": 0})
    assert overtaking.reply == {"channel": "/meta/connect", "id": "3", "successful": True}
    publish(server, 1)
    assert connect(client, 0).data == [1], "lost on its way"
    assert connect(client, 0).data == [1]
    assert server.bayeux.state.counters.acks_out_of_range == 0


@pytest.mark.slow
def test_a_session_with_very_many_delayed_replies_must_wait_for_the_store() -> None:
    server = server_of()
    client = named(server)
    client.socket = Socket()
    for _ in range(10_000):
        client.subscribe("/b")
    asked = client.subscribe("/b")
    assert asked.reply["error"] == "503:communication.noConnection:store_unavailable"
    assert asked.reply["advice"]["reconnect"] == "retry"
    server.turn()
    client.subscribe("/b")
    server.turn()
    assert client.hear()[-1]["successful"]


def pass_time_without_store(server: Server, seconds: int) -> None:
    """The store answers nothing meanwhile."""
    for _ in range(seconds):
        server.now += 1.0
        server.bayeux.tick(server.now)
        server.flush()


@pytest.mark.parametrize("ack", [True, False])
def test_a_client_whose_reply_waits_for_the_store_is_not_lost(*, ack: bool) -> None:
    server = server_of(max_interval=10_000)
    client = named(server, ack=ack, retries=0, responseTimeout=15_000)
    publish(server, 1, 2)
    server.keeper.is_prompt = False
    asked = client.connect(ext={"ack": 1} if ack else {}, advice={"timeout": 0})
    pass_time_without_store(server, 30)
    assert asked.is_held
    server.turn()
    assert asked.data == [1, 2]
    # It has all the time that there is for verdicts.
    pass_time_without_store(server, 9)
    verdicts = [ok(seq) for seq in seqs(asked)]
    assert connect(client, 2 if ack else None, *verdicts).reply["successful"]
    assert server.bayeux.state.counters.acked == 2
    assert server.balances()


def test_a_client_whose_publish_waits_for_the_store_is_not_lost() -> None:
    server = server_of(max_interval=2000)
    named(server)
    client = server.connected()
    session = client.session
    server.keeper.is_silent = True
    client.publish("/a", 1)
    pass_time_without_store(server, 4)
    server.keeper.answer_late(PersistOutcome.UNKNOWN)
    server.turn()
    pass_time_without_store(server, 1)
    assert not session.is_gone
    pass_time_without_store(server, 3)
    assert session.is_gone


def test_a_client_whose_handshake_waits_for_the_store_is_not_lost() -> None:
    server = server_of(max_interval=10_000)
    client = named(server, ack=False)
    publish(server, 1)
    heir = server.guest(browser=client.browser)
    asked = heir.begin_handshake(ext={"delivery": {"session": "joe/1", "retries": 0}})
    pass_time_without_store(server, 30)
    assert asked.is_held
    server.turn()
    heir.learn(asked)
    pass_time_without_store(server, 9)
    assert connect(heir, None).data == [1]


def test_an_attempt_whose_reply_waits_for_the_store_begins_with_the_reply() -> None:
    server = server_of(max_interval=100_000)
    client = named(server, retries=0)
    publish(server, 1)
    connect(client, 1)
    asked = client.connect(ext={"ack": 1}, advice={"timeout": 0})
    pass_time_without_store(server, 30)
    server.turn()
    assert asked.data == [1]
    server.advance(2.0)
    (seq,) = seqs(asked)
    connect(client, 2, no(seq, "user.update.error"))
    (letter,) = server.keeper.letters
    assert letter.attempts[-1].latency == 2000


def test_a_client_that_does_not_come_back_is_lost_after_its_delayed_reply() -> None:
    server = server_of(max_interval=10_000)
    client = named(server, retries=0)
    publish(server, 1)
    server.keeper.is_prompt = False
    client.connect(ext={"ack": 1}, advice={"timeout": 0})
    pass_time_without_store(server, 30)
    server.turn()
    pass_time_without_store(server, 9)
    assert not client.session.is_gone
    pass_time_without_store(server, 2)
    assert client.session.is_gone


def test_events_that_leave_late_say_how_the_queue_was_when_they_were_handed_over() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1, 2)
    server.keeper.is_prompt = False
    first = client.connect(ext={"ack": 1}, wire=Wire())
    again = client.connect(ext={"ack": 1}, wire=Wire())
    server.for_extensions.publish("/a", 3)
    server.turn()
    assert [each["ext"]["delivery"]["queue"]["size"] for each in first.events] == [2, 2]
    assert (redelivered(first), redelivered(again)) == ([0, 0], [1])


@pytest.mark.slow
def test_hand_overs_wait_while_replies_with_very_many_messages_wait_for_the_store() -> None:
    server = server_of()
    clients = [named(server, name=f"joe{number}/1") for number in range(20)]
    publish(server, *range(300))
    server.keeper.is_prompt = False
    asked = [client.connect(ext={"ack": 1}) for client in clients]
    in_flight = sum(client.session.queue.in_flight_count for client in clients)
    assert 5_000 <= in_flight < 5_300
    server.turn()
    assert all(each.data == [*range(300)] for each in asked)
    assert server.balances()


def test_a_reply_that_waits_for_the_store_brings_nothing_once_its_session_is_held_back() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1, 2)
    server.keeper.is_prompt = False
    asked = client.connect(ext={"ack": 1})
    server.bayeux.life.hold_back(client.session, "lunch", who="ops", now=server.now)
    server.turn()
    assert (asked.data, asked.reply["successful"]) == ([], True)
    server.keeper.is_prompt = True
    server.bayeux.life.resume(client.session, server.now)
    assert "ext" not in asked.reply
    again = client.connect(ext={"ack": 1})
    server.turn()
    assert again.data == [1, 2]
    assert redelivered(again) == [0, 0]
