"""Many small messages at once: a hundred in one segment, and one from each of fifty sockets."""

import base64
import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.stalls.clients import Client, Message, publish, subscribe

# Messages in one segment, if so many fit, and sockets that send one message each at the same time.
_TOGETHER, _SOCKETS, _SEGMENT = 100, 50, 60_000
# After this time, whatever has not been answered counts as answered.
_LONGEST_S = 20.0
# What the server has when volleys arrive: topics with a message each, the messages of a deep
# history, members of a room, and filters on a channel.
_TOPICS, _DEEP, _MEMBERS, _FILTERS = 5_000, 5_000, 1_000, 25
# The longest page of a list, and the length of the text that filters search.
_PAGE, _SEARCHED = 1_000, 3_000
_STEM = "/volley/topics"
_DEEP_CHANNEL, _FILTERED = "/volley/deep", "/volley/filtered"
_CALLED, _ROOM = "/volley/called", "/chat/room/volley"
_SUBJECT = "volley-subject"


# The fields of the head of an upgrade.
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
)


class Small(NamedTuple):
    """A small message that any client may send, by its number; and how it is answered."""

    message: Callable[[int], Message]
    # Whether an event with the service's answer comes with the reply.
    is_answered: bool = False
    # Whether its session gives verdicts.
    has_terms: bool = False
    # Whether it erases the topics, which are made again before each volley.
    needs_topics: bool = False
    # Whether it makes the same work if it is sent again.
    is_repeatable: bool = True


def _call(service: str, data: object) -> Small:
    return Small(lambda number: publish(service, data), is_answered=True)


def _publish(channel: str, data: object = 1, **fields: object) -> Small:
    return Small(lambda number: publish(channel, data, **fields))


def _request(number: int) -> Message:
    return publish(_CALLED, ext={"replyTo": f"/service/none/{number}", "timeout": 1000})


def handshake(ext: Message) -> Message:
    hello: Message = {"channel": "/meta/handshake", "version": "1.0", "ext": ext}
    return {**hello, "supportedConnectionTypes": ["websocket", "long-polling"]}


def _terms(small: Small) -> Message:
    return {"delivery": True} if small.has_terms else {}


_TEXT = "".join(Random(1).choices("yzab", k=_SEARCHED))
_DESTINATIONS = [{"name": f"{_SUBJECT}/{number}"} for number in range(100)]
_VERDICTS = [{"seq": number, "state": "OK"} for number in range(1, 100)]

# Services by channel and action, and what else a small message may ask for.
SMALL: dict[str, Small] = {
    "/service/topics state": _call("/service/topics", {"state": f"{_STEM}/1"}),
    "/service/topics list": _call("/service/topics", {"list": f"{_STEM}/*", "limit": _PAGE}),
    "/service/topics get": _call(
        "/service/topics",
        {"get": _DEEP_CHANNEL, "limit": _PAGE, "history": {"numEntries": -1}},
    ),
    "/service/presence": _call("/service/presence", {"channel": _ROOM, "limit": _PAGE}),
    "/service/ptp": _publish("/service/ptp", {"destinations": _DESTINATIONS, "content": 1}),
    "/service/delivery": _publish("/service/delivery", _VERDICTS)._replace(has_terms=True),
    "/service/admin": _publish("/service/admin", {"cmd": "status"}),
    "/service/login": _publish("/service/login", {}),
    "/service/chat/rooms": _call("/service/chat/rooms", {}),
    "/service/chat/private": _publish("/service/chat/private", {"id": 1, "to": "x", "text": "x"}),
    "history by a filter": _call(
        "/service/topics",
        {"get": _DEEP_CHANNEL, "filter": "data = 'nothing'", "history": {"numEntries": -1}},
    ),
    "handshake": Small(lambda number: handshake({})),
    "subscribe": Small(lambda number: subscribe(f"/volley/new/{number}"), is_repeatable=False),
    "subscribe with a history": Small(
        lambda number: {**subscribe(f"{_STEM}/*"), "ext": {"replay": -2}}, is_repeatable=False
    ),
    "publish": _publish("/volley/plain"),
    "publish under filters": _publish(_FILTERED, _TEXT),
    "publish with a key": Small(
        lambda number: publish("/volley/plain", ext={"delivery": {"key": str(number)}}),
        is_repeatable=False,
    ),
    "remote call": _publish(f"/service{_CALLED}"),
    "request": Small(_request, is_repeatable=False),
    "/service/topics erase": _call(
        "/service/topics", {"erase": f"{_STEM}/*", "limit": _PAGE}
    )._replace(needs_topics=True, is_repeatable=False),
}


