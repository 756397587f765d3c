"""What a publisher may ask for its message, and what it does to the message."""

from typing import Any

import pytest

from holdfast.bayeux.known_options import QosInvalid
from holdfast.bayeux.qos import Qos
from holdfast.delivery.messages import Message

LONGEST_MS = 10 * 365 * 24 * 3600 * 1000


def test_nothing_asked_for_is_an_ordinary_message() -> None:
    assert Qos.of({}) == Qos() == Qos(priority=5, persistent=None, life_ms=None)


@pytest.mark.parametrize("priority", [0, 5, 9])
def test_priorities_are_ten(priority: int) -> None:
    assert Qos.of({"priority": priority}).priority == priority


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (None, "delivery"),
        (True, "delivery"),
        ([], "delivery"),
        ({"priority": -1}, "priority"),
        ({"priority": 10}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": "9"}, "priority"),
        ({"persistent": 1}, "persistent"),
        ({"persistent": "true"}, "persistent"),
        ({"properties": []}, "properties"),
        ({"properties": "x"}, "properties"),
        ({"key": ""}, "key"),
        ({"key": 1}, "key"),
        ({"key": "k" * 256}, "key"),
        ({"expiration": 1000}, "expiration"),
        ({"expiration": {"lifeTime": "1"}}, "expiration.lifeTime"),
        ({"expiration": {"lifeTime": True}}, "expiration.lifeTime"),
        ({"expiration": {"lifeTime": -2}}, "expiration.lifeTime"),
        ({"expiration": {"lifeTime": LONGEST_MS + 1}}, "expiration.lifeTime"),
        ({"expiration": {"lifeTime": 1, "forceDestroy": 1}}, "expiration.forceDestroy"),
        ({"expiration": {"lifetime": 1}}, "expiration"),
        ({"topic": True}, "topic"),
        ({"topic": {"readOnly": True}}, "topic"),
        ({"topic": {"readonly": 1}}, "topic.readonly"),
        ({"topic": {"history": 5}}, "topic.history"),
        ({"topic": {"history": {"numEntries": 5}}}, "topic.history"),
        ({"topic": {"history": {}}}, "topic.history.maxEntries"),
        ({"topic": {"history": {"maxEntries": -1}}}, "topic.history.maxEntries"),
        ({"topic": {"history": {"maxEntries": 10001}}}, "topic.history.maxEntries"),
        ({"topic": {"history": {"maxEntries": 1, "maxBytes": 0}}}, "topic.history.maxBytes"),
        ({"topic": {"history": {"maxEntries": 1, "maxBytes": 1e30}}}, "topic.history.maxBytes"),
        ({"topic": {"destroyDelay": -2}}, "topic.destroyDelay"),
        ({"topic": {"destroyDelay": "1"}}, "topic.destroyDelay"),
        ({"administrative": 1}, "administrative"),
        ({"administrative": True, "destinations": [{"name": "joe"}]}, "administrative"),
    ],
)
def test_what_makes_no_sense_is_named(asked: Any, named: str) -> None:
    with pytest.raises(QosInvalid, match=f"^{named}$"):
        Qos.of(asked)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("destinations", [{"name": "joe/1", "queryType": "EXACT"}]),
        ("destinations", []),
        ("forceUpdate", 1),
        ("subscribable", False),
        ("oneway", True),
        ("priorty", 9),
        ("priorty", None),
    ],
)
def test_what_would_not_be_done_is_refused_and_not_ignored(option: str, value: Any) -> None:
    with pytest.raises(QosInvalid, match=f"^{option}$"):
        Qos.of({option: value})


@pytest.mark.parametrize(
    "asked",
    [
        {"destinations": None, "topic": None, "forceUpdate": None},
        {"forceUpdate": True, "subscribable": True, "administrative": False},
        {"verdicts": [{"seq": 1, "state": "OK"}], "pending": [2]},
    ],
    ids=repr,
)
def test_what_happens_anyway_may_be_asked_for(asked: Any) -> None:
    assert Qos.of(asked) == Qos()


@pytest.mark.parametrize("name", ["", "a:b", "a,b", "ä", "a\n", "x" * 65, "1"])
def test_strange_names_are_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(QosInvalid, match=r"^delivery$"):
        Qos.of({name: 1})


@pytest.mark.parametrize("key", ["k", "ä" * 255])
def test_a_key_is_any_text_that_is_not_too_long(key: str) -> None:
    assert Qos.of({"key": key}).key == key


def qualified(**asked: Any) -> Message:
    message = Message(b"{}", id=100_000_000_000)
    Qos.of(asked).qualify(message)
    return message


def test_a_message_is_as_it_was_asked_for() -> None:
    message = qualified(priority=9, properties={"color": "red"})
    assert (message.priority, message.properties) == (9, {"color": "red"})
    assert (message.life_ms, message.expires_ms) == (None, 0)


def test_a_life_is_only_told_unless_its_end_is_forced() -> None:
    message = qualified(expiration={"lifeTime": 2500})
    assert (message.life_ms, message.expires_ms) == (2500, 0)
    message = qualified(expiration={"lifeTime": 2500, "forceDestroy": True})
    assert (message.life_ms, message.expires_ms) == (2500, 102_500)


@pytest.mark.parametrize("expiration", [None, {}, {"lifeTime": -1}, {"forceDestroy": True}])
def test_who_says_no_time_lives_for_ever(expiration: Any) -> None:
    message = qualified(expiration=expiration)
    assert (message.life_ms, message.expires_ms) == (None, 0)


def test_a_life_may_be_over_at_once() -> None:
    message = qualified(expiration={"lifeTime": 0, "forceDestroy": True})
    assert message.expires_ms == 100_000
