"""What administrative commands report about sessions, subjects and topics, and do to them."""

import logging
from functools import partial

import pytest

from holdfast.bayeux.commands.grammar import understand
from holdfast.bayeux.sessions.status import hold_of
from holdfast.bayeux.wire.command_refused import CommandRefused
from holdfast.delivery.topics.configured import TopicConfig
from tests.unit.bayeux.harness import Server, server_of
from tests.unit.bayeux.operated_server import ask, commands_of, connect, publish, receiver, value_of


@pytest.mark.parametrize(
    "text",
    [
        "client/ann/?sessions",
        "client/ann/?killClient",
        "client/joe/3/?cbQueueNumMsgs",
        "topic/a/?stateStr",
        "/node/other/client/joe/1/?cbQueueNumMsgs",
    ],
)
def test_a_command_for_an_unknown_target_is_refused(text: str) -> None:
    server = server_of()
    receiver(server, "joe/1")
    with pytest.raises(CommandRefused) as caught:
        ask(server, text)
    assert caught.value.code == "user.illegalArgument"


def test_a_reply_has_the_absolute_command() -> None:
    server = server_of()
    receiver(server, "joe/1")
    read = ask(server, "client/joe/session/1/?cbQueueNumMsgs=5")
    assert (read.command, read.value) == ("/node/here/client/joe/1/?cbQueueNumMsgs", "0")
    assert (read.state, read.info) == (None, None)
    read = ask(server, "client/joe?subjectQueueNumMsgs")
    assert read.command == "/node/here/client/joe/?subjectQueueNumMsgs"


# Sessions


def test_commands_read_and_set_the_flag_of_a_dispatcher() -> None:
    server = server_of()
    session = receiver(server).session
    flag = "__cmd:client/joe/1/?dispatcherActive"
    assert ask(server, "get " + flag + "=one,two,three").value == "true"
    done = ask(server, flag + "=false")
    info = "/node/here/client/joe/1/?dispatcherActive=false"
    assert (done.state, done.info, done.value) == ("OK", info, "false")
    hold = hold_of(session)
    assert hold is not None
    assert (hold.who, hold.reason) == ("operator", "dispatcherActive=false")
    assert ask(server, "get " + flag).value == "false"
    assert ask(server, flag, "TRUE").info == info.replace("false", "true")
    assert ask(server, flag).value == "true"


def test_a_session_is_held_back_until_an_operator_resumes_it() -> None:
    server = server_of()
    client = receiver(server)
    ask(server, "client/joe/1/?dispatcherActive=false")
    publish(server, 1)
    assert connect(client) == []
    ask(server, "client/joe/1/?dispatcherActive=true")
    assert connect(client) == [1]


def test_the_log_names_the_operator_who_resumes_a_session_by_a_command(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    server = server_of()
    receiver(server)
    ask(server, "client/joe/1/?dispatcherActive=false")
    resume = understand("client/joe/1/?dispatcherActive=true")
    commands_of(server).run(resume, "operator/ann")
    assert caplog.messages[-1] == "session joe/1 is resumed by operator/ann"


def test_the_first_operator_who_holds_a_session_back_stays_on_record() -> None:
    server = server_of()
    session = receiver(server).session
    server.bayeux.life.hold_back(session, "disk full", who="ann", now=server.now)
    ask(server, "client/joe/1/?dispatcherActive=false")
    hold = hold_of(session)
    assert hold is not None
    assert hold.who == "ann"


def test_a_session_reports_its_state_and_how_many_messages_its_queue_has() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2)
    connect(client)
    publish(server, 3)
    assert value_of(server, "client/joe/1/?cbQueueNumMsgs") == "3"
    assert value_of(server, "client/joe/1/?connectionState") == "ALIVE"


def test_a_session_with_a_number_chosen_by_the_server_is_found_by_its_key() -> None:
    server = server_of()
    receiver(server, "joe")
    (session,) = server.bayeux.state.sessions
    assert session.key.startswith("joe/-")
    assert value_of(server, f"client/{session.key}/?cbQueueNumMsgs") == "0"
    assert value_of(server, f"{session.name}/?cbQueueNumMsgs") == "0"


def test_a_killed_session_leaves_the_server() -> None:
    server = server_of()
    receiver(server, "joe/1")
    receiver(server, "joe/2")
    killed = ask(server, "client/joe/1/?killSession")
    assert (killed.value, killed.state) == ("", None)
    assert [session.key for session in server.bayeux.state.sessions] == ["joe/2"]


# Subjects


def test_commands_list_the_sessions_of_a_subject_and_end_them_all() -> None:
    server = server_of()
    for key in ("joe/2", "joe/1", "ann/1"):
        receiver(server, key)
    assert value_of(server, "client/joe/?sessions") == "joe/1\njoe/2"
    assert value_of(server, "client/joe/?subjectQueueNumMsgs") == "0"
    assert value_of(server, "client/joe/?killClient") == ""
    assert [session.key for session in server.bayeux.state.sessions] == ["ann/1"]
    with pytest.raises(CommandRefused, match="no subject has this name"):
        ask(server, "client/joe/?sessions")


def to_joe(server: Server) -> None:
    address = {"destinations": [{"name": "joe", "forceQueuing": True}], "content": 1}
    server.client().publish("/service/ptp", address)
    server.turn()


def test_a_subject_without_sessions_reports_what_waits_for_it() -> None:
    server = server_of()
    to_joe(server)
    told = partial(value_of, server)
    assert told("client/joe/?subjectQueueNumMsgs") == "1"
    assert told("client/joe/?sessions") == ""
    assert told("client/joe/?killClient") == ""
    assert told("client/joe/?subjectQueueNumMsgs") == "1"


def test_for_a_subject_that_the_server_does_not_know_no_messages_wait() -> None:
    assert value_of(server_of(), "client/joe/?subjectQueueNumMsgs") == "0"


# Topics


def test_a_topic_reports_its_state_until_it_is_gone() -> None:
    server = server_of()
    topics = server.bayeux.state.topics
    topic = topics.configure(topics.draft("/t/a", TopicConfig(destroy_delay_ms=-1)))
    told = ask(server, "topic/t/a/?stateStr")
    assert (told.command, told.value) == ("/node/here/topic/t/a/?stateStr", "UNREFERENCED")
    server.bayeux.life.topics.erase(topic, is_forced=False, now=server.now)
    server.turn()
    with pytest.raises(CommandRefused, match="no topic has this name"):
        ask(server, "topic/t/a/?stateStr")
