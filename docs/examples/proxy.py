"""A proxy that logs users in, and tells Holdfast who they are.

Any proxy can do this: what matters is which headers it removes and sets. Holdfast listens on a
Unix socket, which only the proxy may open, so nobody can go around it. Run both from the top of
the source tree:

    .venv/bin/holdfast serve --unix data/socket --trusted-proxies unix \\
        --login-header X-Remote-User --login-groups-header X-Remote-Groups
    .venv/bin/python -m docs.examples.proxy data/socket
"""

import hmac
import sys
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict

USER, GROUPS, FORWARDED = "X-Remote-User", "X-Remote-Groups", "X-Forwarded-For"
# Only the proxy may set these; whatever a client sends under their names is removed.
OWN = (USER, GROUPS, FORWARDED, "Forwarded", "X-Forwarded-Proto")
# These concern one connection, or are this proxy's own business.
OF_CONNECTION = (hdrs.CONNECTION, hdrs.TRANSFER_ENCODING, hdrs.CONTENT_LENGTH, hdrs.AUTHORIZATION)
# Stands for your directory of users: password and groups.
USERS = {"ada": ("correct horse", "staff,users"), "bob": ("battery staple", "users")}
UPSTREAM = web.AppKey("upstream", aiohttp.ClientSession)


def user_of(request: web.Request) -> str:
    """Return who has logged in, by HTTP's basic authentication."""
    given = request.headers.get(hdrs.AUTHORIZATION, "").encode()
    for user, (password, _) in USERS.items():
        right = aiohttp.encode_basic_auth(user, password)
        if hmac.compare_digest(right.encode(), given):
            return user
    raise web.HTTPUnauthorized(headers={hdrs.WWW_AUTHENTICATE: 'Basic realm="push"'})


async def forward(request: web.Request) -> web.Response:
    """Pass a request on in the name of its user."""
    user = user_of(request)
    headers = CIMultiDict(request.headers)
    for name in (*OWN, *OF_CONNECTION):
        headers.popall(name, None)
    headers[USER], headers[GROUPS] = user, USERS[user][1]
    headers[FORWARDED] = request.remote or ""
    headers["X-Forwarded-Proto"] = request.scheme
    url = f"http://localhost{request.path_qs}"
    body = await request.read()
    upstream = request.app[UPSTREAM]
    async with upstream.request(request.method, url, headers=headers, data=body) as answer:
        kept = CIMultiDict(answer.headers)
        for name in (*OF_CONNECTION, hdrs.CONTENT_ENCODING):
            kept.popall(name, None)
        return web.Response(status=answer.status, headers=kept, body=await answer.read())


def application(socket: str) -> web.Application:
    """Return the proxy in front of the server at this Unix socket."""

    async def connected(app: web.Application) -> AsyncIterator[None]:
        # Cookies are the clients' own; the proxy keeps none.
        app[UPSTREAM] = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(socket, limit=0), cookie_jar=aiohttp.DummyCookieJar()
        )
        yield
        await app[UPSTREAM].close()

    app = web.Application()
    app.cleanup_ctx.append(connected)
    app.router.add_route("*", "/{path:.*}", forward)
    return app


if __name__ == "__main__":
    web.run_app(application(sys.argv[1]), host="127.0.0.1", port=8000)
