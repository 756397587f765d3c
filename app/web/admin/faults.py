"""What a request that fails is answered with: always JSON, always a code of xmlBlaster's."""

from collections.abc import Mapping

import orjson
from aiohttp import web

from app.web.admin.operations import CONFLICT, ILLEGAL, TOO_LARGE, UNKNOWN_LETTER, UNKNOWN_SESSION
from app.web.admin.shapes import Failure, Fault

# No code of xmlBlaster's is exactly about HTTP.
WRONG_USE = CONFLICT
NOT_SIGNED_IN = "user.security.authentication.accessDenied"
NOT_ALLOWED = "user.security.authorization.notAuthorized"
TOO_OFTEN = "resource.exhaust"
TOO_SLOW = "communication.timeout"
OUR_FAULT = "internal.unknown"

# The longest beginning of a code decides.
_STATUSES = {
    "user": 400,
    UNKNOWN_LETTER: 404,
    UNKNOWN_SESSION: 404,
    CONFLICT: 409,
    TOO_LARGE: 413,
    "user.security": 403,
    "resource": 503,
    "resource.admin": 403,
    "resource.overflow": 507,
    "communication": 503,
    "internal.notImplemented": 501,
}


class RequestFault(Exception):
    """A request that gets no further than the door."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers


def illegal(message: str) -> RequestFault:
    """Something in the request is not as it must be."""
    return RequestFault(400, ILLEGAL, message)


def status_of(code: str) -> int:
    """The HTTP status that comes nearest to a code."""
    steps = code.split(".")
    for length in range(len(steps), 0, -1):
        status = _STATUSES.get(".".join(steps[:length]))
        if status is not None:
            return status
    return 500


def failure(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    """The answer to a request that failed."""
    body = orjson.dumps(Failure(Fault(code, message)))
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
