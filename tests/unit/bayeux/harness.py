"""A whole Bayeux server for tests: no event loop, no network, a clock that the test moves.

Requests go in as bytes, through `exchanges.receive`, and answers come out as JSON, so the tests
say what clients see. What the shell does for the core has a method here: `turn` ends a turn of
the event loop, `advance` lets time pass, `resolve` finishes what an extension waits for.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import count
from math import inf
from typing import Any, cast

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.assembly import assemble
from holdfast.bayeux.exchanges import RemainingMessages, SalvagedRequest, receive
from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.for_extensions import ForExtensions
from holdfast.bayeux.session import Carrier, Exchange, Pipe, Session
from holdfast.bayeux.state.server_state import Outcome
from holdfast.bayeux.wire.caller import UNKNOWN, Caller, Speaker
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.receipts import Taken
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.node import Node
from holdfast.delivery.messages.message import Event
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.delivery.ports.neighbours import Neighbours
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.topics.counting import topic_of
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.settings import Settings
from tests.unit.bayeux.numbered_bytes import numbered_bytes
from tests.unit.delivery.fake_keeper import FakeKeeper

Json = dict[str, Any]

# As the value of a field: the message does not have that field.
ABSENT: Any = object()

TRANSPORTS = ["websocket", "long-polling", "callback-polling"]


# An extension, or what makes one for a server.
Installed = ServerExtension | Callable[[ServerApi], ServerExtension]


class Wire:
    """The connection under one request; a test may cut it, fill it up, or drop it afterwards."""

    def __init__(self, connection_type: ConnectionType = ConnectionType.LONG_POLLING) -> None:
        self.connection_type = connection_type
        self.is_cut = False
        self.is_dropped = False
        self.is_full = False
        self.elements: list[Json] | None = None

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> Taken:
        assert self.elements is None, "an exchange is answered once"
        if self.is_cut:
            return False
        self.elements = elements_of(exchange, messages)
        return True

    def is_draining(self) -> bool:
        return self.is_full

    def has_unread(self) -> bool:
        return False

    def is_lost(self) -> bool:
        return self.is_cut or self.is_dropped


class Socket:
    """A WebSocket: carrier of all its exchanges, pipe of its session. One frame, one array."""

    connection_type = ConnectionType.WEBSOCKET

    def __init__(self) -> None:
        self.session: Session | None = None
        self.is_cut = False
        self.is_dropped = False
        self.is_full = False
        # Whether the client has sent a message that the server has not begun to handle.
        self.is_unread = False
        self.is_ended = False
        self.frames: list[list[Json]] = []

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> Taken:
        if self.is_cut or exchange.is_superseded:
            return False
        self.frames.append(elements_of(exchange, messages))
        return True

    def push(self, messages: Sequence[Event]) -> Taken:
        if self.is_cut:
            return False
        self.frames.append([json.loads(message.wire) for message in messages])
        return True

    def is_draining(self) -> bool:
        return self.is_full

    def has_unread(self) -> bool:
        return self.is_unread

    def is_lost(self) -> bool:
        return self.is_cut or self.is_dropped

    def end(self) -> None:
        self.is_ended = True

    def take(self) -> list[Json]:
        """What has arrived since the last call, frame after frame."""
        frames, self.frames = self.frames, []
        return [element for frame in frames for element in frame]


def elements_of(exchange: Exchange, messages: Sequence[Event]) -> list[Json]:
    """The array that a transport makes of an answer."""
    replies = [json.loads(reply) for reply in exchange.replies]
    events = [json.loads(message.wire) for message in messages]
    return replies + events if exchange.replies_first else events + replies


class Asked:
    """One request and, when it has been answered, its answer."""

    def __init__(self, exchange: Exchange, wire: Wire) -> None:
        self.exchange = exchange
        self.wire = wire

    @property
    def is_held(self) -> bool:
        return self.wire.elements is None

    @property
    def is_lost(self) -> bool:
        """Whether no answer can reach its client."""
        return self.exchange.is_aborted or self.wire.is_cut

    @property
    def elements(self) -> list[Json]:
        assert self.wire.elements is not None, "not answered"
        return self.wire.elements

    @property
    def reply(self) -> Json:
        """The only element of the answer."""
        (reply,) = self.elements
        return reply

    @property
    def events(self) -> list[Json]:
        return [element for element in self.elements if "successful" not in element]

    @property
    def data(self) -> list[Any]:
        """The data of the events."""
        return [event["data"] for event in self.events]

    @property
    def replies(self) -> list[Json]:
        return [element for element in self.elements if "successful" in element]


class Server:
    """One server, and everything that its shell would do for it."""

    def __init__(
        self,
        *extensions: Installed,
        keeper: StorePort | None = None,
        journal: DeliveryJournal = NO_JOURNAL,
        after: "Server | None" = None,
        is_turn_over: Callable[[], bool] = lambda: False,
        node: str = "here",
        buckets: Sequence[int] = range(1000),
        shards: int = 1,
        neighbours: Neighbours | None = None,
        **options: Any,
    ) -> None:
        """With `after` it replaces a server that has gone: time and numbers continue."""
        # Requests that a turn had no time for.
        self.rests: list[RemainingMessages | SalvagedRequest] = []
        self.now: float = 1000.0 if after is None else after.now
        # Most tests use the fake and look into it.
        self.keeper = cast("FakeKeeper", keeper or FakeKeeper())
        self.keeper.clock = lambda: self.now
        fresh = count(1_700_000_000_000_000_000, 1000)
        self._stamps: Iterator[int] = fresh if after is None else after._stamps
        self._ids: Iterator[int] = count(1) if after is None else after._ids
        self.chance = 0.5
        # For how long the core did not run while the wall clock did.
        self.slept_s = 0.0
        # By how much the wall clock was set back, and the newest value that it gave.
        self._back_s, self._newest_stamp = 0.0, 0
        # Returns when the oldest request arrived that the shell has not read.
        self.unread_since: Callable[[], float] = lambda: inf
        # The roles of stored sessions, by warrant.
        self.roles: dict[str, str] = {}
        self.bayeux = assemble(
            Settings(**options),
            shards=shards,
            node=Node(node, self._stamp, "test", self._hear_stamp),
            store=self.keeper,
            epoch="",
            journal=journal,
            client_ids=ClientIds(bytes(32), partial(numbered_bytes, self._ids), 1, buckets),
            random=lambda: self.chance,
            on_ready=self._on_ready,
            run_later=self._run_later,
            is_turn_over=is_turn_over,
            unread_since=lambda: self.unread_since(),
            role_of=lambda warrant: self.roles.get(warrant, ""),
            neighbours=neighbours,
        )
        # The server as extensions see it.
        self.for_extensions = ForExtensions(self.bayeux, lambda: self.now)
        for extension in extensions:
            if not isinstance(extension, ServerExtension):
                extension = extension(self.for_extensions)
            self.bayeux.state.installed.extend(extension)
        self.pending: list[tuple[Awaitable[object], Callable[[Outcome, float], None]]] = []
        self._is_ready = False

    def _stamp(self) -> int:
        """Wall time follows the clock of the core; no value is given twice."""
        passed_s = self.now - 1000.0 + self.slept_s - self._back_s
        stamp = next(self._stamps) + round(passed_s * 1000) * 1_000_000
        next_one = self._newest_stamp // 1000 * 1000 + 1000 + stamp % 1000
        self._newest_stamp = max(next_one, stamp)
        return self._newest_stamp

    def _hear_stamp(self, heard: int) -> None:
        self._newest_stamp = max(self._newest_stamp, heard)

    def _on_ready(self) -> None:
        assert not self._is_ready, "on_ready is called once a turn"
        self._is_ready = True

    def _run_later(
        self, work: Awaitable[object], done: Callable[[Outcome, float], None], /
    ) -> None:
        self.pending.append((work, done))

    # What the shell does

    def receive(
        self,
        body: bytes,
        *,
        browser: str | None = None,
        wire: Wire | None = None,
        is_cookieless: bool = False,
        caller: Caller = UNKNOWN,
    ) -> Asked:
        wire = wire or Wire()
        exchange = Exchange(wire, Speaker(caller, _cookies(browser), is_cookieless))
        asked = Asked(exchange, wire)
        self._hear(body, asked.exchange)
        return asked

    def _hear(self, body: bytes, exchange: Exchange) -> None:
        rest = receive(self.bayeux, body, exchange, self.now)
        if rest is not None:
            self.rests.append(rest)

    def receive_over(
        self,
        socket: Socket,
        body: bytes,
        browser: str | None,
        *,
        is_cookieless: bool = False,
        caller: Caller = UNKNOWN,
    ) -> Exchange:
        exchange = Exchange(socket, Speaker(caller, _cookies(browser), is_cookieless), socket)
        self._hear(body, exchange)
        return exchange

    def turn(self) -> None:
        """The turn of the event loop ends, and the store has answered."""
        while self.go_on() or self.keeper.turn() or self._is_ready:
            self.flush()

    def go_on(self) -> bool:
        """Continue unfinished requests in another turn; return whether there were any."""
        rests, self.rests = self.rests, []
        self.rests += [rest for rest in rests if not rest.go_on(self.bayeux, self.now)]
        return bool(rests)

    def flush(self, before_long_work: Callable[[], None] = lambda: None) -> bool:
        """Tell all sessions that have news; return whether there were any."""
        was_ready, self._is_ready = self._is_ready, False
        if was_ready:
            self.bayeux.flush(self.now, before_long_work)
        return was_ready

    def advance(self, seconds: float) -> None:
        """Time passes, with a tick every tenth of a second."""
        for _ in range(round(seconds * 10)):
            self.now = round(self.now + 0.1, 1)
            self.bayeux.tick(self.now)
            self.turn()

    def sleep(self, seconds: float) -> None:
        """The server does not run for this time, so its own clock stands still."""
        self.slept_s += seconds

    def set_clock_back(self, seconds: float) -> None:
        """The wall clock is set back."""
        self._back_s += seconds

    def abort(self, asked: Asked) -> None:
        """The client closes the connection of a request."""
        asked.wire.is_cut, asked.wire.is_full = True, False
        self.bayeux.abort(asked.exchange, self.now)

    def close(self, socket: Socket) -> None:
        socket.is_cut, socket.is_full = True, False
        self.bayeux.life.detach(socket, self.now)

    def resolve(self, outcome: Outcome) -> None:
        """Finish the oldest work that an extension waits for."""
        work, done = self.pending.pop(0)
        if hasattr(work, "close"):
            work.close()
        done(outcome, self.now)

    def stop(self) -> None:
        self.bayeux.stop(self.now)

    # Clients

    def guest(self, **fields: Any) -> "Client":
        """A client that has sent nothing yet."""
        return Client(self, **fields)

    def client(self, *, ext: Json | None = None, **fields: Any) -> "Client":
        """A client with a session."""
        client = Client(self, **fields)
        client.handshake(ext=ext)
        return client

    def connected(self, *, ext: Json | None = None, **fields: Any) -> "Client":
        """A client with a session whose next connect can be held."""
        client = self.client(ext=ext, **fields)
        client.connect()
        client.hear()
        return client

    # What must hold at any time

    def balances(self) -> bool:
        """Accepted + restored = settled + in queues, over all sessions."""
        counters = self.bayeux.state.hub.counters
        state = self.bayeux.state
        here = sum(session.queue.count for session in state.sessions)
        here += sum(receiver.queue.count for receiver in state.waiting_places.queues())
        self._count_topics()
        self._count_requests()
        return counters.entered() == counters.settled() + here

    def _count_requests(self) -> None:
        """Each request that was asked, or restored, is outstanding or has ended."""
        requests = self.bayeux.state.requests
        begun = requests.asked + requests.restored
        assert begun == requests.outstanding + sum(requests.ended.values())

    def _count_topics(self) -> None:
        """Topics count their kept and their queued messages correctly."""
        state = self.bayeux.state
        queued = Counter(
            topic_of(message)
            for receiver in (*state.sessions, *state.waiting_places.queues())
            for message in receiver.queue.messages()
        )
        kept = Counter(topic_of(message) for message in state.hub.histories)
        for topic in state.topics:
            assert (topic.queued, topic.kept) == (queued[topic], kept[topic])
            far = state.topics.elsewhere
            is_elsewhere = far is not None and far.subscribers(topic.name) > 0
            assert topic.is_subscribed is (topic.name in state.routes or is_elsewhere)


def _cookies(browser: str | None) -> tuple[str, ...]:
    return () if browser is None else (browser,)


class Client:
    """A Bayeux client: it keeps a cookie and a client id, and numbers its messages."""

    def __init__(
        self,
        server: Server,
        *,
        browser: str | None = None,
        socket: Socket | None = None,
        is_cookieless: bool = False,
        caller: Caller = UNKNOWN,
    ) -> None:
        self.server = server
        self.caller = caller
        self.browser = browser
        if browser is not None:
            # As if it were known since an earlier release, whatever its form.
            server.bayeux.state.client_ids.keep(browser)
        self.socket = socket
        # A program that sends no cookie: over a socket, `browser` is the identity given to that.
        self.is_cookieless = is_cookieless
        self.client_id: str | None = None
        self._ids = count(1)

    @property
    def session(self) -> Session:
        """The session of this client on the server, even if it has ended."""
        for session in self.server.bayeux.state.sessions:
            if session.client_id == self.client_id:
                self._session = session
        return self._session

    def dress(self, message: Json) -> Json:
        """The message with an id and, once known, the client id."""
        dressed = {"id": str(next(self._ids))}
        if self.client_id is not None:
            dressed["clientId"] = self.client_id
        return {name: value for name, value in (dressed | message).items() if value is not ABSENT}

    def send(self, *messages: Json, wire: Wire | None = None) -> Asked:
        """Send messages as one request; `ABSENT` as a value leaves that field out."""
        body = json.dumps([self.dress(message) for message in messages]).encode()
        return self.send_bytes(body, wire=wire)

    def send_bytes(self, body: bytes, *, wire: Wire | None = None) -> Asked:
        """Over the socket if there is one, over HTTP if not or if a wire is given."""
        if self.socket is None or wire is not None:
            asked = self.server.receive(
                body,
                browser=self.browser,
                wire=wire,
                is_cookieless=self.is_cookieless,
                caller=self.caller,
            )
            self.browser = self.browser or asked.exchange.new_browser
            return asked
        heard = len(self.socket.frames)
        wire = Wire(ConnectionType.WEBSOCKET)
        exchange = self.server.receive_over(
            self.socket,
            body,
            self.browser,
            is_cookieless=self.is_cookieless,
            caller=self.caller,
        )
        self.browser = self.browser or exchange.new_browser
        frames = self.socket.frames[heard:]
        wire.elements = [element for frame in frames for element in frame] or None
        return Asked(exchange, wire)

    def hear(self) -> list[Json]:
        """What has arrived over the socket since the last call."""
        return self.socket.take() if self.socket is not None else []

    def handshake(self, *, wire: Wire | None = None, **fields: Any) -> Asked:
        asked = self.begin_handshake(wire=wire, **fields)
        if asked.is_held:
            # The store may have to be asked first.
            self.server.turn()
        if not asked.is_held:
            self.learn(asked)
        return asked

    def begin_handshake(self, *, wire: Wire | None = None, **fields: Any) -> Asked:
        """Send a handshake, whose answer may have to wait."""
        message = {
            "channel": "/meta/handshake",
            "clientId": ABSENT,
            "version": "1.0",
            "supportedConnectionTypes": TRANSPORTS,
            **fields,
        }
        if message.get("ext") is None:
            message["ext"] = ABSENT
        return self.send(message, wire=wire)

    def learn(self, asked: Asked) -> None:
        """Take the client id and the cookie from the answer to a handshake."""
        self.client_id = asked.elements[0].get("clientId")
        self.browser = self.browser or asked.exchange.new_browser

    def connect(self, *, wire: Wire | None = None, **fields: Any) -> Asked:
        kind = "websocket" if self.socket is not None else "long-polling"
        message = {"channel": "/meta/connect", "connectionType": kind, **fields}
        return self.send(message, wire=wire)

    def subscribe(self, *channels: str, wire: Wire | None = None) -> Asked:
        subscription = channels[0] if len(channels) == 1 else list(channels)
        message = {"channel": "/meta/subscribe", "subscription": subscription}
        return self.send(message, wire=wire)

    def unsubscribe(self, *channels: str) -> Asked:
        subscription = channels[0] if len(channels) == 1 else list(channels)
        return self.send({"channel": "/meta/unsubscribe", "subscription": subscription})

    def publish(self, channel: str, data: Any = None, **fields: Any) -> Asked:
        return self.send({"channel": channel, "data": data, **fields})

    def disconnect(self, *, wire: Wire | None = None) -> Asked:
        return self.send({"channel": "/meta/disconnect"}, wire=wire)


def server_of(*others: Installed, **options: Any) -> Server:
    """A server with acks and verdicts, and with other extensions."""
    return Server(DeliveryWire, partial(Ack, announces_batch=False), *others, **options)


# The type checker confirms here that the fakes fit the interfaces of the core.
_carrier: type[Carrier] = Wire
_socket_as_carrier: type[Carrier] = Socket
_pipe: type[Pipe] = Socket
