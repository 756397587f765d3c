"""Acks: messages that a client did not ack are redelivered."""

from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.entries import SettledBy
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import ABSENT, Asked, Client, Json, Server, Wire

pytestmark = pytest.mark.untraced


def acknowledging(**options: Any) -> tuple[Server, Client]:
    """A client with acks, subscribed to /a, after its first connect (batch 1)."""
    server = Server(partial(Ack, announces_batch=False), **options)
    client = server.connected(ext={"ack": True})
    client.subscribe("/a")
    return server, client


def refusing(**options: Any) -> tuple[Server, Client]:
    """As `acknowledging`, but with verdicts: after a loss its batches are small."""
    server = Server(DeliveryWire, partial(Ack, announces_batch=False), **options)
    client = server.connected(ext={"ack": True, "delivery": {"responseTimeout": 0}})
    client.subscribe("/a")
    return server, client


def connect(client: Client, ack: Any, **fields: Any) -> Asked:
    return client.connect(ext={"ack": ack}, **fields)


def poll(client: Client, ack: Any) -> Asked:
    return connect(client, ack, advice={"timeout": 0})


def publish(server: Server, *data: Any) -> None:
    for each in data:
        server.for_extensions.publish("/a", each)
    server.turn()


def batch(asked: Asked) -> int:
    number: int = asked.elements[-1]["ext"]["ack"]
    return number


# Agreement


@pytest.mark.parametrize("asked", [True, "true"])
def test_a_handshake_that_asks_for_acks_is_answered_in_the_same_form(asked: Any) -> None:
    reply = Server(partial(Ack, announces_batch=False)).guest().handshake(ext={"ack": asked}).reply
    assert reply["ext"] == {"ack": asked}


NEITHER = [1, 0, "yes", "True", {}, None, [], {"enabled": True}]


@pytest.mark.parametrize("asked", NEITHER)
@pytest.mark.parametrize("delivery", [{}, {"delivery": None}, {"delivery": False}])
def test_a_handshake_without_delivery_that_asks_for_acks_in_no_known_form_gets_none(
    asked: Any, delivery: Json
) -> None:
    server = Server(DeliveryWire, partial(Ack, announces_batch=False))
    client = server.guest()
    assert "ext" not in client.handshake(ext={"ack": asked, **delivery}).reply
    assert "ext" not in client.connect(ext={"ack": 0}).reply
    assert client.session.queue.settling is SettledBy.WRITTEN


@pytest.mark.parametrize("asked", NEITHER)
def test_a_handshake_with_delivery_and_an_unreadable_ack_is_refused(asked: Any) -> None:
    server = Server(DeliveryWire, partial(Ack, announces_batch=False))
    reply = server.guest().handshake(ext={"ack": asked, "delivery": True}).reply
    assert reply["error"] == "400:user.illegalArgument,ack:ext_invalid"
    assert reply["advice"]["reconnect"] == "none"
    assert len(server.bayeux.state.sessions) == 0


@pytest.mark.parametrize("asked", [ABSENT, False])
def test_a_client_that_does_not_ask_for_acks_has_none(asked: Any) -> None:
    server = Server(partial(Ack, announces_batch=False))
    client = server.guest()
    ext = {} if asked is ABSENT else {"ack": asked}
    assert "ext" not in client.handshake(ext=ext).reply
    assert "ext" not in client.connect(ext={"ack": 0}).reply
    assert client.session.queue.settling is SettledBy.WRITTEN


def test_a_handshake_that_may_carry_messages_announces_their_batch() -> None:
    server = Server(
        partial(Ack, announces_batch=True), allow_message_delivery_during_handshake=True
    )
    client = server.guest()
    reply = client.handshake(ext={"ack": True}).elements[0]
    assert reply["ext"]["ack"] == {"enabled": True, "batch": 0}
    assert batch(connect(client, 0)) == 1
    assert server.bayeux.state.hub.counters.acks_out_of_range == 0


