"""The service that takes operators' commands."""

from typing import Any

import pytest

from holdfast.bayeux.services.properties import QueueQuery
from tests.unit.extensions.operating import Audit, Waiting, answer_of, command, server_of, signed_in


def test_a_command_of_an_operator_is_answered() -> None:
    client = signed_in(server_of())
    asked = client.send({"channel": "/service/admin", "data": {"cmd": "?nodeId"}, "id": "77"})
    assert answer_of(asked) == (True, {"command": "/node/test/?nodeId", "value": "test"})
    assert {element["id"] for element in asked.elements} == {"77"}


def test_a_value_may_stand_in_the_command_or_beside_it() -> None:
    server = server_of()
    client, other = signed_in(server), server.connected()
    name = other.session.name
    succeeded, data = answer_of(command(client, f"{name}/?dispatcherActive", value="false"))
    assert succeeded
    assert (data["state"], data["value"]) == ("OK", "false")
    assert data["info"] == f"/node/test/{name}/?dispatcherActive=false"
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


def test_entries_of_a_queue_are_shown_as_events() -> None:
    server = server_of()
    client, other = signed_in(server), server.connected()
    other.subscribe("/a")
    server.for_extensions.publish("/a", {"n": 1})
    asked = command(client, f"{other.session.name}/?peekCallbackMessages=3")
    assert answer_of(asked)[1]["entries"] == [{"channel": "/a", "data": {"n": 1}}]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (None, "user.illegalArgument"),
        ("?uptime", "user.illegalArgument"),
        ({}, "user.illegalArgument"),
        ({"cmd": 5}, "user.illegalArgument"),
        ({"cmd": "uptime"}, "user.illegalArgument"),
        ({"cmd": "?nodeId", "value": 5}, "user.illegalArgument"),
        ({"cmd": "?nodeId", "value": "x" * 5000}, "user.illegalArgument"),
        ({"cmd": "set ?nodeId=x"}, "user.admin.invalid"),
        ({"cmd": "client/joe/1/?uptime"}, "user.illegalArgument"),
        ({"cmd": "sysprop/a/?uptime"}, "internal.notImplemented"),
    ],
)
def test_an_invalid_command_is_refused_with_a_code(data: Any, code: str) -> None:
    asked = signed_in(server_of()).publish("/service/admin", data)
    succeeded, told = answer_of(asked)
    assert (succeeded, told["code"]) == (False, code)
    assert told["message"]


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
    assert answer_of(command(client, f"{other.session.name}/?id"))[0]
    (entry,) = audit
    assert entry[0] == f"reader {client.session.name}"
    assert entry[3] == "user.security.authorization.notAuthorized"


def test_commands_that_change_something_are_audited_with_their_outcome() -> None:
    audit = Audit()
    server = server_of(audit)
    client, other = signed_in(server), server.connected()
    name = other.session.name
    command(client, f"{name}/?uptime")
    command(client, f"{name}/?killSession")
    command(client, f"{name}/?killSession")
    who = f"operator {client.session.name}"
    assert audit == [
        (who, "command", f"/node/test/{name}/?killSession", "ok"),
        (who, "command", f"/node/test/{name}/?killSession", "user.illegalArgument"),
    ]


def test_a_command_may_wait_for_entries() -> None:
    waiting, audit = Waiting(), Audit()
    server = server_of(audit, waiting)
    client, other = signed_in(server), server.connected()
    other.subscribe("/a")
    query = "?cbQueueEntries=maxEntries=2&consumable=true&waitingDelay=200"
    asked = command(client, f"{other.session.name}/{query}")
    assert asked.reply["successful"]
    assert len(asked.elements) == 1
    ((meant, _),) = waiting
    assert meant.argument == QueueQuery(2, consumable=True, waiting_delay_ms=200)
    server.for_extensions.publish("/a", 1)
    assert audit == []
    waiting.is_over(server)
    succeeded, told = answer_of(client.connect())
    assert succeeded
    assert told["entries"] == [{"channel": "/a", "data": 1}]
    assert len(audit) == 1
    assert other.session.queue.count == 0


def test_a_consuming_command_of_a_reader_is_refused_without_waiting() -> None:
    waiting = Waiting()
    server = server_of(waiting=waiting)
    client, other = signed_in(server, "let-me-see"), server.connected()
    query = f"{other.session.name}/?cbQueueEntries=waitingDelay=-1"
    assert not answer_of(command(client, f"{query}&consumable=true"))[0]
    assert len(command(client, query).elements) == len(waiting) == 1


def test_a_waiting_command_of_a_client_that_left_takes_nothing_out_of_the_queue() -> None:
    waiting = Waiting()
    server = server_of(waiting=waiting)
    client, other = signed_in(server), server.connected()
    other.subscribe("/a")
    query = "?cbQueueEntries=maxEntries=2&consumable=true&waitingDelay=200"
    command(client, f"{other.session.name}/{query}")
    server.for_extensions.publish("/a", 1)
    client.disconnect()
    waiting.is_over(server)
    assert other.session.queue.count == 1


def test_the_number_of_waiting_commands_is_limited() -> None:
    waiting = Waiting()
    server = server_of(waiting=waiting)
    client, other = signed_in(server), server.connected()
    query = f"{other.session.name}/?cbQueueEntries=waitingDelay=-1"
    for _ in range(100):
        assert len(command(client, query).elements) == 1
    assert answer_of(command(client, query))[1]["code"] == "resource.exhaust"
    waiting.is_over(server)
    command(client, query)
    assert len(waiting) == 1


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
