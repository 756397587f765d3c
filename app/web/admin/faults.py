"""Failures of requests: JSON with one of xmlBlaster's codes and a message."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import orjson
from aiohttp import web
from pydantic import Field

from holdfast.bayeux.wire.command_refused import ILLEGAL, OUR_FAULT, CommandRefused
from holdfast.store.links.connection import StoreUnavailable

log = logging.getLogger(__name__)

# The named object does not exist.
UNKNOWN_SESSION = "user.notConnected"
UNKNOWN = "user.oid.unknown"
# The operation is impossible now, such as cancelling a replay that is over.
CONFLICT = "user.wrongApiUsage"
TOO_LARGE = "user.maxSizeExceed"
STORE_UNAVAILABLE = "resource.db.unavailable"
AWAY_FOR_NOW = "resource.temporary.unavailable"
# None of xmlBlaster's codes is about HTTP.
WRONG_USE = CONFLICT
NOT_SIGNED_IN = "user.security.authentication.accessDenied"
TOO_OFTEN = "resource.exhaust"
TOO_SLOW = "communication.timeout"

# The longest matching prefix of a code decides.
_STATUSES = {
    "user": 400,
    UNKNOWN: 404,
    UNKNOWN_SESSION: 404,
    CONFLICT: 409,
    TOO_LARGE: 413,
    "user.security": 403,
    "resource": 503,
    "resource.admin": 403,
    "resource.overflow": 507,
    "communication": 503,
}


class RequestFailed(CommandRefused):
    """A request cannot be served; the response has the code and the message."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, message)
        self.status = status_of(code) if status is None else status
        self.headers = headers

    @property
    def body(self) -> bytes:
        return orjson.dumps(Failure(Fault(self.code, self.message)))


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request failed."""

    code: Annotated[str, Field(description="An xmlBlaster error code.")]
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer to a request that failed."""

    error: Fault


def illegal(message: str) -> RequestFailed:
    """Refuse an invalid request."""
    return RequestFailed(ILLEGAL, message)


def status_of(code: str) -> int:
    """Return the HTTP status for a code."""
    steps = code.split(".")
    for length in range(len(steps), 0, -1):
        status = _STATUSES.get(".".join(steps[:length]))
        if status is not None:
            return status
    return 500


def fault_of(error: Exception) -> RequestFailed:
    """Return what a sender is told of a request that has failed with this error."""
    if isinstance(error, RequestFailed):
        return error
    if isinstance(error, CommandRefused):
        return RequestFailed(error.code, error.message)
    if isinstance(error, StoreUnavailable):
        return RequestFailed(STORE_UNAVAILABLE, str(error))
    log.error("an administrative request failed", exc_info=error)
    return RequestFailed(OUR_FAULT, "the server failed; see its log", status=500)


def failure(failed: RequestFailed) -> web.Response:
    """Return the answer to a request that failed."""
    return web.Response(
        status=failed.status,
        body=failed.body,
        content_type="application/json",
        headers=failed.headers,
    )
