"""The connection of a session whose client is in this process."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import orjson

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import NO_SPEAKER
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.messages.message import Event

if TYPE_CHECKING:
    from holdfast.bayeux.session import Session
    from holdfast.web.scheduling.request_scheduler import RequestScheduler


class SessionOver(Exception):
    """The session has ended, or another client has it."""


class LocalConnection:
    """Carries the requests of one session, one after the other; it is never lost."""

    connection_type = ConnectionType.WEBSOCKET

    def __init__(self, requests: "RequestScheduler") -> None:
        self.session: Session | None = None
        self._requests = requests
        # The open request, and its reply with the events that travel with it.
        self._exchange: Exchange | None = None
        self._answer: asyncio.Future[bytes] | None = None

    async def ask(self, message: Json) -> tuple[Json, list[Json]]:
        """Send a message. Returns its reply and the events that came with it.

        Raises `SessionOver`, or `RequestRefused` if the server takes no requests now.
        """
        if self.session is None or self.session.has_left:
            raise SessionOver
        body = orjson.dumps([{**message, "clientId": self.session.client_id}])
        self._exchange = exchange = Exchange(self, NO_SPEAKER, self)
        self._answer = answer = asyncio.get_running_loop().create_future()
        try:
            rest = self._requests.receive(body, exchange)
            if rest is not None:
                rest.done = self._failing(answer)
            found = orjson.loads(await answer)
        except BaseException:
            self._requests.abort(exchange)
            raise
        finally:
            self._exchange = self._answer = None
        replies = [each for each in found if "successful" in each]
        return replies[0], [each for each in found if "successful" not in each]

    def _failing(
        self, answer: "asyncio.Future[bytes]"
    ) -> "Callable[[RequestRefused | None], None]":
        def done(refused: RequestRefused | None) -> None:
            if refused is not None and not answer.done():
                answer.set_exception(refused)

        return done

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        if exchange is not self._exchange or self._answer is None or self._answer.done():
            return False
        self._answer.set_result(exchange.body_with(messages))
        return True

    def push(self, messages: Sequence[Event]) -> bool:
        """Take nothing: events travel with the replies to connects."""
        return False

    def is_draining(self) -> bool:
        return False

    def has_unread(self) -> bool:
        return False

    def is_lost(self) -> bool:
        return False

    def end(self) -> None:
        """Do nothing: the next request learns that the session has ended."""

    def close(self) -> None:
        """Leave the session, which waits for its next client."""
        self._requests.detach(self)
