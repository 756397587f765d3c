"""Administrative commands: what they may look like, what they do, how they are refused."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.services import properties
from holdfast.bayeux.services.command_scope import CommandScope, Process
from holdfast.bayeux.services.commands import CommandReply, run, understand
from holdfast.bayeux.services.properties import QueueQuery
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.status import hold_of
from holdfast.bayeux.wire.grammar import CommandRefused, Level, Verb, parse
from holdfast.delivery.basics import error_codes
from tests.unit.bayeux.harness import Server, server_of
from tests.unit.bayeux.operated_server import publish, receiver

# The wall clock of a new server.
NOW_MS = 1_700_000_000_000


@pytest.fixture
def server() -> Server:
    """Joe has two sessions; four messages wait for the first, which is subscribed to /a."""
    server = server_of()
    receiver(server, "joe/1")
    server.client(ext={"ack": True, "delivery": {"session": "joe/2"}})
    publish(server, 0, 1, 2, 3)
    return server


def joe(server: Server) -> Session:
    session = server.bayeux.state.sessions.named("joe/1")
    assert session is not None
    return session


def ask(server: Server, text: str, value: str | None = None, **fields: Any) -> CommandReply:
    process = Process("0.1.0", NOW_MS - 90_000, "blue", 8080)
    scope = CommandScope(server.bayeux.life, process, lambda: server.now, **fields)
    return run(understand(text, value), scope, "operator")


@pytest.mark.parametrize(
    ("text", "level", "node", "key", "name", "arguments"),
    [
        ("?uptime", Level.NODE, None, "/0", "uptime", None),
        ("/node/holdfast/?uptime", Level.NODE, "holdfast", "/0", "uptime", None),
        ("node/holdfast?uptime", Level.NODE, "holdfast", "/0", "uptime", None),
        ("__cmd:client/joe/?numSessions", Level.SUBJECT, None, "joe/0", "numSessions", None),
        ("client/joe/1/?uptime", Level.SESSION, None, "joe/1", "uptime", None),
        ("client/joe/session/1/?uptime", Level.SESSION, None, "joe/1", "uptime", None),
        ("/client/joe/-17/?uptime", Level.SESSION, None, "joe/-17", "uptime", None),
        ("/node/n-1/client/joe/1?id", Level.SESSION, "n-1", "joe/1", "id", None),
        ("client/joe/1/?a=b&c=d&", Level.SESSION, None, "joe/1", "a", ("b", "c=d", "")),
        ("client/joe/1/?a=", Level.SESSION, None, "joe/1", "a", ("",)),
        ("client/j%6Fe/1/?a=x%20y%26z", Level.SESSION, None, "joe/1", "a", ("x y&z",)),
        (
            "client/joe@example.org/1/?a=50%",
            Level.SESSION,
            None,
            "joe@example.org/1",
            "a",
            ("50%",),
        ),
    ],
)
def test_a_command_is_taken_apart(
    text: str,
    level: Level,
    node: str | None,
    key: str,
    name: str,
    arguments: tuple[str, ...] | None,
) -> None:
    phrase = parse(text)
    assert (phrase.target.level, phrase.target.node, phrase.target.key) == (level, node, key)
    assert (phrase.name, phrase.arguments, phrase.verb) == (name, arguments, None)


def test_a_verb_can_stand_before_the_command() -> None:
    assert parse("get client/joe/1/?uptime").verb is Verb.GET
    assert parse("  set __cmd:client/joe/1/?uptime=1 ").verb is Verb.SET


ILLEGAL = "user.illegalArgument"
INVALID = "user.admin.invalid"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", ILLEGAL),
        ("?", ILLEGAL),
        ("client/joe/1/dispatcherActive", ILLEGAL),
        ("client/joe/1/?", ILLEGAL),
        ("client/joe/1/?=x", ILLEGAL),
        ("client/joe/1/?__class__", ILLEGAL),
        ("client/joe/1/?dispatcher.active", ILLEGAL),
        ("client/?uptime", ILLEGAL),
        ("client//1/?uptime", ILLEGAL),
        ("client/joe/0/?uptime", ILLEGAL),
        ("client/joe/1x/?uptime", ILLEGAL),
        ("client/joe/\u0661/?uptime", ILLEGAL),
        ("client/joe/session/?uptime", ILLEGAL),
        ("client/joe/session/1/queue/?uptime", ILLEGAL),
        ("client/jo%2Fe/1/?uptime", ILLEGAL),
        ("client/jo%0Ae/1/?uptime", ILLEGAL),
        ("client/jo%ffe/1/?uptime", ILLEGAL),
        ("client/jo\x1be/1/?uptime", ILLEGAL),
        ("node/?uptime", ILLEGAL),
        ("node/../?uptime", ILLEGAL),
        ("server/7/?uptime", ILLEGAL),
        ("?nonsense", ILLEGAL),
        ("client/joe/?dispatcherActive", ILLEGAL),
        ("topic/?stateStr", ILLEGAL),
        ("subscription/7/?id", "internal.notImplemented"),
        ("sysprop/?user.home", ILLEGAL),
        ("sysprop/?home", "internal.notImplemented"),
        ("logging/?core=FINE", "internal.notImplemented"),
        ("set client/joe/1/?loginName=ann", INVALID),
        ("set client/joe/1/?dispatcherActive", ILLEGAL),
        ("client/joe/1/?dispatcherActive=perhaps", ILLEGAL),
        ("client/joe/1/?dispatcherActive=true&false", ILLEGAL),
        ("client/joe/1/?sessionTimeout=-1", ILLEGAL),
        ("client/joe/1/?sessionTimeout=" + "9" * 30, ILLEGAL),
        ("client/joe/1/?killSession=now", ILLEGAL),
        ("client/joe/1/?subscribe", ILLEGAL),
        ("client/joe/1/?subscribe=", ILLEGAL),
        ("client/joe/1/?subscribe=/news&<qos/>", ILLEGAL),
        ("client/joe/1/?unSubscribe", ILLEGAL),
        ("set ?runlevel=3", INVALID),
        ("client/joe/1/?removeFromCallbackQueue", ILLEGAL),
        ("client/joe/1/?removeFromCallbackQueue=all", ILLEGAL),
        ("client/joe/1/?peekCallbackMessages=", ILLEGAL),
        ("client/joe/1/?cbQueueEntries=maxSize=10", ILLEGAL),
        ("client/joe/1/?cbQueueEntries=maxEntries=x", ILLEGAL),
        ("client/joe/1/?cbQueueEntries=consumable=perhaps", ILLEGAL),
        ("client/joe/1/?cbQueueEntries=maxEntries=1&maxEntries=2", ILLEGAL),
        ("client/joe/1/?cbQueueEntries=order=first", ILLEGAL),
        ("x" * 5000, ILLEGAL),
    ],
)
def test_an_invalid_command_is_refused(text: str, code: str) -> None:
    with pytest.raises(CommandRefused) as caught:
        understand(text)
    assert caught.value.code == code
    assert error_codes.find(code) is not None
    assert caught.value.message


@pytest.mark.slow
@given(st.text(max_size=60) | st.text("/?=&%client joe1node_:sgt-", max_size=60))
def test_any_text_is_a_command_or_refused(text: str) -> None:
    for before in ("", "client/joe/1/?", "client/joe/1/?cbQueueEntries="):
        with suppress(CommandRefused):
            assert understand(before + text).target.level in Level


def test_commands_read_and_set_the_flag_of_a_dispatcher(server: Server) -> None:
    flag = "__cmd:client/joe/1/?dispatcherActive"
    # xmlBlaster's own test reads with arguments.
    assert ask(server, "get " + flag + "=one,two,three").value == "true"
    done = ask(server, flag + "=false")
    info = "/node/test/client/joe/1/?dispatcherActive=false"
    assert (done.state, done.info, done.value) == ("OK", info, "false")
    hold = hold_of(joe(server))
    assert hold is not None
    assert (hold.who, hold.reason) == ("operator", "dispatcherActive=false")
    assert ask(server, "get " + flag).value == "false"
    assert ask(server, flag, "TRUE").info == info.replace("false", "true")
    assert ask(server, flag).value == "true"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("client/joe/1/?dispatcherActiv", r"did you mean dispatcherActive\?"),
        ("client/joe/?uptme", r"did you mean uptime\?"),
        ("?topicLists", r"did you mean topicList or topics\?"),
        ("?zzz", r"docs/administration\.md lists all"),
        ("?gc", r"docs/administration\.md says why"),
    ],
)
def test_the_error_for_an_unknown_property_has_the_nearest_names_or_where_to_find_them(
    text: str, advice: str
) -> None:
    with pytest.raises(CommandRefused, match=advice):
        understand(text)


def test_a_value_both_in_the_command_and_beside_it_is_refused() -> None:
    with pytest.raises(CommandRefused, match="both the command"):
        understand("client/joe/1/?dispatcherActive=true", "false")


def test_a_verb_given_beside_the_command_overrides_a_value_and_refuses_another_verb() -> None:
    assert understand("client/joe/1/?dispatcherActive=x", verb=Verb.GET).argument is None
    with pytest.raises(CommandRefused, match="get"):
        understand("set client/joe/1/?dispatcherActive=true", verb=Verb.GET)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("?nodeId", "test"),
        ("?version", "0.1.0"),
        ("?uptime", "90"),
        ("?clientList", "joe"),
        ("?numClients", "1"),
        ("?numPublish", "4"),
        ("?hostname", "blue"),
        ("?port", "8080"),
        ("?runlevel", "9"),
        ("?nodeList", "test"),
        ("?instanceId", "/node/test/instanceId/1699999910000"),
        ("?numSubscriptions", "1"),
        ("?subscriptionList", "client/joe/1 /a"),
        ("?numUpdate", "0"),
        ("?serverTimestamp", "2023-11-14 22:13:20+00:00"),
        ("?serverTimestampMillis", "1700000000000"),
        ("client/joe/?numSessions", "2"),
        ("client/joe/?sessionList", "joe/1\njoe/2"),
        ("client/joe/?subjectQueueNumMsgs", "0"),
        ("client/joe/1/?loginName", "joe"),
        ("client/joe/1/?publicSessionId", "1"),
        ("client/joe/1/?connectionState", "ALIVE"),
        ("client/joe/1/?aliveSinceDate", "2023-11-14 22:13:20+00:00"),
        ("client/joe/1/?pollingSinceDate", ""),
        ("client/joe/1/?cbQueueNumMsgs", "4"),
        ("client/joe/1/?subscribedTopics", "/a"),
        ("client/joe/1/?isPersistent", "true"),
        ("client/joe/1/?isCallbackConfigured", "true"),
        ("client/joe/1/?isStalled", "false"),
        ("client/joe/1/?isPtpAllowed", "true"),
        ("client/joe/1/?lastCallbackException", ""),
    ],
)
def test_the_value_of_a_property_is_text(server: Server, text: str, value: str) -> None:
    result = ask(server, text)
    assert (result.value, result.state) == (value, None)
    assert result.command.startswith("/node/test/")


def test_operations_change_sessions_and_return_their_result(server: Server) -> None:
    assert ask(server, "client/joe/1/?removeFromCallbackQueue=3").value == "3"
    assert ask(server, "client/joe/1/?clearCallbackQueue").value == "1"
    assert ask(server, "client/joe/1/?sessionTimeout=5000").value == "5000"
    assert ask(server, "client/joe/1/?sessionTimeout").value == "5000"
    joe(server).last_exception = "user.update.error"
    assert ask(server, "client/joe/1/?lastCallbackException").value == "user.update.error"
    ask(server, "client/joe/1/?clearLastCallbackException")
    assert joe(server).last_exception == ""
    ask(server, "client/joe/1/?subscribe=/weather/**")
    ask(server, "client/joe/1/?unSubscribe", "/a")
    assert [*joe(server).subscriptions] == ["/weather/**"]
    ask(server, "client/joe/1/?disconnectClientKeepSession")
    assert joe(server).has_left
    assert ask(server, "client/joe/1/?killSession").value == ""
    assert [session.key for session in server.bayeux.state.sessions] == ["joe/2"]
    ask(server, "client/joe/?killClient")
    assert [*server.bayeux.state.sessions] == []


def test_commands_look_at_the_entries_of_a_queue_or_take_them(server: Server) -> None:
    def data(text: str, value: str | None = None) -> list[object]:
        return [each["data"] for each in ask(server, text, value).entries or []]

    seen = ask(server, "client/joe/1/?peekCallbackMessages=2")
    assert seen.entries == [{"channel": "/a", "data": 0}, {"channel": "/a", "data": 1}]
    assert [json.loads(line) for line in seen.value.split("\n")] == seen.entries
    query = "maxEntries=3&maxSize=-1&consumable={}&waitingDelay=0"
    assert data("client/joe/1/?cbQueueEntries=" + query.format("false")) == [0, 1, 2]
    assert joe(server).queue.count == 4
    assert data("client/joe/1/?callbackQueueEntries", query.format("true")) == [0, 1, 2]
    assert joe(server).queue.count == 1
    assert data("client/joe/1/?cbQueueEntries") == [3]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", QueueQuery(1)),
        ("=maxEntries=5&waitingDelay=200", QueueQuery(5, waiting_delay_ms=200)),
        ("=waitingDelay=-1", QueueQuery(1, waiting_delay_ms=60_000)),
        ("=waitingDelay=-200", QueueQuery(1, waiting_delay_ms=60_000)),
        ("=waitingDelay=999999", QueueQuery(1, waiting_delay_ms=60_000)),
        ("=maxEntries=99999&consumable=TRUE", QueueQuery(properties.MAX_ENTRIES, consumable=True)),
    ],
)
def test_a_query_has_defaults_and_bounds(text: str, query: QueueQuery) -> None:
    assert understand("client/joe/1/?cbQueueEntries" + text).argument == query


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("client/joe/1/?dispatcherActive", False),
        ("get client/joe/1/?dispatcherActive=false", False),
        ("client/joe/1/?dispatcherActive=false", True),
        ("client/joe/1/?cbQueueEntries=consumable=false", False),
        ("get client/joe/1/?cbQueueEntries=consumable=true", True),
        ("client/joe/1/?peekCallbackMessages=1", False),
        ("get client/joe/1/?killSession", True),
        ("?uptime", False),
    ],
)
def test_a_command_knows_whether_it_changes_anything(text: str, changes: bool) -> None:
    assert understand(text).changes is changes


@pytest.mark.parametrize(
    "text", ["client/ann/?uptime", "client/joe/3/?uptime", "/node/other/client/joe/1/?uptime"]
)
def test_a_command_for_an_unknown_client_session_or_node_is_refused(
    server: Server, text: str
) -> None:
    with pytest.raises(CommandRefused) as caught:
        ask(server, text)
    assert caught.value.code == ILLEGAL
