"""One connection to the store: requests and replies in order."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from ssl import SSLError
from time import perf_counter
from typing import cast

from hiredis import HiredisError, PushNotification, Reader, ReplyError, pack_command

from holdfast.store.links.address import Address
from holdfast.store.links.reply_errors import StoreBusy, StoreElsewhere, StoreRefused, error_of

Word = bytes | str | int | float
# The oldest major version whose scripts are atomic.
_OLDEST = 7
_MORE = object()
# Why servers of these roles are refused.
_ROLES = {
    "replica": "is a replica, which accepts no writes: use its primary",
    "sentinel": "is a Sentinel: write redis+sentinel://HOST:PORT/SERVICE",
    "master": "is no Sentinel: write redis://HOST:PORT",
}
# How long one turn of the event loop passes on replies.
_TURN_S = 0.005


def pack(command: Sequence[Word]) -> bytes:
    """Encode a command."""
    packed: bytes = pack_command(tuple(command))  # type: ignore[arg-type] # the stub has one word
    return packed


class Unusable(Exception):
    """The connection cannot be used, now or ever. The text says why."""

    def __init__(self, why: str, *, is_passing: bool = False) -> None:
        super().__init__(why)
        # Whether the problem may be temporary.
        self.is_passing = is_passing


class Unreachable(Unusable):
    """Nothing accepts the connection."""


class Silent(Unusable):
    """The server does not answer in time."""


class WrongRole(Unusable):
    """The server is not what was expected: a replica, for example."""


class Redirected(Unusable):
    """The keys are at another server, or on their way to it."""

    def __init__(self, error: StoreElsewhere) -> None:
        super().__init__(str(error), is_passing=True)
        self.error = error


class RespConnection:
    """A connection; its listener gets every reply, including errors.

    It is an `asyncio.Protocol` without that base class, with which it could not be compiled.
    """

    def __init__(self) -> None:
        # Where the server is. Set when it is connected.
        self.address = Address()
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(notEnoughData=_MORE)
        self._transport: asyncio.Transport | None = None
        self._listener: Callable[[object], None] | None = None
        self.heard_at = 0.0
        # Whether more replies are waiting for a later turn.
        self._is_going_on = False
        # Whether the server is a node of a cluster.
        self.is_in_cluster = False
        self._greeting: object = None
        self.lost: asyncio.Future[str] = self._loop.create_future()

    @classmethod
    async def connect(
        cls,
        address: Address,
        name: str,
        sources: Sequence[str],
        *,
        role: str = "master",
        key: str = "",
    ) -> "RespConnection":
        """Connect and greet the server.

        Args:
            name: How the server lists the connection.
            sources: The scripts to load.
            role: Any other role of the server is refused.
            key: A node of a cluster must have it; raises `Redirected` if another one does.
        """
        try:
            wire = await cls._dial(address)
        except TimeoutError:
            raise
        except OSError as error:
            # A store whose certificate is not trusted has been reached.
            kind = Unusable if isinstance(error, SSLError) else Unreachable
            raise kind(f"cannot be reached: {error.strerror or error}") from error
        wire.address = address
        try:
            await wire._greet(address, name)
            wire._check(role)
            if wire.is_in_cluster and key:
                await wire._check_place(key)
            await wire._load(sources)
        except BaseException:
            wire.abort("never used")
            raise
        return wire

    @classmethod
    async def _dial(cls, address: Address) -> "RespConnection":
        loop, wire = asyncio.get_running_loop(), cls()
        if address.path is not None:
            await loop.create_unix_connection(wire._as_protocol, address.path)
        else:
            place = address.host, address.port
            await loop.create_connection(wire._as_protocol, *place, ssl=address.tls)
        return wire

    def _as_protocol(self) -> asyncio.Protocol:
        return cast("asyncio.Protocol", self)

    async def _greet(self, address: Address, name: str) -> None:
        """Authenticate, and learn what the server is."""
        hello: list[Word] = ["HELLO", 3]
        if address.password is not None:
            hello += ["AUTH", address.username, address.password]
        commands: list[Sequence[Word]] = [[*hello, "SETNAME", name]]
        if address.database:
            commands.append(["SELECT", address.database])
        self._greeting, *_ = await self.ask(commands)

    def _check(self, role: str) -> None:
        greeting = self._greeting
        if not isinstance(greeting, dict):
            raise Unusable("does not identify itself as Redis or Valkey")
        server, version, mode, found = (
            str(greeting.get(key, b""), "utf-8")
            for key in (b"server", b"version", b"mode", b"role")
        )
        major = version.partition(".")[0]
        if not major.isdecimal() or int(major) < _OLDEST:
            raise Unusable(
                f"{server} {version} is too old: version {_OLDEST}.0 or later is required"
            )
        self.is_in_cluster = mode == "cluster"
        # A Sentinel has no role. A replica in a cluster names its primary.
        found = found or mode
        if found != role and not self.is_in_cluster:
            raise WrongRole(_ROLES.get(found, f"is a {found}"))

    async def _check_place(self, key: str) -> None:
        """Check that this node of a cluster has the key's slot."""
        try:
            await self.ask([("EXISTS", key)])
        except Redirected as error:
            # The slot is on its way to another node, but is still this one's.
            if error.error.code != "ASK":
                raise

    async def _load(self, sources: Sequence[str]) -> None:
        """Load the scripts. Unlike the greeting, this is refused while the store loads its data."""
        commands = [*(("SCRIPT", "LOAD", source) for source in sources), ("PING",)]
        *loaded, pong = await self.replies(b"".join(map(pack, commands)), len(commands))
        # A store that cannot write to its disk refuses even a PING, but can be read.
        can_be_read = isinstance(pong, ReplyError) and isinstance(error_of(pong), StoreRefused)
        _check_all(loaded if can_be_read else [*loaded, pong])

    async def ask(self, commands: Sequence[Sequence[Word]]) -> list[object]:
        """Run commands before there is a listener. None may fail."""
        replies = await self.replies(b"".join(map(pack, commands)), len(commands))
        _check_all(replies)
        return replies

    async def attempt(self, commands: Sequence[Sequence[Word]]) -> list[object]:
        """Run commands as `ask` does, some of which may fail: their replies are exceptions.

        Those that the store may carry out later, or elsewhere, fail all.
        """
        replies = await self.replies(b"".join(map(pack, commands)), len(commands))
        found = [error_of(each) if isinstance(each, ReplyError) else each for each in replies]
        is_passing = (StoreBusy, StoreElsewhere)
        _check_all(
            each for each, made in zip(replies, found, strict=True) if isinstance(made, is_passing)
        )
        return found

    async def replies(self, data: bytes, count: int) -> list[object]:
        """Send packed commands before there is a listener. Returns the replies, errors too."""
        replies: list[object] = []
        complete = self._loop.create_future()

        def collect(reply: object) -> None:
            replies.append(reply)
            if len(replies) == count and not complete.done():
                complete.set_result(None)

        def end(_: object) -> None:
            if not complete.done():
                complete.set_result(None)

        self.listen(collect)
        self.write(data)
        # `asyncio.wait` takes several times as long, and logs are read often.
        self.lost.add_done_callback(end)
        try:
            await complete
        finally:
            self.lost.remove_done_callback(end)
        if len(replies) < count:
            raise Unusable(self.lost.result())
        return replies

    def listen(self, listener: Callable[[object], None]) -> None:
        """Pass all further replies to the listener."""
        self._listener = listener
        self.heard_at = self._loop.time()

    def write(self, data: bytes) -> None:
        """Send what the socket takes now, and the rest as soon as possible."""
        if self._transport is not None:
            self._transport.write(data)

    def abort(self, why: str) -> None:
        """Close without sending the rest."""
        self._listener = None
        if not self.lost.done():
            self.lost.set_result(why)
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.heard_at = self._loop.time()
        try:
            self._reader.feed(data)
        except HiredisError as error:
            self.abort(f"does not speak the protocol: {error}")
            return
        if not self._is_going_on:
            self._read_some()

    def _read_some(self) -> None:
        """Pass on replies for a limited time, because handling one may take long."""
        self._is_going_on = False
        # Unread replies are not silence.
        self.heard_at = self._loop.time()
        ends_at = perf_counter() + _TURN_S
        try:
            # The listener may abort.
            while self._listener is not None and (reply := self._reader.gets()) is not _MORE:
                if not isinstance(reply, PushNotification):
                    self._listener(reply)
                if perf_counter() > ends_at:
                    self._is_going_on = True
                    self._loop.call_soon(self._read_some)
                    return
        except HiredisError as error:
            self.abort(f"does not speak the protocol: {error}")

    def eof_received(self) -> None:
        """Let the transport close."""

    def pause_writing(self) -> None:
        """Go on: the link limits what it sends."""

    def resume_writing(self) -> None:
        """Go on."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener = self._transport = None
        if not self.lost.done():
            self.lost.set_result(f"closed the connection{': ' if exc else ''}{exc or ''}")


def _check_all(replies: Iterable[object]) -> None:
    for reply in replies:
        if isinstance(reply, ReplyError):
            raise unusable_by(reply)


def unusable_by(reply: ReplyError) -> Unusable:
    """Return why a connection that got this error cannot be used."""
    error = error_of(reply)
    if isinstance(error, StoreElsewhere):
        return Redirected(error)
    return Unusable(str(error), is_passing=isinstance(error, StoreBusy))