# Requests without a session, by their first line; the last has a body.
REQUESTS: dict[str, tuple[str, bytes]] = {
    "/healthz": ("GET /healthz", b""),
    "callback-polling": ("GET /cometd?message=%5B%7B%22channel%22:%22/volley/plain%22%7D%5D", b""),
    "/publish": ("POST /publish", b'[{"channel":"/volley/plain","data":1}]'),
}


class Link:
    """A connection that sends bytes as they are, and counts answers."""

    # What is once in each answer.
    answer = b"HTTP/1.1 "

    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        self.host, self.path = split.netloc, split.path
        self.socket = socket.create_connection((split.hostname, split.port), _LONGEST_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._end = b""
        self.answers = 0
        self.is_over = False

    def read(self) -> None:
        """Read what is there, and count its answers."""
        found = self.socket.recv(1 << 18)
        self.is_over = not found
        found = self._end + found
        self.answers += found.count(self.answer)
        # The beginning of an answer, perhaps: too short for a whole one.
        self._end = found[1 - len(self.answer) :]

    def request(self, line: str, body: bytes, *fields: str) -> bytes:
        """Return the bytes of a request."""
        return in_request(self.host, line, body, *fields)

    def close(self) -> None:
        self.socket.close()


class Plain(Link):
    """A session over one connection for long-polling, which may send before it has the answers."""

    # Whether the service's answers come back on this connection, without a connect.
    is_pushed = False
    _suffix = ""

    def __init__(self, url: str, ext: Message) -> None:
        super().__init__(url)
        self._client = Client(url, ext)
        self.id = self._client.id

    def bytes_of(self, body: bytes) -> bytes:
        """Return the bytes that carry these messages."""
        cookie = f"Cookie: {self._client.cookie}"
        return self.request(f"POST {self.path}{self._suffix}", body, cookie)

    def close(self) -> None:
        super().close()
        self._client.close()


class Ordinary(Plain):
    """The same with requests that do not take the fast lane."""

    _suffix = "/ordinary"


class Socket(Link):
    """A session over a WebSocket."""

    answer = b'"successful":'
    is_pushed = True

    def __init__(self, url: str, ext: Message) -> None:
        super().__init__(url)
        head = self.request(f"GET {self.path}", b"", *UPGRADE)
        self.socket.sendall(head + self.bytes_of(json.dumps(handshake(ext)).encode()))
        found = b""
        while b'"clientId":"' not in found or not found.endswith(b"]"):
            found += self.socket.recv(1 << 16)
        self.id = _text_in(found, "clientId")
        # The beginning of its reply channels, if it sends requests.
        self.ret = _text_in(found, "ret")

    def bytes_of(self, body: bytes) -> bytes:
        """Return the bytes that carry these messages."""
        return in_frame(body)


def _text_in(messages: bytes, name: str) -> str:
    return messages.partition(f'"{name}":"'.encode())[2].partition(b'"')[0].decode()


def in_request(host: str, line: str, body: bytes, *fields: str) -> bytes:
    """Return the bytes of a request."""
    head = [f"{line} HTTP/1.1", f"Host: {host}", *fields]
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "\r\n"]).encode() + body


def in_frame(body: bytes) -> bytes:
    """Return a frame of a WebSocket's client."""
    size = len(body)
    head = bytes((0x81, 0x80 | size)) if size < 126 else b"\x81\xfe" + size.to_bytes(2)
    # With a mask of zeros, the payload stays as it is.
    return head + bytes(4) + body


class Volley:
    """What is sent at once, and the connections that send it; `measure` takes it for a client."""

    def __init__(self, links: Sequence[Link], sent: Sequence[bytes], answers: int) -> None:
        self._links = links
        self._sent = sent
        self._answers = answers

    def post(self, body: bytes) -> bytes:
        """Send everything; return when all of it is answered."""
        left = {link: link.answers + self._answers for link in self._links}
        for link, data in zip(self._links, self._sent, strict=True):
            link.socket.sendall(data)
        ends = time.monotonic() + _LONGEST_S
        with selectors.DefaultSelector() as selector:
            for link in self._links:
                selector.register(link.socket, selectors.EVENT_READ, link)
            while left and time.monotonic() < ends:
                for key, _ in selector.select(1.0):
                    link = key.data
                    link.read()
                    if link.is_over:
                        raise RuntimeError("the server closes the connection")
                    if link.answers >= left.get(link, 0):
                        left.pop(link, None)
        if left:
            raise RuntimeError("the server does not answer")
        return b""

    def close(self) -> None:
        for link in self._links:
            link.close()


