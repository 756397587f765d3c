"""Many named sessions that come back together to the messages that wait for them.

Runs in a process of its own, see `Elsewhere`.
"""

import json
import selectors
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import cast
from urllib.parse import urlsplit

from bench.measure import allow_many_files
from bench.stalls.clients import Client, Message, connect, publish, subscribe

_CHANNEL = "/stall/returning"
# Handshakes that are under way at the same time.
_TOGETHER = 250
CHUNK = 256 * 1024
TIMEOUT_S = 60.0
_END_OF_HEAD = b"\r\n\r\n"


class Crowd:
    """Sessions with a long-polling connection each, which ask at the same time."""

    def __init__(self, url: str, count: int, hello: Callable[[int], bytes] | None = None) -> None:
        self._hello = hello or _hello
        split = urlsplit(url)
        self._place = (split.hostname or "", split.port or 0)
        self._head = f"POST {split.path} HTTP/1.1\r\nHost: {split.netloc}\r\n"
        self._head += "Content-Type: application/json\r\n"
        self._links: list[socket.socket] = []
        self.ids: list[str] = []
        # The browsers that the server gave them, as headers.
        self.cookies: list[str] = []
        for start in range(0, count, _TOGETHER):
            self._shake_hands(range(start, min(start + _TOGETHER, count)))

    def _shake_hands(self, numbers: Sequence[int]) -> None:
        for _ in numbers:
            link = socket.create_connection(self._place)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links.append(link)
        hellos = [self._hello(number) for number in numbers]
        for response in self._exchange(numbers, hellos):
            head, _, body = response.partition(_END_OF_HEAD)
            [reply] = json.loads(body)
            self.ids.append(reply["clientId"])
            cookie = head.decode().partition("Set-Cookie: ")[2].partition(";")[0]
            self.cookies.append(f"Cookie: {cookie}\r\n")

    def close(self) -> None:
        """Close all connections. Their sessions stay."""
        for link in self._links:
            link.close()

    def say(self, message: Message) -> int:
        """Send this message of each session at once; return how many bytes came back."""
        responses = self._all(message)
        if not all(map(_is_success, responses)):
            raise RuntimeError("the server refuses a message")
        return sum(map(len, responses))

    def ask(self, message: Message) -> int:
        """Do the same; return how many of the messages were accepted."""
        return sum(map(_is_success, self._all(message)))

    def _all(self, message: Message) -> list[bytes]:
        bodies = [json.dumps([{**message, "clientId": own}]).encode() for own in self.ids]
        return self._exchange(range(len(bodies)), bodies)

    def _exchange(self, numbers: Sequence[int], bodies: Sequence[bytes]) -> list[bytes]:
        """Send the requests of these sessions, then read all responses."""
        for number, body in zip(numbers, bodies, strict=True):
            cookie = self.cookies[number] if number < len(self.cookies) else ""
            head = f"{self._head}{cookie}Content-Length: {len(body)}\r\n\r\n"
            self._links[number].sendall(head.encode() + body)
        return _responses([self._links[number] for number in numbers])


def _is_success(response: bytes) -> bool:
    return b'"successful":true' in response


def _hello(number: int) -> bytes:
    ext: Message = {"ack": True, "delivery": {"session": f"stall-returning-{number}/1"}}
    ext["delivery"]["retries"] = -1
    hello: Message = {"channel": "/meta/handshake", "version": "1.0", "ext": ext}
    return json.dumps([{**hello, "supportedConnectionTypes": ["long-polling"]}]).encode()


def _responses(links: Sequence[socket.socket]) -> list[bytes]:
    """Read a response from each connection, as they come."""
    found = {link: bytearray() for link in links}

    def hear(link: socket.socket) -> bool:
        found[link] += link.recv(CHUNK)
        return _is_whole(found[link])

    hear_all(links, hear)
    return [bytes(each) for each in found.values()]


def hear_all(links: Iterable[socket.socket], hear: Callable[[socket.socket], bool]) -> None:
    """Let each connection hear what has come, until it says that this was all."""
    with selectors.DefaultSelector() as selector:
        for link in links:
            selector.register(link, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(TIMEOUT_S)
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                link = cast("socket.socket", key.fileobj)
                if hear(link):
                    selector.unregister(link)


def _is_whole(response: bytearray) -> bool:
    ends = response.find(_END_OF_HEAD)
    if ends < 0:
        return False
    length = int(response[:ends].rpartition(b"Content-Length: ")[2].split(b"\r\n")[0])
    return len(response) >= ends + len(_END_OF_HEAD) + length


def prepared(url: str, sessions: int, messages: int) -> Crowd:
    """Return a crowd of sessions for which this many messages wait."""
    crowd = Crowd(url, sessions)
    crowd.say(subscribe(_CHANNEL))
    crowd.say(connect(advice={"timeout": 0}))
    publisher = Client(url)
    for number in range(messages):
        publisher.say(publish(_CHANNEL, {"n": number, "text": "x" * 100}))
    return crowd


def main() -> None:
    url, sessions, messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    allow_many_files()
    crowd = prepared(url, sessions, messages)
    print("ready", flush=True)
    sys.stdin.readline()
    received = crowd.say(connect({"ack": 1}))
    crowd.say(connect({"ack": 2}, advice={"timeout": 0}))
    print(received, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
