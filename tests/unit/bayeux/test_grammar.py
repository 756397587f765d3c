"""Administrative commands: what they may look like, what they do, how they are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bayeux import properties
from app.bayeux.commands import Result, run, understand
from app.bayeux.grammar import CommandRefused, Level, Verb, parse
from app.bayeux.properties import QueueQuery
from app.delivery import error_codes
from tests.unit.bayeux.paper_registry import Registry


@pytest.fixture
def registry() -> Registry:
    return Registry()


def ask(registry: Registry, text: str, value: str | None = None) -> Result:
    return run(understand(text, value), registry, "operator")


@pytest.mark.parametrize(
    ("text", "level", "node", "key", "name", "arguments"),
    [
        ("?uptime", Level.NODE, None, "/0", "uptime", None),
        ("/node/holdfast/?uptime", Level.NODE, "holdfast", "/0", "uptime", None),
        ("node/holdfast?uptime", Level.NODE, "holdfast", "/0", "uptime", None),
        ("__cmd:client/joe/?numSessions", Level.CLIENT, None, "joe/0", "numSessions", None),
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


def test_the_verb_may_stand_before_it() -> None:
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
        ("house/7/?uptime", ILLEGAL),
        ("?nonsense", ILLEGAL),
        ("client/joe/?dispatcherActive", ILLEGAL),
        ("topic/Hello/?stateStr", "internal.notImplemented"),
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
def test_what_makes_no_sense_is_refused(text: str, code: str) -> None:
    with pytest.raises(CommandRefused) as caught:
        understand(text)
    assert caught.value.code == code
    assert error_codes.find(code) is not None
    assert caught.value.message


@given(st.text(max_size=60) | st.text("/?=&%client joe1node_:sgt-", max_size=60))
def test_any_text_is_a_command_or_refused(text: str) -> None:
    for before in ("", "client/joe/1/?", "client/joe/1/?cbQueueEntries="):
        with suppress(CommandRefused):
            assert understand(before + text).target.level in Level


def test_the_flag_of_a_dispatcher_is_read_and_set(registry: Registry) -> None:
    flag = "__cmd:client/joe/1/?dispatcherActive"
    # xmlBlaster's own test has arguments behind what it reads.
    assert ask(registry, "get " + flag + "=one,two,three").value == "true"
    done = ask(registry, flag + "=false")
    info = "/node/holdfast/client/joe/1/?dispatcherActive=false"
    assert (done.state, done.info, done.value) == ("OK", info, "false")
    assert registry.joe.done == [("activate", False, "operator")]
    assert ask(registry, "get " + flag).value == "false"
    assert ask(registry, flag, "TRUE").info == info.replace("false", "true")
    assert ask(registry, flag).value == "true"


def test_a_value_stands_in_one_place_only() -> None:
    with pytest.raises(CommandRefused, match="two values"):
        understand("client/joe/1/?dispatcherActive=true", "false")


def test_where_only_questions_are_let_in_the_verb_is_given_beside() -> None:
    assert understand("client/joe/1/?dispatcherActive=x", verb=Verb.GET).argument is None
    with pytest.raises(CommandRefused, match="get"):
        understand("set client/joe/1/?dispatcherActive=true", verb=Verb.GET)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("?nodeId", "holdfast"),
        ("?version", "0.1.0"),
        ("?uptime", "90"),
        ("?clientList", "joe\nann"),
        ("?numClients", "2"),
        ("?numPublish", "7"),
        ("?hostname", "blue"),
        ("?port", "8080"),
        ("?runlevel", "9"),
        ("?nodeList", "holdfast"),
        ("?instanceId", "/node/holdfast/instanceId/86400000"),
        ("?numSubscriptions", "2"),
        ("?subscriptionList", "client/joe/1 /news"),
        ("?numUpdate", "8"),
        ("?serverTimestamp", "1970-01-02 00:01:30+00:00"),
        ("?serverTimestampMillis", "86490500"),
        ("client/joe/?numSessions", "2"),
        ("client/joe/?sessionList", "1\n2"),
        ("client/joe/?subjectQueueNumMsgs", "0"),
        ("client/joe/1/?loginName", "joe"),
        ("client/joe/1/?publicSessionId", "1"),
        ("client/joe/1/?connectionState", "ALIVE"),
        ("client/joe/1/?aliveSinceDate", "1970-01-02 00:00:01+00:00"),
        ("client/joe/1/?pollingSinceDate", ""),
        ("client/joe/1/?cbQueueNumMsgs", "4"),
        ("client/joe/1/?subscribedTopics", "/news\n/weather"),
        ("client/joe/1/?isPersistent", "true"),
        ("client/joe/1/?isCallbackConfigured", "true"),
        ("client/joe/1/?isStalled", "false"),
        ("client/joe/1/?qos", '{"ack":true}'),
        ("client/joe/1/?lastCallbackException", "user.update.error"),
    ],
)
def test_values_are_told_as_text(registry: Registry, text: str, value: str) -> None:
    result = ask(registry, text)
    assert (result.value, result.state) == (value, None)
    assert result.command.startswith("/node/holdfast/")


def test_operations_say_what_came_of_them(registry: Registry) -> None:
    assert ask(registry, "client/joe/1/?removeFromCallbackQueue=3").value == "3"
    assert ask(registry, "client/joe/1/?clearCallbackQueue").value == "1"
    assert ask(registry, "client/joe/1/?killSession").value == ""
    assert registry.joe.done == [("end", "operator")]
    assert ask(registry, "client/joe/1/?sessionTimeout=5000").value == "5000"
    assert registry.joe.timeout_ms == 5000
    ask(registry, "client/joe/1/?clearLastCallbackException")
    assert registry.joe.last_exception == ""
    ask(registry, "client/joe/1/?subscribe=/weather/**")
    ask(registry, "client/joe/1/?unSubscribe", "/news")
    ask(registry, "client/joe/1/?disconnectClientKeepSession")
    assert registry.joe.done[1:] == [
        ("subscribe", "/weather/**"),
        ("unsubscribe", "/news"),
        "send away",
    ]
    ask(registry, "client/joe/?killClient")
    assert registry.client_joe.ended_by == "operator"


def test_entries_of_a_queue_are_looked_at_or_taken(registry: Registry) -> None:
    seen = ask(registry, "client/joe/1/?peekCallbackMessages=2")
    assert seen.entries == [{"data": 0}, {"data": 1}]
    assert seen.value == '{"data":0}\n{"data":1}'
    query = "maxEntries=3&maxSize=-1&consumable={}&waitingDelay=0"
    seen = ask(registry, "client/joe/1/?cbQueueEntries=" + query.format("false"))
    assert (len(seen.entries or []), registry.joe.entries) == (3, 4)
    seen = ask(registry, "client/joe/1/?callbackQueueEntries", query.format("true"))
    assert (len(seen.entries or []), registry.joe.entries) == (3, 1)
    assert ask(registry, "client/joe/1/?cbQueueEntries").entries == [{"data": 3}]


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
    "text", ["client/ann/?uptime", "client/joe/2/?uptime", "/node/other/client/joe/1/?uptime"]
)
def test_who_is_not_there_cannot_be_asked(registry: Registry, text: str) -> None:
    with pytest.raises(CommandRefused) as caught:
        ask(registry, text)
    assert caught.value.code == ILLEGAL


def test_commands_can_be_switched_off(registry: Registry) -> None:
    registry.is_available = False
    with pytest.raises(CommandRefused) as caught:
        ask(registry, "client/joe/1/?killSession")
    assert caught.value.code == "resource.admin.unavailable"
    assert error_codes.find(caught.value.code) is not None
    assert registry.joe.done == []
