"""The administration of all shards, and what this shard answers to other workers."""

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import unquote

from aiohttp import web

from holdfast.cluster.shards import Shards as Homes
from holdfast.web.admin.application import PERSON, Person, answered
from holdfast.web.admin.given_ids import GIVEN
from holdfast.web.admin.handlers import check_role, lines_of
from holdfast.web.admin.route import Route
from holdfast.web.admin.routing import ANY_PATH, Handler, Handlers, Routing
from holdfast.web.admin.tokens import Role
from holdfast.web.joint.asking import GIVEN_ID, WHO, Shards, ask_of
from holdfast.web.joint.hearing import in_json
from holdfast.web.joint.importing import import_letters, shard_of_line
from holdfast.web.joint.rules import Divided, Exported, Same, export
from holdfast.web.joint.ways import RULES


def among(shards: Shards, homes: Homes, route: Route, own: Handler) -> Handler:
    """Return what answers a route for all shards.

    Args:
        homes: Says which shard has what.
    """
    rule = RULES[route.handler]
    if isinstance(rule, Same):
        return own

    async def answer(request: web.Request) -> web.StreamResponse:
        person = check_role(request, route)
        if isinstance(rule, Divided):
            ask = await ask_of(request, person, with_body=False)
            lines = lines_of(request)
            shard_of = partial(shard_of_line, homes=homes)
            return in_json(await import_letters(shards, ask, lines, shard_of))
        ask = await ask_of(request, person)
        if isinstance(rule, Exported):
            return await export(shards, ask, request)
        return in_json(await rule.answer(shards, ask))

    return answer


def make_private(
    handlers: Handlers,
    metrics: Callable[[], Awaitable[tuple[bytes, str]]],
    speaking: Callable[[], Awaitable[None]],
) -> web.Application:
    """Return the application that answers other workers, at a socket that only they can open.

    They have let in the sender of a request, and say who it is.
    """

    @web.middleware
    async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
        who = unquote(request.headers.get(WHO, Role.READER.title))
        request[PERSON] = Person(Role.of(who), who)
        GIVEN.set(request.headers.get(GIVEN_ID, ""))
        response = await answered(request, handler)
        # Another process may have opened the store of this shard.
        await speaking()
        return response

    async def page(_: web.Request) -> web.Response:
        return web.Response(body=(await metrics())[0])

    application = web.Application(middlewares=[admit])
    application.router.add_get("/metrics", page)
    application.router.add_route("*", "/admin" + ANY_PATH, Routing(handlers).answer)
    return application
