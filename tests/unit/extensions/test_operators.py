"""The service that takes operators' commands."""

from typing import Any

import pytest

from tests.unit.extensions.operating import Audit, answer_of, command, server_of, signed_in


def test_a_command_of_an_operator_is_answered() -> None:
    client = signed_in(server_of())
    question = {"cmd": "client/joe/?subjectQueueNumMsgs"}
    asked = client.send({"channel": "/service/admin", "data": question, "id": "77"})
    reply = {"command": "/node/here/client/joe/?subjectQueueNumMsgs", "value": "0"}
    assert answer_of(asked) == (True, reply)
    assert {element["id"] for element in asked.elements} == {"77"}


def test_a_value_may_stand_in_the_command_or_beside_it() -> None:
    server = server_of()
    client, other = signed_in(server), server.connected()
    name = other.session.name
    succeeded, data = answer_of(command(client, f"{name}/?dispatcherActive", value="false"))
    assert succeeded
    assert (data["state"], data["value"]) == ("OK", "false")
    assert data["info"] == f"/node/here/{name}/?dispatcherActive=false"
    assert answer_of(command(client, f"{name}/?dispatcherActive"))[1]["value"] == "false"
    assert answer_of(command(client, f"set {name}/?dispatcherActive=true"))[1]["value"] == "true"


def test_a_change_is_answered_when_the_store_has_it() -> None:
    server = server_of()
    client, other = signed_in(server), server.connected()
    text = f"{other.session.name}/?dispatcherActive=false"
    asked = client.publish("/service/admin", {"cmd": text})
    assert asked.is_held
    server.turn()
    assert answer_of(asked)[1]["state"] == "OK"


def test_a_change_is_answered_at_once_while_the_store_is_away() -> None:
    server = server_of()
    client, other = signed_in(server), server.connected()
    server.keeper.is_available = False
    text = f"{other.session.name}/?dispatcherActive=false"
    assert answer_of(client.publish("/service/admin", {"cmd": text}))[1]["state"] == "OK"


@pytest.mark.parametrize(
    "data",
    [
        None,
        "client/joe/?sessions",
        {},
        {"cmd": 5},
        {"cmd": "sessions"},
        {"cmd": "client/joe/1/?dispatcherActive", "value": 5},
        {"cmd": "client/joe/1/?dispatcherActive", "value": "x" * 5000},
        {"cmd": "set client/joe/1/?connectionState=x"},
        {"cmd": "client/joe/1/?connectionState"},
        {"cmd": "sysprop/a/?uptime"},
    ],
)
def test_an_invalid_command_is_refused_with_a_code(data: Any) -> None:
    asked = signed_in(server_of()).publish("/service/admin", data)
    succeeded, told = answer_of(asked)
    assert (succeeded, told["code"]) == (False, "user.illegalArgument")
    assert told["message"]


def test_a_command_that_only_xmlblaster_has_is_refused_with_the_rest_call() -> None:
    asked = command(signed_in(server_of()), "client/joe/1/?cbQueueEntries")
    assert "GET /sessions/joe/1/queue" in answer_of(asked)[1]["message"]


def test_a_reader_may_look_and_a_refused_change_is_audited() -> None:
    audit = Audit()
    server = server_of(audit)
    client, other = signed_in(server, "let-me-see"), server.connected()
    assert answer_of(command(client, f"{other.session.name}/?killSession")) == (
        False,
        {
            "code": "user.security.authorization.notAuthorized",
            "message": "this requires the role of an operator",
        },
    )
    assert not other.session.is_gone
    assert answer_of(command(client, f"{other.session.name}/?connectionState"))[0]
    (entry,) = audit
    assert entry[0] == f"reader {client.session.name}"
    assert entry[3] == "user.security.authorization.notAuthorized"


def test_commands_that_change_something_are_audited_with_their_outcome() -> None:
    audit = Audit()
    server = server_of(audit)
    client, other = signed_in(server), server.connected()
    name = other.session.name
    command(client, f"{name}/?connectionState")
    command(client, f"{name}/?killSession")
    command(client, f"{name}/?killSession")
    who = f"operator {client.session.name}"
    assert audit == [
        (who, "command", f"/node/here/{name}/?killSession", "ok"),
        (who, "command", f"/node/here/{name}/?killSession", "user.illegalArgument"),
    ]


def test_an_operator_can_end_its_own_session() -> None:
    server = server_of()
    client = signed_in(server)
    command(client, f"{client.session.name}/?killSession")
    assert len(server.bayeux.state.sessions) == 0
    assert client.connect().reply["error"].startswith("402")


def test_a_takeover_of_an_operators_session_needs_a_token_too() -> None:
    server = server_of()
    named = {"session": "joe/1"}
    signed_in(server, delivery=named)
    reply = server.guest().handshake(ext={"delivery": named}).reply
    assert reply["error"].startswith("403:user.security.authorization.notAuthorized")
