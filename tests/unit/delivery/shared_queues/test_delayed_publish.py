"""The record of a publish that waits until it is due."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message
from holdfast.delivery.shared_queues.delayed_publish import packed, publish_in

VALUES = st.dictionaries(st.text(max_size=5), st.integers(-5, 5) | st.text(max_size=5), max_size=3)


def waiting(wire: bytes) -> Message:
    return Message(wire, id=1, channel="/a", sender="client/joe/1")


@given(due_ms=st.integers(0, 2**42), options=VALUES, event=VALUES)
def test_a_publish_is_read_as_it_was_packed(
    due_ms: int, options: dict[str, Any], event: dict[str, Any]
) -> None:
    wire = packed(due_ms, options, to_json(event))
    assert publish_in(waiting(wire)) == (due_ms, options, event)


def test_the_record_is_an_object_whose_first_field_is_the_time() -> None:
    wire = packed(5, {"priority": 9}, b'{"data":1}')
    assert wire == b'{"due":5,"delivery":{"priority":9},"event":{"data":1}}'


@pytest.mark.parametrize("left_out", ["due", "delivery", "event"])
def test_a_record_without_one_of_its_fields_is_unreadable(left_out: str) -> None:
    fields = json.loads(packed(5, {}, b"{}"))
    del fields[left_out]
    with pytest.raises(KeyError):
        publish_in(waiting(to_json(fields)))
