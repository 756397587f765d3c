"""What administrative commands report about sessions, and do to them."""

import json
from functools import partial

import pytest

from holdfast.bayeux.grammar import CommandRefused
from holdfast.delivery.persist_outcome import PersistOutcome
from holdfast.delivery.queue import QueueLimits
from tests.unit.bayeux.desk import (
    ask,
    connect,
    house_of,
    publish,
    receiver,
    value_of,
)


def test_the_node_reports_its_clients_sessions_topics_and_counts() -> None:
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


def test_commands_list_the_sessions_of_a_subject_and_end_them_all() -> None:
    house = house_of()
    receiver(house, "joe/1")
    receiver(house, "joe/2")
    receiver(house, "ann/1")
    assert value_of(house, "client/joe/?sessionList") == "joe/1\njoe/2"
    assert value_of(house, "client/joe/?subjectQueueNumMsgs") == "0"
    ask(house, "client/joe/?killClient")
    assert [session.key for session in house.bayeux.state.sessions] == ["ann/1"]
    with pytest.raises(CommandRefused, match="no client"):
        ask(house, "client/joe/?sessionList")


def test_a_subject_reports_the_length_of_its_queue() -> None:
    house = house_of()
    receiver(house, "joe/1", queue={"maxEntries": 1})
    for number in range(2):
        to_joe = {"destinations": ["joe"], "content": number}
        house.client().publish("/service/ptp", to_joe)
        house.turn()
    assert value_of(house, "client/joe/?subjectQueueNumMsgs") == "1"


def test_a_session_with_a_number_chosen_by_the_server_is_found_by_its_key() -> None:
    house = house_of()
    receiver(house, "joe")
    plain = house.connected()
    (subject, other) = (session.key for session in house.bayeux.state.sessions)
    assert subject.startswith("joe/-")
    assert value_of(house, f"client/{subject}/?loginName") == "joe"
    assert value_of(house, f"client/{other}/?id") == plain.session.name
    with pytest.raises(CommandRefused, match="no session"):
        ask(house, "client/joe/1/?id")


def test_a_session_reports_its_queue_its_limits_and_its_subscriptions() -> None:
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


def test_a_session_reports_how_many_messages_it_published() -> None:
    house = house_of()
    client = receiver(house)
    other = house.connected()
    # The first waits for the store, which keeps it for joe/1; the second has no receiver.
    for channel in ("/a", "/b"):
        other.publish(channel, 1)
        house.turn()
    assert value_of(house, f"client/{other.session.key}/?numPublish") == "2"
    assert value_of(house, f"client/{client.session.key}/?numPublish") == "0"


def test_a_refused_publish_is_not_counted() -> None:
    house = house_of()
    receiver(house)
    other = house.connected()
    other.publish("/*", 1)
    house.keeper.outcome = PersistOutcome.REFUSED
    other.publish("/a", 1)
    house.turn()
    assert value_of(house, f"client/{other.session.key}/?numPublish") == "0"


def test_the_last_failure_of_a_session_can_be_cleared() -> None:
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


def test_a_session_reports_its_terms_without_secrets() -> None:
    house = house_of()
    receiver(house, secret="s3cret", retries=2)
    told = json.loads(value_of(house, "client/joe/1/?qos"))
    assert (told["ack"], told["delivery"]["retries"]) == (True, 2)
    assert "secret" not in told["delivery"]
    plain = house.connected()
    told = json.loads(value_of(house, f"{plain.session.name}/?qos"))
    assert told == {"ack": False, "delivery": False}


def test_subjects_and_sessions_report_their_limit_of_sessions() -> None:
    house = house_of(max_sessions_per_subject=5)
    receiver(house, "joe/1")
    house.client(ext={"delivery": {"session": {"name": "joe/2", "maxSessions": 3}}})
    numbers = [value_of(house, f"client/joe/{part}?maxSessions") for part in ("", "1/", "2/")]
    assert numbers == ["5", "5", "3"]


def test_a_stopping_server_reports_another_run_level() -> None:
    house = house_of()
    assert value_of(house, "?runlevel") == "9"
    house.bayeux.stop(house.now)
    assert value_of(house, "?runlevel") == "6"
