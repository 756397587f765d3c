"""What webhooks post: a message, or something that happened to the server."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import orjson

from holdfast.bayeux.sessions.channel_holds import ALERT
from holdfast.bayeux.sessions.login_events import LOGOUT
from holdfast.bayeux.state.system_events import HOLDBACK
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import PRESENCE
from holdfast.delivery.letters.dead import CHANNEL as LETTERS

# The channels of the events, by their names in the settings.
CHANNELS: Mapping[str, str] = {
    "letters": LETTERS,
    "holdbacks": HOLDBACK,
    "presence": f"{PRESENCE}**",
    "session_ends": LOGOUT,
    "alerts": ALERT,
}


class BodyType(Enum):
    """What a body tells, as its `type` says it."""

    MESSAGE = "message"
    LETTER = "letter"
    HOLDBACK = "holdback"
    PRESENCE = "presence"
    SESSION_END = "session.end"
    ALERT = "alert"


_TYPES = {
    LETTERS: BodyType.LETTER,
    HOLDBACK: BodyType.HOLDBACK,
    LOGOUT: BodyType.SESSION_END,
    ALERT: BodyType.ALERT,
}


@dataclass(frozen=True, slots=True)
class Body:
    """What is posted for one entry of the webhook's queue."""

    # The same for all attempts, and for repeats after a kill.
    id: str
    text: bytes
    # The number by which the entry is settled, and how many attempts have failed.
    seq: int
    redelivered: int
    # The context of the publish, for the receiver's own spans.
    traceparent: object = None


def body_of(event: Json) -> Body:
    """Return the body of an event as its receiver got it."""
    said: Mapping[str, Any] = event["ext"]["delivery"]
    kind, id = _type_of(event["channel"]), said["id"]
    data = event["data"]
    if kind is BodyType.LETTER:
        id = f"letter-{data['id']}"
    elif kind is BodyType.MESSAGE:
        data = {"channel": event["channel"], "id": id, "sender": said["sender"], "data": data}
        if "properties" in said:
            data["properties"] = said["properties"]
    at = datetime.fromtimestamp(int(said["rcvTimestamp"]) / 1e9, UTC)
    body = {
        "type": kind.value,
        "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "data": data,
    }
    return Body(
        *(id, orjson.dumps(body), said["seq"], said.get("redelivered", 0)),
        traceparent=event["ext"].get("traceparent"),
    )


def _type_of(channel: str) -> BodyType:
    if channel.startswith(PRESENCE):
        return BodyType.PRESENCE
    return _TYPES.get(channel, BodyType.MESSAGE)
