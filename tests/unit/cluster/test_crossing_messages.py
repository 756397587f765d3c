"""Which messages of a turn are entries of its frame."""

import pytest

from holdfast.cluster.messages import entry_of, framed, message_of, size_of
from holdfast.delivery.messages.crossing import Crossing
from holdfast.delivery.messages.message import Message


def message(id: int, *, crosses: bool = False) -> Message:
    found = Message(b'{"data":1}', id=id, channel="/a", sender="ann")
    found.is_durable = True
    if crosses:
        Crossing.add_to(found)
    return found


def test_only_stored_messages_that_cross_are_framed() -> None:
    messages = [message(1), message(2, crosses=True)]
    assert [size_of(each) > 0 for each in messages] == [False, True]
    assert framed(messages) == [entry_of(messages[1])]


def test_a_message_is_framed_once() -> None:
    crossing = message(1, crosses=True)
    assert [each.id for each in framed([crossing])] == [1]
    assert framed([crossing]) == []
    assert size_of(crossing) == 0


@pytest.mark.parametrize("properties", [None, {"tenant": "x" * 500}])
def test_the_size_of_a_message_is_that_of_its_entry(properties: dict[str, str] | None) -> None:
    crossing = message(1, crosses=True)
    crossing.properties = properties
    crossing.linger_s = None if properties is None else 2.5
    size = size_of(crossing)
    [entry] = framed([crossing])
    assert size == entry.size
    assert message_of(entry).properties == properties
    assert message_of(entry).linger_s == crossing.linger_s
