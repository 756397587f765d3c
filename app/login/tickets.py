"""Tickets: with one in its URL, a request may read some channels for some minutes.

A ticket contains the login of the client that asked for it, so revoking the login ends the ticket.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import jwt

from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.login import Login

# No ticket is valid for longer, in seconds.
LONGEST_S: Final = 600
# The longest text of a ticket: URLs must stay short.
_LONGEST: Final = 4096
_ALGORITHM: Final = "HS256"
_AUDIENCE: Final = "holdfast-ticket"


class Ticket(NamedTuple):
    """What a ticket says."""

    login: Login
    channels: Sequence[str]
    ends_s: int


class Tickets:
    """Signs and reads tickets.

    Args:
        key: The secret of the deployment: all its servers know it.
    """

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key=key, person=b"ticket", digest_size=32).digest()

    def signed(self, ticket: Ticket) -> str:
        """Return the text of a ticket. Raises `Refused` if it is too long."""
        claims = {
            "aud": _AUDIENCE,
            "exp": ticket.ends_s,
            "channels": [*ticket.channels],
            "login": ticket.login.to_json(),
        }
        text = jwt.encode(claims, self._key, _ALGORITHM)
        if len(text) > _LONGEST:
            raise Refused(ErrorReply.REQUEST_TOO_LARGE, "the ticket would be too long for a URL")
        return text

    def read(self, text: str) -> Ticket:
        """Undo `signed`. Raises `Refused`."""
        try:
            claims = jwt.decode(
                text[: _LONGEST + 1],
                self._key,
                [_ALGORITHM],
                audience=_AUDIENCE,
                options={"require": ["exp", "aud"]},
            )
            return Ticket(Login.of_json(claims["login"]), claims["channels"], int(claims["exp"]))
        except jwt.ExpiredSignatureError:
            raise Refused(ErrorReply.TICKET_EXPIRED) from None
        except (jwt.PyJWTError, LookupError, TypeError, ValueError):
            raise Refused(ErrorReply.HANDSHAKE_DENIED) from None
