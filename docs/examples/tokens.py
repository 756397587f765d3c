"""An application that gives its pages tokens for Holdfast.

Holdfast and the application share a secret of at least 32 bytes. Run both from the top of
the source tree:

    mkdir -p -m 700 data
    head -c 32 /dev/urandom | base64 | tr -d '\\n' >data/token-key
    .venv/bin/holdfast serve --login-keys data/token-key --login-audience push
    .venv/bin/python -m docs.examples.tokens data/token-key
"""

import sys
import time
from pathlib import Path

import jwt  # PyJWT
from aiohttp import web

VALID_S = 600
# Stands for what your application knows of its users: by their session cookies, who they are.
USERS = {"7f3a": ("ada", ["staff"])}
KEY = web.AppKey("key", bytes)


def token_for(user: str, groups: list[str], key: bytes) -> str:
    """Return a token with which the user's pages log in for ten minutes."""
    now = int(time.time())
    claims = {"sub": user, "groups": groups, "aud": "push", "iat": now, "exp": now + VALID_S}
    return jwt.encode(claims, key, "HS256")


async def token(request: web.Request) -> web.Response:
    """Give the user of the session cookie a token, before the handshake and before each renewal."""
    known = USERS.get(request.cookies.get("session", ""))
    if known is None:
        raise web.HTTPUnauthorized
    text = token_for(*known, request.app[KEY])
    return web.json_response({"token": text}, headers={"Cache-Control": "no-store"})


def application(key: bytes) -> web.Application:
    """Return the application; POST, so that no other site's page can read the token by a link."""
    app = web.Application()
    app[KEY] = key
    app.router.add_post("/token", token)
    return app


if __name__ == "__main__":
    web.run_app(application(Path(sys.argv[1]).read_bytes().strip()), host="127.0.0.1", port=8000)
