"""Names that the protocol reserves for features. Without the feature, they are refused.

If the server accepted them, clients would rely on a feature that does not exist.
"""

from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import REPLIES, Channel

# Keys of `ext`. An extension that owns a key provides the feature.
RESERVED_EXT = frozenset(["replyTo", "request", "timeout"])
# Services. A service that is installed provides the feature.
_SERVICES = frozenset(["/service/admin", "/service/delivery"])


def refuse_ext(name: str, message: Json) -> None:
    """Refuse a message that asks for a missing feature."""
    value = message["ext"][name]
    if value is not None and value is not False:
        raise not_supported(f"ext.{name}")


def refuse_service(channel: Channel) -> None:
    """Refuse a call of a reserved service that is not installed."""
    if channel.name in _SERVICES:
        raise not_supported(channel.name)


def refuse_replies(channel: Channel) -> None:
    """Refuse to publish or subscribe to reply channels."""
    if channel.name.startswith(REPLIES):
        raise not_supported(REPLIES)


def not_supported(name: str) -> Refused:
    """Return the refusal of a missing feature, by its name."""
    return Refused(ErrorReply.NOT_SUPPORTED, "internal.notImplemented", name)
