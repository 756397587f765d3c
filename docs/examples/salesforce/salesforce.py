"""A stand-in for Salesforce's Streaming API, for tests: see docs/how-to/salesforce.md.

It is a front before a Holdfast that runs in the same process: Holdfast keeps the events and serves
the clients. The front adds what is Salesforce's own: the token end point, the versioned path, and
its errors.
"""

import asyncio
import json
import re
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession, DummyCookieJar, web

from holdfast.testing import LocalServer, local_server

Message = dict[str, Any]

# Events are kept for three days; a channel has at most these.
RETENTION_MS = 72 * 3600 * 1000
KEPT = {"history": 10_000, "durable": True}
# The times are those of Salesforce: how long it holds a connect, and waits for the next one.
SETTINGS = {
    "channels": {f"/{kind}/**": KEPT for kind in ("event", "data", "topic", "u")},
    "timeout": 110_000,
    "max_interval": 40_000,
}
PATH = re.compile(r"/cometd(?:/replay)?/(\d+)\.0(?:/.*)?")
OLDEST_VERSION = 23
NO_VERSION = "400::API version in the URI is mandatory. URI format: '/cometd/60.0'"
OLD_VERSION = (
    "400::Unsupported API version. Only API versions '23.0' and above are supported. "
    "URI format: '/cometd/60.0'"
)
INVALID_PLACE = (
    "400::The replayId {%s} you provided was invalid. Please provide a valid ID, -2 to replay all "
    "events, or -1 to replay only new events."
)
NO_LOGIN = "401::Request requires authentication"
INVALID_LOGIN = "401::Authentication invalid"
UNKNOWN_CLIENT = "403::Unknown client"
HANDSHAKE, CONNECT, SUBSCRIBE = "/meta/handshake", "/meta/connect", "/meta/subscribe"


