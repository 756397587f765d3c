"""Dead letters: what they say of a message that `undelivered` has declared dead."""

import hashlib
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, Self

import orjson

from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.trails import Trail, clipped

CHANNEL = "/sys/deadMessage"
# In bytes of JSON.
MAX_REASON = 360
_CLIENT = "client/"


class LetterState(Enum):
    """The state of a dead letter: whether operators have replayed it."""

    NEW = "new"
    REPLAYED = "replayed"


class DeadLetter(NamedTuple):
    """A message that one receiver will not get; stored whether or not anybody listens."""

    # When it died: nanoseconds since 1970 in 19 digits, so that letters sort as text.
    id: str
    # The message's id, which is also when it was received.
    message: int
    channel: str
    # The event's bytes and their number; lists of letters omit the bytes.
    wire: bytes
    size: int
    # Absolute names of sessions.
    publisher: str
    receiver: str
    # The receiver's `key` and subject.
    key: str
    subject: str
    code: str
    reason: str
    fingerprint: str
    priority: int = 5
    is_durable: bool = False
    properties: Mapping[str, Any] | None = None
    # The lifetime that its publisher gave the message: `lifeTime` and `forceDestroy`.
    expiration: Mapping[str, Any] | None = None
    # The attempts that are kept, how many there were, and how many were sent as redeliveries.
    attempts: Trail = ()
    attempt_count: int = 0
    redelivered: int = 0
    # What the receiver had negotiated: retries, delay and the like.
    policy: Mapping[str, Any] | None = None
    # How often the message had been replayed when it died.
    generation: int = 0
    state: LetterState = LetterState.NEW
    # How often this letter was replayed, and by which job.
    replays: int = 0
    job: str = ""
    # The reason without the meaning of the code, for the journal; stored letters have none.
    text: str = ""

    @classmethod
    def of(
        cls,
        message: Message,
        *,
        id: str,
        receiver: str,
        code: str,
        reason: str,
        text: str = "",
        attempts: Trail = (),
        attempt_count: int = 0,
        redelivered: int = 0,
        policy: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make the letter for a message that this receiver (an absolute name) will not get."""
        return cls(
            id=id,
            message=message.id,
            channel=message.channel,
            wire=message.wire,
            size=len(message.wire),
            publisher=message.sender,
            receiver=receiver,
            key=key_of(receiver),
            subject=subject_of(receiver),
            code=code,
            reason=clipped(reason, MAX_REASON),
            fingerprint=fingerprint(message.channel, code),
            priority=message.priority,
            is_durable=message.is_durable,
            properties=message.properties,
            expiration=message.expiration,
            attempts=attempts,
            attempt_count=attempt_count,
            redelivered=redelivered,
            policy=policy,
            generation=message.generation,
            text=text,
        )

    def letter(self) -> Self:
        """Return the letter itself, for callers that may also have a letter still to be made."""
        return self

    def envelope(self) -> dict[str, Any]:
        """Return the data of the event: all that clients without extensions can see."""
        properties = self.properties
        qos: dict[str, Any] = {
            "sender": self.publisher,
            "priority": self.priority,
            "rcvTimestamp": str(self.message),
            "properties": {} if properties is None else dict(properties),
        }
        if self.expiration is not None:
            qos["expiration"] = dict(self.expiration)
        return {
            "id": self.id,
            "content": orjson.loads(self.wire).get("data"),
            "channel": self.channel,
            "key": {"oid": self.channel},
            "qos": qos,
            "errorCode": self.code,
            "reason": self.reason,
            "receiver": self.receiver,
            "rcvTimestamp": str(self.message),
            "attempts": [attempt.to_json() for attempt in self.attempts],
            "attemptCount": self.attempt_count,
            "redelivered": self.redelivered,
            "fingerprint": self.fingerprint,
            "generation": self.generation,
        }

    def event_properties(self) -> dict[str, str]:
        """Return the event's client properties, with xmlBlaster's names."""
        data = self.envelope()
        return {
            "__key": orjson.dumps(data["key"]).decode(),
            "__qos": to_json(data["qos"]).decode(),
            "__oid": self.channel,
            "__rcvTimestamp": str(self.message),
            "__deadMessageReason": self.reason,
            "__receiver": self.receiver,
            "__errorCode": self.code,
        }

    def event(self) -> dict[str, Any]:
        """Return the event that announces the letter."""
        return {
            "channel": CHANNEL,
            "data": self.envelope(),
            "ext": {"delivery": {"properties": self.event_properties()}},
        }


def key_of(name: str) -> str:
    """Return the `key` of the session with this absolute name."""
    return name.partition(_CLIENT)[2] or name


def subject_of(name: str) -> str:
    """Return the subject of an absolute name."""
    return name.partition(_CLIENT)[2].rpartition("/")[0]


@lru_cache(maxsize=1000)
def fingerprint(channel: str, code: str) -> str:
    """Return a hash that letters share if they failed alike: on one channel with one code.

    The reason is for people: it may name a message, and its wording may change. All channels for
    replies are one here, because each request has a channel of its own.
    """
    if channel.startswith(REPLIES):
        channel = REPLIES
    text = f"{channel}\0{code}"
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()
