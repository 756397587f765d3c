"""The administration over HTTP: access control, and the handling of requests."""

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from aiohttp import web

from holdfast.bayeux.limits.buckets import Rate
from holdfast.bayeux.wire.caller import Caller, credentials_in
from holdfast.bayeux.wire.command_refused import (
    ILLEGAL,
    NOT_ALLOWED,
)
from holdfast.delivery.basics.notices import FOREIGN, WRONG_TOKEN, Notices
from holdfast.web.admin import faults
from holdfast.web.admin.faults import RequestFailed, illegal
from holdfast.web.admin.paths import FEED, LINES
from holdfast.web.admin.request_keys import PERSON, Person
from holdfast.web.admin.routing import ANY_PATH, Handlers, Routing
from holdfast.web.admin.throttle import STRANGERS, Throttle
from holdfast.web.admin.tokens import OPERATOR_NAME, Role, Tokens
from holdfast.web.answering.endpoint import LONGEST_SHOWN, Endpoint
from holdfast.web.answering.long_polling import long_poll
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.http.origins import Origins, OriginTrust
from holdfast.web.http.peers import Peers

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "Holdfast",
    "Vary": "Authorization",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_SIGN_IN = {"WWW-Authenticate": 'Bearer realm="holdfast"'}
# A client with a token works in bursts.
_SIGNED_IN = Rate(burst=200, per_s=50)
# What those without a token, and on wrong paths, should do.
_HOW_TO_SIGN_IN = (
    "a valid token is required: send what admin-token in the data directory has, as "
    "Authorization: Bearer TOKEN"
)
_NO_PATH = "this path does not exist: /admin/api/v1/openapi.json has all paths"


