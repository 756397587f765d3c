"""A small Bayeux server that loses, repeats, reorders and corrupts messages, and counts them.

It also answers in awkward but legal ways, to test the load generator's parsers.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Send = Callable[[str], None]

MOST_HOLD_MS = 2000


@dataclass(frozen=True, slots=True)
class Faults:
    """Each fault happens to every n-th delivery (`refuse`: publish); 0 means never."""

    lose: int = 0
    duplicate: int = 0
    swap: int = 0
    corrupt: int = 0
    refuse: int = 0


@dataclass(frozen=True, slots=True)
class Manners:
    """What a server may do and the load generator must accept."""

    is_ugly: bool = False  # odd chunks and splits, shuffled keys, white space, escaped slashes
    piggybacks: bool = False  # messages come along with publish replies
    grants_ack: bool = False
    close_every: int = 0  # responses on a connection; 0 keeps it
    hold_s: float = MOST_HOLD_MS / 1000


@dataclass(slots=True, eq=False)
class Session:
    client_id: str
    send: Send | None  # how to reach a WebSocket
    has_ack: bool
    queue: list[Message] = field(default_factory=list)
    waiter: asyncio.Future[None] | None = None
    connects: int = 0
    batch: int = 0
    unacked: list[tuple[int, Message]] = field(default_factory=list)
    # By channel and publisher: the message that its successor is to overtake.
    overtaken: dict[tuple[str, int], Message] = field(default_factory=dict)

    def wake(self) -> None:
        if self.waiter and not self.waiter.done():
            self.waiter.set_result(None)

    def settle(self, acked: int) -> None:
        self.queue = [m for batch, m in self.unacked if batch > acked] + self.queue
        self.unacked = []

    def take(self) -> list[Message]:
        taken, self.queue = self.queue, []
        if self.has_ack:
            self.batch += 1
            self.unacked += [(self.batch, message) for message in taken]
        return taken


class FaultyServer:
    def __init__(self, faults: Faults, manners: Manners) -> None:
        self.faults = faults
        self.manners = manners
        self.counts: Counter[str] = Counter()
        self.random = random.Random(1)
        self._sessions: dict[str, Session] = {}
        self._subscribers: dict[str, list[Session]] = {}
        self._handshakes = 0
        self._publishes = 0
        self._deliveries = 0

    @property
    def never_sent(self) -> int:
        """Messages that still wait for a successor to overtake them."""
        return sum(len(session.overtaken) for session in self._sessions.values())

    async def answer(self, text: bytes, send: Send | None = None) -> str:
        decoded = json.loads(text)
        replies: list[Message] = []
        for message in [decoded] if isinstance(decoded, dict) else decoded:
            answered = await self._reply(message, send)
            if answered is None:
                return "[]"
            replies += answered
        return self._encode(replies)

    async def _reply(self, message: Message, send: Send | None) -> list[Message] | None:
        """Return the replies to one message; None if a later connect superseded this one."""
        channel = message["channel"]
        reply = {"id": message.get("id"), "channel": channel, "successful": True}
        if channel == "/meta/handshake":
            return [reply | self._handshake(message, send)]
        session = self._sessions.get(message.get("clientId", ""))
        if session is None:
            advice = {"reconnect": "handshake"}
            return [reply | {"successful": False, "error": "402::unknown", "advice": advice}]
        if channel == "/meta/connect":
            return await self._connect(session, message, reply, send)
        if channel == "/meta/subscribe":
            return [reply | self._subscribe(session, message["subscription"])]
        if channel == "/meta/disconnect":
            self._disconnect(session)
            return [reply]
        return self._publish(session, message, reply)

    def _handshake(self, message: Message, send: Send | None) -> Message:
        self._handshakes += 1
        has_ack = self.manners.grants_ack and bool(message.get("ext", {}).get("ack"))
        session = Session(f'c{self._handshakes}-"q', send, has_ack)
        self._sessions[session.client_id] = session
        return {
            "clientId": session.client_id,
            "version": "1.0",
            "supportedConnectionTypes": ["long-polling", "websocket"],
            "advice": {"reconnect": "retry", "interval": 0, "timeout": MOST_HOLD_MS},
        } | ({"ext": {"ack": True}} if has_ack else {})

    async def _connect(
        self, session: Session, message: Message, reply: Message, send: Send | None
    ) -> list[Message] | None:
        session.send = send or session.send
        session.connects += 1
        connect = session.connects
        session.wake()
        if session.has_ack and "ext" in message:
            session.settle(message["ext"]["ack"])
        timeout_ms = message.get("advice", {}).get("timeout", self.manners.hold_s * 1000)
        if timeout_ms and (send or not session.queue):
            session.waiter = asyncio.get_running_loop().create_future()
            await asyncio.wait([session.waiter], timeout=timeout_ms / 1000)
            if connect != session.connects:
                return None
            session.waiter = None
        messages = session.take()
        if session.has_ack:
            reply["ext"] = {"ack": session.batch}
        comes_last = self.random.random() < 0.5
        return [*messages, reply] if comes_last else [reply, *messages]

    def _subscribe(self, session: Session, subscription: str | list[str]) -> Message:
        for channel in [subscription] if isinstance(subscription, str) else subscription:
            self._subscribers.setdefault(channel, []).append(session)
        return {"subscription": subscription}

    def _disconnect(self, session: Session) -> None:
        for subscribers in self._subscribers.values():
            if session in subscribers:
                subscribers.remove(session)
        del self._sessions[session.client_id]

    def _publish(self, session: Session, message: Message, reply: Message) -> list[Message]:
        self._publishes += 1
        if is_due(self.faults.refuse, self._publishes):
            self.counts["refused"] += 1
            return [reply | {"successful": False, "error": "403::no"}]
        self._route(message)
        if self.manners.piggybacks and not session.send and not session.has_ack:
            return [reply, *session.take()]
        return [reply]

    def _route(self, message: Message) -> None:
        delivered = {
            "channel": message["channel"],
            "data": message["data"],
            "id": message.get("id"),
            "ext": {"x": [1, {"y": '}]"'}]},  # brackets in a text, to mislead a careless parser
        }
        for session in self._subscribers.get(message["channel"], ()):
            self._deliver(session, delivered)

    def _deliver(self, session: Session, message: Message) -> None:
        """Deliver one message to one subscriber, with faults."""
        self._deliveries += 1
        source = message["channel"], message["data"]["p"]
        faults, count = self.faults, self._deliveries
        if source in session.overtaken:
            self.counts["misordered"] += 1
            self._queue(session, message)
            self._queue(session, session.overtaken.pop(source))
        elif is_due(faults.lose, count):
            self.counts["lost"] += 1
        elif is_due(faults.corrupt, count):
            self.counts["corrupt"] += 1
            self._queue(session, corrupted(message))
        elif is_due(faults.swap, count):
            session.overtaken[source] = message
        else:
            self._queue(session, message)
            if is_due(faults.duplicate, count):
                self.counts["duplicated"] += 1
                self._queue(session, message)

    def _queue(self, session: Session, message: Message) -> None:
        session.queue.append(message)
        if session.send:
            session.send(self._encode(session.take()))
        else:
            session.wake()

    def _encode(self, messages: list[Message]) -> str:
        if not self.manners.is_ugly:
            return json.dumps(messages, separators=(",", ":"))
        indent = self.random.choice([None, 1, 2])
        return json.dumps(self._shuffled(messages), indent=indent).replace("/", "\\/") + "\r\n "

    def _shuffled(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, dict):
            pairs = list(value.items())
            self.random.shuffle(pairs)
            return {key: self._shuffled(each) for key, each in pairs}
        return [self._shuffled(each) for each in value] if isinstance(value, list) else value


def is_due(every: int, count: int) -> bool:
    return bool(every) and count % every == 0


def corrupted(message: Message) -> Message:
    data = message["data"]
    return message | {"data": data | {"x": "#" + data["x"][1:]}}
