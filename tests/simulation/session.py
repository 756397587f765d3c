"""A session of a simulated client.

By long-polling it has one connection for connects and one for all else; over a WebSocket only one.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, NamedTuple, Protocol

from tests.simulation.talker import Denied, Lost, Message, SocketTalker, Talker, reply_to
from tests.simulation.tokens import Pass

HANDSHAKE, CONNECT, DISCONNECT = "/meta/handshake", "/meta/connect", "/meta/disconnect"
SUBSCRIBE, UNSUBSCRIBE = "/meta/subscribe", "/meta/unsubscribe"
# What is due to a request that does not come from the client of its session.
OF_ANOTHER = "session_unknown"
# What a request without a cookie is told, whatever its id.
OF_NOBODY = "cookie_missing"
# How much longer than the server a client holds a connect.
_PATIENCE_S = 4.0


class Attempt(NamedTuple):
    """What a client asks a machine for, in true time, and for which session, if it has one."""

    name: str
    client_id: str
    channel: str
    door: str
    asked_at: float
    # Whether it says that a message could not be used.
    refuses: bool = False
    # The error that is due, if it is more than a server takes, or nobody may do it.
    due: str = ""
    # When the login ends that it brings.
    login_ends_at: float = inf


class Witness(Protocol):
    """Is told what clients ask for, and what comes of it."""

    def now(self) -> float: ...
    def begins(self, attempt: Attempt) -> None: ...
    def answered(self, attempt: Attempt, reply: Message) -> None: ...
    def failed(self, attempt: Attempt, fault: Lost | Denied) -> None: ...
    def uses(self, place: tuple[str, int], client_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Manners:
    """How clients speak; times are by their own clock."""

    doors: Sequence[tuple[str, int]]
    witness: Witness
    # How long the server holds a connect.
    timeout_s: float
    # How long a client waits for the answer to anything but a connect.
    answer_s: float
    # How often a session begins over a WebSocket.
    sockets: float = 0.0
    # Returns a token for the session with a name, where clients log in.
    log_in: Callable[[str], Pass] | None = None


class Session:
    """What a client knows of its session.

    Args:
        name: The name of a named session; the empty text without one.
        acks: Whether it acknowledges what it gets.
        take: Called with each event, also if the reply that it came with refuses the connect.
        talker: Speaks for a browser that has other sessions, too.
        log_in: Returns the token that it begins with, if it is another one than others have.
    """

    def __init__(
        self,
        manners: Manners,
        name: str = "",
        *,
        acks: bool = False,
        take: Callable[[Message], None] = lambda _: None,
        talker: Talker | None = None,
        log_in: Callable[[], Pass] | None = None,
    ) -> None:
        self._manners = manners
        self._name = name
        self._log_in = log_in
        if log_in is None and name and manners.log_in is not None:
            self._log_in = partial(manners.log_in, name)
        self._acks = acks or bool(name)
        self._take = take
        self._use(Talker(manners.doors) if talker is None else talker)
        self._ack = 0
        # What the next session acknowledges first, although it is for another one.
        self._former_ack = 0
        # Empty without a session.
        self.client_id = ""

    def _use(self, talker: Talker) -> None:
        self._connecting, self._asking = talker, talker.beside()

    @property
    def has_one_connection(self) -> bool:
        """Whether what ends its requests also ends its connect."""
        return self._asking is self._connecting

    async def begin(self, *, due: str = "", shows: Pass | None = None, **ext: Any) -> Message:
        """Begin a session, or resume a named one; returns the reply.

        Args:
            due: The error that is due, if the server must refuse it.
            shows: The token that it shows, and not its own.
        """
        self._choose_transport()
        if self._acks:
            ext["ack"] = True
        if self._name:
            ext["delivery"] = {**ext.get("delivery", {}), "session": self._name}
        if shows is None and self._log_in is not None:
            shows = self._log_in()
        message = {
            "channel": HANDSHAKE,
            "version": "1.0",
            "supportedConnectionTypes": [self._asking.connection_type],
            "ext": ext,
        }
        limit_s = self._manners.answer_s
        reply = await self._tell(self._asking, message, limit_s, due, shows)
        self._ack, self.client_id = self._former_ack, reply["clientId"]
        self._former_ack = 0
        return reply

    def _choose_transport(self) -> None:
        """Use sockets or none; the next session may do otherwise, even of the same name."""
        if not self._manners.sockets:
            return
        uses_socket = random.random() < self._manners.sockets
        if uses_socket is not isinstance(self._asking, SocketTalker):
            kind = SocketTalker if uses_socket else Talker
            self._connecting.hang_up()
            self._asking.hang_up()
            self._use(kind(self._manners.doors))

    async def send(
        self, channel: str, *, due: str = "", shows: Pass | None = None, **fields: Any
    ) -> Message:
        """Send a message of the session; returns the reply. Raises `Denied` or `Lost`.

        Args:
            due: The error that is due, if the server must refuse it.
            shows: The token that it renews its login with.
        """
        message = {"channel": channel, "clientId": self.client_id, **fields}
        limit_s = self._manners.answer_s
        return await self._tell(self._asking, message, limit_s, due, shows)

    async def send_all(self, messages: Sequence[Message], dues: Sequence[str]) -> list[Message]:
        """Send messages in one request, each with an id; returns the replies. Raises `Lost`.

        Args:
            dues: The errors that are due; the empty text for what must be accepted.
        """
        client_id, talker = self.client_id, self._asking
        sent = [{**each, "clientId": client_id} for each in messages]
        found = await ask_all(
            *(talker, self._manners, self._name, sent, dues),
            hear=self._hear,
        )
        for reply, due in zip(found, dues, strict=True):
            if not (due or reply["successful"]):
                self._heed(Denied(reply), talker, client_id)
        return found

    async def listen(
        self, pause_s: float, begin: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """Connect for ever, and begin anew when the session is over.

        Args:
            pause_s: For how long at most it waits after a failure.
            begin: Begins the session; by default with nothing else.
        """
        while True:
            try:
                if not self.client_id:
                    await (begin or self.begin)()
                await self.connect()
            except (Lost, Denied):
                await asyncio.sleep(pause_s * random.random())

    async def connect(self, *, shows: Pass | None = None, **ext: Any) -> Message:
        """Connect once; returns the reply, whose events the next connect acknowledges."""
        client_id = self.client_id
        message: Message = {
            "channel": CONNECT,
            "clientId": client_id,
            "connectionType": self._connecting.connection_type,
        }
        if self._acks:
            ext["ack"] = self._ack
        if ext:
            message["ext"] = ext
        limit_s = self._manners.timeout_s * 1.25 + _PATIENCE_S
        reply = await self._tell(self._connecting, message, limit_s, shows=shows)
        if client_id == self.client_id:
            self._ack = batch_of(reply) or self._ack
        return reply

    @contextmanager
    def showing(self, other: Pass) -> Iterator[None]:
        """Let each request but connects show a token meanwhile, whoever the session belongs to."""
        talker = self._asking
        talker.token = other.token
        try:
            yield
        finally:
            talker.token = ""

    def forget(self) -> None:
        """Let the next session be another one, as a client does that is told nothing."""
        self.client_id = ""

    def crash(self, *, acks_again: bool) -> None:
        """Begin anew with the next request, perhaps with the number of the last batch."""
        self._former_ack = self._ack if acks_again else 0
        self.forget()

    async def _tell(
        self,
        talker: Talker,
        message: Message,
        limit_s: float,
        due: str = "",
        shows: Pass | None = None,
    ) -> Message:
        """Send a message; returns the reply. Raises `Denied` or `Lost`."""
        if shows is not None:
            message["ext"] = {**message.get("ext", {}), "authentication": shows.ext}
        client_id = message.get("clientId", "")
        channel, witness = message["channel"], self._manners.witness
        refuses = "verdicts" in (message.get("ext") or {}).get("delivery", ())
        attempt = Attempt(
            *(self._name, client_id, channel, talker.door[0], witness.now()),
            refuses=refuses,
            due=due,
            login_ends_at=inf if shows is None else shows.ends_at,
        )
        witness.begins(attempt)
        try:
            found = await talker.ask([message], limit_s=limit_s, hear=self._hear)
            reply = reply_to(channel, found)
        except (Lost, Denied) as fault:
            witness.failed(attempt, fault)
            # Who is not the session's client learns nothing about it.
            if isinstance(fault, Denied) and due not in (OF_ANOTHER, OF_NOBODY):
                self._heed(fault, talker, client_id)
            raise
        witness.answered(attempt, reply)
        if talker.place is not None:
            witness.uses(talker.place, str(reply.get("clientId", client_id)))
        return reply

    def _heed(self, denied: Denied, talker: Talker, client_id: str) -> None:
        """Go to another door, or be without a session, if that is what a refusal means."""
        if denied.is_elsewhere:
            talker.hang_up()
        if denied.ends_session and client_id == self.client_id:
            self.client_id = ""

    def _hear(self, message: Message) -> None:
        # The answer of a service may come with any reply, and says whether it was successful.
        if "successful" not in message or "data" in message:
            self._take(message)


async def ask_all(
    talker: Talker,
    manners: Manners,
    name: str,
    messages: Sequence[Message],
    dues: Sequence[str],
    hear: Callable[[Message], None] = lambda _: None,
) -> list[Message]:
    """Send messages in one request; returns the reply to each, in their order. Raises `Lost`."""
    witness, door = manners.witness, talker.door[0]
    attempts = [
        Attempt(name, each.get("clientId", ""), each["channel"], door, witness.now(), due=due)
        for each, due in zip(messages, dues, strict=True)
    ]
    for attempt in attempts:
        witness.begins(attempt)
    try:
        found = await talker.ask(messages, limit_s=manners.answer_s, hear=hear)
        replies = [reply_of(each, found) for each in messages]
    except Lost as lost:
        witness.failed(attempts[0], lost)
        raise
    for attempt, reply in zip(attempts, replies, strict=True):
        if reply["successful"]:
            witness.answered(attempt, reply)
        else:
            witness.failed(attempt, Denied(reply))
    return replies


def reply_of(message: Message, found: Sequence[Message]) -> Message:
    """Return the one reply that has the id and the channel of a message. Raises `Lost`."""
    own = [each for each in found if each.get("id") == message["id"] and "successful" in each]
    if len(own) != 1 or own[0]["channel"] != message["channel"]:
        raise Lost(f"{len(own)} replies to one message")
    return own[0]


def batch_of(reply: Message) -> int | None:
    """Return the number of what came with this reply to a connect; None without one."""
    batch: int | None = (reply.get("ext") or {}).get("ack")
    return batch


def id_of(event: Message) -> str:
    """Return the id of the event's message; the empty text if nobody said it."""
    delivery = (event.get("ext") or {}).get("delivery") or {}
    return str(event.get("id") or delivery.get("id") or "")
