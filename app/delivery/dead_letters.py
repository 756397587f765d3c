"""What will not be delivered to one receiver, with the reason and every attempt."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, Self

import orjson

from app.delivery.attempts import Attempt, Trail, clipped, first_and_last
from app.delivery.json_text import to_json
from app.delivery.messages import Message

CHANNEL = "/sys/deadMessage"
# In bytes as JSON has it.
MAX_REASON = 360
_CLIENT = "client/"

# What differs between two accounts of the same trouble, the widest first.
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_HEX = re.compile(r"\b0x[0-9a-f]+\b|\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,:]\d+)*")
_SPACE = re.compile(r"\s+")


class State(Enum):
    """What has been done about a dead letter."""

    NEW = "new"
    REPLAYED = "replayed"


class DeadLetter(NamedTuple):
    """One message that one receiver will not get; kept whether or not anybody listens."""

    # When it died: nanoseconds since 1970, 19 digits, so that letters sort by their text.
    id: str
    # The message's own id, which is also when it was received.
    message: int
    channel: str
    # The original event's bytes, and how many they are; lists of letters leave the bytes out.
    wire: bytes
    size: int
    # Absolute names of sessions.
    publisher: str
    receiver: str
    # The receiver's name in the store, and whose session it is.
    key: str
    subject: str
    code: str
    reason: str
    fingerprint: str
    priority: int = 5
    is_durable: bool = False
    properties: Mapping[str, Any] | None = None
    # Those that are known of, and how many there were; how often it was announced as redelivered.
    attempts: Trail = ()
    attempt_count: int = 0
    redelivered: int = 0
    # What the receiver had agreed on: retries, delay and the like.
    policy: Mapping[str, Any] | None = None
    # How often the message had been replayed when it died.
    generation: int = 0
    state: State = State.NEW
    # How often this letter was replayed, and by which job.
    replays: int = 0
    job: str = ""

    @classmethod
    def of(
        cls,
        message: Message,
        *,
        id: str,
        receiver: str,
        code: str,
        reason: str,
        attempts: Sequence[Attempt] = (),
        attempt_count: int = 0,
        redelivered: int = 0,
        policy: Mapping[str, Any] | None = None,
    ) -> Self:
        """The letter for a message that this receiver (an absolute name) will not get."""
        reason = clipped(reason, MAX_REASON)
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
            reason=reason,
            fingerprint=fingerprint(message.channel, code, reason),
            priority=message.priority,
            is_durable=message.is_durable,
            properties=message.properties,
            attempts=first_and_last(attempts),
            attempt_count=attempt_count,
            redelivered=redelivered,
            policy=policy,
            generation=message.generation,
        )

    def letter(self) -> Self:
        """The letter, which is made already."""
        return self

    def envelope(self) -> dict[str, Any]:
        """The data of the event: everything that a client without extensions can see."""
        properties = self.properties
        return {
            "id": self.id,
            "content": orjson.loads(self.wire).get("data"),
            "channel": self.channel,
            "key": {"oid": self.channel},
            "qos": {
                "sender": self.publisher,
                "priority": self.priority,
                "rcvTimestamp": str(self.message),
                "properties": {} if properties is None else dict(properties),
            },
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
        """The event's client properties, named as xmlBlaster names them."""
        told = self.envelope()
        return {
            "__key": orjson.dumps(told["key"]).decode(),
            "__qos": to_json(told["qos"]).decode(),
            "__oid": self.channel,
            "__rcvTimestamp": str(self.message),
            "__deadMessageReason": self.reason,
            "__receiver": self.receiver,
            "__errorCode": self.code,
        }

    def event(self) -> dict[str, Any]:
        """The event that tells of the letter."""
        return {
            "channel": CHANNEL,
            "data": self.envelope(),
            "ext": {"delivery": {"properties": self.event_properties()}},
        }


def key_of(name: str) -> str:
    """What the store calls the session of this absolute name."""
    return name.partition(_CLIENT)[2] or name


def subject_of(name: str) -> str:
    """Whose session this absolute name is."""
    return name.partition(_CLIENT)[2].rpartition("/")[0]


@lru_cache(maxsize=1000)
def fingerprint(channel: str, code: str, reason: str) -> str:
    """The same for what failed alike: on one channel, with one code, for one reason."""
    text = "\0".join((channel, code, normalised(reason)))
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def normalised(reason: str) -> str:
    """The reason without what is particular to one message."""
    text = reason.lower()
    for pattern in (_QUOTED, _UUID, _HEX, _NUMBER):
        text = pattern.sub("#", text)
    return _SPACE.sub(" ", text).strip()
