"""A web application that decides about the clients of a server."""

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson
from aiohttp import web
from standardwebhooks import Webhook

Json = dict[str, Any]
LIMIT_S = 60.0
SECRET = "whsec_" + b64encode(b"the application and we know this").decode()


@dataclass(frozen=True, slots=True)
class Asked:
    """One question that the application got."""

    action: str
    data: Json
    headers: Mapping[str, str]
    raw: bytes


class BackendApplication:
    """Knows its users by a cookie or a ticket, and answers about channels by a table.

    Each question is verified like any webhook.
    """

    def __init__(self, port: int = 0) -> None:
        self.asked: list[Asked] = []
        # The users by the value of their cookie, or by what they give in the handshake; and what
        # else is answered about each.
        self.users: dict[str, str] = {"of-ada": "ada", "of-bob": "bob"}
        self.about: dict[str, Json] = {}
        # What is answered about channels, by action and channel; all others are refused.
        self.table: dict[tuple[str, str], Json] = {}
        # What the next questions get instead: a status, or a function that answers.
        self.plan: deque[int | Callable[[web.Request], Any]] = deque()
        # How long each answer takes.
        self.delay_s = 0.0
        self.open = self.most_open = 0
        self._port = port
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=0)
        application.router.add_route("*", "/{path:.*}", self._hear)
        self._runner = web.AppRunner(application, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.port: int = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        server = self._runner.server
        await self._runner.cleanup()
        # What was just being accepted comes after all others have been closed.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if server is not None:
            await server.shutdown(0)

    def settings(self, **more: Any) -> Json:
        """The table of the settings that has this application asked."""
        url = f"http://127.0.0.1:{self.port}/decide"
        usual: Json = {"url": url, "secret": SECRET, "allow_private": True}
        return usual | {"cookies": ["sessionid"], "headers": ["Authorization"]} | more

    def about_channels(self, action: str | None = None) -> list[str]:
        """The channels about which it was asked, in order."""
        return [
            each.data["channel"]
            for each in self.asked
            if "channel" in each.data and action in (None, each.action)
        ]

    def count(self, action: str) -> int:
        return sum(each.action == action for each in self.asked)

    async def _hear(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        Webhook(SECRET).verify(raw, dict(request.headers))
        body = orjson.loads(raw)
        self.asked.append(Asked(body["type"], body["data"], dict(request.headers), raw))
        self._changed.set()
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if self.plan:
                planned = self.plan.popleft()
                if callable(planned):
                    answer: web.StreamResponse = await planned(request)
                    return answer
                return web.Response(status=planned, text="as planned")
            await asyncio.sleep(self.delay_s)
            return web.json_response(self.decide(request, body))
        except PermissionError as error:
            return web.json_response({"detail": str(error)}, status=403)
        finally:
            self.open -= 1

    def decide(self, request: web.Request, body: Json) -> Json:
        """Return the answer to a question. Raises `PermissionError`."""
        data = body["data"]
        if body["type"] in ("handshake", "refresh"):
            given = (data.get("authentication") or {}).get("ticket", "")
            user = self.users.get(request.cookies.get("sessionid", "") or given)
            if user is None:
                raise PermissionError("Please sign in")
            return {"subject": user, **self.about.get(user, {})}
        answer = self.table.get((body["type"], data["channel"]))
        if answer is None:
            raise PermissionError(f"Not yours: {data['channel']}")
        return answer

    async def heard(self, count: int) -> list[Asked]:
        """Wait for so many questions. Returns all of them."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.asked) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.asked
