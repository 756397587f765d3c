"""What of a message travels on which way: one table says it, and all that carry messages obey."""

import pkgutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import dumps, loads

from holdfast import delivery
from holdfast.cluster.messages import entry_of
from holdfast.cluster.messages import message_of as message_in
from holdfast.delivery.basics.error_codes import UPDATE_ERROR
from holdfast.delivery.codec.attributes import (
    BESIDE,
    FIELDS,
    FOUND_OUT,
    OF_RECORDS,
    Attribute,
    Scope,
    Way,
)
from holdfast.delivery.codec.enclosing import disclosed, enclosed
from holdfast.delivery.letters.exempt import leave_no_letter
from holdfast.delivery.messages.crossing import Spared
from holdfast.delivery.messages.former_attempts import FormerAttempts
from holdfast.delivery.messages.given import Given, GivenEntry, GivenKind
from holdfast.delivery.messages.keeping import HistoryDepth, Keeping
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Event, Message, MessageRecord
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.delivery.messages.trails import Attempt
from holdfast.delivery.requests.of_others import far_request_in
from holdfast.delivery.requests.request import ReplyMode, Request, RequestOf
from holdfast.delivery.shared_queues.work import WorkRefusal, make_work
from holdfast.store.format.given_records import Unpacking, slices
from holdfast.store.format.records import pack_message, unpack_message

ID = 1_700_000_000_123_456_789
REFUSAL = WorkRefusal("joe/1", UPDATE_ERROR, "full", is_final=True)
DEEP: Any = [[[[[[[[[123456789012345678]]]]]]]]]


def set_to(name: str, value: object) -> Callable[[Message], None]:
    return lambda message: setattr(message, name, value)


def forced(message: Message) -> None:
    message.limit_life(60_000, is_forced=True)


def ended_early(message: Message) -> None:
    message.limit_life(60_000, is_forced=True)
    message.expires_ms -= 1


def asks(message: Message) -> None:
    request: Request[Any] = Request(
        cast("Any", None),
        None,
        channel="/a",
        reply_to="ret:1:L000001/4000001",
        mode=ReplyMode.ALL,
        timeout_ms=9000,
        now=0.0,
        now_ms=1,
    )
    message.records = (RequestOf(request),)


# By the key of the attribute, what makes it unusual.
UNUSUAL: dict[str, Callable[[Message], None]] = {
    "p": set_to("priority", 9),
    "l": lambda message: message.limit_life(0, is_forced=False),
    "f": forced,
    "e": ended_early,
    "w": set_to("linger_s", 2.5),
    "x": set_to("properties", {"tenant": DEEP}),
    "o": set_to("is_direct", True),
    "a": set_to("addressed", ("joe", "ann/1")),
    "generation": set_to("generation", 3),
    "initial": set_to("is_initial", True),
    "late": set_to("is_late", True),
    "durable": set_to("is_durable", True),
    "keeping": set_to("keeping", Keeping(HistoryDepth(9, 999), "joe")),
    "d": leave_no_letter,
    "q": make_work,
    "refusals": partial(make_work, refusals=[REFUSAL]),
    "attempts": FormerAttempts(2, 1, (Attempt(1, 5, "joe", "full"),), was_alone=True).mark,
    "spared": Spared(["ann/1", "joe/1"]).mark,
    "asked": asks,
    "publishKey": PublishKey("digest").identify,
}


def stored(message: Message) -> Message:
    return unpack_message(message.id, pack_message(message))


def handed_over(message: Message) -> Message:
    entry = GivenEntry(Mark(message.id), message)
    reading = Unpacking(lambda name, error: pytest.fail(f"{name}: {error}"))
    for slice in slices([Given(GivenKind.SESSION, "joe/1", {}, [entry])]):
        reading.read(slice)
    [given] = reading.given()
    [found] = given.entries
    assert found.message is not None
    return found.message


def framed(message: Message) -> Message:
    return message_in(entry_of(message))


def called_for(message: Message, way: Way) -> Message:
    before = Message(b"another", id=ID - 1, channel="/b")
    _, found = disclosed(enclosed({"a": [1], "enclosed": [before, message]}, way))["enclosed"]
    return cast("Message", found)


JOURNEYS: dict[Way, Callable[[Message], Message]] = {
    Way.STORE: stored,
    Way.HAND_OVER: handed_over,
    Way.FRAME: framed,
    **{way: partial(called_for, way=way) for way in (Way.CALL, Way.LOAN, Way.HISTORY)},
}
ATTRIBUTES: Sequence[Attribute] = (*FIELDS, *OF_RECORDS)
# Compiled code takes no stand-in for who asks.
INTERPRETED = pytest.mark.interpreted
EACH = [
    pytest.param(each, marks=INTERPRETED if each.key == "asked" else (), id=each.key)
    for each in ATTRIBUTES
]
# All that was stored is durable. Work and who has refused it are one record, with a key for each.
ALIKE = {
    *((Way.STORE, "durable"), (Way.LOAN, "q")),
    *((Way.STORE, "refusals"), (Way.HAND_OVER, "refusals")),
}


