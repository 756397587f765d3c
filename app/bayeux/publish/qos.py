"""The QoS of a publish: its `ext.delivery`."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

from holdfast.bayeux.publish.point_to_point import PTP
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.destinations import Destination, DestinationInvalid, destinations_of
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.known_options import (
    LONGEST_MS,
    SAID_BY_RECEIVERS,
    QosInvalid,
    refuse_others,
)
from holdfast.bayeux.wire.topic_options import TopicOptions
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.basics.node import Node
from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.messages.publish_key import PublishKey, publish_key_of
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.requests.request import ReplyMode, Request

_LONGEST_KEY = 255
# Of the digest of a key: a multiple of three, so that base64 needs no padding.
_DIGEST_BYTES = 15


class Diversion(NamedTuple):
    """An option because of which the message is not published now."""

    option: str
    value: int
    # The options that apply when the message is published.
    later: Mapping[str, Any]


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
    # Whether such a publish leaves a topic as it is that is configured.
    only_makes: bool = field(default=False, compare=False, repr=False)
    # Whether to deliver the message even if the channel's newest message has the same data.
    force_update: bool = True
    # Whether an addressed message gets a channel for itself, and the name of that channel.
    generates_channel: bool = field(default=False, compare=False, repr=False)
    channel: str = field(default="", compare=False, repr=False)
    diversion: Diversion | None = field(default=None, compare=False, repr=False)
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
        refuse_others(asked, _KNOWN)
        qos = cls()
        for option in OPTIONS:
            if option.name in asked:
                option.read(qos, asked[option.name], asked)
        return qos

    def divert(self, option: str, value: int, asked: Mapping[str, Any]) -> None:
        """Do not publish the message now. If several options say so, the first one applies now."""
        if self.diversion is None:
            left_out = {option, *_ONLY_NOW}
            later = {name: asked[name] for name in asked if name not in left_out}
            self.diversion = Diversion(option, value, later)

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

    def confirmation(self, node: Node) -> Mapping[str, Any]:
        """Return the content of the reply. A repeat gets what the first reply said.

        Args:
            node: Knows how message ids begin.
        """
        message = self.message
        if message is None:
            return {"state": "OK"}
        key = publish_key_of(message)
        first = message.id if key is None else key.first or message.id
        confirmed: dict[str, Any] = {
            "state": "OK",
            "id": node.id_of(first),
            "rcvTimestamp": str(first),
        }
        if self.diversion is not None:
            confirmed[self.diversion.option] = self.diversion.value
        if self.channel:
            confirmed["channel"] = self.channel
        if self.outcomes:
            confirmed["destinations"] = self.outcomes
        return confirmed


Read = Callable[[Qos, object, Mapping[str, Any]], None]


class Option(NamedTuple):
    """An option of a publish: a row of the table."""

    name: str
    # Sets the option in the QoS, from its value and with all options. Raises `QosInvalid`.
    read: Read
    # Whether a message that is not published now has done with it when it is accepted.
    is_only_now: bool = False


def _priority(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    priority = whole(value)
    if priority is None or not 0 <= priority <= 9:
        raise QosInvalid("priority")
    qos.priority = priority


def _persistent(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    if value is not None and type(value) is not bool:
        raise QosInvalid("persistent")
    qos.persistent = value


def _properties(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise QosInvalid("properties")
    qos.properties = value


def _expiration(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise QosInvalid("expiration")
    life_ms = whole(value.get("lifeTime", -1))
    if value.keys() - {"lifeTime", "forceDestroy"}:
        raise QosInvalid("expiration")
    if life_ms is None or not -1 <= life_ms <= LONGEST_MS:
        raise QosInvalid("expiration.lifeTime")
    force_destroy = value.get("forceDestroy", False)
    if type(force_destroy) is not bool:
        raise QosInvalid("expiration.forceDestroy")
    qos.life_ms, qos.force_destroy = None if life_ms < 0 else life_ms, force_destroy


def _key(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    if value is not None and not (isinstance(value, str) and 1 <= len(value) <= _LONGEST_KEY):
        raise QosInvalid("key")
    qos.key = value


def _refuse_held(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    if type(value) is not bool:
        raise QosInvalid("refuseHeld")
    qos.refuse_held = value


def _delay(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    delay_ms = whole(value)
    if delay_ms is None or not 0 <= delay_ms <= LONGEST_MS:
        raise QosInvalid("delay")
    if delay_ms:
        qos.divert("delay", delay_ms, asked)


def _subscribable(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    if value is not None and type(value) is not bool:
        raise QosInvalid("subscribable")
    if value is False and asked.get("destinations") is None:
        # No receiver would get it.
        raise QosInvalid("subscribable")
    qos.is_subscribable = value is not False


def _destinations(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    try:
        qos.destinations = () if value is None else destinations_of(value)
    except DestinationInvalid as invalid:
        raise QosInvalid("destinations") from invalid


def _administrative(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    is_administrative = value or False
    if type(is_administrative) is not bool or (is_administrative and qos.destinations):
        raise QosInvalid("administrative")
    qos.is_administrative = is_administrative


def _force_update(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    if not isinstance(value, bool | None):
        raise QosInvalid("forceUpdate")
    qos.force_update = value is not False


def _topic(qos: Qos, value: object, asked: Mapping[str, Any]) -> None:
    qos.topic = None if value is None else TopicOptions.of(value)


# In the order in which they are read: the first invalid one is what the error is about.
OPTIONS: Final = (
    Option("priority", _priority),
    Option("persistent", _persistent),
    Option("properties", _properties),
    Option("expiration", _expiration),
    Option("key", _key, is_only_now=True),
    Option("refuseHeld", _refuse_held, is_only_now=True),
    Option("delay", _delay),
    Option("subscribable", _subscribable),
    Option("destinations", _destinations),
    Option("administrative", _administrative),
    Option("forceUpdate", _force_update),
    Option("topic", _topic),
)
OPTION_NAMES: Final = frozenset(option.name for option in OPTIONS)
_KNOWN: Final = SAID_BY_RECEIVERS | OPTION_NAMES
_ONLY_NOW: Final = SAID_BY_RECEIVERS | {option.name for option in OPTIONS if option.is_only_now}


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


def publish_qos(channel: Channel, message: Json) -> Qos | None:
    """Return the publish options of a message, if it has any. Raises `Refused`."""
    asked = message["ext"].get("delivery")
    if asked is None:
        return None
    try:
        qos = Qos.of(asked)
    except QosInvalid as invalid:
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", str(invalid)) from invalid
    if channel.kind is Kind.SERVICE:
        _refuse_for_service(channel, qos)
    return qos


def _refuse_for_service(channel: Channel, qos: Qos) -> None:
    """Refuse options that services do not support."""
    name = ""
    if qos.key is not None and channel.name != PTP:
        # Only point-to-point messages detect repeats.
        name = "key"
    elif qos.destinations:
        # They are in the data of a message to `/service/ptp`.
        name = "destinations"
    elif qos.diversion is not None:
        # Services answer at once, and point-to-point messages say at once what became of them.
        name = qos.diversion.option
    elif qos.configures:
        name = "administrative" if qos.topic is None else "topic"
    if name:
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", name)
