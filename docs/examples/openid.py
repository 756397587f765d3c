"""A service that logs in at an OpenID provider, such as Keycloak, and listens to Holdfast.

The provider knows the service as a client with a secret of its own. Run it from the top of the
source tree:

    CLIENT_SECRET=... .venv/bin/python -m docs.examples.openid \\
        https://id.example.org/realms/main orders http://127.0.0.1:8080 /orders/new
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

Json = dict[str, Any]
DISCOVERY = "/.well-known/openid-configuration"


class Refused(Exception):
    """The server has refused a message; the text is its error."""


async def access_token(http: aiohttp.ClientSession, issuer: str, client: str, secret: str) -> str:
    """Log in at the provider by the client credentials grant."""
    async with http.get(issuer + DISCOVERY) as response:
        document = await response.json()
    form = {"grant_type": "client_credentials"}
    headers = {"Authorization": aiohttp.encode_basic_auth(client, secret)}
    async with http.post(document["token_endpoint"], data=form, headers=headers) as response:
        response.raise_for_status()
        answer: Json = await response.json()
    return str(answer["access_token"])


class Listener:
    """A client of Holdfast that logs in with a token."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = f"{url}/cometd"
        self._client_id = ""
        # Who the server says that this client is.
        self.subject = ""

    async def log_in(self, token: str) -> None:
        """Shake hands. Raises `Refused`."""
        reply = await self._reply(
            "/meta/handshake",
            supportedConnectionTypes=["long-polling"],
            ext={"authentication": {"token": token}},
        )
        self._client_id = reply["clientId"]
        self.subject = reply["ext"]["authentication"]["subject"]

    async def renew(self, token: str) -> None:
        """Prolong the login of the living session by a newer token. Raises `Refused`."""
        await self._reply("/service/login", data={}, ext={"authentication": {"token": token}})

    async def subscribe(self, channel: str) -> None:
        """Raises `Refused`, for example if the rights do not include the channel."""
        await self._reply("/meta/subscribe", subscription=channel)

    async def events(self) -> AsyncIterator[Json]:
        """Yield what comes, also `/service/login` shortly before the login ends."""
        while True:
            *events, reply = await self._send("/meta/connect", connectionType="long-polling")
            for event in events:
                yield event
            if not reply["successful"]:
                raise Refused(reply["error"])

    async def _reply(self, channel: str, **fields: object) -> Json:
        replies = await self._send(channel, **fields)
        reply = next(each for each in replies if each["channel"] == channel)
        if not reply["successful"]:
            raise Refused(reply["error"])
        return reply

    async def _send(self, channel: str, **fields: object) -> list[Json]:
        message = {"channel": channel, "clientId": self._client_id, **fields}
        async with self._http.post(self._url, json=[message]) as response:
            messages: list[Json] = await response.json()
            return messages


async def main(issuer: str, client: str, url: str, channel: str) -> None:
    secret = os.environ["CLIENT_SECRET"]
    # The session's cookie belongs to a host, which may be a literal address.
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as http:
        listener = Listener(http, url)
        await listener.log_in(await access_token(http, issuer, client, secret))
        await listener.subscribe(channel)
        print(f"listening as {listener.subject}", flush=True)
        async for event in listener.events():
            if event["channel"] == "/service/login":
                await listener.renew(await access_token(http, issuer, client, secret))
            else:
                print(event["data"], flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
