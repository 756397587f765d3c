"""Recognizes requests with one message by their bytes, before they are decoded."""

import re
from typing import Final

_CHANNEL: Final = b'"channel"'
_CONNECT: Final = re.compile(rb'"channel"\s*:\s*"/meta/connect"')
_PATIENT: Final = re.compile(rb'"channel"\s*:\s*"/meta/(?:connect|handshake|disconnect)"')


def is_lone_connect(data: bytes) -> bool:
    """Return whether a request is a connect, without messages whose order matters."""
    return _is_alone(data, _CONNECT)


def is_patient(data: bytes) -> bool:
    """Return whether a request is a connect, a handshake or a disconnect, and nothing else."""
    return _is_alone(data, _PATIENT)


def _is_alone(data: bytes, message: re.Pattern[bytes]) -> bool:
    """Return whether the only channel in a request is this one."""
    # An expression takes long to go through all data.
    start = data.rfind(_CHANNEL)
    is_last = start >= 0 and message.match(data, start) is not None
    return is_last and data.find(_CHANNEL) == start
