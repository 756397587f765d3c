"""Whatever applications answer that the server asks or calls, it serves everybody else."""

import asyncio
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, request
from tests.abuse.target import Target
from tests.fuzz.conftest import SETTINGS
from tests.fuzz.mutation import ODD_HEADERS, Mutator
from tests.fuzz.test_fuzz import VOLLEY, fuzz
from tests.fuzz.volley import check_answer, fire_requests
from tests.serving import Servers

SECRET = "whsec_" + b64encode(b"an application that answers oddly").decode()
HOOK, DECIDE, USER = "/hook", "/decide", "X-User"
LAST = "the last one"
# What applications answer about clients, before it is changed.
ABOUT_CLIENTS: list[dict[str, Any]] = [
    {"subject": "ada"},
    {"subject": "ada", "groups": ["staff"], "expires_in": 60},
    {"subject": "ada", "rights": [{"may": ["subscribe"], "channels": ["/a/**"]}]},
    {"allow": False, "detail": "Please sign in"},
]
# 410 would hold the webhook back until an operator resumes it.
STATUSES = [200, 200, 200, 200, 204, 301, 400, 401, 403, 404, 422, 429, 500, 999]
HEADERS = [
    *(b"Retry-After: 0", b"Retry-After: -1", b"Retry-After: soon", b"Content-Encoding: gzip"),
    *(b"Content-Type: text/html", b"Location: http://[::1", b"Set-Cookie: a=b", *ODD_HEADERS),
]
# What answers have come to when enough of them were given.
QUESTIONS, CALLS = "holdfast_backend_questions_total", "holdfast_webhook_calls_total"
REACHED = [
    *((QUESTIONS, outcome) for outcome in ("allowed", "refused", "failed")),
    *((CALLS, outcome) for outcome in ("delivered", "paused", "refused")),
]
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Application:
    """Answers in any way, until it behaves."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.dice = Random(0)
        self.behaves = False
        self.has_last = threading.Event()
        self._was_odd = False
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._is_over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._listen())

    async def _listen(self) -> None:
        async with await asyncio.start_server(self._serve, sock=self._socket):
            await self._is_over.wait()
        while self._open:
            for each in self._open:
                each.close()
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split()[0])
                body = orjson.loads(await reader.readexactly(size))
                answer, is_odd = self._answer(head, body)
                writer.write(answer)
                await writer.drain()
                if is_odd:
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self._open.remove(writer)

    def _answer(self, head: bytes, body: dict[str, Any]) -> tuple[bytes, bool]:
        """An answer, and whether the connection ends with it."""
        is_call = f" {HOOK} ".encode() in head
        if self.behaves:
            if is_call and body["data"]["data"] == LAST:
                self.has_last.set()
            return GOOD, False
        mutator, dice = Mutator(self.dice), self.dice
        said = dice.choice(ABOUT_CLIENTS)
        text = mutator.text(orjson.dumps(said))
        if dice.random() < 0.5:
            text = mutator.text(json.dumps(mutator.messages([said])[0]).encode())
        lines = [b"HTTP/1.1 %d Said" % dice.choice(STATUSES), b"Content-Length: %d" % len(text)]
        lines += dice.choices(HEADERS, k=dice.choice([0, 0, 1, 2]))
        whole = b"\r\n".join(lines) + b"\r\n\r\n" + text
        # Only every other one: an application that seems to be away is asked seldom.
        self._was_odd = not self._was_odd and dice.random() < 0.3
        if self._was_odd:
            whole = mutator.raw(mutator.head(whole))
        return whole, self._was_odd


@pytest.fixture(scope="module")
def application() -> Iterator[Application]:
    application = Application()
    yield application
    application.stop()


@pytest.fixture
def asking(servers: Servers, application: Application) -> Iterator[Target]:
    """A server that asks the application about clients, and calls it."""
    posts = {"secret": SECRET, "allow_private": True, "timeout": 500}
    hook = {"url": application.url + HOOK, "channels": ["/hooked"], "delays": [20], **posts}
    settings = {
        "backend": {"url": application.url + DECIDE, "headers": [USER], **posts},
        "webhooks": {"odd": hook},
        "login_anonymous": True,
    }
    target = Target(servers.with_settings(SETTINGS | settings))
    target.expected_error = "the backend does not answer"
    yield target
    target.check_unharmed()


def test_any_answer_of_an_application(
    asking: Target, application: Application, fuzz_s: float, fuzz_seed: int
) -> None:
    application.dice, dice = Random(fuzz_seed), Random(fuzz_seed)
    hello = orjson.dumps([HANDSHAKE])
    said = orjson.dumps([{"channel": "/hooked", "data": 1}])

    def attack() -> bytes:
        if dice.random() < 0.1:
            return request(said, method="POST /publish")
        return request(hello, {USER: "ada"})

    fuzz(asking, attack, fuzz_s, fire_requests)
    # On a slow machine that may not have been enough.
    while not all(asking.metric(name, outcome=outcome) for name, outcome in REACHED):
        fire_requests(asking, [attack() for _ in range(VOLLEY)])
    application.behaves = True
    with asking.wire() as wire:
        last = orjson.dumps([{"channel": "/hooked", "data": LAST}])
        wire.send(request(last, method="POST /publish"))
        assert wire.answer().status == 200
        wire.send(request(hello, {USER: "ada"}))
        check_answer(hello, wire.answer().body)
    assert application.has_last.wait(60)
