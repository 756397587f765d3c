"""What a shard asks the home of a channel that it publishes to."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from orjson import loads

from holdfast.bayeux.publish.addressed_here import destinations_in, rows_of
from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.point_to_point import accounts_of
from holdfast.bayeux.publish.qos import Promised, Qos
from holdfast.bayeux.state.calls import Asker, Asking
from holdfast.bayeux.wire.topic_options import TopicOptions
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import PublishKey, publish_key_of
from holdfast.delivery.requests.of_others import Asked, asked_by

# What the operation is called.
PUBLISHED: Final = "published"


def asked_of_home(publish: EventPublish, draft: Message, wire: bytes, *, echoes: bool) -> Asking:
    """Return what the home is asked: the encoded event, and how it is published.

    Args:
        draft: The message without an id, with what the publisher asked for.
        echoes: Whether the publisher gets its own message.
    """
    qos, key = publish.qos or Qos(), publish_key_of(draft)
    asked: dict[str, Any] = {
        "enclosed": [Message(wire, channel=draft.channel, sender=draft.sender)],
        "echoes": echoes,
        "accounts": [*accounts_of(publish.sender)],
        "lazy": publish.lazy_s,
        "qos": {name: getattr(qos, name) for name in AS_THEY_ARE},
        "topic": None if qos.topic is None else qos.topic.to_json(),
        "to": rows_of(qos.destinations),
        "key": None if key is None else key.digest,
    }
    if request := asked_by(draft):
        asked["asked"] = [*request]
    return asked


# The options of `Qos` that the home is told as they are.
AS_THEY_ARE: Final = (
    "priority",
    "persistent",
    "life_ms",
    "force_destroy",
    "properties",
    "force_update",
    "is_administrative",
    "only_makes",
    "is_subscribable",
)


class Read(NamedTuple):
    """What a home is asked."""

    publish: EventPublish
    wire: bytes
    # The key of the session that must not get its own message; empty if there is none.
    spared: str
    # The request that is to become work, if it is one.
    asked: Asked | None


def publish_in(asked: Mapping[str, Any], asker: Asker, channels: Channels, now: float) -> Read:
    """Undo `asked_of_home`. Raises `ValueError`, `KeyError` or `TypeError` for another form."""
    [message] = asked["enclosed"]
    qos = Qos(
        **asked["qos"],
        topic=None if asked["topic"] is None else TopicOptions.of(asked["topic"]),
        destinations=destinations_in(asked["to"]),
    )
    key = asked["key"]
    if qos.destinations and key is None:
        # If this process is killed midway, the next one asks all their shards again.
        key = f"letter {asker.name}"
    qos.promised = Promised(message.sender, None if key is None else PublishKey(key))
    wire = message.wire
    publish = EventPublish(channels.named(message.channel), loads(wire), now, qos=qos)
    publish.lazy_s = asked["lazy"]
    publish.far_accounts = asked["accounts"]
    spared = "" if asked["echoes"] else message.sender.removeprefix("client/")
    request = Asked(*asked["asked"]) if "asked" in asked else None
    return Read(publish, wire, spared, request)
