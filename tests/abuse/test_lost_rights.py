"""Clients that have lost a right or their session, and go on over their connection."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.abuse.attacker import Person, SocketPerson
from tests.abuse.conftest import FRONT_ENDS, MakeTarget
from tests.abuse.target import Target

EXTENSION = {"extension": ["tests.abuse.doorkeeper:install"]}
SECRETS = ("/secret/plan", "/secret/**", "/**")
DISCARDED = "holdfast_entries_discarded_total"
HELD = "holdfast_connects_held"
GONE = "402::session_unknown"


@pytest.fixture(params=FRONT_ENDS, ids=["fast lane", "ordinary front end"])
def guarded(target_with: MakeTarget, request: pytest.FixtureRequest) -> Target:
    return target_with(**EXTENSION, **({} if request.param else {"fast_lane": False}))


@pytest.fixture
def publisher(guarded: Target) -> Iterator[Person]:
    with guarded.person() as person:
        yield person


def said(messages: list[dict[str, Any]]) -> list[Any]:
    """The data of the events, without the server's disconnect."""
    return [each["data"] for each in messages if "data" in each]


def bar(publisher: Person, victim: Person | SocketPerson) -> None:
    """Take away the victim's right to secret channels."""
    assert publisher.publish("/service/bar", victim.client_id).messages()[-1]["successful"]


def tell(publisher: Person, *data: str) -> None:
    """Publish each as a secret and as news."""
    for each in data:
        publisher.publish("/secret/plan", f"secret {each}")
        publisher.publish("/news", each)


@contextmanager
def discarding(target: Target, count: int) -> Iterator[None]:
    """Wait until so many messages were discarded because their receivers had no right to them."""
    before = target.metric(DISCARDED, reason="not_allowed")
    yield
    target.until_metric(DISCARDED, before + count, reason="not_allowed")


@pytest.mark.parametrize("ext", [{}, {"ack": True}, {"ack": True, "delivery": True}], ids=str)
def test_waiting_messages_are_not_delivered_after_a_right_is_lost(
    ext: dict[str, Any], guarded: Target, publisher: Person
) -> None:
    with guarded.person(ext=ext) as loser:
        loser.connect(ext={"ack": 0})
        loser.subscribe("/news", *SECRETS)
        tell(publisher, "before")
        with discarding(guarded, 1):
            bar(publisher, loser)
            tell(publisher, "after")
            heard = loser.connect(ext={"ack": 0}, advice={"timeout": 0})
        assert said(heard.messages()) == ["before", "after"]
        refused = loser.subscribe(*SECRETS).messages()[-1]
        assert refused["error"].startswith("403:no_more:")


def test_unacked_messages_are_not_redelivered_after_a_right_is_lost(
    guarded: Target, publisher: Person
) -> None:
    with guarded.person(ext={"ack": True}) as loser:
        loser.connect(ext={"ack": 0})
        loser.subscribe("/news", *SECRETS)
        tell(publisher, "before")
        heard = loser.connect(ext={"ack": 0}, advice={"timeout": 0})
        assert said(heard.messages()) == ["secret before", "before"]
        with discarding(guarded, 1):
            bar(publisher, loser)
            heard = loser.connect(ext={"ack": 0}, advice={"timeout": 0})
        assert said(heard.messages()) == ["before"]


def test_a_held_connect_brings_nothing_after_a_right_is_lost(
    guarded: Target, publisher: Person
) -> None:
    with guarded.person() as loser:
        loser.subscribe("/news", *SECRETS)
        loser.hold()
        guarded.until_metric(HELD, 1)
        bar(publisher, loser)
        publisher.publish("/secret/plan", "after")
        assert not loser.has_answer()
        publisher.publish("/news", "after")
        assert said(loser.answer().messages()) == ["after"]