def made(*keys: str) -> Message:
    message = Message(b'{"data":1}', id=ID, channel="/a", sender="joe/1")
    for key in keys:
        UNUSUAL[key](message)
    return message


def value_after(attribute: Attribute, message: Message) -> object:
    if attribute.key == "asked":
        asked = far_request_in(message)
        return None if asked is None else [*asked]
    return plain(attribute.value(message))


def plain(value: object) -> object:
    """Return what the encoder makes of a value."""
    return loads(dumps(value))


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("attribute", EACH)
def test_an_attribute_arrives_on_its_ways_and_on_no_other(attribute: Attribute, way: Way) -> None:
    message = made(attribute.key)
    before = plain(attribute.value(message))
    assert before is not None
    after = value_after(attribute, JOURNEYS[way](message))
    if (way, attribute.key) in ALIKE:
        assert way not in attribute.ways
    else:
        assert after == (before if way in attribute.ways else None)


@pytest.mark.parametrize("way", Way)
def test_an_ordinary_message_has_no_attributes_on_its_way(way: Way) -> None:
    found = JOURNEYS[way](made())
    assert (found.wire, found.id, found.channel, found.sender) == (b'{"data":1}', ID, "/a", "joe/1")
    unusual = {each.key for each in ATTRIBUTES if value_after(each, found) is not None}
    # A loan is work, and what was stored is durable.
    assert unusual <= {Way.STORE: {"durable"}, Way.LOAN: {"q", "refusals"}}.get(way, set())


@pytest.mark.parametrize("way", Way)
def test_deep_properties_arrive_as_they_were(way: Way) -> None:
    assert JOURNEYS[way](made("x")).properties == {"tenant": DEEP}


@pytest.mark.interpreted
def test_every_field_and_every_record_of_a_message_has_a_row() -> None:
    for module in pkgutil.walk_packages(delivery.__path__, "holdfast.delivery."):
        import_module(module.name)
    fields = {*Message.__slots__, *Event.__slots__}
    records = {each.__name__ for each in MessageRecord.__subclasses__()}
    named = {each.name for each in ATTRIBUTES}
    ours = {each for each in records if each[0].isupper() or each in ("_NoLetter", "_Work")}
    assert named | BESIDE | FOUND_OUT == fields | ours
    assert not named & (BESIDE | FOUND_OUT)


def test_what_belongs_to_the_message_travels_everywhere_but_where_the_table_says_why() -> None:
    apart = {each.key for each in ATTRIBUTES if each.scope is Scope.MESSAGE and len(each.ways) < 6}
    assert apart == {"q"}


# A copy from a history is for a subscriber and not for destinations, and does not linger.
NOT_OF_HISTORIES = {"a", "o", "w"}


@pytest.mark.parametrize(
    "attribute", [each for each in ATTRIBUTES if each.scope is Scope.MESSAGE], ids=lambda it: it.key
)
def test_copies_have_what_belongs_to_the_message(attribute: Attribute) -> None:
    message = made(attribute.key)
    value = plain(attribute.value(message))
    assert plain(attribute.value(message.for_other_queues())) == value
    is_there = plain(attribute.value(message.initial())) == value
    assert is_there == (attribute.key not in NOT_OF_HISTORIES)


def test_keys_are_unique() -> None:
    assert len({each.key for each in ATTRIBUTES}) == len(ATTRIBUTES) == len(UNUSUAL)


PLAIN = ["p", "f", "w", "x", "o", "a", "generation", "initial", "late", "durable", "d", "spared"]


@given(
    st.sampled_from(Way),
    st.sets(st.sampled_from(PLAIN)),
)
def test_attributes_do_not_disturb_each_other(way: Way, keys: set[str]) -> None:
    message = made(*sorted(keys))
    found = JOURNEYS[way](message)
    for attribute in ATTRIBUTES:
        if attribute.key in keys and way in attribute.ways:
            assert value_after(attribute, found) == plain(attribute.value(message))


def test_a_record_that_ends_and_has_no_lifetime_gets_none() -> None:
    found = unpack_message(ID, b'{"v":1,"c":"/a","f":true}\n{}')
    assert (found.life_ms, found.expires_ms) == (None, 0)
