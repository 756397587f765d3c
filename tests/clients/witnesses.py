"""The Python client and curl while servers follow one another; js/unnoticed.js has others.

`python -m tests.clients.witnesses` speaks with the test as js/run.js does.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast import Client, Message
from tests.abuse.attacker import TRUSTING

# More than one `curl` sends on its connection.
_MOST_CONNECTS = 1_000_000
# A process for each connect takes long enough.
_PAUSE_S = 0.1

Json = dict[str, Any]


class Account:
    """What a client heard; it is complete when all publishers have said that they are done."""

    def __init__(self, name: str, publishers: int) -> None:
        self.name = name
        self.handshakes = 0
        self.heard: list[tuple[str, int, int]] = []
        self.faults: list[tuple[str, int]] = []
        self.is_complete = asyncio.Event()
        self._open = publishers

    def hear(self, data: Json) -> None:
        self.heard.append((data["by"], data["number"], _now_ms()))
        if data.get("last"):
            self._open -= 1
            if not self._open:
                self.is_complete.set()

    def fault(self, what: object) -> None:
        self.faults.append((str(what), _now_ms()))

    def told(self) -> Json:
        return {each: getattr(self, each) for each in ("name", "handshakes", "heard", "faults")}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# The Python client


class _CountingClient(Client):
    account: Account

    def begin_session(self, reply: Json) -> None:
        self.account.handshakes += 1
        super().begin_session(reply)

    def contact_failed(self, error: Exception) -> None:
        self.account.fault(error)
        super().contact_failed(error)


@asynccontextmanager
async def python_client(context: Json, about: Json, account: Account) -> AsyncIterator[None]:
    async def hear(message: Message) -> None:
        account.hear(message.data)

    url = context["url"].removesuffix("/cometd")
    client = _CountingClient(
        url,
        session=about.get("session"),
        transports=[about["transport"]],
        ssl=TRUSTING if url.startswith("https:") else None,
    )
    client.account = account
    async with client:
        await client.subscribe(context["channel"], hear)
        yield


# curl


@asynccontextmanager
async def curl(context: Json, about: Json, account: Account) -> AsyncIterator[None]:
    """A session of `curl`: without acks one process on one connection, else one for each connect.

    The former sends the same connect again and again.
    """
    session = about.get("session")
    ext = {"ack": True, "delivery": {"session": session}} if session else {}
    talker = _Curl(context["url"], account)
    await talker.begin(ext, context["channel"])
    hearing = asyncio.create_task(talker.acknowledge() if session else talker.repeat())
    try:
        yield
    finally:
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing


class _Curl:
    def __init__(self, url: str, account: Account) -> None:
        self._url = url
        self._account = account
        self._client_id = ""
        self._options: list[str] = []

    async def begin(self, ext: Json, channel: str) -> None:
        hello = {
            "channel": "/meta/handshake",
            "version": "1.0",
            "supportedConnectionTypes": ["long-polling"],
            "ext": ext,
        }
        head, _, body = (await self._run(hello, "--include")).partition(b"\r\n\r\n")
        [reply] = json.loads(body)
        self._account.handshakes += 1
        self._client_id = reply["clientId"]
        lines = head.split(b"\r\n")
        cookies = [each for each in lines if each.lower().startswith(b"set-cookie:")]
        for cookie in (each.partition(b":")[2].partition(b";")[0] for each in cookies):
            self._options += ["--cookie", cookie.decode().strip()]
        subscription = {"channel": "/meta/subscribe", "subscription": channel}
        [reply] = json.loads(await self._run(self._of_session(subscription)))
        assert reply["successful"], reply

    async def repeat(self) -> None:
        """Hear everything on one connection."""
        connect = self._of_session(self._connect())
        process = await self._start(f"{self._url}?[1-{_MOST_CONNECTS}]", connect, "--no-buffer")
        assert process.stdout is not None
        try:
            text, decoder = "", json.JSONDecoder()
            while data := await process.stdout.read(65536):
                text += data.decode()
                with suppress(ValueError):
                    while text:
                        messages, end = decoder.raw_decode(text)
                        text = text[end:]
                        self._hear(messages)
            self._account.fault(f"curl has ended with {await process.wait()}")
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def acknowledge(self) -> None:
        """Hear everything, each time on a connection of its own."""
        ack = -1
        while True:
            sent = self._of_session({**self._connect(), "ext": {"ack": ack}})
            try:
                ack = self._hear(json.loads(await self._run(sent)))["ext"]["ack"]
            except (ValueError, KeyError, AssertionError) as error:
                self._account.fault(repr(error))
            await asyncio.sleep(_PAUSE_S)

    def _hear(self, messages: list[Json]) -> Json:
        *events, reply = messages
        for each in events:
            self._account.hear(each["data"])
        if reply["channel"] != "/meta/connect" or not reply["successful"]:
            self._account.fault(reply)
        return reply

    def _connect(self) -> Json:
        return {"channel": "/meta/connect", "connectionType": "long-polling"}

    def _of_session(self, message: Json) -> Json:
        return {**message, "clientId": self._client_id}

    async def _run(self, message: Json, *options: str) -> bytes:
        process = await self._start(self._url, message, *options)
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        assert process.returncode == 0, f"curl has ended with {process.returncode}"
        return output

    async def _start(self, url: str, message: Json, *options: str) -> asyncio.subprocess.Process:
        words = ["curl", "--silent", "--insecure", *self._options, *options]
        words += ["--header", "Content-Type: application/json", "--data", json.dumps([message])]
        return await asyncio.create_subprocess_exec(*words, url, stdout=asyncio.subprocess.PIPE)


# The conversation with the test

_CLIENTS = {"python": python_client, "curl": curl}


async def hears_all(context: Json) -> list[Account]:
    """Have all clients hear until the end; returns what they heard."""
    accounts = [Account(each["name"], context["publishers"]) for each in context["witnesses"]]
    async with AsyncExitStack() as stack:
        for about, account in zip(context["witnesses"], accounts, strict=True):
            await stack.enter_async_context(_CLIENTS[about["client"]](context, about, account))
        await _ask("everybody is there")
        # What is missing then, the test will see.
        with suppress(TimeoutError):
            async with asyncio.timeout(context["patience"] / 1000):
                for each in accounts:
                    await each.is_complete.wait()
    return accounts


async def _ask(request: str) -> None:
    _say(f"@{request}")
    await asyncio.to_thread(sys.stdin.readline)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _play() -> None:
    _say("hearsAll")
    for line in sys.stdin:
        context: Json = json.loads(line)["context"]
        accounts = asyncio.run(hears_all(context))
        Path(context["report"]).write_text(json.dumps([each.told() for each in accounts]))
        _say("@end")


if __name__ == "__main__":
    _play()
