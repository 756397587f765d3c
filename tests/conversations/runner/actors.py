"""The clients of a story: what they send, and the replies that they expect."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

import aiohttp
from multidict import CIMultiDict

from tests.conversations.runner.http_wire import (
    CallbackPolling,
    HttpRequest,
    HttpWire,
    LongPolling,
)
from tests.conversations.runner.matching import Names, filled_in, spoken
from tests.conversations.runner.notation import JSON, Absent, Elements, Fields, Hole, Value
from tests.conversations.runner.stories import Body, Message, RequestLine
from tests.conversations.runner.websocket_wire import WebSocketWire
from tests.conversations.runner.wire import Wire, encoded

DEFAULT_PATH = "/cometd"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A message whose reply is due; the story says whether it may be held."""

    message: dict[str, JSON]
    is_held: bool


class Actor:
    """One named client: its cookies, its wires, and its messages that wait for a reply."""

    def __init__(self, name: str, server: str, transport: str, names: Names) -> None:
        self.name = name
        self.transport = transport
        self.jar = aiohttp.CookieJar(unsafe=True)
        self._server = server
        self._names = names
        self._numbers = count(1)
        self._unanswered: list[Unanswered] = []
        self._wires: dict[str, Wire] = {}
        self._spoken_over: Wire | None = None

    @property
    def wire(self) -> Wire:
        """The wire that the client spoke over last."""
        return self._spoken_over or self._wire(self.transport)

    async def say(
        self,
        content: tuple[Message, ...] | Body,
        *,
        request: RequestLine | None,
        headers: CIMultiDict[str],
        is_held: bool,
    ) -> None:
        body = self._body(content, is_held=is_held)
        if request is None:
            self._spoken_over = self._wire(self.transport)
            await self._spoken_over.say(body, headers=headers, is_held=is_held)
        elif request.method == "UPGRADE":
            socket = self._wire("websocket")
            assert isinstance(socket, WebSocketWire)
            self._spoken_over = socket
            await socket.open(filled_in(request.target, self._names), headers)
        else:
            http = self._wire("long-polling")
            assert isinstance(http, HttpWire)
            self._spoken_over = http
            target = filled_in(request.target, self._names)
            await http.send(
                HttpRequest(request.method, target, headers, encoded(body)), is_held=is_held
            )

    def expectations(self, messages: Iterable[Message], *, is_held: bool) -> list[Fields]:
        return [self._expectation(message, is_held=is_held) for message in messages]

    def forget_unanswered(self, *, is_held: bool) -> None:
        """Drop messages whose response had no replies that the story could check."""
        waiting = [due for due in self._unanswered if due.is_held is is_held]
        for due in waiting[:1] if is_held else waiting:
            self._unanswered.remove(due)

    def share_cookies_of(self, other: "Actor") -> None:
        assert not self._wires, f"{self.name} has already spoken"
        self.jar = other.jar

    async def drop(self) -> None:
        self._unanswered.clear()
        for wire in self._wires.values():
            await wire.drop()

    async def close(self) -> None:
        self._unanswered.clear()
        for wire in self._wires.values():
            await wire.close()

    def read_on(self, is_reading: bool) -> None:
        for wire in self._wires.values():
            wire.read_on(is_reading)

    def unheard(self) -> str | None:
        return next(filter(None, (wire.unheard() for wire in self._wires.values())), None)

    def answered_early(self, *, newest_only: bool = False) -> str | None:
        found = (wire.answered_early(newest_only=newest_only) for wire in self._wires.values())
        return next(filter(None, found), None)

    def _wire(self, transport: str) -> Wire:
        if transport not in self._wires:
            self._wires[transport] = self._new_wire(transport)
        return self._wires[transport]

    def _new_wire(self, transport: str) -> Wire:
        match transport:
            case "websocket":
                return WebSocketWire(self._server, self.jar, DEFAULT_PATH)
            case "callback-polling":
                return HttpWire(self._server, self.jar, CallbackPolling(self._server, DEFAULT_PATH))
            case _:
                return HttpWire(self._server, self.jar, LongPolling(DEFAULT_PATH))

    def _body(self, content: tuple[Message, ...] | Body, *, is_held: bool) -> Body:
        if isinstance(content, Body):
            return Body(filled_in(content.text, self._names), content.encoding)
        if not content:
            return Body("")
        messages = [self._composed(message) for message in content]
        self._unanswered += [Unanswered(message, is_held) for message in messages]
        return Body(json.dumps(messages, ensure_ascii=False))

    def _composed(self, message: Message) -> dict[str, JSON]:
        fields = message.fields
        if message.channel is not None:
            fields = fields.over(self._usual_fields(message.channel))
        composed = spoken(fields, self._names)
        assert isinstance(composed, dict)
        return composed

    def _usual_fields(self, channel: str) -> dict[str, Value]:
        usual: dict[str, Value] = {"channel": channel, "id": str(next(self._numbers))}
        if channel == "/meta/handshake":
            usual["version"] = "1.0"
            usual["supportedConnectionTypes"] = Elements((self.transport,), is_open=False)
            return usual
        if self.name in self._names:
            usual["clientId"] = str(self._names[self.name])
        if channel == "/meta/connect":
            usual["connectionType"] = self.transport
        return usual

    def _expectation(self, message: Message, *, is_held: bool) -> Fields:
        if message.verdict is None:
            if message.channel is None:
                self._answered(message.fields, is_held=is_held)
                return message.fields
            return message.fields.over({"channel": message.channel})
        usual: dict[str, Value] = {"channel": message.channel, "successful": message.verdict}
        if message.error is not None:
            usual["error"] = message.error
        reply = message.fields.over({"channel": message.channel})
        request = self._answered(reply, is_held=is_held)
        usual["id"] = str(request["id"]) if "id" in request else Absent()
        if "subscription" in request:
            usual["subscription"] = as_value(request["subscription"])
        return message.fields.over(usual)

    def _answered(self, reply: Fields, *, is_held: bool) -> dict[str, JSON]:
        """The oldest message that such a reply can be for; it is due no longer."""
        for due in sorted(self._unanswered, key=lambda due: due.is_held is not is_held):
            message = due.message
            if message.get("channel") != reply.members.get("channel"):
                continue
            if reply.members.get("id", message.get("id")) in (message.get("id"), Hole("text")):
                self._unanswered.remove(due)
                return message
        return {}


def as_value(json_value: JSON) -> Value:
    match json_value:
        case list():
            return Elements(tuple(as_value(item) for item in json_value), is_open=False)
        case dict():
            return Fields({key: as_value(item) for key, item in json_value.items()}, is_open=False)
        case _:
            return json_value