@pytest.mark.interpreted
def test_messages_that_come_with_the_handshake_are_the_first_batch() -> None:
    class Greets(Ack):
        def negotiate(self, session: Any, handshake: Json, reply: Json, now: float) -> Any:
            server.for_extensions.deliver_event(session, {"channel": "/hello", "data": 1})
            return super().negotiate(session, handshake, reply, now)

    server = Server(
        partial(Greets, announces_batch=True), allow_message_delivery_during_handshake=True
    )
    client = server.guest()
    answer = client.handshake(ext={"ack": True})
    assert answer.elements[0]["ext"]["ack"] == {"enabled": True, "batch": 1}
    assert answer.elements[1]["data"] == 1
    # Lost on the way, it comes again; acknowledged, it does not.
    assert connect(client, 0).data == [1]
    asked = connect(client, 2)
    assert asked.is_held
    assert server.balances()


@pytest.mark.interpreted
def test_messages_that_waited_before_acks_were_agreed_are_acked_too() -> None:
    class Greets(Ack):
        def negotiate(self, session: Any, handshake: Json, reply: Json, now: float) -> Any:
            server.for_extensions.deliver_event(session, {"channel": "/hello", "data": 1})
            return super().negotiate(session, handshake, reply, now)

    server = Server(partial(Greets, announces_batch=False))
    client = server.client(ext={"ack": True})
    assert connect(client, 0).data == [1]
    assert poll(client, 0).data == [1]
    assert poll(client, 2).data == []


# Batches


def test_every_connect_reply_is_a_batch_of_its_own_even_an_empty_one() -> None:
    server, client = acknowledging()
    assert [batch(poll(client, 0)) for _ in range(3)] == [2, 3, 4]
    asked = connect(client, 4)
    server.advance(30.1)
    assert batch(asked) == 5


def test_refused_and_superseded_connects_are_no_batches() -> None:
    server, client = acknowledging()
    assert "ext" not in client.send({"channel": "/meta/connect", "id": "ä"}).reply
    first = connect(client, 1)
    second = connect(client, 1)
    assert "ext" not in first.reply
    publish(server, "x")
    assert batch(second) == 2


def test_messages_come_with_connects_only() -> None:
    server, client = acknowledging()
    assert client.publish("/a", 1).events == []
    assert client.subscribe("/b").events == []
    server.turn()
    assert connect(client, 1).data == [1]


# Loss


def test_acked_messages_are_not_redelivered() -> None:
    server, client = acknowledging()
    publish(server, 1)
    assert poll(client, 1).data == [1]
    assert poll(client, 2).data == []


def test_everything_in_a_lost_reply_is_redelivered_in_one_batch_with_what_is_new() -> None:
    server, client = acknowledging()
    publish(server, *range(1_000))
    lost = connect(client, 1)
    assert (batch(lost), lost.data) == (2, [*range(1_000)])
    publish(server, 1_000)
    again = connect(client, 1)
    assert (batch(again), again.data) == (3, [*range(1_001)])
    assert server.bayeux.state.hub.counters.redelivered == 1_000
    assert connect(client, 3).is_held
    assert server.balances()


def test_very_many_messages_are_redelivered_in_portions() -> None:
    server, client = acknowledging()
    publish(server, *range(2_500))
    assert connect(client, 1).data == [*range(2_500)]
    assert connect(client, 1).data == [*range(2_000)]
    assert connect(client, 3).data == [*range(2_000, 2_500)]
    assert connect(client, 4).is_held
    assert server.balances()


def test_a_message_with_its_last_attempt_goes_alone_although_others_go_together() -> None:
    server, client = acknowledging(channels={"/a": ChannelSettings(max_attempts=3)})
    publish(server, 1, 2)
    assert poll(client, 1).data == [1, 2]
    publish(server, 3)
    assert poll(client, 1).data == [1, 2, 3]
    assert [poll(client, 1).data, poll(client, 1).data] == [[1], [2]]
    assert [letter.code for letter in server.keeper.letters] == ["user.update.error"]
    assert poll(client, 5).data == [3]
    assert len(server.keeper.letters) == 1
    assert server.balances()


def test_an_ack_of_a_reply_that_seemed_lost_settles_all_of_it() -> None:
    server, client = acknowledging()
    publish(server, 1, 2, 3)
    assert poll(client, 1).data == [1, 2, 3]
    assert poll(client, 1).data == [1, 2, 3]
    # The client had got the first of the two, and did not wait for the other.
    assert poll(client, 2).data == []
    assert server.balances()


