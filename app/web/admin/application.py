"""The administration over HTTP: access control, and the handling of requests."""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from holdfast.bayeux.limits.buckets import Rate
from holdfast.bayeux.wire.caller import Caller, credentials_in
from holdfast.bayeux.wire.command_refused import (
    ILLEGAL,
    NOT_ALLOWED,
    OUR_FAULT,
    CommandRefused,
)
from holdfast.delivery.basics.notices import FOREIGN, WRONG_TOKEN, Notices
from holdfast.store.connection import StoreUnavailable
from holdfast.store.operator_input import first_fault
from holdfast.web.admin import faults, ndjson
from holdfast.web.admin.faults import TOO_LARGE, RequestFailed, illegal
from holdfast.web.admin.paths import API, FEED, LINES
from holdfast.web.admin.resources import ROUTES, Description
from holdfast.web.admin.route import Lines, Route
from holdfast.web.admin.throttle import STRANGERS, Throttle
from holdfast.web.admin.tokens import OPERATOR_NAME, Role, Tokens
from holdfast.web.admin.views import Items
from holdfast.web.encodings import encoding_of, is_transfer_known
from holdfast.web.endpoint import LONGEST_SHOWN, Endpoint
from holdfast.web.fast_lane import FastLane
from holdfast.web.long_polling import long_poll
from holdfast.web.origins import Origins, OriginTrust
from holdfast.web.peers import Peers
from holdfast.web.speaking import until_speaking

log = logging.getLogger(__name__)

_MAX_BODY = 256 * 1024
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

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Person:
    """The operator or reader behind a request."""

    role: Role
    who: str
    # The token in the request; empty if another login identifies the caller.
    token: str = field(default="", repr=False)


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

PERSON = web.RequestKey("person", Person)
# Returns what answers a route for all shards, given what answers it for this one.
Among = Callable[[Route, Handler], Handler]


def make_admin(
    resources: Sequence[object],
    tokens: Tokens,
    clock: Callable[[], float],
    feed: Endpoint | None = None,
    by_login: ByLogin | None = None,
    open_requests: OpenRequests | None = None,
    among: Among | None = None,
) -> web.Application:
    """Return the application to mount at /admin. The clock counts seconds.

    Together, the resources have a method for each route. With an endpoint, the application includes
    the console's way to the Bayeux server: long-polling for clients that send a token with each
    request. With `among`, it answers for several shards.
    """
    notices = Notices() if feed is None else feed.notices
    peers = Peers() if feed is None else feed.options.peers
    opened = open_requests or OpenRequests(tokens)
    # Others count what comes to them.
    shards = 1 if feed is None else feed.bayeux.state.options.shards
    strangers = Throttle(STRANGERS.part(shards))
    door = _AccessControl(tokens, clock, notices, peers, by_login, opened, strangers)
    application = web.Application(middlewares=[door.serve])
    application.on_response_prepare.append(_add_headers)
    speaking = _at_once if feed is None else partial(until_speaking, feed.right)
    for route, handler in handlers(resources, speaking):
        answer = handler if among is None else among(route, handler)
        application.router.add_route(route.method, API + route.path, answer)
    if feed is not None:
        application.router.add_post(FEED, partial(long_poll, endpoint=feed))
    return application


def handlers(
    resources: Sequence[object], speaking: Callable[[], Awaitable[None]]
) -> Iterator[tuple[Route, Handler]]:
    """Yield each route with what answers it."""
    for route in ROUTES:
        answer = _method(route, (*resources, Description()))
        yield route, _handler(route, answer, speaking)


