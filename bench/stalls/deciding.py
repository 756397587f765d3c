"""Thousands of sessions that publish at once where a slow application decides.

Runs in a process of its own, see `Elsewhere`, with the application in a thread.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import allow_many_files
from bench.processes import reserved_port
from bench.stalls.clients import Message, publish
from bench.stalls.returning import Crowd

_CHANNEL = "/stall/decided"
_BACKEND, _RIGHTS, _ANONYMOUS = (
    f"HOLDFAST_{name}" for name in ("BACKEND", "RIGHTS", "LOGIN_ANONYMOUS")
)
_SECRET = "whsec_" + "c3RhbGxz" * 4
_FILE = f"""
[[rule]]
who = ["*", "anonymous"]
may = ["all"]
channels = ["/**"]

[[rule]]
who = ["*"]
ask = ["publish"]
channels = ["{_CHANNEL}"]
"""
# How long the application takes for an answer about a channel.
_SLOW_S = 0.5


@contextmanager
def with_backend() -> Iterator[None]:
    """Let servers that start now ask an application."""
    with reserved_port() as port, tempfile.TemporaryDirectory() as home:
        rights = Path(home, "rights.toml")
        rights.write_text(_FILE)
        url = f"http://127.0.0.1:{port}/"
        given = json.dumps({"url": url, "secret": _SECRET, "allow_private": True})
        os.environ |= {_BACKEND: given, _RIGHTS: str(rights), _ANONYMOUS: "true"}
        yield
        for name in (_BACKEND, _RIGHTS, _ANONYMOUS):
            del os.environ[name]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer about clients at once, and about channels slowly."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
            asked = json.loads(await reader.readexactly(size))
            answer: Message = {"allow": True}
            if asked["type"] == "handshake":
                answer = {"subject": f"stall{asked['data']['authentication']['number']}"}
            else:
                await asyncio.sleep(_SLOW_S)
            body = json.dumps(answer).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _run(port: int, is_ready: threading.Event) -> None:
    async def run() -> None:
        server = await asyncio.start_server(_serve, "127.0.0.1", port, backlog=1000)
        is_ready.set()
        await server.serve_forever()

    asyncio.run(run())


def _hello(number: int) -> bytes:
    ext: Message = {"authentication": {"number": number}}
    hello: Message = {"channel": "/meta/handshake", "version": "1.0", "ext": ext}
    return json.dumps([{**hello, "supportedConnectionTypes": ["long-polling"]}]).encode()


def main() -> None:
    url, count = sys.argv[1], int(sys.argv[2])
    allow_many_files()
    port = int(json.loads(os.environ[_BACKEND])["url"].rpartition(":")[2].strip("/"))
    is_ready = threading.Event()
    threading.Thread(target=_run, args=(port, is_ready), daemon=True).start()
    is_ready.wait()
    crowd = Crowd(url, count, _hello)
    print("ready", flush=True)
    sys.stdin.readline()
    print(crowd.ask(publish(_CHANNEL, 1)), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
