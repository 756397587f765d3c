"""Kinds of requests: one kind does not wait for all that came before of another."""

import re
from enum import Enum
from typing import Final

_QUESTION: Final = b"GET "
# An upgrade has this in its head.
_UPGRADE: Final = re.compile(b"websocket", re.IGNORECASE)
# They say whether a server lives, and take little. Whoever asks may restart it for want of an
# answer.
PROBES: Final = frozenset({"/healthz", "/readyz"})
_PROBE: Final = re.compile(rb"GET (?:/healthz|/readyz) ")


class RequestKind(bytes, Enum):
    """A kind of requests: what its places begin with, which is read for each that has to wait."""

    PROBE = b"probe "
    # A request without a body on a connection that has had an answer, ...
    QUESTION = b"question "
    # ... and on one that has not: thousands of new clients may come together.
    FIRST_QUESTION = b"first "
    UPGRADE = b"upgrade "
    # A reader of a history that has waited: one message may wake thousands.
    WOKEN = b"woken "
    # A request with the same head as an earlier one on its connection.
    REPEATED = b"repeated "
    # Anything else, which mostly has a body.
    OTHER = b""


# An enum is slow to look into, and thousands of these may come together.
_OTHER: Final = RequestKind.OTHER


def kind_of(data: bytes, *, is_first: bool) -> RequestKind:
    """Return the kind of a request by its first bytes, without a look at earlier heads."""
    if not data.startswith(_QUESTION):
        return _OTHER
    if _UPGRADE.search(data):
        return RequestKind.UPGRADE
    if _PROBE.match(data):
        return RequestKind.PROBE
    return RequestKind.FIRST_QUESTION if is_first else RequestKind.QUESTION
