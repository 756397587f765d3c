"""Commands that only xmlBlaster has are refused with the REST call that does the same."""

import re
from pathlib import Path

import pytest

from holdfast.bayeux.commands.grammar import ACTIONS, COMMANDS, FLAG, understand
from holdfast.bayeux.commands.rest_calls import CALLS, Level
from holdfast.bayeux.wire.command_refused import CommandRefused
from holdfast.web.admin.resources import ROUTES

PLACES = {
    Level.NODE: "?",
    Level.SUBJECT: "client/joe/?",
    Level.SESSION: "client/joe/1/?",
    Level.TOPIC: "topic/orders/7/?",
}
ELSEWHERE = [
    (PLACES[level] + name, call)
    for level, names, call in CALLS
    for name in names.split() or ["dump"]
]


def refusal_of(text: str) -> str:
    with pytest.raises(CommandRefused) as caught:
        understand(text)
    assert caught.value.code == "user.illegalArgument"
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("?clientList", "GET /sessions"),
        ("?nodeId", "GET /about"),
        ("client/joe/?sessionList", "GET /sessions?prefix=joe/"),
        ("client/joe/?peekSubjectMessages=3", "GET /subjects/joe/queue"),
        ("?gc", "GET /about"),
        ("client/joe/?uptme", "GET /sessions?prefix=joe/"),
        ("client/joe/1/?numPublish", "GET /sessions/joe/1"),
        ("client/joe/1/?cbQueueEntries=maxEntries=3", "GET /sessions/joe/1/queue"),
        ("client/joe/1/?clearCallbackQueue", "DELETE /sessions/joe/1/queue"),
        ("client/a%20b/1/?uptime", "GET /sessions/a%20b/1"),
        ("topic/orders/7/?numSubscribers", "GET /topic?channel=/orders/7"),
        ("topic/orders/7/?erase=true", "DELETE /topic?channel=/orders/7"),
        ("topic/orders/7/?peekHistoryMessages=3", "GET /topic/history?channel=/orders/7"),
    ],
)
def test_the_refusal_names_the_call_with_the_target(text: str, call: str) -> None:
    assert refusal_of(text).endswith(f": use {call} of REST")


def test_each_call_is_a_route_of_the_administration() -> None:
    routes = {(route.method, re.sub(r"\{\w+\}", "X", route.path)) for route in ROUTES}
    for level, _, call in CALLS:
        target = "X/X" if level is Level.SESSION else "X"
        methods, _, path = call.partition("?")[0].format(target).rpartition(" ")
        assert {(method, path) for method in methods.split(" or ")} <= routes


def test_no_command_of_this_server_is_listed_among_the_others() -> None:
    assert len(ELSEWHERE) > 25
    for text, call in ELSEWHERE:
        assert call.partition("{0}")[0] in refusal_of(text)


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("?clientList", "a node (none)"),
        ("client/joe/?uptme", "a subject (killClient, sessions, subjectQueueNumMsgs)"),
        ("topic/orders/?dump", "a topic (stateStr)"),
    ],
)
def test_the_refusal_lists_the_commands_that_there_are(text: str, commands: str) -> None:
    assert commands in refusal_of(text)


@pytest.mark.parametrize("level", [Level.SUBJECT, Level.SESSION, Level.TOPIC])
def test_all_commands_are_in_the_documentation(level: Level) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "administration.md").read_text()
    (row,) = re.findall(rf"^\| {level.value} \|(.*)\|(.*)\|(.*)\|$", page, re.MULTILINE)
    read, put, done = (re.findall(r"`(\w+)`", cell) for cell in row)
    assert read == [name for name in COMMANDS[level] if name not in ACTIONS]
    assert put == [name for name in COMMANDS[level] if name == FLAG]
    assert done == [name for name in COMMANDS[level] if name in ACTIONS]
