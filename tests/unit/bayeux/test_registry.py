"""Living sessions as administrative commands see them, and replays into their queues."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from app.bayeux.commands import Registry, Result, run, understand
from app.bayeux.grammar import CommandRefused
from app.bayeux.registry import LiveRegistry
from app.bayeux.replaying import Replaying
from app.bayeux.standing import expires_ms, last_seen_ms
from app.delivery.keeper import Kept
from app.delivery.messages import Message
from app.delivery.queue import QueueLimits
from extensions.ack import Ack
from extensions.delivery import Delivery
from tests.unit.bayeux.harness import Client, House

VERDICTS = {"ack": True, "delivery": True}


def house_of(**options: Any) -> House:
    return House(Delivery, partial(Ack, announces_batch=False), **options)


def receiver(house: House, session: str | None = "joe/1", **options: Any) -> Client:
    """A session with a queue of its own, subscribed to /a, with nothing in it."""
    if session is not None:
        options["session"] = session
    client = house.client(ext={"ack": True, "delivery": options or True})
    connect(client)
    client.subscribe("/a")
    house.turn()
    return client


def connect(client: Client) -> list[Any]:
    batch = client.session.queue.batch
    asked = client.connect(advice={"timeout": 0}, ext={"ack": batch})
    # What was handed over before is answered when the store knows of it.
    client.house.turn()
    return asked.data


def registry_of(house: House, **fields: Any) -> Registry:
    return LiveRegistry(house.bayeux, version="1.2", started_ms=1_700_000_000_000, **fields)


def ask(house: House, text: str, value: str | None = None) -> Result:
    return run(understand(text, value), registry_of(house), "operator")


def value_of(house: House, text: str) -> str:
    return ask(house, text).value


def publish(house: House, *numbers: object) -> None:
    for number in numbers:
        house.bayeux.publish("/a", number)
    # What a named session gets is kept first.
    house.turn()


def letters(house: House) -> list[Any]:
    return [letter.envelope()["content"] for letter in house.keeper.letters]


# The node and its subjects


def test_the_node_tells_who_is_there() -> None:
    house = house_of()
    receiver(house, "joe/1")
    receiver(house, "joe/2")
    held = house.connected()
    held.connect()
    publish(house, 1)
    told = partial(value_of, house)
    assert told("?nodeId") == "test"
    assert told("?version") == "1.2"
    assert told("?clientList").split("\n") == ["anonymous", "joe"]
    assert told("?sessionList").split("\n") == [held.session.key, "joe/1", "joe/2"]
    assert told("?aliveCallbackClients") == held.session.key
    assert (told("?numClients"), told("?numSessions")) == ("2", "3")
    assert (told("?topicList"), told("?numSubscriptions")) == ("/a", "2")
    assert (told("?numPublish"), told("?numUpdate")) == ("1", "0")


def test_a_subject_tells_its_sessions_and_ends_them_all() -> None:
    house = house_of()
    receiver(house, "joe/1")
    receiver(house, "joe/2")
    receiver(house, "ann/1")
    assert value_of(house, "client/joe/?sessionList") == "joe/1\njoe/2"
    assert value_of(house, "client/joe/?subjectQueueNumMsgs") == "0"
    ask(house, "client/joe/?killClient")
    assert [session.key for session in house.bayeux.sessions] == ["ann/1"]
    with pytest.raises(CommandRefused, match="no client"):
        ask(house, "client/joe/?sessionList")


# Sessions


def test_a_session_is_found_by_its_key_whoever_chose_that() -> None:
    house = house_of()
    receiver(house, "joe")
    plain = house.connected()
    (subject, other) = (session.key for session in house.bayeux.sessions)
    assert subject.startswith("joe/-")
    assert value_of(house, f"client/{subject}/?loginName") == "joe"
    assert value_of(house, f"client/{other}/?id") == plain.session.name
    with pytest.raises(CommandRefused, match="no session"):
        ask(house, "client/joe/1/?id")


def test_a_session_tells_of_its_queue_and_its_limits() -> None:
    house = house_of(queue_limits=QueueLimits(entries=50))
    client = receiver(house, queue={"maxEntries": 7, "maxBytes": 2**30})
    publish(house, 1, 2)
    connect(client)
    publish(house, 3)
    told = partial(value_of, house)
    assert told("client/joe/1/?cbQueueNumMsgs") == "3"
    assert told("client/joe/1/?cbQueueMaxMsgs") == "7"
    assert int(told("client/joe/1/?cbQueueBytes")) == client.session.queue.size
    assert told("client/joe/1/?connectionState") == "ALIVE"
    assert told("client/joe/1/?subscribedTopics") == "/a"
    assert told("client/joe/1/?isPersistent") == "true"
    assert told("client/joe/1/?sessionTimeout") == "86400000"


def test_a_session_tells_what_it_published() -> None:
    house = house_of()
    client = receiver(house)
    other = house.connected()
    # The first waits for the store, which keeps it for joe/1; nobody is there for the second.
    for channel in ("/a", "/b"):
        other.publish(channel, 1)
        house.turn()
    assert value_of(house, f"client/{other.session.key}/?numPublish") == "2"
    assert value_of(house, f"client/{client.session.key}/?numPublish") == "0"


def test_a_publish_that_was_refused_is_not_counted() -> None:
    house = house_of()
    receiver(house)
    other = house.connected()
    other.publish("/*", 1)
    house.keeper.outcome = Kept.REFUSED
    other.publish("/a", 1)
    house.turn()
    assert value_of(house, f"client/{other.session.key}/?numPublish") == "0"


def test_what_failed_last_can_be_forgotten() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client)
    verdict = {"seq": 1, "errorCode": "user.clientCode"}
    client.connect(ext={"delivery": {"verdicts": [verdict]}})
    house.turn()
    assert value_of(house, "client/joe/1/?lastCallbackException") == "user.clientCode"
    ask(house, "client/joe/1/?clearLastCallbackException")
    assert value_of(house, "client/joe/1/?lastCallbackException") == ""
    assert value_of(house, "client/joe/1/?numCallbackExceptions") == "1"


def test_holding_back_lasts_until_somebody_resumes() -> None:
    house = house_of()
    client = receiver(house)
    assert ask(house, "client/joe/1/?dispatcherActive=false").state == "OK"
    publish(house, 1)
    assert connect(client) == []
    assert value_of(house, "client/joe/1/?dispatcherActive") == "false"
    ask(house, "client/joe/1/?dispatcherActive=true")
    assert connect(client) == [1]


def test_who_held_a_session_back_first_stays_on_record() -> None:
    house = house_of()
    client = receiver(house)
    house.bayeux.hold_back(client.session, "disk full", "ann")
    ask(house, "client/joe/1/?dispatcherActive=false")
    assert client.session.dispatcher is not None
    assert client.session.dispatcher.hold_record is not None
    assert client.session.dispatcher.hold_record.who == "ann"


def test_the_log_says_by_whom_a_session_was_ended_and_takes_it_for_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    house = house_of()
    session = receiver(house).session
    with caplog.at_level(logging.INFO):
        ask(house, "client/joe/1/?killSession")
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert line.getMessage() == f"session {session.number}, joe/1, was ended by operator"


def test_a_killed_session_leaves_dead_letters_and_its_client_is_told() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    ask(house, "client/joe/1/?killSession")
    assert letters(house) == [1]
    assert "ended by operator" in house.keeper.letters[0].reason
    assert "joe/1" not in house.keeper.sessions
    assert client.connect().reply["error"].startswith("402")
    assert house.balances()


def test_a_cleared_queue_is_empty_here_and_in_the_store() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2)
    assert value_of(house, "client/joe/1/?clearCallbackQueue") == "2"
    assert house.keeper.queues["joe/1"] == {}
    assert connect(client) == []
    assert house.balances()


@pytest.mark.parametrize(
    ("count", "left"),
    [(0, [1, 2, 3, 4]), (1, [2, 3, 4]), (2, [3, 4]), (3, [4]), (4, []), (9, [])],
)
def test_the_first_entries_can_be_removed_wherever_they_stand(count: int, left: list[int]) -> None:
    house = house_of()
    client = receiver(house, maxEntries=2)
    publish(house, 1, 2, 3, 4)
    connect(client)
    queue = client.session.queue
    queue.give_back(since=2)
    assert (len(queue.handed), len(queue.returned), len(queue.waiting)) == (1, 1, 2)
    removed = value_of(house, f"client/joe/1/?removeFromCallbackQueue={count}")
    assert int(removed) == 4 - len(left)
    messages = [entry.message for entry in [*queue.handed.values(), *queue.returned]]
    messages += queue.waiting
    assert queue.count == len(messages) == len(left)
    assert queue.size == sum(len(message.wire) for message in messages)
    assert house.keeper.queues["joe/1"].keys() == {message.id for message in messages}
    queue.give_back()
    assert [*connect(client), *connect(client)] == left
    assert house.balances()


def test_entries_can_be_looked_at_and_taken_out() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, {"n": 1}, {"n": 2})
    seen = ask(house, "client/joe/1/?peekCallbackMessages=5").entries
    assert seen == [{"channel": "/a", "data": {"n": 1}}, {"channel": "/a", "data": {"n": 2}}]
    taken = ask(house, "client/joe/1/?callbackQueueEntries=maxEntries=1&consumable=true").entries
    assert taken == seen[:1]
    assert connect(client) == [{"n": 2}]
    assert house.balances()


def test_no_more_is_taken_than_is_shown() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, *["x" * 400_000] * 4)
    text = "client/joe/1/?callbackQueueEntries=maxEntries=4&consumable=true"
    assert len(ask(house, text).entries or ()) == 2
    assert client.session.queue.count == 2


def test_a_timeout_can_be_changed_and_holds_from_now_on() -> None:
    house = house_of()
    client = receiver(house)
    client.disconnect()
    ask(house, "client/joe/1/?sessionTimeout=2000")
    assert house.keeper.sessions["joe/1"].timeout_s == 2.0
    assert value_of(house, "client/joe/1/?sessionTimeoutExpireDate").startswith("2023-11-14")
    house.advance(1.0)
    ask(house, "client/joe/1/?refreshSession")
    house.advance(1.5)
    assert len(house.bayeux.sessions) == 1
    house.advance(1.0)
    assert len(house.bayeux.sessions) == 0


@pytest.mark.parametrize("timeout", ["999999999999999"])
def test_a_timeout_that_no_store_could_read_again_is_refused(timeout: str) -> None:
    house = house_of()
    client = receiver(house)
    with pytest.raises(CommandRefused, match="cannot be agreed on"):
        ask(house, f"client/joe/1/?sessionTimeout={timeout}")
    assert client.session.terms is not None
    assert client.session.terms.timeout == 86_400_000


def test_a_plain_session_has_no_timeout_of_its_own() -> None:
    house = house_of()
    client = house.connected()
    with pytest.raises(CommandRefused, match="no timeout"):
        ask(house, f"{client.session.name}/?sessionTimeout=1")
    ask(house, f"{client.session.name}/?refreshSession")


def test_commands_can_be_switched_off() -> None:
    house = house_of()
    with pytest.raises(CommandRefused, match="switched off"):
        run(understand("?uptime"), registry_of(house, is_available=False), "operator")


# Times


def test_a_session_ends_some_time_after_it_was_seen_the_last_time() -> None:
    house = house_of(max_interval_s=10.0)
    plain, held, named = house.connected(), house.connected(), receiver(house)
    held.connect()
    house.advance(4.0)
    ends, seen = _relative(house, expires_ms), _relative(house, last_seen_ms)
    assert (ends(plain), seen(plain)) == (6000, -4000)
    assert (ends(held), seen(held)) == (None, 0)
    assert (ends(named), seen(named)) == (6000 + 86_400_000, -4000)
    named.disconnect()
    house.advance(1.0)
    assert (ends(named), seen(named)) == (86_400_000 - 1000, -1000)


def test_a_session_tells_since_when_it_is_alive_or_awaited() -> None:
    house = house_of(max_interval_s=10.0)
    client = receiver(house)

    def dates() -> tuple[str, str]:
        told = (value_of(house, f"client/joe/1/?{name}SinceDate") for name in ("alive", "polling"))
        alive, polling = told
        return alive, polling

    came, _ = dates()
    assert came == value_of(house, "client/joe/1/?loginDate")
    while value_of(house, "client/joe/1/?connectionState") == "ALIVE":
        house.advance(0.1)
    lost = value_of(house, "?serverTimestamp")
    house.advance(5.0)
    assert dates() == ("", lost)
    connect(client)
    house.advance(3.0)
    back, awaited = dates()
    assert awaited == ""
    assert came < lost < back < value_of(house, "?serverTimestamp")


def test_whoever_needed_no_dispatcher_was_alive_from_the_beginning() -> None:
    house = house_of()
    session = house.connected().session
    house.advance(5.0)
    began = value_of(house, f"{session.name}/?loginDate")
    assert value_of(house, f"{session.name}/?aliveSinceDate") == began
    house.bayeux.hold_back(session, "disk full", "ann")
    house.advance(1.0)
    assert value_of(house, f"{session.name}/?aliveSinceDate") == began
    assert value_of(house, f"{session.name}/?pollingSinceDate") == ""


def _relative(
    house: House, look: Callable[[Any, Any], int | None]
) -> Callable[[Client], int | None]:
    def ask_for(client: Client) -> int | None:
        found = look(house.bayeux, client.session)
        return None if found is None else round((found - house.bayeux.node.now_ms()) / 100) * 100

    return ask_for


# Replays


def a_message(house: House, data: str = "7") -> Message:
    wire = f'{{"channel":"/a","data":{data}}}'.encode()
    message = Message(wire, id=house.bayeux.node.stamp(), channel="/a")
    message.generation = 1
    return message


def test_a_replayed_message_waits_like_any_other_until_it_is_acknowledged() -> None:
    house = house_of()
    replaying = Replaying(house.bayeux)
    client = receiver(house)
    message = a_message(house)
    assert replaying.is_durable("joe/1") is True
    replaying.deliver("joe/1", message)
    sent = [("joe/1", message.id), ("joe/1", 5)]
    assert replaying.waiting(sent) == sent[:1]
    (event,) = client.connect(advice={"timeout": 0}).events
    assert (event["data"], event["ext"]["delivery"]["generation"]) == (7, 1)
    assert replaying.waiting(sent) == sent[:1], "it is in the client's hands"
    connect(client)
    assert replaying.waiting(sent) == []
    assert house.balances()


def test_a_replayed_message_reaches_a_session_without_a_name_of_its_own() -> None:
    house = house_of()
    replaying = Replaying(house.bayeux)
    client = receiver(house, session=None)
    key = client.session.key
    assert replaying.is_durable(key) is False
    replaying.deliver(key, a_message(house))
    assert connect(client) == [7]
    house.bayeux.end_by_server(client.session)
    assert replaying.is_durable(key) is None


def test_sessions_that_came_later_are_found_too() -> None:
    house = house_of()
    replaying = Replaying(house.bayeux)
    assert replaying.is_durable("anonymous/-1") is None
    client = house.connected()
    house.advance(1.1)
    assert replaying.is_durable(client.session.key) is False
    assert replaying.is_durable("anonymous/-1") is None


def test_a_replayed_message_without_a_receiver_is_a_dead_letter_again() -> None:
    house = house_of()
    replaying = Replaying(house.bayeux)
    message = a_message(house)
    replaying.deliver("joe/1", message)
    (letter,) = house.keeper.letters
    assert (letter.key, letter.message, letter.generation) == ("joe/1", message.id, 1)
    assert replaying.waiting([("joe/1", message.id)]) == []
    assert house.balances()


def test_a_replayed_message_that_finds_no_room_is_a_dead_letter_again() -> None:
    house = house_of()
    receiver(house, queue={"maxEntries": 1})
    publish(house, 1)
    Replaying(house.bayeux).deliver("joe/1", a_message(house))
    assert letters(house) == [7]
    assert house.balances()
