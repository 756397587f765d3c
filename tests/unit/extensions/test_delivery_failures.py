"""Connections that fail, receivers that cannot now, and letters that cannot be written."""

import pytest

from tests.unit.extensions.delivering import (
    codes,
    connect,
    data_of,
    house_of,
    no,
    ok,
    publish,
    receiver,
    redelivered,
)


def test_a_lost_session_without_retries_leaves_dead_letters_and_ends() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client)
    publish(house, 2)
    house.advance(11.0)
    assert codes(house) == ["communication.noConnection"] * 2
    assert data_of(house) == [1, 2]
    assert client.session.is_gone
    assert connect(client).reply["advice"]["reconnect"] == "handshake"
    assert house.balances()


def test_who_vanishes_while_nothing_waits_has_failed_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    house = house_of()
    client = receiver(house)
    house.advance(11.0)
    assert client.session.is_gone
    assert house.bayeux.state.sessions.ended["expire"] == 1
    assert house.bayeux.state.hub.counters.refused.total() == 0
    assert caplog.records == []
    assert connect(client).reply["advice"]["reconnect"] == "handshake"


def test_a_lost_session_with_retries_is_awaited_and_gets_everything() -> None:
    house = house_of()
    client = receiver(house, retries=3, delay=1000)
    publish(house, 1)
    connect(client)
    publish(house, 2)
    house.advance(11.0)
    dispatcher = client.session.dispatcher
    assert dispatcher is not None
    assert dispatcher.state.value == "polling"
    answer = connect(client, ack=1)
    assert (answer.data, redelivered(answer)) == ([1], [1])
    assert connect(client).data == [2]
    assert dispatcher.state.value == "alive"
    assert house.balances()


def test_the_last_attempt_that_fails_ends_the_session() -> None:
    house = house_of(max_interval_s=1.0)
    client = receiver(house, retries=2, delay=1000)
    publish(house, 1)
    house.advance(1.2)
    assert not client.session.is_gone
    house.advance(1.2)
    assert not client.session.is_gone
    house.advance(0.4)
    assert client.session.is_gone
    assert codes(house) == ["communication.noConnection.dead"]


def test_a_receiver_that_cannot_now_is_asked_again_when_its_delay_is_over() -> None:
    house = house_of()
    client = receiver(house, retries=3, delay=1000)
    publish(house, 1, 2)
    events = connect(client).events
    refusal = no(events[0], "communication.noConnection")
    ext = {"ack": client.session.queue.batch, "delivery": {"verdicts": [refusal]}}
    asked = client.connect(ext=ext)
    house.advance(0.3)
    assert asked.is_held
    house.advance(0.2)
    assert (asked.data, redelivered(asked)) == ([1], [1])
    asked = connect(client, *map(ok, asked.events))
    assert (asked.data, redelivered(asked)) == ([2], [0])
    connect(client, *map(ok, asked.events))
    assert house.balances()
    assert codes(house) == []


def test_a_receiver_that_cannot_and_has_no_retries_is_ended() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2)
    events = connect(client).events
    connect(client, no(events[0], "communication.timeout"))
    assert codes(house) == ["communication.timeout"] * 2
    assert client.session.is_gone


def test_a_receiver_that_says_nothing_in_time_has_failed() -> None:
    house = house_of()
    client = receiver(house, ack=False, responseTimeout=1000)
    publish(house, 1)
    (event,) = connect(client, ack=None).events
    house.advance(1.2)
    assert codes(house) == ["communication.responseTimeout"]
    assert client.session.is_gone
    assert connect(client, ok(event), ack=None).reply["successful"] is False


def test_what_a_receiver_still_works_on_is_not_sent_again_until_its_time_is_over() -> None:
    house = house_of()
    client = receiver(house, retries=-1, responseTimeout=5000)
    publish(house, 1, 2)
    connect(client)
    publish(house, 3)
    answer = connect(client, delivery={"pending": [1]})
    assert answer.data == [3]
    assert house.bayeux.state.hub.counters.acked == 1
    for _ in range(5):
        house.advance(0.9)
        assert connect(client, delivery={"pending": [1]}).data == []
    house.advance(1.0)
    assert connect(client, delivery={"pending": [1]}).data == [1]


def test_a_lost_reply_is_no_failure_but_is_told() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client)
    answer = connect(client, ack=1)
    assert answer.data == [1]
    assert redelivered(answer) == [1]
    assert answer.events[0]["ext"]["delivery"]["seq"] == 2
    assert codes(house) == []


def test_a_verdict_counts_for_the_last_hand_over_only() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    (event,) = connect(client).events
    connect(client, ack=1)
    connect(client, no(event, "user.update.error"), ack=2)
    assert codes(house) == []
    assert house.bayeux.state.hub.counters.verdicts_unknown == 1


def test_when_no_more_can_be_written_down_nothing_is_settled_and_clients_come_back() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    (event,) = connect(client).events
    house.keeper.is_full = True
    reply = connect(client, no(event, "user.update.error")).reply
    assert reply["error"] == "503:communication.noConnection:store_unavailable"
    assert reply["advice"]["reconnect"] == "retry"
    assert reply["advice"]["interval"] > 0
    assert client.session.queue.count == 1
    house.keeper.is_full = False
    connect(client, no(event, "user.update.error"), ack=2)
    assert codes(house) == ["user.update.error"]
    assert house.balances()


def test_nobody_is_given_up_while_the_letters_could_not_be_written_down() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    house.keeper.is_full = True
    house.advance(20.0)
    assert not client.session.is_gone
    house.keeper.is_full = False
    house.advance(2.0)
    assert client.session.is_gone
    assert codes(house) == ["communication.noConnection"]
    assert house.balances()
