"""A durable message is stored before its publisher is answered and its receivers get it."""

import pytest

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.second_lives import (
    connect,
    named,
    no,
    publish,
    seqs,
)


def test_a_durable_publish_is_answered_and_delivered_when_it_is_stored() -> None:
    server = server_of()
    client = named(server)
    waiting = client.connect(ext={"ack": 1})
    publisher = server.connected()
    asked = publisher.publish("/a", 1)
    assert asked.is_held
    assert waiting.is_held
    server.turn()
    assert asked.reply["successful"] is True
    assert waiting.data == [1]


def test_a_session_that_the_server_ends_meanwhile_gets_its_goodbye_with_the_pending_reply() -> None:
    server = server_of()
    named(server)
    client = server.connected()
    asked = client.publish("/a", 1)
    server.for_extensions.end_by_server(client.session)
    server.flush()
    assert asked.is_held
    server.turn()
    assert [each["channel"] for each in asked.elements] == ["/meta/disconnect", "/a"]
    assert server.balances()


def test_later_messages_of_a_channel_wait_for_a_pending_publish_whoever_sent_them() -> None:
    server = server_of()
    plain = server.connected()
    plain.subscribe("/a", "/b")
    client = named(server)
    alice, bob = server.connected(), server.connected()
    first = alice.publish("/a", 1)
    second = bob.publish("/a", 2, ext={"delivery": {"persistent": False}})
    other = bob.publish("/b", 3)
    assert (first.is_held, second.is_held, other.is_held) == (True, True, False)
    assert plain.connect().data == [3]
    server.turn()
    assert plain.connect().data == [1, 2]
    assert connect(client, 1).data == [1, 2]


def test_a_publish_that_the_store_refuses_is_refused_and_not_delivered() -> None:
    server = server_of()
    client = named(server)
    server.keeper.outcome = PersistOutcome.REFUSED
    asked = server.connected().publish("/a", 1)
    server.turn()
    assert asked.reply["error"] == "503:communication.noConnection:store_unavailable"
    server.keeper.is_available = False
    asked = server.connected().publish("/a", 2)
    assert asked.reply["error"] == "503:communication.noConnection:store_unavailable"
    server.keeper.is_available = True
    assert connect(client, 1).data == []
    assert server.balances()


def test_a_publish_with_an_unknown_outcome_is_delivered_when_it_turns_out_to_be_kept() -> None:
    server = server_of()
    client = named(server)
    publisher = server.connected()
    server.keeper.is_silent = True
    asked = publisher.publish("/a", 1)
    server.keeper.answer_late(PersistOutcome.UNKNOWN)
    server.turn()
    assert asked.reply["error"] == "503:communication.noConnection,unknown:store_unavailable"
    behind = publisher.publish("/a", 2, ext={"delivery": {"persistent": False}})
    assert behind.reply["successful"] is True
    server.keeper.answer_late(PersistOutcome.KEPT)
    assert connect(client, 1).data == [1, 2], "it takes the place that it has after a restart"


def test_a_disconnect_waits_for_the_publishes_of_its_session() -> None:
    server = server_of()
    named(server)
    publisher = server.connected()
    session = publisher.session
    asked = publisher.publish("/a", 1)
    goodbye = publisher.disconnect()
    assert goodbye.is_held
    server.turn()
    assert asked.reply["successful"] is True
    assert goodbye.reply["successful"] is True
    assert session.is_gone


def test_pending_publishes_beyond_the_limit_are_refused() -> None:
    server = server_of()
    named(server)
    publisher = server.connected()
    asked = [publisher.publish("/a", number) for number in range(1030)]
    refused = [each for each in asked if not each.is_held]
    assert len(refused) == 1030 - 1024
    assert refused[0].reply["error"] == "503:1024:publishes_exceeded"


def test_durable_entries_are_not_handed_over_while_the_store_is_away() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    server.keeper.is_available = False
    assert connect(client, 1).data == []
    server.keeper.is_available = True
    assert connect(client, 2).data == [1]


# Answers to receivers


def test_a_reply_with_a_second_attempt_waits_until_the_store_knows_of_it() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    connect(client, 1)
    asked = client.connect(ext={"ack": 1}, advice={"timeout": 0})
    assert asked.is_held
    server.turn()
    assert asked.data == [1]
    (mark,) = server.keeper.queues["joe/1"].values()
    assert (mark.attempts, mark.redelivered) == (2, 1)


