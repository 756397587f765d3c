"""The form of letters by which a shard publishes to a channel with a home, and of answers.

A letter is a line with a JSON object, and the encoded event.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from orjson import loads

from holdfast.bayeux.publish.addressed_letter import destinations_in, rows_of
from holdfast.bayeux.publish.event import EventPublish, Far
from holdfast.bayeux.publish.point_to_point import accounts_of
from holdfast.bayeux.publish.qos import Promised, Qos
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.topic_options import TopicOptions
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import PublishKey, publish_key_of
from holdfast.delivery.messages.shard_letter import ShardLetter
from holdfast.delivery.requests.of_others import Asked, asked_by

# What the letter is called in the log.
PUBLISHED: Final = "published"


class State(Enum):
    """What became of a publish at the home of its channel."""

    KEPT = "kept"
    # An earlier message has the same key: the answer has its id.
    REPEATED = "repeated"
    # The newest message has the same data, and the publisher wants no repeat; or the publish only
    # configures a topic.
    UNCHANGED = "unchanged"
    # It has the same data as a message of which this is unknown.
    UNKNOWN = "unknown"
    REFUSED = "refused"
    # The store of the home does not take it.
    NOT_STORED = "not stored"


class Answer(NamedTuple):
    """The answer of the home."""

    state: State
    # The id of the message.
    id: int = 0
    # The error and its arguments.
    error: str = ""
    args: Sequence[str] = ()
    # A report for each destination, as in the reply.
    outcomes: Sequence[Mapping[str, Any]] = ()

    @property
    def refused(self) -> Refused:
        """The refusal, if it is one."""
        ext = {"delivery": {"destinations": self.outcomes}} if self.outcomes else None
        return Refused(ErrorReply[self.error], *self.args, ext=ext)

    def to_json(self) -> bytes:
        """Return the answer as bytes."""
        fields = {**self._asdict(), "state": self.state.value}
        if not self.outcomes:
            del fields["outcomes"]
        return to_json(fields)


def answer_of(answer: bytes) -> Answer:
    """Undo `Answer.to_json`. Raises `ValueError`, `KeyError` or `TypeError` for another form."""
    fields = loads(answer)
    found = Answer(**{**fields, "state": State(fields["state"])})
    if found.state is State.REFUSED:
        ErrorReply[found.error]
    return found


def packed(publish: EventPublish, draft: Message, wire: bytes, *, echoes: bool) -> bytes:
    """Return the letter.

    Args:
        draft: The message without an id, with what the publisher asked for.
        echoes: Whether the publisher gets its own message.
    """
    qos, key = publish.qos or Qos(), publish_key_of(draft)
    head: dict[str, Any] = {
        "channel": draft.channel,
        "sender": draft.sender,
        "echoes": echoes,
        "accounts": [*accounts_of(publish.sender)],
        "lazy": publish.lazy_s,
        "persistent": qos.persistent,
        "priority": qos.priority,
        "life": qos.life_ms,
        "force": qos.force_destroy,
        "properties": qos.properties,
        "update": qos.force_update,
        "topic": None if qos.topic is None else qos.topic.to_json(),
        "administrative": qos.is_administrative,
        "makes": qos.only_makes,
        "key": None if key is None else key.digest,
    }
    if qos.destinations:
        head["to"] = rows_of(qos.destinations)
        head["subscribable"] = qos.is_subscribable
    if asked := asked_by(draft):
        head["asked"] = [*asked]
    return to_json(head) + b"\n" + wire


class Read(NamedTuple):
    """What a letter asks for."""

    publish: EventPublish
    wire: bytes
    # The key of the session that must not get its own message; empty if there is none.
    spared: str
    # The request that is to become work, if it is one.
    asked: Asked | None


def publish_in(letter: ShardLetter, channels: Channels, now: float) -> Read:
    """Undo `packed`. Raises `ValueError`, `KeyError` or `TypeError` for another form."""
    line, _, wire = letter.data.partition(b"\n")
    head: Mapping[str, Any] = loads(line)
    qos = Qos(
        priority=head["priority"],
        persistent=head["persistent"],
        life_ms=head["life"],
        force_destroy=head["force"],
        properties=head["properties"],
        # An earlier release did not say it.
        force_update=head.get("update", True),
        topic=None if head.get("topic") is None else TopicOptions.of(head["topic"]),
        is_administrative=head.get("administrative", False),
        only_makes=head.get("makes", False),
        destinations=destinations_in(head.get("to", ())),
        is_subscribable=head.get("subscribable", True),
    )
    key, sender = head["key"], head["sender"]
    if qos.destinations and key is None:
        # If this process is killed midway, the next one sends them all letters again.
        key = f"letter {letter.name}"
    qos.promised = Promised(sender, None if key is None else PublishKey(key))
    publish = EventPublish(channels.named(head["channel"]), loads(wire), now, qos=qos)
    publish.lazy_s = head["lazy"]
    publish.far = Far(accounts=head["accounts"])
    spared = "" if head["echoes"] else sender.removeprefix("client/")
    asked = Asked(*head["asked"]) if "asked" in head else None
    return Read(publish, wire, spared, asked)