Kind = type[Plain] | type[Socket]


def _bodies(small: Small, client: str, count: int) -> Iterator[bytes]:
    for number in range(count):
        message = {**small.message(number), "id": str(number)}
        if message["channel"] != "/meta/handshake":
            message["clientId"] = client
        yield json.dumps([message]).encode()


def _answers(small: Small, kind: Kind) -> int:
    return 1 + (small.is_answered and kind.is_pushed)


def in_one_segment(url: str, small: Small, kind: Kind) -> Volley:
    _make_ready(url, small)
    link = kind(url, _terms(small))
    each = list(map(link.bytes_of, _bodies(small, link.id, _TOGETHER)))
    del each[_SEGMENT // len(each[-1]) :]
    return Volley([link], [b"".join(each)], _answers(small, kind) * len(each))


def from_many_sockets(url: str, small: Small, kind: Kind) -> Volley:
    _make_ready(url, small)
    links = [kind(url, _terms(small)) for _ in range(_SOCKETS)]
    sent = [b"".join(map(each.bytes_of, _bodies(small, each.id, 1))) for each in links]
    return Volley(links, sent, _answers(small, kind))


def requests(url: str, line: str, body: bytes) -> Volley:
    """Return many requests in one segment, from each of many connections."""
    links = [Link(url) for _ in range(_SOCKETS)]
    return Volley(links, [each.request(line, body) * _TOGETHER for each in links], _TOGETHER)


def volleys(url: str) -> Iterator[tuple[str, bool, Callable[[], Volley]]]:
    """Yield all volleys, with their names, and whether they make the same work if sent again."""
    for of, small in SMALL.items():
        for kind in (Socket, Plain, Ordinary):
            for made in (in_one_segment, from_many_sockets):
                how = f"{kind.__name__.lower()} {made.__name__.replace('_', ' ')}"
                yield f"{of}, {how}", small.is_repeatable, partial(made, url, small, kind)
    for name, (line, body) in REQUESTS.items():
        yield name, True, partial(requests, url, line, body)


def _make_ready(url: str, small: Small) -> None:
    if small.needs_topics:
        _make_topics(url)


def _make_topics(url: str) -> None:
    topic = {"destroyDelay": -1, "history": {"maxEntries": 1}}
    _fill(url, (f"{_STEM}/{n % 97}-{n}" for n in range(_TOPICS)), topic)


def prepare(url: str) -> tuple[Client, ...]:
    """Give the server what the messages are about; return the clients that must stay."""
    _make_topics(url)
    deep = {"destroyDelay": -1, "history": {"maxEntries": _DEEP}}
    _fill(url, (_DEEP_CHANNEL for _ in range(_DEEP)), deep, "x" * 900)
    members = tuple(_member(url, number) for number in range(_MEMBERS))
    for each in members:
        each.say(subscribe(_ROOM))
    members[0].say(subscribe(_CALLED))
    for number in range(_FILTERS):
        patterns = [f"data MATCHES 'y.{{{length}}}z{number}'" for length in (40, 50)]
        ext: Message = {"delivery": {"filter": " OR ".join(patterns)}}
        members[number].say({**subscribe(_FILTERED), "ext": ext})
    return members


def _member(url: str, number: int) -> Client:
    """Return a session that stays without connecting."""
    terms = {"name": f"volley-{number}/1", "timeout": 600_000}
    return Client(url, {"delivery": {"session": terms}, "request": True})


def _fill(url: str, channels: Iterator[str], topic: Message, data: object = 1) -> None:
    publisher = Client(url)
    ext = {"delivery": {"topic": topic}}
    messages = [publish(channel, data, ext=ext) for channel in channels]
    for at in range(0, len(messages), 250):
        answers = publisher.say(*messages[at : at + 250])
        if not all(answer["successful"] for answer in answers):
            raise RuntimeError(f"the server refuses topics: {answers[0]}")
    publisher.close()
