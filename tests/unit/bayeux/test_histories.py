"""The attempts that dead letters list: failures, lost replies, and those before a restart."""

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    again,
    batch,
    codes,
    connect,
    named,
    no,
    publish,
    seqs,
    take,
)

BUSY = "communication.noConnection"
REFUSED = "user.update.error"
DEADLY = {"/a": ChannelSettings(max_attempts=3)}


def attempts_of(letter: DeadLetter) -> list[tuple[int, str, str]]:
    return [(each.n, each.outcome, each.text) for each in letter.attempts]


def next_life(client: Client) -> list[object]:
    """The client dies and takes its session over; return what it gets first."""
    take(client)
    return connect(client, 0).data


def test_a_dead_letter_lists_the_attempts_before_a_restart_too() -> None:
    before = RestartableServer()
    client = named(before, retries=5)
    publish(before, 1)
    (seq,) = seqs(connect(client, 1))
    connect(client, 2, no(seq, BUSY, message="no disk"))
    server = before.reborn()
    client = again(client, server)
    (seq,) = seqs(connect(client, 2))
    connect(client, 3, no(seq, REFUSED, message="no such order"))
    (letter,) = server.store.letters
    assert attempts_of(letter) == [(1, BUSY, "no disk"), (2, REFUSED, "no such order")]
    assert (letter.attempt_count, letter.redelivered) == (2, 1)


def test_a_message_in_flight_when_the_server_dies_has_a_lost_reply_among_its_attempts() -> None:
    before = RestartableServer()
    client = named(before)
    publish(before, 1)
    connect(client, 1)
    server = before.reborn()
    client = again(client, server)
    (seq,) = seqs(connect(client, 1))
    connect(client, 2, no(seq, REFUSED))
    (letter,) = server.store.letters
    assert [(each.n, each.outcome, each.latency) for each in letter.attempts] == [
        (1, "lost reply", None),
        (2, REFUSED, 0),
    ]


def test_the_dead_letter_of_a_session_with_acks_alone_lists_its_attempts() -> None:
    server = RestartableServer()
    client = server.connected(ext={"ack": True})
    client.subscribe("/a")
    publish(server, 1)
    for _ in range(2):
        assert client.connect(ext={"ack": 0}, advice={"timeout": 0}).data == [1]
    server.advance(60)
    (letter,) = server.store.letters
    assert [(n, outcome) for n, outcome, _ in attempts_of(letter)] == [(1, "lost reply"), (2, BUSY)]


def test_a_message_that_kills_its_receivers_becomes_a_dead_letter_despite_a_restart() -> None:
    server = RestartableServer(channels=DEADLY)
    client = named(server)
    publish(server, 1)
    connect(client, 1)
    assert next_life(client) == [1]
    server = server.reborn()
    client = again(client, server)
    assert next_life(client) == [1]
    publish(server, 2)
    assert next_life(client) == [2]
    assert codes(server) == [REFUSED]
    assert server.store.letters[0].attempt_count == 3
    assert server.balances()


def test_a_pending_message_is_neither_handed_over_again_nor_dead_lettered() -> None:
    server = RestartableServer(channels={"/a": ChannelSettings(max_attempts=1)})
    client = named(server)
    publish(server, 1)
    asked = connect(client, 1)
    (seq,) = seqs(asked)
    for _ in range(3):
        asked = connect(client, batch(asked) - 1, pending=[seq])
        assert asked.data == []
    assert codes(server) == []


def test_messages_behind_a_last_attempt_are_handed_over_after_its_verdict() -> None:
    server = RestartableServer(channels={"/a": ChannelSettings(max_attempts=2)})
    client = named(server)
    publish(server, 1, 2)
    connect(client, 1)
    take(client)
    answer = connect(client, 0)
    (seq,) = seqs(answer)
    assert answer.data == [1]
    held = client.connect(ext={"ack": batch(answer), "delivery": {"pending": [seq]}})
    server.turn()
    assert held.is_held
    client.publish("/service/delivery", {"seq": seq, "state": "OK"})
    server.turn()
    assert held.data == [2]


def test_max_attempts_of_one_channel_do_not_limit_another() -> None:
    server = RestartableServer(channels={"/b": ChannelSettings(max_attempts=1)})
    client = named(server)
    publish(server, 1)
    connect(client, 1)
    assert [next_life(client) for _ in range(5)] == [[1]] * 5
