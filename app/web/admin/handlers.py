"""What answers the routes: reads what a request says, and writes what a resource returns."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from holdfast.bayeux.wire.command_refused import NOT_ALLOWED
from holdfast.store.format.operator_input import first_fault
from holdfast.web.admin import faults, ndjson
from holdfast.web.admin.faults import TOO_LARGE, RequestFailed, illegal
from holdfast.web.admin.paths import LINES
from holdfast.web.admin.request_keys import PERSON, PLACES
from holdfast.web.admin.resources import ROUTES, Description
from holdfast.web.admin.route import Lines, Route
from holdfast.web.admin.views import Items
from holdfast.web.http.encodings import encoding_of, is_transfer_known

_MAX_BODY = 256 * 1024

_Model = TypeVar("_Model", bound=BaseModel)


async def _at_once() -> None:
    """Without a server, an answer waits for nothing."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for. Its sender has been let in."""

    route: Route
    # The parameters in the path and in the query.
    given: Mapping[str, str]
    who: str
    body: bytes | AsyncIterator[bytes] | None = None

    @property
    def lines(self) -> AsyncIterator[bytes]:
        """The lines of the body of a route that has them."""
        assert isinstance(self.body, AsyncIterator)
        return self.body

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for the resource's method. Raises `RequestFailed`."""
        body, model = self.body, self.route.body
        params = _checked(lambda: self.route.params.model_validate_strings({**self.given}))
        read: BaseModel | AsyncIterator[bytes] | None
        if isinstance(body, bytes) and model is not None and issubclass(model, BaseModel):
            read = _checked(lambda: model.model_validate_json(body, strict=True))
        else:
            read = None if isinstance(body, bytes) else body
        return self.route.arguments(params, read, self.who)


# Returns what is shown, None if that is nothing, or lines. Raises `RequestFailed`.
Answering = Callable[[Ask], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Handler:
    """Answers a route.

    Args:
        speaking: Waits until an answer may leave.
    """

    route: Route
    answering: Answering
    speaking: Callable[[], Awaitable[None]] = _at_once

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Answer a request over HTTP."""
        answer = await self.answering(await _ask_of(request, self.route))
        if isinstance(answer, AsyncIterator):
            return await ndjson.send_lines(request, answer, self.speaking)
        if answer is None:
            return web.Response(status=204)
        return web.Response(body=orjson.dumps(answer), content_type="application/json")


def handlers(
    resources: Iterable[object], speaking: Callable[[], Awaitable[None]] = _at_once
) -> list[Handler]:
    """Return what answers each route: together, the resources have a method for each."""
    all_of = (*resources, Description())
    return [Handler(each, _answering(_method(each, all_of)), speaking) for each in ROUTES]


def _method(route: Route, resources: Iterable[object]) -> Callable[..., Any]:
    found = (each for each in resources if hasattr(each, route.handler))
    method: Callable[..., Any] = getattr(next(found), route.handler)
    return method


def _answering(method: Callable[..., Any]) -> Answering:
    async def answer(ask: Ask) -> object:
        found = method(**ask.arguments())
        if isinstance(found, AsyncIterator):
            return found
        answer = await found
        return Items(answer) if isinstance(answer, list) else answer

    return answer


async def _ask_of(request: web.Request, route: Route) -> Ask:
    """Return what a request asks for. Raises `RequestFailed`."""
    person = request[PERSON]
    if person.role < route.role:
        raise RequestFailed(NOT_ALLOWED, "this requires the role of an operator")
    given = request[PLACES].copy()
    for name, value in request.query.items():
        if name in given:
            raise illegal(f"{name[:64]}: is given twice")
        given[name] = value
    # What is wrong with these is said before a body is read.
    _checked(lambda: route.params.model_validate_strings(given))
    return Ask(route, given, person.who, await _body(request, route))


async def _body(request: web.Request, route: Route) -> bytes | AsyncIterator[bytes] | None:
    if route.body is None:
        if request.body_exists:
            raise illegal("this request has no body")
        return None
    if issubclass(route.body, Lines):
        _check_form(request, LINES)
        return ndjson.read_lines(request)
    _check_form(request, "application/json")
    return await _read_body(request)


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


async def _read_body(request: web.Request) -> bytes:
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
