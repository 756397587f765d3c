"""The record of a publish that waits until it is due: the bytes of a delayed message."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from orjson import loads

from holdfast.delivery.basics.json_text import to_strict_json
from holdfast.delivery.messages.message import Message

_DUE: Final = "due"
_OPTIONS: Final = "delivery"
_EVENT: Final = "event"


class DelayedPublish(NamedTuple):
    """A publish that waits."""

    # In ms since 1970.
    due_ms: int
    # Its `ext.delivery`, as far as it applies when the publish is due.
    options: Mapping[str, Any]
    event: dict[str, Any]


def packed(due_ms: int, options: Mapping[str, Any], event: bytes) -> bytes:
    """Return the record as a JSON object. The event is encoded already."""
    head = to_strict_json({_DUE: due_ms, _OPTIONS: dict(options)})
    return b'%b,"%b":%b}' % (head[:-1], _EVENT.encode(), event)


def publish_in(message: Message) -> DelayedPublish:
    """Return what the delayed message waits to publish.

    Raises `ValueError`, `KeyError` or `TypeError` if another version wrote the record.
    """
    fields = loads(message.wire)
    return DelayedPublish(int(fields[_DUE]), fields[_OPTIONS], fields[_EVENT])