class OpenRequests:
    """Requests that may take long: waiting reads, and requests with a body or an answer in lines.

    When their token is replaced, their connections end, as if their clients had left.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        # By identity, because requests are mappings and have no hash.
        self._open: dict[int, tuple[web.Request, str, Role | None]] = {}

    @contextmanager
    def keep(self, request: web.Request, token: str) -> Iterator[None]:
        """Track the request while it is being handled."""
        if not token or (request.method != "GET" and request.content_type != LINES):
            yield
            return
        self._open[id(request)] = request, token, self._tokens.role(token)
        try:
            yield
        finally:
            del self._open[id(request)]

    def end_invalid(self) -> None:
        """End requests whose token is no longer valid, or now belongs to another role."""
        for request, token, role in list(self._open.values()):
            if self._tokens.role(token) is not role and request.transport is not None:
                request.transport.abort()


# Returns the role and the subject of a request by an ordinary login. The role may be empty; None if
# there is no login.
ByLogin = Callable[[Caller, float], Awaitable[tuple[str, str] | None]]


def make_admin(
    handlers: Handlers,
    tokens: Tokens,
    clock: Callable[[], float],
    feed: Endpoint | None = None,
    by_login: ByLogin | None = None,
    open_requests: OpenRequests | None = None,
) -> web.Application:
    """Return the application to mount at /admin. The clock counts seconds.

    With an endpoint, the application includes the console's way to the Bayeux server: long-polling
    for clients that send a token with each request.
    """
    notices = Notices() if feed is None else feed.notices
    peers = Peers() if feed is None else feed.peers
    opened = open_requests or OpenRequests(tokens)
    # Others count what comes to them.
    shards = 1 if feed is None else feed.bayeux.state.shards
    strangers = Throttle(STRANGERS.part(shards))
    door = _AccessControl(tokens, clock, notices, peers, by_login, opened, strangers)
    application = web.Application(middlewares=[door.serve])
    application.on_response_prepare.append(_add_headers)
    if feed is not None:
        application.router.add_post(FEED, partial(long_poll, endpoint=feed))
    application.router.add_route("*", ANY_PATH, Routing(handlers).answer)
    return application


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


async def _answered(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer a request. Failures are answered with JSON."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _of_http(error)
    except Exception as error:
        return faults.failure(faults.fault_of(error))


class _AccessControl:
    """Admits requests with a role, within their rate."""

    def __init__(
        self,
        tokens: Tokens,
        clock: Callable[[], float],
        notices: Notices,
        peers: Peers,
        by_login: ByLogin | None,
        opened: OpenRequests,
        strangers: Throttle,
    ) -> None:
        self._tokens = tokens
        self._opened = opened
        self._clock = clock
        self._notices = notices
        self._peers = peers
        self._by_login = by_login
        self._signed_in = {role: Throttle(_SIGNED_IN) for role in Role}
        self._strangers = strangers

    @web.middleware
    async def serve(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        async def admit(request: web.Request) -> web.StreamResponse:
            person = request[PERSON] = await self._let_in(request)
            with self._opened.keep(request, person.token):
                return await handler(request)

        return await _answered(request, admit)

    async def _let_in(self, request: web.Request) -> Person:
        caller = self._peers.caller(request.headers, request.transport)
        address, token, subject = caller.address, self._token(request), ""
        role = self._tokens.role(token)
        is_single = len(request.headers.getall("Authorization", [])) <= 1
        if role is None and self._by_login is not None and is_single:
            title, subject = await self._by_login(caller, self._clock()) or ("", "")
            role = Role[title.upper()] if title else None
        elif role is None and "Authorization" in request.headers:
            self._notices.report(WRONG_TOKEN, address or "this machine", "the administration")
        throttle = self._strangers if role is None else self._signed_in[role]
        # A valid token is never locked out by wrong ones from the same address, such as a proxy's.
        wait_s = throttle.take(address, self._clock())
        if wait_s > 0.0:
            headers = {"Retry-After": str(math.ceil(wait_s))}
            raise RequestFailed(faults.TOO_OFTEN, "too many requests", status=429, headers=headers)
        if role is None and subject:
            raise RequestFailed(NOT_ALLOWED, f"{subject} has no role in the administration")
        if role is None:
            raise RequestFailed(faults.NOT_SIGNED_IN, _HOW_TO_SIGN_IN, status=401, headers=_SIGN_IN)
        if isinstance(request.protocol, FastLane):
            request.protocol.keep_place()
        if request.method != "GET":
            self._check_origin(request)
        if subject:
            return Person(role, f"{role.title} {subject}")
        return Person(role, _who(request, role), token)

    def _token(self, request: web.Request) -> str:
        """Return the token in the request, or an empty text, which has no role."""
        presented = request.headers.getall("Authorization", [])
        if len(presented) != 1:
            return ""
        return credentials_in(presented[0], "bearer") or ""

    def _check_origin(self, request: web.Request) -> None:
        """Refuse changes requested by pages of other origins."""
        for origin in request.headers.getall("Origin", []):
            if Origins().trust(origin, request.headers.get("Host")) is not OriginTrust.OWN:
                why = "pages of other origins may not change anything"
                self._notices.report(FOREIGN, origin[:LONGEST_SHOWN], why)
                raise RequestFailed(NOT_ALLOWED, why)


def _who(request: web.Request, role: Role) -> str:
    name = request.headers.get("X-Operator")
    if name is None:
        return role.title
    if OPERATOR_NAME.fullmatch(name) is None:
        raise illegal("X-Operator: a name has up to 64 letters, digits, spaces and . _ @ + -")
    return f"{role.title}/{name}"


def _of_http(error: web.HTTPException) -> web.Response:
    """Return the answer for an error that aiohttp detected."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        headers = {"Allow": ", ".join(sorted(error.allowed_methods))}
        text = "this path does not allow this method"
        failed = RequestFailed(faults.WRONG_USE, text, status=405, headers=headers)
        return faults.failure(failed)
    status = error.status if error.status >= 400 else 404
    return faults.failure(RequestFailed(ILLEGAL, _NO_PATH, status=status))
