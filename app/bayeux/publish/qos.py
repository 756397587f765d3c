"""The QoS of a publish: its `ext.delivery`."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, Self

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.destinations import Destination, DestinationInvalid, destinations_of
from holdfast.bayeux.wire.known_options import (
    LONGEST_MS,
    SAID_BY_RECEIVERS,
    QosInvalid,
    refuse_others,
)
from holdfast.bayeux.wire.topic_options import TopicOptions
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.messages.publish_key import PublishKey, publish_key_of
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.requests.request import ReplyMode, Request

_OPTIONS = SAID_BY_RECEIVERS | {
    "priority",
    "persistent",
    "expiration",
    "properties",
    "key",
    "refuseHeld",
    "delay",
    "destinations",
    "subscribable",
    "topic",
    "administrative",
    "forceUpdate",
}
_LONGEST_KEY = 255
# Of the digest of a key: a multiple of three, so that base64 needs no padding.
_DIGEST_BYTES = 15


class Promised(NamedTuple):
    """What a message keeps of its publish, which was accepted earlier and is carried out now."""

    # The publisher's absolute session name; its session may have ended.
    sender: str
    # Identifies the publish, so that it is carried out once; None if the store does not have it.
    key: PublishKey | None


@dataclass(slots=True)
class Qos:
    """The QoS of one message, and its confirmation to the publisher."""

    priority: int = ORDINARY_PRIORITY
    # None means that the channel and the receivers decide.
    persistent: bool | None = None
    life_ms: int | None = None
    # Whether the message leaves every queue when its lifetime ends.
    force_destroy: bool = False
    properties: Mapping[str, Any] | None = None
    # The publish key, which identifies a repeat.
    key: str | None = None
    # Whether to refuse the message instead of queueing it while its channel is held.
    refuse_held: bool = False
    # The destinations that the message is addressed to.
    destinations: tuple[Destination, ...] = ()
    # Whether an addressed message also goes to the subscribers of its channel.
    is_subscribable: bool = True
    # The configuration of the topic, if this is its first message or an administrative publish.
    topic: TopicOptions | None = None
    # Whether the publish only configures the topic.
    is_administrative: bool = False
    # Whether to deliver the message even if the channel's newest message has the same data.
    force_update: bool = True
    # Whether an addressed message gets a channel for itself, and the name of that channel.
    generates_channel: bool = field(default=False, compare=False, repr=False)
    channel: str = field(default="", compare=False, repr=False)
    # How long the message waits before it is published, and the other options, which apply then.
    delay_ms: int = field(default=0, compare=False, repr=False)
    when_due: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    promised: Promised | None = field(default=None, compare=False, repr=False)
    # The request that the message carries.
    request: Request[Session] | None = field(default=None, compare=False, repr=False)
    # The outcome for each destination.
    outcomes: Sequence[Mapping[str, Any]] = field(default=(), compare=False, repr=False)
    message: Message | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, asked: object) -> Self:
        """Read the requested QoS. Raises `QosInvalid`."""
        if not isinstance(asked, Mapping):
            raise QosInvalid("delivery")
        refuse_others(asked, _OPTIONS)
        priority = whole(asked.get("priority", ORDINARY_PRIORITY))
        if priority is None or not 0 <= priority <= 9:
            raise QosInvalid("priority")
        persistent = asked.get("persistent")
        if persistent is not None and type(persistent) is not bool:
            raise QosInvalid("persistent")
        properties = asked.get("properties")
        if properties is not None and not isinstance(properties, Mapping):
            raise QosInvalid("properties")
        life_ms, force_destroy = _life(asked.get("expiration"))
        key = asked.get("key")
        if key is not None and not (isinstance(key, str) and 1 <= len(key) <= _LONGEST_KEY):
            raise QosInvalid("key")
        refuse_held = asked.get("refuseHeld", False)
        if type(refuse_held) is not bool:
            raise QosInvalid("refuseHeld")
        delay_ms = whole(asked.get("delay", 0))
        if delay_ms is None or not 0 <= delay_ms <= LONGEST_MS:
            raise QosInvalid("delay")
        destinations, is_subscribable = _addresses(asked)
        topic = asked.get("topic")
        is_administrative = asked.get("administrative") or False
        if type(is_administrative) is not bool or (is_administrative and destinations):
            raise QosInvalid("administrative")
        if not isinstance(asked.get("forceUpdate"), bool | None):
            raise QosInvalid("forceUpdate")
        return cls(
            priority,
            persistent,
            life_ms,
            force_destroy,
            properties,
            key,
            refuse_held,
            destinations,
            is_subscribable,
            None if topic is None else TopicOptions.of(topic),
            is_administrative,
            asked.get("forceUpdate") is not False,
            delay_ms=delay_ms,
            when_due=_when_due(asked) if delay_ms else {},
        )

    def qualify(self, message: Message, sender: Session | None = None) -> None:
        """Set the QoS on the message."""
        self.message = message
        key = None if self.key is None or sender is None else key_of(sender, self.key)
        message.priority = self.priority
        message.properties = self.properties
        if self.life_ms is not None:
            message.limit_life(self.life_ms, is_forced=self.force_destroy)
        if self.promised is not None:
            message.sender, key = self.promised
        if key is not None:
            key.identify(message)
        if self.request is not None:
            self.request.enter(message)

    @property
    def configures(self) -> bool:
        """Whether it may configure a topic."""
        return self.is_administrative or self.topic is not None

    @property
    def asks_one(self) -> bool:
        """Whether a single receiver gets the message: it is a request for one reply."""
        return self.request is not None and self.request.mode is ReplyMode.ONE

    @property
    def concerns_topic(self) -> bool:
        """Whether the topic decides what happens to the message."""
        return self.configures or not self.force_update

    def confirmation(self, node: str) -> Mapping[str, Any]:
        """Return the content of the reply. A repeat gets what the first reply said.

        Args:
            node: The name of this server, with which message ids begin.
        """
        message = self.message
        if message is None:
            return {"state": "OK"}
        key = publish_key_of(message)
        first = message.id if key is None else key.first or message.id
        confirmed: dict[str, Any] = {
            "state": "OK",
            "id": f"{node}-{first}",
            "rcvTimestamp": str(first),
        }
        if self.delay_ms:
            confirmed["delay"] = self.delay_ms
        if self.channel:
            confirmed["channel"] = self.channel
        if self.outcomes:
            confirmed["destinations"] = self.outcomes
        return confirmed


def _when_due(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options that apply when a delayed message is published."""
    now = SAID_BY_RECEIVERS | {"delay", "key", "refuseHeld"}
    return {name: value for name, value in asked.items() if name not in now}


