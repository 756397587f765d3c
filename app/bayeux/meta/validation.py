"""Checks of a message by itself, and what its reply repeats from it."""

from typing import Final

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.unfit import Unfit
from holdfast.delivery.basics.channels import Channel

_NUMBER: Final = (int, float)
_OBJECT_OR_NULL: Final = (dict, type(None))
# The longest id that contains characters other than letters and digits.
_LONGEST_ID: Final = 255


def validate(state: ServerState, message: Json) -> Channel:
    """Check a message before its sender is checked. Raises `Refused`."""
    if isinstance(message, Unfit):
        is_final = message.fault is ErrorReply.CREDENTIALS_IN_URL
        advice = reconnect_advice(state.options, "none") if is_final else None
        raise Refused(message.fault, advice=advice)
    name = message.get("channel")
    channel = state.channels.get(name) if type(name) is str else None
    if channel is None:
        missing = name is None
        raise Refused(ErrorReply.CHANNEL_MISSING if missing else ErrorReply.CHANNEL_INVALID)
    message_id = message.get("id")
    if type(message_id) is str:
        if not (message_id.isascii() and (message_id.isalnum() or _is_printable(message_id))):
            raise Refused(ErrorReply.MESSAGE_ID_INVALID)
    elif message_id is not None and (type(message_id) is not int or message_id < 0):
        raise Refused(ErrorReply.MESSAGE_ID_INVALID)
    if "ext" in message and type(message["ext"]) not in _OBJECT_OR_NULL:
        raise Refused(ErrorReply.EXT_INVALID)
    if "advice" in message and type(message["advice"]) not in _OBJECT_OR_NULL:
        raise Refused(ErrorReply.ADVICE_INVALID)
    return channel


def _is_printable(message_id: str) -> bool:
    """Return whether an ASCII id is outside of Bayeux's alphabet but printable, as UUIDs are.

    Ids of letters and digits, as in Bayeux, may be longer.
    """
    return 0 < len(message_id) <= _LONGEST_ID and message_id.isprintable()


def skeleton(message: Json) -> Json:
    """Return the fields that every reply repeats from its message."""
    channel, message_id = message.get("channel"), message.get("id")
    reply: Json = {"channel": channel} if type(channel) is str else {}
    if type(message_id) is str:
        reply["id"] = message_id
    elif type(message_id) in _NUMBER:
        reply["id"] = str(message_id)
    if "subscription" in message and message["subscription"] is not None:
        reply["subscription"] = message["subscription"]
    return reply
