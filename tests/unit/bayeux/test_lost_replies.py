"""Replies that were lost on the way to receivers that give verdicts and acknowledge nothing."""

from typing import Any

import pytest

from tests.unit.bayeux.harness import Asked, Client, House, Socket, Wire
from tests.unit.bayeux.second_lives import (
    KeptHouse,
    again,
    codes,
    connect,
    drain,
    named,
    ok,
    publish,
    redelivered,
    seqs,
)


def judging(**options: Any) -> tuple[KeptHouse, Client]:
    house = KeptHouse()
    return house, named(house, ack=False, **options)


def lose(house: House, client: Client, *numbers: int) -> Asked:
    """These go out in a reply, behind which its connection is lost."""
    publish(house, *numbers)
    wire = Wire()
    asked = connect(client, None, wire=wire)
    house.turn()
    wire.is_dropped = True
    assert asked.data == [*numbers]
    return asked


def test_what_was_lost_comes_first_and_says_that_it_comes_again() -> None:
    house, client = judging()
    lose(house, client, 1, 2)
    publish(house, 3)
    assert drain(client, None) == ([1, 2, 3], [1, 1, 0])
    assert house.balances()


def test_entries_in_flight_when_the_server_ended_come_first() -> None:
    before, client = judging()
    publish(before, 1, 2)
    assert connect(client, None).data == [1, 2]
    publish(before, 3)
    house = before.reborn()
    client = again(client, house)
    assert drain(client, None) == ([1, 2, 3], [1, 1, 0])
    assert house.balances()


def test_a_lost_reply_uses_up_no_retries_and_is_told_in_the_letter() -> None:
    house, client = judging(retries=0)
    lose(house, client, 1)
    (seq,) = seqs(connect(client, None))
    connect(client, None, {"seq": seq, "errorCode": "user.update.error"})
    (letter,) = house.store.letters
    assert [attempt.outcome for attempt in letter.attempts] == ["lost reply", "user.update.error"]


@pytest.mark.parametrize("is_killed", [True, False])
def test_what_the_receiver_still_works_on_does_not_come_again(is_killed: bool) -> None:
    house, client = judging()
    first, second = seqs(lose(house, client, 1, 2))
    if is_killed:
        house = house.reborn()
        client = again(client, house)
    assert connect(client, None, pending=[first, second]).data == []
    assert connect(client, None, ok(first), pending=[second]).data == []
    connect(client, None, ok(second))
    assert client.session.queue.count == 0
    assert codes(house) == []


def test_while_the_connection_lasts_silence_is_work() -> None:
    house, client = judging()
    publish(house, 1)
    assert connect(client, None).data == [1]
    assert connect(client, None).data == []


def test_one_word_on_a_response_shows_that_all_of_it_has_arrived() -> None:
    house, client = judging()
    first, _ = seqs(lose(house, client, 1, 2))
    assert connect(client, None, ok(first)).data == []


def test_of_what_came_over_a_socket_the_end_may_be_lost() -> None:
    house, client = judging()
    socket = Socket()
    client.socket = socket
    publish(house, 1, 2, 3)
    first, _, _ = seqs(connect(client, None))
    house.close(socket)
    client.socket = None
    answer = connect(client, None, ok(first))
    assert (answer.data, redelivered(answer)) == ([2], [1])


def test_what_was_lost_once_is_lost_once() -> None:
    house, client = judging()
    lose(house, client, 1)
    assert connect(client, None).data == [1]
    assert connect(client, None).data == []


def test_who_loses_every_reply_does_not_spin() -> None:
    house, client = judging()
    publish(house, 1)
    for _ in range(5):
        wire = Wire()
        connect(client, None, wire=wire)
        house.turn()
        wire.is_dropped = True
    asked = client.connect()
    house.turn()
    assert asked.is_held
    house.advance(1.1)
    assert asked.data == [1]
