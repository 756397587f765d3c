"""Dead letters: the record of a message that one receiver will not get."""

import hashlib
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, Self

import orjson

from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.basics.error_codes import said_of
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.trails import Trail, clipped

CHANNEL = "/sys/deadMessage"
# Bytes of JSON.
MAX_REASON = 360
_CLIENT = "client/"


class LetterState(Enum):
    """Whether operators have replayed or discarded the letter."""

    NEW = "new"
    REPLAYED = "replayed"


class DeadLetter(NamedTuple):
    """A message that one receiver will not get. It is stored even if nothing listens for it."""

    # When it died: nanoseconds since 1970 in 19 digits, so that ids sort as text.
    id: str
    # The message id, which is also the time at which the server received the message.
    message: int
    channel: str
    # The event and its size in bytes. Lists of letters omit the event.
    wire: bytes
    size: int
    # The publisher and the receiver, as absolute session names.
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
    # The lifetime that the publisher set: `lifeTime` and `forceDestroy`.
    expiration: Mapping[str, Any] | None = None
    # The attempts kept, the number of all attempts, and the number of redeliveries.
    attempts: Trail = ()
    attempt_count: int = 0
    redelivered: int = 0
    # The receiver's terms: retries, delay and others.
    policy: Mapping[str, Any] | None = None
    # How often the message had been replayed when it died.
    generation: int = 0
    state: LetterState = LetterState.NEW
    # How often this letter was replayed, and by which job.
    replays: int = 0
    job: str = ""
    # The reason without the meaning of the code, for the journal. Empty in stored letters.
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
        """Create the letter for a message and a receiver, named by its absolute name."""
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

    @property
    def said(self) -> str:
        """The text of the receiver, or of the server, in the reason; empty without one."""
        return said_of(self.code, self.reason)

    def letter(self) -> Self:
        """Return the letter itself: callers treat it like an `UnwrittenLetter`."""
        return self

    def envelope(self) -> dict[str, Any]:
        """Return the data of the event, which is all that clients without extensions can read."""
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
        """Return the event's client properties under xmlBlaster's names."""
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
    """Return the subject in an absolute name."""
    return name.partition(_CLIENT)[2].rpartition("/")[0]


def pattern_of(channel: str) -> str:
    """Return the pattern of a channel and others that differ in a number, or an id with digits."""
    if channel.startswith(REPLIES):
        return f"{REPLIES}*"
    parts = channel.split("/")
    return "/".join("*" if any(map(str.isdigit, part)) else part for part in parts)


@lru_cache(maxsize=1000)
def fingerprint(channel: str, code: str) -> str:
    """Return a hash shared by all letters that failed on one channel with one code.

    It ignores the reason, whose wording may change or name a message. All reply channels count as
    one, because each request has its own.
    """
    if channel.startswith(REPLIES):
        channel = REPLIES
    text = f"{channel}\0{code}"
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()
