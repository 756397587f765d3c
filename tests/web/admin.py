"""An administration without a server behind it, and a client that uses it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from holdfast.web.admin.application import make_admin
from holdfast.web.admin.handlers import Handler, handlers
from holdfast.web.admin.routing import Handlers
from holdfast.web.admin.tokens import Tokens
from tests.web.fake_operations import FakeOperations

OPERATOR = "operator-" + "o" * 34
READER = "reader-" + "r" * 36
API = "/admin/api/v1"
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a failure, which otherwise has only a message."""
        (only,) = self.json
        assert only == "error"
        assert self.json["error"].keys() == {"code", "message"}
        assert self.headers["Content-Type"] == "application/json"
        return str(self.json["error"]["code"])


@dataclass
class Admin:
    """A client of the administration, with the operators' token unless told otherwise."""

    client: TestClient[web.Request, web.Application]
    operations: FakeOperations
    clock: Clock = field(default_factory=Clock)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = OPERATOR,
        headers: Mapping[str, str] | None = None,
        **request: Any,
    ) -> Answer:
        sent = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with self.client.request(
            method, API + path, headers={**sent, **(headers or {})}, **request
        ) as response:
            return Answer(response.status, response.headers, await response.read())


def routes_to(operations: FakeOperations) -> Handlers:
    """What answers each route."""

    async def made() -> list[Handler]:
        return handlers([operations])

    return made


def application_of(operations: FakeOperations, clock: Clock) -> web.Application:
    """An application with the administration, and nothing else."""
    application = web.Application()
    tokens = Tokens(OPERATOR, READER)
    application.add_subapp("/admin", make_admin(routes_to(operations), tokens, clock))
    return application


async def admin_of(operations: FakeOperations) -> Admin:
    """The administration at a socket; the caller closes the client."""
    clock = Clock()
    client = TestClient(TestServer(application_of(operations, clock)))
    await client.start_server()
    return Admin(client, operations, clock)