def test_a_socket_brings_nothing_after_a_right_is_lost(guarded: Target, publisher: Person) -> None:
    with guarded.socket_person() as loser:
        loser.settle_in("/news", *SECRETS)
        guarded.until_metric(HELD, 1)
        tell(publisher, "before")
        assert said(loser.hear()) + said(loser.hear()) == ["secret before", "before"]
        bar(publisher, loser)
        tell(publisher, "after")
        assert said(loser.hear()) == ["after"]


def test_a_session_that_loses_a_right_while_away_returns_to_none_of_those_messages(
    guarded: Target, publisher: Person
) -> None:
    ext = {"ack": True, "delivery": {"session": "loser/1"}}
    with guarded.person(ext=ext) as loser:
        loser.connect(ext={"ack": 0})
        loser.subscribe("/news", *SECRETS)
        tell(publisher, "before")
        # It stays away without a word to the server.
        with discarding(guarded, 1):
            bar(publisher, loser)
            tell(publisher, "after")
    with guarded.person(ext=ext) as again:
        heard = again.connect(ext={"ack": 0})
        assert said(heard.messages()) == ["before", "after"]
        parting = {"delivery": {"end": True, "discard": True}}
        again.ask(again.message("/meta/disconnect", ext=parting))


def test_a_session_that_lost_its_rights_cannot_read_its_dead_letters(
    guarded: Target, publisher: Person
) -> None:
    with guarded.person(ext={"ack": True, "delivery": True}) as loser:
        loser.connect(ext={"ack": 0})
        loser.subscribe("/news", *SECRETS)
        publisher.publish("/secret/plan", "secret")
        event, _ = loser.connect(ext={"ack": 0}, advice={"timeout": 0}).messages()
        # A verdict on a lost entry has no effect: the entry ends like all that it lost, ...
        verdict = {"seq": event["ext"]["delivery"]["seq"], "errorCode": "user.update.error"}
        ext = {"ack": 0, "delivery": {"verdicts": [verdict]}}
        with discarding(guarded, 1):
            bar(publisher, loser)
            assert said(loser.connect(ext=ext, advice={"timeout": 0}).messages()) == []
        # ... and only operators are told of dead letters.
        for channel in ("/sys/deadMessage", "/sys/*", "/sys/**"):
            (reply,) = loser.subscribe(channel).messages()
            assert reply["error"] == "403:denied_by_security_policy:subscribe_denied"
        (reply,) = loser.publish(
            "/service/admin", {"cmd": "client/joe/?subjectQueueNumMsgs"}
        ).messages()
        assert reply["error"].startswith("403")


# Logged out


def test_a_held_connect_delivers_nothing_after_the_session_has_ended(
    guarded: Target, publisher: Person
) -> None:
    with guarded.person() as loser:
        loser.subscribe("/news", *SECRETS)
        loser.hold()
        guarded.until_metric(HELD, 1)
        publisher.publish("/service/end", loser.client_id)
        tell(publisher, "after")
        *events, reply = loser.answer().messages()
        assert [each["channel"] for each in events] == ["/meta/disconnect"]
        assert reply["channel"] == "/meta/connect"
        assert reply["advice"]["reconnect"] == "none"
        for message in (
            loser.connect_message(),
            loser.message("/meta/subscribe", subscription="/news"),
            loser.message("/news", data=1),
        ):
            (reply,) = loser.ask(message).messages()
            assert reply["error"] == GONE
        assert not loser.has_answer()


def test_a_socket_delivers_nothing_after_the_session_has_ended(
    guarded: Target, publisher: Person
) -> None:
    with guarded.socket_person() as loser:
        loser.settle_in("/news", *SECRETS)
        guarded.until_metric(HELD, 1)
        publisher.publish("/service/end", loser.client_id)
        tell(publisher, "after")
        (reply,) = loser.hear()
        assert (reply["channel"], reply["advice"]["reconnect"]) == ("/meta/connect", "none")
        (goodbye,) = loser.hear()
        assert goodbye["channel"] == "/meta/disconnect"
        assert loser.close_code() == 1000
        with guarded.socket(Cookie=loser.cookie()) as another:
            another.say(loser.connect_message())
            (reply,) = another.hear()
            assert reply["error"] == GONE