def test_an_ack_of_a_redelivered_part_does_not_settle_the_rest() -> None:
    server, client = refusing()
    publish(server, 1, 2, 3)
    poll(client, 1)
    assert poll(client, 1).data == [1]
    assert [poll(client, 3).data, poll(client, 4).data] == [[2, 3], []]
    assert server.balances()


def test_the_batch_window_of_a_receiver_with_verdicts_grows_with_each_acked_message() -> None:
    server, client = refusing()
    publish(server, *range(10))
    lost = poll(client, 1)
    counts = []
    answer = poll(client, batch(lost) - 1)
    while answer.data:
        counts.append(len(answer.data))
        answer = poll(client, batch(answer))
    assert counts == [1, 2, 4, 3]
    publish(server, *range(10))
    assert len(poll(client, batch(answer)).data) == 10, "the batch window has ended"


def test_a_lost_connect_makes_no_difference() -> None:
    server, client = acknowledging()
    publish(server, 1)
    assert poll(client, 1).data == [1]
    # The connect that would have acknowledged batch 2 never arrives; a later one does.
    publish(server, 2)
    assert poll(client, 2).data == [2]
    assert server.balances()


def test_an_unwritten_reply_is_sent_with_the_next_connect() -> None:
    server, client = acknowledging()
    wire = Wire()
    asked = connect(client, 1, wire=wire)
    wire.is_cut = True
    publish(server, 1)
    assert asked.is_held
    assert connect(client, 1).data == [1]


def test_an_aborted_connect_takes_no_messages_with_it() -> None:
    server, client = acknowledging()
    asked = connect(client, 1)
    server.abort(asked)
    publish(server, 1)
    answer = connect(client, 1)
    assert (batch(answer), answer.data) == (2, [1])


def test_a_second_connect_supersedes_the_held_one_and_loses_nothing() -> None:
    server, client = acknowledging()
    first = connect(client, 1)
    second = connect(client, 1)
    publish(server, 1)
    assert first.reply["error"] == "409::connect_superseded"
    assert second.data == [1]
    publish(server, 2)
    assert connect(client, 2).data == [2]


def test_a_late_ack_of_an_earlier_reply_does_not_settle_newer_messages() -> None:
    server, client = acknowledging()
    publish(server, 1)
    late = poll(client, 1)
    publish(server, 2)
    # The client gave up on the late reply and asked again, without having seen it.
    again = poll(client, 1)
    assert (late.data, again.data) == ([1], [1, 2])
    # Even if it acknowledges the late one now, the newer message stays.
    assert poll(client, 2).data == [2]


# Acks out of order and out of range


def test_an_old_ack_settles_nothing_and_is_not_counted_as_out_of_range() -> None:
    server, client = acknowledging()
    for number in (1, 2, 3):
        publish(server, number)
        poll(client, number)
    assert poll(client, 2).data == [3]
    assert poll(client, 0).data == [3]
    assert poll(client, 4).data == []
    assert poll(client, 2).data == []
    assert server.bayeux.state.hub.counters.acks_out_of_range == 0


@pytest.mark.parametrize("ack", [3, 3.0, 10**18, 1e300, -1, -5])
def test_an_ack_of_a_batch_that_was_never_sent_settles_nothing_and_is_counted(ack: Any) -> None:
    server, client = acknowledging()
    publish(server, 1)
    poll(client, 1)
    answer = poll(client, ack)
    assert answer.data == [1]
    assert answer.elements[-1]["successful"]
    assert server.bayeux.state.hub.counters.acks_out_of_range == 1


@pytest.mark.parametrize("ack", [True, "2", 2.5, None, [], {}])
def test_an_ack_that_is_no_whole_number_refuses_its_connect(ack: Any) -> None:
    server, client = acknowledging()
    publish(server, 1)
    poll(client, 1)
    assert poll(client, ack).reply["error"] == "400:user.illegalArgument,ack:ext_invalid"
    assert poll(client, 1).data == [1]
    assert server.bayeux.state.hub.counters.acks_out_of_range == 0


def test_an_ack_may_have_a_decimal_point() -> None:
    server, client = acknowledging()
    publish(server, 1)
    poll(client, 1)
    assert poll(client, 2.0).data == []
    assert server.bayeux.state.hub.counters.acked == 1