async def _at_once() -> None:
    """Without a server, an answer waits for nothing."""


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a request. Failures are answered with JSON."""
    try:
        return await handler(request)
    except RequestFailed as failed:
        return faults.failure(failed.status, failed.code, failed.message, failed.headers)
    except CommandRefused as refused:
        status = faults.status_of(refused.code)
        return faults.failure(status, refused.code, refused.message)
    except StoreUnavailable as error:
        status = faults.status_of(faults.STORE_UNAVAILABLE)
        return faults.failure(status, faults.STORE_UNAVAILABLE, str(error))
    except web.HTTPException as error:
        return _of_http(error)
    except Exception:
        log.exception("an administrative request failed")
        return faults.failure(500, OUR_FAULT, "the server failed; see its log")


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
    async def serve(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        async def admit(request: web.Request) -> web.StreamResponse:
            person = request[PERSON] = await self._let_in(request)
            with self._opened.keep(request, person.token):
                return await handler(request)

        return await answered(request, admit)

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
            raise RequestFailed(
                faults.NOT_SIGNED_IN, "a valid token is required", status=401, headers=_SIGN_IN
            )
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


def _method(route: Route, resources: Sequence[object]) -> Callable[..., Any]:
    found = (each for each in resources if hasattr(each, route.handler))
    method: Callable[..., Any] = getattr(next(found), route.handler)
    return method


def _handler(
    route: Route, method: Callable[..., Any], speaking: Callable[[], Awaitable[None]]
) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        person = check_role(request, route)
        params, body = _params(request, route), await _body(request, route)
        found = method(**route.arguments(params, body, person.who))
        if isinstance(found, AsyncIterator):
            return await ndjson.send_lines(request, found, speaking)
        answer = await found
        if answer is None:
            return web.Response(status=204)
        shown = Items(answer) if isinstance(answer, list) else answer
        return web.Response(body=orjson.dumps(shown), content_type="application/json")

    return answer


def check_role(request: web.Request, route: Route) -> Person:
    """Return who sent the request. Raises `RequestFailed` if the role is not enough."""
    person = request[PERSON]
    if person.role < route.role:
        raise RequestFailed(NOT_ALLOWED, "this requires the role of an operator")
    return person


def _params(request: web.Request, route: Route) -> BaseModel:
    given: dict[str, str] = dict(request.match_info)
    for name, value in request.query.items():
        if name in given:
            raise illegal(f"{name[:64]}: is given twice")
        given[name] = value
    return _checked(lambda: route.params.model_validate_strings(given))


async def _body(request: web.Request, route: Route) -> BaseModel | AsyncIterator[bytes] | None:
    if route.body is None:
        if request.body_exists:
            raise illegal("this request has no body")
        return None
    if issubclass(route.body, Lines):
        return lines_of(request)
    _check_form(request, "application/json")
    model, text = route.body, await read_body(request)
    return _checked(lambda: model.model_validate_json(text, strict=True))


def lines_of(request: web.Request) -> AsyncIterator[bytes]:
    """Return the lines of a body; raises `RequestFailed`."""
    _check_form(request, LINES)
    return ndjson.read_lines(request)


def _check_form(request: web.Request, media: str) -> None:
    if not is_transfer_known(request.headers):
        raise RequestFailed(
            faults.WRONG_USE, "the only supported transfer coding is chunked", status=501
        )
    is_plain = encoding_of(request.headers) == "identity"
    if request.content_type != media or not is_plain:
        raise RequestFailed(
            faults.WRONG_USE, f"the body must be {media}, not compressed", status=415
        )


async def read_body(request: web.Request) -> bytes:
    """Return a body of limited size; raises `RequestFailed`."""
    body = bytearray()
    async with ndjson.arriving():
        async for part in request.content.iter_any():
            body += part
            if len(body) > _MAX_BODY:
                raise RequestFailed(TOO_LARGE, f"the body has more than {_MAX_BODY} bytes")
    return bytes(body)


def _checked(validate: Callable[[], _Model]) -> _Model:
    try:
        return validate()
    except ValidationError as error:
        raise illegal(first_fault(error)) from None


def _of_http(error: web.HTTPException) -> web.Response:
    """Return the answer for an error that aiohttp detected."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        headers: Mapping[str, str] = {"Allow": ", ".join(sorted(error.allowed_methods))}
        return faults.failure(
            405, faults.WRONG_USE, "this path does not allow this method", headers
        )
    status = error.status if error.status >= 400 else 404
    return faults.failure(status, ILLEGAL, "this path does not exist")
