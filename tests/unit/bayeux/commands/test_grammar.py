"""Administrative commands: how they may be written, and how the others are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.commands.grammar import Command, understand
from holdfast.bayeux.commands.rest_calls import Level
from holdfast.bayeux.wire.command_refused import CommandRefused


def refusal_of(text: str, value: str | None = None) -> str:
    """The text of the refusal, which always has the same code."""
    with pytest.raises(CommandRefused) as caught:
        understand(text, value)
    assert caught.value.code == "user.illegalArgument"
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "level", "node", "target", "name"),
    [
        ("client/joe/?sessions", Level.SUBJECT, None, "joe", "sessions"),
        ("__cmd:client/joe/?killClient", Level.SUBJECT, None, "joe", "killClient"),
        ("client/joe/1/?killSession", Level.SESSION, None, "joe/1", "killSession"),
        ("client/joe/session/1/?killSession", Level.SESSION, None, "joe/1", "killSession"),
        ("/client/joe/-17/?killSession", Level.SESSION, None, "joe/-17", "killSession"),
        ("/node/n-1/client/joe/1?killSession", Level.SESSION, "n-1", "joe/1", "killSession"),
        ("node/n-1/client/joe?sessions", Level.SUBJECT, "n-1", "joe", "sessions"),
        ("client/j%6Fe@example.org/?sessions", Level.SUBJECT, None, "joe@example.org", "sessions"),
        ("client/webhook/shop/?sessions", Level.SUBJECT, None, "webhook/shop", "sessions"),
        ("client/webhook/a-1/1?killSession", Level.SESSION, None, "webhook/a-1/1", "killSession"),
        ("client/webhook/1/?killSession", Level.SESSION, None, "webhook/1", "killSession"),
        ("client/webhook/session/1/?killSession", Level.SESSION, None, "webhook/1", "killSession"),
        ("topic/orders/7/?stateStr", Level.TOPIC, None, "/orders/7", "stateStr"),
        ("topic/or%64ers?stateStr", Level.TOPIC, None, "/orders", "stateStr"),
    ],
)
def test_a_command_has_a_target_and_a_name(
    text: str, level: Level, node: str | None, target: str, name: str
) -> None:
    assert understand(text) == Command(level, target, name, node=node)


@pytest.mark.parametrize(
    ("text", "value", "sets"),
    [
        ("client/joe/1/?dispatcherActive", None, None),
        ("get client/joe/1/?dispatcherActive", None, None),
        ("client/joe/1/?dispatcherActive=true", None, True),
        ("client/joe/1/?dispatcherActive=FALSE", None, False),
        ("client/joe/1/?dispatcherActive", "false", False),
        ("  set __cmd:client/joe/1/?dispatcherActive=true ", None, True),
        # xmlBlaster's own test reads with arguments.
        ("get __cmd:client/joe/1/?dispatcherActive=one,two,three", None, None),
        ("client/joe/1/?cbQueueNumMsgs=5", None, None),
    ],
)
def test_a_value_to_set_stands_behind_the_command_or_beside_it(
    text: str, value: str | None, sets: bool | None
) -> None:
    assert understand(text, value).value is sets


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("client/joe/1/?dispatcherActive", False),
        ("get client/joe/1/?dispatcherActive=false", False),
        ("client/joe/1/?dispatcherActive=false", True),
        ("get client/joe/1/?killSession", True),
        ("client/joe/?killClient", True),
        ("client/joe/?subjectQueueNumMsgs", False),
    ],
)
def test_a_command_knows_whether_it_changes_anything(text: str, changes: bool) -> None:
    assert understand(text).changes is changes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "client/joe/1/dispatcherActive",
        "client/joe/1/?",
        "client/joe/1/?=x",
        "client/joe/1/?__class__",
        "client/joe/1/?dispatcher.active",
        "client/?sessions",
        "client//1/?killSession",
        "client/joe/0/?killSession",
        "client/joe/1x/?killSession",
        "client/joe/\u0661/?killSession",
        "client/joe/session/?killSession",
        "client/joe/session/1/queue/?killSession",
        "client/joe/1/?dispatcherActive=true\nfalse",
        "node/?nodeId",
        "node/../?nodeId",
        "node/x!client/joe/?sessions",
        "server/7/?uptime",
        "topic/?stateStr",
        "topic//orders/?stateStr",
        "subscription/7/?id",
        "sysprop/?user.home",
        "logging/?core=FINE",
        "x" * 5000,
    ],
)
def test_what_is_no_command_is_refused_with_the_form_of_one(text: str) -> None:
    assert "client/<subject>/<number>/?<name>[=<value>]" in refusal_of(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("client/jo%0Ae/1/?killSession", "unprintable"),
        ("client/jo\x1be/1/?killSession", "unprintable"),
        ("set client/joe/1/?connectionState=ALIVE", "connectionState takes no value"),
        ("set client/joe/1/?dispatcherActive", "true or false"),
        ("client/joe/1/?dispatcherActive=", "true or false"),
        ("client/joe/1/?dispatcherActive=perhaps", "true or false"),
        ("client/joe/1/?dispatcherActive=true&false", "true or false"),
        ("client/joe/1/?killSession=now", "killSession takes no value"),
    ],
)
def test_an_invalid_command_is_refused_with_the_reason(text: str, why: str) -> None:
    assert why in refusal_of(text)


def test_a_value_both_in_the_command_and_beside_it_is_refused() -> None:
    assert "both" in refusal_of("client/joe/1/?dispatcherActive=true", "false")


@pytest.mark.slow
@given(st.text(max_size=60) | st.text("/?=&%client joe1node_:sgt-", max_size=60))
def test_any_text_is_a_command_or_refused(text: str) -> None:
    for before in ("", "client/joe/1/?", "client/joe/1/?dispatcherActive="):
        with suppress(CommandRefused):
            assert understand(before + text).level in Level