@pytest.mark.parametrize("ext", [ABSENT, None, {}, {"other": 2}])
def test_a_connect_without_an_ack_settles_nothing_and_is_not_counted(ext: Any) -> None:
    server, client = acknowledging()
    publish(server, 1)
    poll(client, 1)
    assert client.connect(ext=ext, advice={"timeout": 0}).data == [1]
    assert server.bayeux.state.hub.counters.acks_out_of_range == 0


def test_an_ack_in_a_publish_settles_nothing() -> None:
    server, client = acknowledging()
    publish(server, 1)
    poll(client, 1)
    client.publish("/b", 1, ext={"ack": 2})
    assert poll(client, 1).data == [1]


def test_an_ack_in_a_disconnect_settles_its_batch() -> None:
    server, client = acknowledging()
    publish(server, 1)
    poll(client, 1)
    client.send({"channel": "/meta/disconnect", "ext": {"ack": 2}})
    assert server.bayeux.state.hub.counters.acked == 1
    assert server.balances()


def test_acks_are_not_passed_on_to_receivers() -> None:
    _, client = acknowledging()
    client.publish("/a", 1, ext={"ack": 1, "other": 2})
    assert poll(client, 1).events == [{"channel": "/a", "data": 1, "ext": {"other": 2}}]


# A client that never acks


def test_a_client_that_never_acks_gets_three_redeliveries_at_once_then_after_pauses() -> None:
    server, client = acknowledging()
    publish(server, 1)
    assert [connect(client, 1).data for _ in range(4)] == [[1]] * 4
    waits = []
    for _ in range(6):
        asked = connect(client, 1)
        began = server.now
        while asked.is_held:
            server.advance(0.1)
        assert asked.data == [1]
        waits.append(round(server.now - began, 1))
    assert waits == [0.2, 0.3, 0.5, 0.9, 1.1, 1.1]


def test_new_messages_do_not_shorten_the_pause() -> None:
    server, client = acknowledging()
    publish(server, 1)
    for _ in range(6):
        poll(client, 1)
    asked = connect(client, 1)
    publish(server, 2)
    assert asked.is_held
    server.advance(1.1)
    assert asked.data == [1, 2]


def test_a_connect_with_a_timeout_of_zero_gets_redeliveries_at_once() -> None:
    server, client = acknowledging()
    publish(server, 1)
    assert [poll(client, 1).data for _ in range(20)] == [[1]] * 20


def test_the_pause_ends_with_the_timeout_of_the_connect() -> None:
    server, client = acknowledging()
    publish(server, 1)
    for _ in range(12):
        poll(client, 1)
    asked = connect(client, 1, advice={"timeout": 200})
    server.advance(0.3)
    assert asked.data == [1]


def test_an_ack_ends_the_pauses() -> None:
    server, client = acknowledging()
    publish(server, 1)
    last = [poll(client, 1) for _ in range(12)][-1]
    publish(server, 2)
    answer = connect(client, batch(last))
    assert answer.data == [2]


def test_unacked_messages_count_against_the_limit_of_the_queue() -> None:
    server, client = acknowledging(max_queue=3)
    publish(server, 1, 2)
    poll(client, 1)
    publish(server, 3, 4, 5)
    answer = poll(client, 1)
    assert (answer.data, poll(client, batch(answer)).data) == ([1, 2, 3], [])
    assert [letter.code for letter in server.keeper.letters] == [Reason.OVERFLOW_ENTRIES.value] * 2
    assert server.bayeux.state.hub.counters.dead == 2
    assert server.balances()


def test_a_batch_over_callback_polling_is_acked_like_any_other() -> None:
    server, client = acknowledging()
    publish(server, 1)
    assert connect(client, 1, wire=Wire(ConnectionType.CALLBACK_POLLING)).data == [1]
    assert connect(client, 2, wire=Wire(ConnectionType.CALLBACK_POLLING)).is_held


def test_a_session_among_too_many_of_a_browser_gets_its_batches_too() -> None:
    server = Server(partial(Ack, announces_batch=False))
    other = server.connected(browser="shared")
    client = server.connected(browser="shared", ext={"ack": True})
    client.subscribe("/a")
    assert other.connect().is_held
    answer = connect(client, 1)
    assert batch(answer) == 2
    assert answer.reply["advice"]["multiple-clients"] is True
    publish(server, 1)
    assert connect(client, 2).data == [1]
