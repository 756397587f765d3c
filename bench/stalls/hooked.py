"""The application behind a webhook for which thousands of large messages wait.

Runs in a process of its own, see `Elsewhere`: it answers no call until it is told to.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bench.processes import reserved_port
from bench.stalls.clients import Client, publish

_CHANNEL = "/stall/hooked"
_SETTING, _QUEUE = "HOLDFAST_WEBHOOKS", "HOLDFAST_MAX_QUEUE_BYTES"
_SECRET = "whsec_" + "c3RhbGxz" * 4
# Messages of one publish request: a request has at most 4 MiB.
_TOGETHER = 40
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def with_webhook() -> Iterator[None]:
    """Let servers that start now have a webhook, and a queue for gigabytes."""
    with reserved_port() as port:
        hook = {
            "url": f"http://127.0.0.1:{port}/",
            "secret": _SECRET,
            "channels": [_CHANNEL],
            "allow_private": True,
            "in_flight": 16,
            "timeout": 60_000,
            "delays": [1_000] * 20,
        }
        os.environ |= {_SETTING: json.dumps({"stall": hook}), _QUEUE: str(2**32)}
        yield
        del os.environ[_SETTING], os.environ[_QUEUE]


class Application:
    """Answers calls as soon as it may."""

    def __init__(self, count: int) -> None:
        self.may_answer, self.has_answered = asyncio.Event(), asyncio.Event()
        self._count = count
        self._ids: set[bytes] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _read_head(reader):
            await reader.readexactly(int(head[b"content-length"]))
            await self.may_answer.wait()
            self._ids.add(head[b"webhook-id"])
            writer.write(_ANSWER)
            if len(self._ids) == self._count:
                self.has_answered.set()
        writer.close()


async def _read_head(reader: asyncio.StreamReader) -> Mapping[bytes, bytes]:
    lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    return dict(line.split(b": ", 1) for line in lines[1:] if line)


def _fill(url: str, count: int, size: int) -> None:
    client = Client(url)
    message = publish(_CHANNEL, "x" * size)
    for _ in range(count // _TOGETHER):
        replies = client.say(*[message] * _TOGETHER)
        if not all(each["successful"] for each in replies):
            raise RuntimeError(f"the server refuses messages: {replies[0]}")


async def attack(url: str, count: int, size: int) -> None:
    application = Application(count)
    [hook] = json.loads(os.environ[_SETTING]).values()
    port = int(hook["url"].rpartition(":")[2].strip("/"))
    await asyncio.start_server(application.serve, "127.0.0.1", port, limit=2 * size)
    await asyncio.to_thread(_fill, url, count, size)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    application.may_answer.set()
    await application.has_answered.wait()
    print("answered", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(attack(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
