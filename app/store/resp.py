"""One connection to the store: requests and replies in order."""

import asyncio
from collections.abc import Callable, Sequence
from ssl import SSLError
from time import perf_counter
from typing import cast

from hiredis import HiredisError, PushNotification, Reader, ReplyError, pack_command

from holdfast.store.address import Address

Word = bytes | str | int | float
# The oldest major version whose scripts are atomic.
_OLDEST = 7
_MORE = object()
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


class RespConnection(asyncio.Protocol):
    """A connection; its listener gets every reply, including errors."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(notEnoughData=_MORE)
        self._transport: asyncio.Transport | None = None
        self._listener: Callable[[object], None] | None = None
        self.heard_at = 0.0
        # Whether more replies are waiting for a later turn.
        self._is_going_on = False
        self.lost: asyncio.Future[str] = self._loop.create_future()

    @classmethod
    async def connect(cls, address: Address, name: str, sources: Sequence[str]) -> "RespConnection":
        """Connect and greet the store."""
        try:
            wire = await cls._dial(address)
        except TimeoutError:
            raise
        except OSError as error:
            # A store whose certificate is not trusted has been reached.
            kind = Unusable if isinstance(error, SSLError) else Unreachable
            raise kind(f"cannot be reached: {error.strerror or error}") from error
        try:
            await wire._greet(address, name, sources)
        except BaseException:
            wire.abort("never used")
            raise
        return wire

    @classmethod
    async def _dial(cls, address: Address) -> "RespConnection":
        loop = asyncio.get_running_loop()
        if address.path is not None:
            _, wire = await loop.create_unix_connection(cls, address.path)
        else:
            _, wire = await loop.create_connection(cls, address.host, address.port, ssl=address.tls)
        return wire

    async def _greet(self, address: Address, name: str, sources: Sequence[str]) -> None:
        """Authenticate and load the scripts. Refuses an unsuitable store."""
        hello: list[Word] = ["HELLO", 3]
        if address.password is not None:
            hello += ["AUTH", address.username, address.password]
        commands: list[Sequence[Word]] = [[*hello, "SETNAME", name]]
        if address.database:
            commands.append(["SELECT", address.database])
        commands += [["SCRIPT", "LOAD", source] for source in sources]
        # Unlike the greeting, this is refused while the store loads its data.
        commands.append(["PING"])
        greeting, *_ = await self.ask(commands)
        _check(greeting)

    async def ask(self, commands: Sequence[Sequence[Word]]) -> list[object]:
        """Run commands before there is a listener. None may fail."""
        replies: list[object] = []
        complete = self._loop.create_future()

        def collect(reply: object) -> None:
            replies.append(reply)
            if isinstance(reply, ReplyError) and not complete.done():
                is_passing = str(reply).startswith(("BUSY ", "LOADING "))
                complete.set_exception(Unusable(str(reply), is_passing=is_passing))
            elif len(replies) == len(commands) and not complete.done():
                complete.set_result(None)

        self.listen(collect)
        self.write(b"".join(map(pack, commands)))
        await asyncio.wait([complete, self.lost], return_when=asyncio.FIRST_COMPLETED)
        if not complete.done():
            raise Unusable(self.lost.result())
        await complete
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

    # asyncio.Protocol

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

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener = self._transport = None
        if not self.lost.done():
            self.lost.set_result(f"closed the connection{': ' if exc else ''}{exc or ''}")


def _check(greeting: object) -> None:
    if not isinstance(greeting, dict):
        raise Unusable("does not identify itself as Redis or Valkey")
    server, version = (str(greeting.get(key, b""), "utf-8") for key in (b"server", b"version"))
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) < _OLDEST:
        raise Unusable(f"{server} {version} is too old: version {_OLDEST}.0 or later is required")
    if greeting.get(b"role") != b"master":
        raise Unusable("is a replica, which accepts no writes: use its primary")
