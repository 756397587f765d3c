"""Recognizes requests with one message by their bytes, before they are decoded."""

import re
from typing import Final

_CHANNEL: Final = b'"channel"'
_NAME_OF_CONNECTS: Final = b'"/meta/connect"'
_NAME_OF_HANDSHAKES: Final = b'"/meta/handshake"'
_NAME_OF_DISCONNECTS: Final = b'"/meta/disconnect"'
_CONNECT: Final = re.compile(rb'"channel"\s*:\s*"/meta/connect"')
_HANDSHAKE: Final = re.compile(rb'"channel"\s*:\s*"/meta/handshake"')
_DISCONNECT: Final = re.compile(rb'"channel"\s*:\s*"/meta/disconnect"')


def is_lone_connect(data: bytes) -> bool:
    """Return whether a request is a connect, without messages whose order matters."""
    return _is_alone(data, _NAME_OF_CONNECTS, _CONNECT)


def is_lone_handshake(data: bytes) -> bool:
    """Return whether a request is a handshake and nothing else."""
    return _is_alone(data, _NAME_OF_HANDSHAKES, _HANDSHAKE)


def is_lone_disconnect(data: bytes) -> bool:
    """Return whether a request is a disconnect and nothing else."""
    return _is_alone(data, _NAME_OF_DISCONNECTS, _DISCONNECT)


def _is_alone(data: bytes, name: bytes, found: re.Pattern[bytes]) -> bool:
    """Return whether the only channel in a request has this name."""
    if data.find(name) < 0:
        return False
    # An expression takes long to go through all data.
    start = data.rfind(_CHANNEL)
    return data.find(_CHANNEL) == start and found.match(data, start) is not None
