"""What answers the routes: reads what a request says, and writes what a resource returns."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from holdfast.bayeux.wire.command_refused import NOT_ALLOWED
from holdfast.store.format.operator_input import first_fault
from holdfast.web.admin import faults, ndjson
from holdfast.web.admin.application import PERSON, Person
from holdfast.web.admin.faults import TOO_LARGE, RequestFailed, illegal
from holdfast.web.admin.paths import LINES
from holdfast.web.admin.resources import ROUTES, Description
from holdfast.web.admin.route import Lines, Route
from holdfast.web.admin.routing import PLACES, Handler
from holdfast.web.admin.views import Items
from holdfast.web.http.encodings import encoding_of, is_transfer_known

_MAX_BODY = 256 * 1024

_Model = TypeVar("_Model", bound=BaseModel)


async def _at_once() -> None:
    """Without a server, an answer waits for nothing."""


def handlers(
    resources: Iterable[object], speaking: Callable[[], Awaitable[None]] = _at_once
) -> list[tuple[Route, Handler]]:
    """Return each route with what answers it: together, the resources have a method for each."""
    answering = (*resources, Description())
    return [(each, _handler(each, _method(each, answering), speaking)) for each in ROUTES]


def _method(route: Route, resources: Iterable[object]) -> Callable[..., Any]:
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
    given = request[PLACES].copy()
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