class Salesforce:
    """What a test has: the address, and what happens at the other end."""

    def __init__(self, holdfast: LocalServer, web_client: ClientSession) -> None:
        self._holdfast = holdfast
        self._web_client = web_client
        self._tokens: set[str] = set()
        self._clients: set[str] = set()
        # Is set, and replaced, when something happens that held connects have to learn.
        self._upset = asyncio.Event()
        # Both the login URL and the instance URL.
        self.url = ""

    async def publish(self, channel: str, data: Message) -> int:
        """Publish an event, with its data as Salesforce sends them; return its replay id."""
        kept = {"expiration": {"lifeTime": RETENTION_MS, "forceDestroy": True}}
        reply = await self._holdfast.publish(channel, data, qos=kept)
        # The reply to a publish with options has it.
        return (reply.timestamp_ns or 0) // 1000

    async def let_events_expire(self) -> None:
        """Let three days pass: nothing is kept any more, and stored replay ids are invalid."""
        await self._holdfast.move_clock(hours=73)

    def forget_clients(self) -> None:
        """Answer all clients with `403::Unknown client`, until they handshake again."""
        self._clients.clear()
        self._disturb()

    def end_logins(self) -> None:
        """Answer with `401::Authentication invalid` until the client has another token."""
        self._tokens.clear()
        self._disturb()

    def _disturb(self) -> None:
        self._upset.set()
        self._upset = asyncio.Event()

    # Requests

    async def give_token(self, request: web.Request) -> web.Response:
        """`/services/oauth2/token`: any credentials will do."""
        form = await request.post()
        if "grant_type" not in form:
            error = {"error": "unsupported_grant_type", "error_description": "grant type missing"}
            return web.json_response(error, status=400)
        token = f"00D000000000001!{secrets.token_urlsafe(32)}"
        self._tokens.add(token)
        account = f"{self.url}/id/00D000000000001AAA/005000000000001AAA"
        answer = {"access_token": token, "instance_url": self.url, "id": account}
        return web.json_response({**answer, "token_type": "Bearer"})

    async def take(self, request: web.Request) -> web.Response:
        """Answer some messages of a client, and let Holdfast answer the others."""
        read = await request.json()
        messages: list[Message] = read if isinstance(read, list) else [read]
        answers, others = [], []
        for message in messages:
            error = await self._error(request, message)
            if error:
                answers.append(refusal(message, error))
            else:
                others.append(message)
        response = web.Response(content_type="application/json")
        if others:
            answers = await self._pass_on(request, others, response) + answers
        response.text = json.dumps(answers)
        return response

    async def _error(self, request: web.Request, message: Message) -> str | None:
        path = PATH.fullmatch(request.path)
        if path is None:
            return NO_VERSION
        if int(path[1]) < OLDEST_VERSION:
            return OLD_VERSION
        login = request.headers.get("Authorization")
        if not self._is_valid(login):
            return NO_LOGIN if login is None else INVALID_LOGIN
        if message["channel"] == HANDSHAKE:
            message["supportedConnectionTypes"] = ["long-polling"]
        elif message.get("clientId") not in self._clients:
            return UNKNOWN_CLIENT
        elif message["channel"] == SUBSCRIBE:
            return await self._error_of_place(message)
        return None

    def _is_valid(self, login: str | None) -> bool:
        kind, _, token = (login or "").partition(" ")
        return kind in {"Bearer", "OAuth"} and token in self._tokens

    async def _error_of_place(self, message: Message) -> str | None:
        """Return what is wrong with the replay id of a subscribe."""
        places = (message.get("ext") or {}).get("replay")
        channel = message.get("subscription")
        if not isinstance(places, dict) or not isinstance(channel, str) or channel not in places:
            return None
        place = str(places[channel])
        if not re.fullmatch(r"-[12]|\d{1,16}", place):
            return INVALID_PLACE % place
        # Some clients send it as a text.
        places[channel] = number = int(place)
        is_valid = number < 0 or await self._is_kept(channel, number)
        return None if is_valid else INVALID_PLACE % place

    async def _is_kept(self, channel: str, replay_id: int) -> bool:
        """Return whether the history has the event: then more begins there than follows it."""
        before, behind = [await self._read(channel, replay_id - back) for back in (1, 0)]
        return before is not None and before != behind

    async def _read(self, channel: str, place: int) -> str | None:
        url = f"{self._holdfast.url}/streams{channel}"
        async with self._web_client.head(url) as end:
            epoch = end.headers["Stream-Next-Offset"].partition("_")[0]
        async with self._web_client.get(url, params={"offset": f"{epoch}_{place}"}) as kept:
            return await kept.text() if kept.status == 200 else None

    async def _pass_on(
        self, request: web.Request, messages: list[Message], response: web.Response
    ) -> list[Message]:
        """Return what Holdfast answers, unless something happens while it holds the connect."""
        asking = asyncio.create_task(self._ask(request, messages, response))
        upset = asyncio.create_task(self._upset.wait())
        try:
            await asyncio.wait({asking, upset}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return [self._as_salesforce(message) for message in asking.result()]
            errors = [(each, await self._error(request, each)) for each in messages]
            return [refusal(each, error) for each, error in errors if error]
        finally:
            asking.cancel()
            upset.cancel()

    async def _ask(
        self, request: web.Request, messages: list[Message], response: web.Response
    ) -> list[Message]:
        headers = {"Cookie": request.headers.get("Cookie", "")}
        url = f"{self._holdfast.url}/cometd"
        async with self._web_client.post(url, json=messages, headers=headers) as answer:
            response.headers.extend(
                (name, value) for name, value in answer.headers.items() if name == "Set-Cookie"
            )
            answers: list[Message] = await answer.json()
            return answers

    def _as_salesforce(self, message: Message) -> Message:
        """Change what Salesforce says otherwise."""
        if str(message.get("error")).startswith("402:"):
            return refusal(message, UNKNOWN_CLIENT)
        if message["channel"] == HANDSHAKE and message["successful"]:
            self._clients.add(message["clientId"])
            message["ext"] = {**message.get("ext", {}), "payload.format": True}
        return message


def refusal(message: Message, error: str) -> Message:
    """Return the reply with this error, as Salesforce has it."""
    channel = message["channel"]
    reply = {"channel": channel, "successful": False, "error": error}
    reply |= {name: message[name] for name in ("id", "subscription") if name in message}
    if channel == HANDSHAKE:
        if error.startswith("401:"):
            reply |= {"error": "403::Handshake denied", "ext": {"sfdc": {"failureReason": error}}}
        reply["advice"] = {"reconnect": "none"}
    elif channel == CONNECT:
        reconnect = "handshake" if error == UNKNOWN_CLIENT else "none"
        reply["advice"] = {"reconnect": reconnect, "interval": 0}
    return reply


@asynccontextmanager
async def stand_in(port: int = 0) -> AsyncIterator[Salesforce]:
    """Run it on this machine, by default on a free port."""
    async with (
        local_server(**SETTINGS) as holdfast,
        ClientSession(cookie_jar=DummyCookieJar()) as web_client,
    ):
        salesforce = Salesforce(holdfast, web_client)
        app = web.Application()
        app.router.add_post("/services/oauth2/token", salesforce.give_token)
        app.router.add_post("/cometd{rest:.*}", salesforce.take)
        # A client that has gone holds no connect.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            salesforce.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield salesforce
        finally:
            await runner.cleanup()


async def main() -> None:
    """Publish what is typed: a channel and the data, or the name of something that happens."""
    async with stand_in(int(sys.argv[1])) as salesforce:
        print(salesforce.url, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            match line.split(maxsplit=1):
                case ["forget"]:
                    salesforce.forget_clients()
                case ["logout"]:
                    salesforce.end_logins()
                case ["expire"]:
                    await salesforce.let_events_expire()
                case [channel, data]:
                    print(await salesforce.publish(channel, json.loads(data)), flush=True)
                case _:
                    print("forget, logout, expire, or a channel and its data", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
