"""Names that the protocol reserves for features; without the feature they are refused.

A client that is told of success counts on something that does not happen.
"""

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.delivery.channels import REPLIES, Channel

# Keys of `ext`. An extension that owns one brings the feature.
RESERVED_EXT = frozenset(["replay", "replyTo", "request", "timeout"])
# Services; one that is installed brings the feature.
_SERVICES = frozenset(["/service/admin", "/service/delivery", "/service/ptp", "/service/topics"])


def refuse_ext(name: str, message: Json) -> None:
    """Refuse a message that asks for a feature which is not there."""
    value = message["ext"][name]
    if value is not None and value is not False:
        raise _not_supported(f"ext.{name}")


def refuse_service(channel: Channel) -> None:
    """Refuse a call that nobody answers, unless it is only unknown."""
    if channel.name in _SERVICES:
        raise _not_supported(channel.name)


def refuse_replies(channel: Channel) -> None:
    """Refuse to publish or subscribe where replies to requests would travel."""
    if channel.name.startswith(REPLIES):
        raise _not_supported(REPLIES)


def _not_supported(name: str) -> Refused:
    return Refused(BayeuxError.NOT_SUPPORTED, "internal.notImplemented", name)