def _addresses(asked: Mapping[str, Any]) -> tuple[tuple[Destination, ...], bool]:
    is_subscribable = asked.get("subscribable")
    if is_subscribable is not None and type(is_subscribable) is not bool:
        raise QosInvalid("subscribable")
    if asked.get("destinations") is None:
        if is_subscribable is False:
            # No receiver would get it.
            raise QosInvalid("subscribable")
        return (), True
    try:
        return destinations_of(asked["destinations"]), is_subscribable is not False
    except DestinationInvalid as invalid:
        raise QosInvalid("destinations") from invalid


def _life(expiration: object) -> tuple[int | None, bool]:
    if expiration is None:
        return None, False
    if not isinstance(expiration, Mapping):
        raise QosInvalid("expiration")
    life_ms = whole(expiration.get("lifeTime", -1))
    if expiration.keys() - {"lifeTime", "forceDestroy"}:
        raise QosInvalid("expiration")
    if life_ms is None or not -1 <= life_ms <= LONGEST_MS:
        raise QosInvalid("expiration.lifeTime")
    force_destroy = expiration.get("forceDestroy", False)
    if type(force_destroy) is not bool:
        raise QosInvalid("expiration.forceDestroy")
    return (None if life_ms < 0 else life_ms), force_destroy


def key_of(session: Session, given: str) -> PublishKey:
    """Return the publish key for a text that this session's client chose."""
    text = f"{_owner(session)}\n{given}".encode()
    return PublishKey(urlsafe_b64encode(blake2b(text, digest_size=_DIGEST_BYTES).digest()).decode())


def _owner(session: Session) -> str:
    """Return who may repeat the publish: a subject, from any of its sessions.

    Without a subject it is the browser, whose secret cookie survives a reload of the page. Without
    cookies it is the session, because each session gets a new cookie.
    """
    if session.subject != NOBODY:
        return f"subject {session.subject}"
    return f"browser {session.identity.browser or session.client_id}"
