"""Operations that rights are about."""

from enum import Enum


class Operation(Enum):
    """A client's operation on a channel."""

    # Members are compared by identity; Enum's own hash is a slow Python function.
    __hash__ = object.__hash__

    CREATE = "create"
    SUBSCRIBE = "subscribe"
    PUBLISH = "publish"
    # Address a message that is published on the channel.
    PTP = "ptp"
    # Publish a message that asks for replies.
    REQUEST = "request"
    # See what the channel keeps: the newest messages, with a subscribe or without.
    HISTORY = "history"
    # Begin a subscription at any place in what the channel keeps.
    REPLAY = "replay"
    # Erase the topic of the channel.
    ERASE = "erase"
    # See who is on the channel.
    PRESENCE = "presence"
