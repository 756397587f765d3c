"""The options that a publisher may set, and what they do to its message."""

from typing import Any

import pytest

from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.wire.known_options import QosInvalid
from holdfast.delivery.messages.message import Message

LONGEST_MS = 10 * 365 * 24 * 3600 * 1000


def test_a_publish_without_options_has_the_defaults() -> None:
    assert Qos.of({}) == Qos() == Qos(priority=5, persistent=None, life_ms=None)


@pytest.mark.parametrize("priority", [0, 5, 9])
def test_priorities_range_from_zero_to_nine(priority: int) -> None:
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
def test_an_invalid_value_is_refused_with_the_name_of_its_option(asked: Any, named: str) -> None:
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
def test_an_unsupported_or_unknown_option_is_refused_and_not_ignored(
    option: str, value: Any
) -> None:
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
def test_options_that_change_nothing_are_accepted(asked: Any) -> None:
    assert Qos.of(asked) == Qos()


@pytest.mark.parametrize("name", ["", "a:b", "a,b", "ä", "a\n", "x" * 65, "1"])
def test_an_option_with_an_invalid_name_is_refused_without_repeating_the_name(name: str) -> None:
    with pytest.raises(QosInvalid, match=r"^delivery$"):
        Qos.of({name: 1})


@pytest.mark.parametrize("key", ["k", "ä" * 255])
def test_a_key_may_be_any_text_of_up_to_255_characters(key: str) -> None:
    assert Qos.of({"key": key}).key == key


def qualified(**asked: Any) -> Message:
    message = Message(b"{}", id=100_000_000_000)
    Qos.of(asked).qualify(message)
    return message


def test_a_message_has_the_priority_and_properties_of_its_options() -> None:
    message = qualified(priority=9, properties={"color": "red"})
    assert (message.priority, message.properties) == (9, {"color": "red"})
    assert (message.life_ms, message.expires_ms) == (None, 0)


def test_a_lifetime_sets_the_time_of_expiry_only_with_force_destroy() -> None:
    message = qualified(expiration={"lifeTime": 2500})
    assert (message.life_ms, message.expires_ms) == (2500, 0)
    message = qualified(expiration={"lifeTime": 2500, "forceDestroy": True})
    assert (message.life_ms, message.expires_ms) == (2500, 102_500)


@pytest.mark.parametrize("expiration", [None, {}, {"lifeTime": -1}, {"forceDestroy": True}])
def test_a_message_without_a_lifetime_never_expires(expiration: Any) -> None:
    message = qualified(expiration=expiration)
    assert (message.life_ms, message.expires_ms) == (None, 0)


def test_a_message_with_a_lifetime_of_zero_expires_at_once() -> None:
    message = qualified(expiration={"lifeTime": 0, "forceDestroy": True})
    assert message.expires_ms == 100_000
