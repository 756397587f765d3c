"""A door: passes each request to the shard that has its session, in this process or another."""

from collections.abc import Callable, Mapping

from holdfast.bayeux.session import Exchange, Pipe
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.request_owner import client_id_of, handshake_in
from holdfast.web.open_socket import Socket
from holdfast.web.request_scheduler import UnfinishedRequest
from holdfast.web.request_sink import RequestSink

# Returns the subject that a handshake claims, if any: its home checks whether that is true.
SubjectOf = Callable[[Json, Caller], str | None]


class Door:
    """Stands between the front ends of a process and all shards.

    Args:
        own: Handles the requests of sessions in this process.
        shard_of: The shard in another process that has a bucket, or None for this process.
        shards: Those in other processes.
        subject_of: Whose session a handshake asks for.
    """

    def __init__(
        self,
        own: RequestSink,
        client_ids: ClientIds,
        shard_of: Callable[[int], int | None],
        shards: Mapping[int, FarShard],
        subject_of: SubjectOf,
    ) -> None:
        self._own = own
        self._client_ids = client_ids
        self._shard_of = shard_of
        self._shards = shards
        self._subject_of = subject_of

    def receive(self, body: bytes, exchange: Exchange) -> UnfinishedRequest | None:
        shard = self._home_of(body, exchange)
        if shard is None:
            return self._own.receive(body, exchange)
        return self._shards[shard].forward(body, exchange)

    def _home_of(self, body: bytes, exchange: Exchange) -> int | None:
        """Return the shard of a request, or None if this process handles it.

        An id that this deployment has not made is refused here: invented ids aim no load at others.
        """
        handshake = handshake_in(body)
        if handshake is not None:
            return self._home_of_newcomer(handshake, exchange)
        client_id = client_id_of(body)
        if client_id is None or not self._client_ids.fits(client_id):
            return None
        return self._shard_of(self._client_ids.bucket_in(client_id))

    def _home_of_newcomer(self, handshake: Json, exchange: Exchange) -> int | None:
        """Return the shard of a new session: of its subject or, without one, of its browser."""
        subject = self._subject_of(handshake, exchange.speaker.caller)
        if subject is not None:
            return self._shard_of(self._client_ids.bucket_of(subject))
        for browser in exchange.speaker.browsers:
            if self._client_ids.fits(browser):
                return self._shard_of(self._client_ids.bucket_in(browser))
        return None

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
