"""What administrative commands report about sessions, and do to them."""

import json
from functools import partial

import pytest

from holdfast.bayeux.wire.grammar import CommandRefused
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.queues.queue import QueueLimits
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.operated_server import ask, connect, publish, receiver, value_of


def test_the_node_reports_its_clients_sessions_topics_and_counts() -> None:
    server = server_of()
    receiver(server, "joe/1")
    receiver(server, "joe/2")
    held = server.connected()
    held.connect()
    receiver(server, "joe/2").disconnect()
    publish(server, 1)
    told = partial(value_of, server)
    assert told("?nodeId") == "test"
    assert told("?version") == "1.2"
    assert told("?clientList").split("\n") == ["anonymous", "joe"]
    assert told("?sessionList").split("\n") == [held.session.key, "joe/1", "joe/2"]
    assert told("?aliveCallbackClients").split("\n") == [held.session.key, "joe/1"]
    assert (told("?numClients"), told("?numSessions")) == ("2", "3")
    assert (told("?topicList"), told("?numSubscriptions")) == ("/a", "2")
    assert (told("?numPublish"), told("?numUpdate")) == ("1", "0")


def test_commands_list_the_sessions_of_a_subject_and_end_them_all() -> None:
    server = server_of()
    receiver(server, "joe/1")
    receiver(server, "joe/2")
    receiver(server, "ann/1")
    assert value_of(server, "client/joe/?sessionList") == "joe/1\njoe/2"
    assert value_of(server, "client/joe/?subjectQueueNumMsgs") == "0"
    ask(server, "client/joe/?killClient")
    assert [session.key for session in server.bayeux.state.sessions] == ["ann/1"]
    with pytest.raises(CommandRefused, match="no subject has this name"):
        ask(server, "client/joe/?sessionList")


def test_a_subject_reports_the_length_of_its_queue() -> None:
    server = server_of()
    receiver(server, "joe/1", queue={"maxEntries": 1})
    for number in range(2):
        to_joe = {"destinations": ["joe"], "content": number}
        server.client().publish("/service/ptp", to_joe)
        server.turn()
    assert value_of(server, "client/joe/?subjectQueueNumMsgs") == "1"


def test_a_subject_without_sessions_reports_what_waits_for_it() -> None:
    server = server_of()
    to_joe = {"destinations": [{"name": "joe", "forceQueuing": True}], "content": 1}
    server.client().publish("/service/ptp", to_joe)
    server.turn()
    told = partial(value_of, server)
    assert told("client/joe/?subjectQueueNumMsgs") == "1"
    assert (told("client/joe/?numSessions"), told("client/joe/?sessionList")) == ("0", "")
    assert (told("client/joe/?creationDate"), told("client/joe/?uptime")) == ("", "")
    assert told("client/joe/?killClient") == ""
    assert told("client/joe/?subjectQueueNumMsgs") == "1"


def test_for_a_subject_that_the_server_does_not_know_no_messages_wait() -> None:
    server = server_of()
    assert value_of(server, "client/joe/?subjectQueueNumMsgs") == "0"
    with pytest.raises(CommandRefused, match="no subject has this name"):
        ask(server, "client/joe/?numSessions")


def test_a_session_with_a_number_chosen_by_the_server_is_found_by_its_key() -> None:
    server = server_of()
    receiver(server, "joe")
    plain = server.connected()
    (subject, other) = (session.key for session in server.bayeux.state.sessions)
    assert subject.startswith("joe/-")
    assert value_of(server, f"client/{subject}/?loginName") == "joe"
    assert value_of(server, f"client/{other}/?id") == plain.session.name
    with pytest.raises(CommandRefused, match="no session"):
        ask(server, "client/joe/1/?id")


def test_a_session_reports_its_queue_its_limits_and_its_subscriptions() -> None:
    server = server_of(queue_limits=QueueLimits(entries=50))
    client = receiver(server, queue={"maxEntries": 7, "maxBytes": 2**30})
    publish(server, 1, 2)
    connect(client)
    publish(server, 3)
    told = partial(value_of, server)
    assert told("client/joe/1/?cbQueueNumMsgs") == "3"
    assert told("client/joe/1/?cbQueueMaxMsgs") == "7"
    assert int(told("client/joe/1/?cbQueueBytes")) == client.session.queue.size
    assert told("client/joe/1/?connectionState") == "ALIVE"
    assert told("client/joe/1/?subscribedTopics") == "/a"
    assert told("client/joe/1/?isPersistent") == "true"
    assert told("client/joe/1/?sessionTimeout") == "86400000"


def test_a_session_reports_how_many_messages_it_published() -> None:
    server = server_of()
    client = receiver(server)
    other = server.connected()
    # The first waits for the store, which keeps it for joe/1; the second has no receiver.
    for channel in ("/a", "/b"):
        other.publish(channel, 1)
        server.turn()
    assert value_of(server, f"client/{other.session.key}/?numPublish") == "2"
    assert value_of(server, f"client/{client.session.key}/?numPublish") == "0"


def test_a_refused_publish_is_not_counted() -> None:
    server = server_of()
    receiver(server)
    other = server.connected()
    other.publish("/*", 1)
    server.keeper.outcome = PersistOutcome.REFUSED
    other.publish("/a", 1)
    server.turn()
    assert value_of(server, f"client/{other.session.key}/?numPublish") == "0"


def test_the_last_failure_of_a_session_can_be_cleared() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    connect(client)
    verdict = {"seq": 1, "errorCode": "user.clientCode"}
    client.connect(ext={"delivery": {"verdicts": [verdict]}})
    server.turn()
    assert value_of(server, "client/joe/1/?lastCallbackException") == "user.clientCode"
    ask(server, "client/joe/1/?clearLastCallbackException")
    assert value_of(server, "client/joe/1/?lastCallbackException") == ""
    assert value_of(server, "client/joe/1/?numCallbackExceptions") == "1"


def test_a_session_reports_its_terms_without_secrets() -> None:
    server = server_of()
    receiver(server, secret="s3cret", retries=2)
    told = json.loads(value_of(server, "client/joe/1/?qos"))
    assert (told["ack"], told["delivery"]["retries"]) == (True, 2)
    assert "secret" not in told["delivery"]
    plain = server.connected()
    told = json.loads(value_of(server, f"{plain.session.name}/?qos"))
    assert told == {"ack": False, "delivery": False}


def test_subjects_and_sessions_report_their_limit_of_sessions() -> None:
    server = server_of(max_sessions_per_subject=5)
    receiver(server, "joe/1")
    server.client(ext={"delivery": {"session": {"name": "joe/2", "maxSessions": 3}}})
    numbers = [value_of(server, f"client/joe/{part}?maxSessions") for part in ("", "1/", "2/")]
    assert numbers == ["5", "5", "3"]


def test_a_stopping_server_reports_another_run_level() -> None:
    server = server_of()
    assert value_of(server, "?runlevel") == "9"
    server.bayeux.stop(server.now)
    assert value_of(server, "?runlevel") == "6"