def test_a_first_attempt_waits_for_a_store_that_does_not_answer_promptly() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1, 2)
    server.keeper.is_prompt = False
    asked = client.connect(ext={"ack": 1}, advice={"timeout": 0})
    assert asked.is_held, "if the store dies now, it does not know of the attempt"
    server.turn()
    assert asked.data == [1, 2]


def test_a_first_attempt_does_not_wait_for_a_store_that_answers_promptly() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    assert client.connect(ext={"ack": 1}, advice={"timeout": 0}).data == [1]


def test_a_connect_is_held_while_the_store_is_away_and_answered_when_it_is_back() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    server.keeper.is_available = False
    asked = client.connect(ext={"ack": 1})
    server.advance(1.0)
    assert asked.is_held
    server.keeper.is_available = True
    server.bayeux.life.store_is_back()
    server.turn()
    assert asked.data == [1]


def test_a_refusal_is_answered_when_its_dead_letter_is_stored() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    refusal = no(seq, "user.update.error")
    ext = {"ack": 2, "delivery": {"verdicts": [refusal]}}
    asked = client.connect(ext=ext, advice={"timeout": 0})
    assert asked.is_held
    server.turn()
    assert asked.reply["successful"] is True
    assert len(server.keeper.letters) == 1


@pytest.mark.parametrize(
    "code", ["user.update.holdback", "communication.noConnection", "user.update.error"]
)
def test_a_refusal_of_a_message_that_stays_is_answered_when_the_store_has_it(code: str) -> None:
    server = server_of(channels={"/a": ChannelSettings(attempts=3)})
    client = named(server, retries=-1)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    ext = {"ack": 2, "delivery": {"verdicts": [no(seq, code)]}}
    asked = client.connect(ext=ext, advice={"timeout": 0})
    assert asked.is_held, "after a kill now, the next ack would settle the message"
    server.turn()
    assert asked.reply["successful"] is True
    (mark,) = server.keeper.queues["joe/1"].values()
    assert (mark.batch, mark.redelivered) == (0, 1)


def test_a_refusal_with_any_message_is_stored_before_the_reply() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1, 2)
    first, second = seqs(connect(client, 1))
    ext = {"delivery": {"verdicts": [no(first)]}}
    published = client.publish("/b", 3, ext=ext)
    judged = client.publish("/service/delivery", [no(second)])
    assert (published.is_held, judged.is_held) == (True, True)
    server.turn()
    assert published.reply["successful"] is True
    assert judged.reply["successful"] is True


@pytest.mark.parametrize("code", ["user.update.holdback", "user.update.error"])
def test_a_disconnect_with_a_refusal_is_answered_when_the_store_has_the_refusal(code: str) -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    ext = {"delivery": {"verdicts": [no(seq, code)]}}
    asked = client.send({"channel": "/meta/disconnect", "ext": ext})
    assert asked.is_held, "after a kill now, the refusal would be lost"
    server.turn()
    assert asked.reply["successful"] is True


def test_a_request_with_several_refusals_waits_for_all_of_them() -> None:
    server = server_of()
    refused = "user.update.error"
    client = named(server)
    publish(server, 1, 2)
    first, second = seqs(connect(client, 1))
    asked = client.send(
        {"channel": "/b", "data": 3, "ext": {"delivery": {"verdicts": [no(first, refused)]}}},
        {"channel": "/b", "data": 4, "ext": {"delivery": {"verdicts": [no(second, refused)]}}},
    )
    assert asked.is_held
    server.turn()
    assert [reply["successful"] for reply in asked.replies] == [True, True]
    assert len(server.keeper.letters) == 2


def test_a_connect_with_an_ok_and_an_ack_does_not_wait_for_the_store() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    ext = {"ack": 2, "delivery": {"verdicts": [{"seq": seq, "state": "OK"}]}}
    asked = client.connect(ext=ext, advice={"timeout": 0})
    assert not asked.is_held


def test_a_disconnect_answers_at_once_a_held_connect_whose_refusal_is_stored() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    refusal = no(seq, "user.update.error")
    asked = client.connect(ext={"ack": 2, "delivery": {"verdicts": [refusal]}})
    server.turn()
    assert asked.is_held
    goodbye = client.dress({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.receive(to_json([goodbye]), browser=client.browser)
    assert not asked.is_held, "the store has the refusal, so nothing waits for it"


def test_a_publish_with_a_refusal_waits_only_once_for_the_store() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(client, 1))
    ext = {"delivery": {"persistent": True, "verdicts": [no(seq, "user.update.error")]}}
    asked = client.publish("/a", 2, ext=ext)
    assert asked.is_held
    server.keeper.turn()
    server.flush()
    assert asked.reply["successful"] is True
    assert len(server.keeper.letters) == 1
