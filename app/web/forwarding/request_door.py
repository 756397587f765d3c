"""A door: passes each request to the shard that has its session, in this process or another."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from holdfast.bayeux.session import Exchange, Pipe
from holdfast.bayeux.wire.caller import Caller, Speaker
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.codec import Json, RequestLimits
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.request_owner import (
    may_change_session,
    owner_in,
    plain_id_in,
    written_id_in,
)
from holdfast.web.scheduling.request_scheduler import UnfinishedRequest
from holdfast.web.scheduling.request_sink import RequestSink
from holdfast.web.websockets.open_socket import Socket

_MOST_HOMES: Final = 100_000
# Stands for this process. No shard has this number.
_HERE: Final = -1
# Returns the subject that a handshake claims, if any: its home checks whether that is true.
SubjectOf = Callable[[Json, Caller], str | None]

Gives = Callable[[int, bytes, Exchange], bool]


def _here() -> None:
    """Let this process handle what belongs to no shard in particular."""


class DoorParts(NamedTuple):
    """What a door passes requests to, and how it finds out where they belong.

    Args:
        own: Handles the requests of sessions in this process.
        shard_of: The shard in another process that has a bucket, or None for this process.
        shards: Those in other processes.
        subject_of: Whose session a handshake asks for.
        limits: Beyond these, any shard refuses a request.
        gives: Gives the connection of a request to the shard that has to handle it; returns False
            if it stays.
        anywhere: Returns the shard that handles what belongs to none in particular, or None for
            this process.
    """

    own: RequestSink
    client_ids: ClientIds
    shard_of: Callable[[int], int | None]
    shards: Mapping[int, FarShard]
    subject_of: SubjectOf
    limits: RequestLimits
    gives: Gives
    anywhere: Callable[[], int | None] = _here


class AnyShard:
    """Deals out what belongs to no shard in particular, among those that can be reached."""

    def __init__(self, shards: Mapping[int, FarShard]) -> None:
        self._shards = shards
        self._turns = deque(shards)

    def next(self) -> int:
        """Return whose turn it is. If none can be reached, one of them may be soon."""
        for _ in self._shards:
            self._turns.rotate(-1)
            if self._shards[self._turns[0]].takes:
                break
        return self._turns[0]


class Door:
    """Stands between the front ends of a process and all shards."""

    def __init__(self, parts: DoorParts) -> None:
        self._own = parts.own
        self._client_ids = parts.client_ids
        self._shard_of = parts.shard_of
        self._shards = parts.shards
        self._subject_of = parts.subject_of
        self._gives = parts.gives
        self._anywhere = parts.anywhere
        self._limits = parts.limits
        # The shards of clients that were here lately, by their ids as most requests have them: they
        # need not be checked again.
        self._homes: dict[bytes, int] = {}
        for number, shard in parts.shards.items():
            shard.on_bound = partial(self._leave_to, number)

    def receive(self, body: bytes, exchange: Exchange) -> UnfinishedRequest | None:
        shard = self._home_of(body, exchange)
        if shard is None:
            shard = self._anywhere()
        if isinstance(exchange.pipe, Socket):
            shard = self._home_by_socket(exchange.pipe, shard, body)
        if shard is not None:
            if exchange.pipe is None and self._gives(shard, body, exchange):
                return None
            return self._shards[shard].forward(body, exchange)
        rest = self._own.receive(body, exchange)
        if isinstance(exchange.pipe, Socket) and exchange.pipe.has_session_elsewhere:
            self._keep(exchange.pipe)
        return rest

    def _leave_to(self, home: int, socket: Socket) -> None:
        """Let a socket have the session of one home only, which is its latest."""
        socket.shard = home
        self._own.detach(socket)
        for number, shard in self._shards.items():
            if number != home:
                shard.detach(socket)

    def _keep(self, socket: Socket) -> None:
        """Do the same if this process has the session."""
        if socket.session is not None:
            socket.has_session_elsewhere = False
            for shard in self._shards.values():
                shard.detach(socket)

    def _home_by_socket(self, socket: Socket, shard: int | None, body: bytes) -> int | None:
        """Return which shard handles a message on a socket, if by its id `shard` would.

        Without a handshake or a connect, the living session of a socket refuses what is not its
        own.
        """
        if socket.has_session_elsewhere:
            bound: int | None = socket.shard
        elif socket.session is not None and not socket.session.is_gone:
            bound = None
        else:
            return shard
        return shard if shard == bound or may_change_session(body, self._limits) else bound

    def _home_of(self, body: bytes, exchange: Exchange) -> int | None:
        """Return the shard of a request, or None if this process handles it."""
        home = self._homes.get(written_id_in(body))
        if home is not None:
            return None if home == _HERE else home
        client_id = plain_id_in(body)
        if client_id is None:
            owner = owner_in(body, self._limits)
            if not isinstance(owner, str):
                return None if owner is None else self._home_of_newcomer(owner, exchange)
            client_id = owner
        written = f':"{client_id}"'.encode()
        home = self._homes.get(written)
        if home is not None:
            return None if home == _HERE else home
        return self._find(client_id, written)

    def _find(self, client_id: str, written: bytes) -> int | None:
        """Return the shard of a client.

        An id that this deployment has not made is refused here: invented ids aim no load at others.
        """
        if not self._client_ids.fits(client_id):
            return None
        if len(self._homes) >= _MOST_HOMES:
            self._homes.clear()
        home = self._shard_of(self._client_ids.bucket_in(client_id))
        self._homes[written] = _HERE if home is None else home
        return home

    def _home_of_newcomer(self, handshake: Json, exchange: Exchange) -> int | None:
        """Return the shard of a new session: of its subject or, without one, of its browser."""
        parts = exchange.speaker, self._client_ids, self._subject_of
        bucket = bucket_of_newcomer(handshake, *parts)
        return None if bucket is None else self._shard_of(bucket)

    def fail(self, exchange: Exchange) -> RequestRefused:
        return self._own.fail(exchange)

    def abort(self, exchange: Exchange) -> None:
        self._own.abort(exchange)
        for shard in self._shards.values():
            shard.abort(exchange)

    def detach(self, pipe: Pipe) -> None:
        self._own.detach(pipe)
        if isinstance(pipe, Socket):
            for shard in self._shards.values():
                shard.detach(pipe)

    def drained(self, pipe: Pipe) -> None:
        self._own.drained(pipe)
        if isinstance(pipe, Socket):
            for shard in self._shards.values():
                shard.drained(pipe)


def bucket_of_newcomer(
    handshake: Json, speaker: Speaker, client_ids: ClientIds, subject_of: SubjectOf
) -> int | None:
    """Return the bucket of a new session: of its subject or, without one, of its browser."""
    subject = None if speaker.is_spread else subject_of(handshake, speaker.caller)
    if subject is not None:
        return client_ids.bucket_of(subject)
    for browser in speaker.browsers:
        if client_ids.fits(browser):
            return client_ids.bucket_in(browser)
    return None
