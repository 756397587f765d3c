"""A door that asks the backend who a client is before it knows the shard of its session."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.state.server_state import GivenUp, RunLater
from holdfast.bayeux.wire.caller import Caller, Speaker
from holdfast.bayeux.wire.codec import Json, ext_of
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.login import Vouched
from holdfast.bayeux.wire.transports import ConnectionType, SpeakerKind
from holdfast.web.forwarding.parking import refuse
from holdfast.web.forwarding.request_door import Door, DoorParts, Gives
from holdfast.web.scheduling.request_scheduler import UnfinishedRequest

# When a client should try again if something unexpected happened.
_RETRY_S: Final = 1.0


class AsksBackend(Protocol):
    """Asks the backend about clients."""

    def asks_about(self, handshake: Json, caller: Caller, /) -> bool:
        """Return whether the backend is asked about the client of a handshake."""
        ...

    async def vouched(self, handshake: Json, caller: Caller, /) -> Vouched:
        """Return what the backend says about the client."""
        ...


class _MustAsk(Exception):
    """The shard of a handshake is not known before the backend is asked."""

    def __init__(self, handshake: Json) -> None:
        super().__init__()
        self.handshake = handshake


class AskingDoor(Door):
    """Passes a handshake on with the answer of the backend, which names the subject.

    Args:
        budgets: Limit the questions about the clients of an address.
    """

    def __init__(
        self,
        parts: DoorParts,
        *,
        backend: AsksBackend,
        budgets: Budgets,
        clock: Callable[[], float],
        run_later: RunLater,
    ) -> None:
        super().__init__(parts._replace(gives=partial(_gives_unasked, parts.gives)))
        self._backend = backend
        self._budgets, self._clock = budgets, clock
        self._run_later = run_later

    def receive(self, body: bytes, exchange: Exchange) -> UnfinishedRequest | None:
        try:
            return super().receive(body, exchange)
        except _MustAsk as must:
            # Nothing has been done with the request yet.
            self._budgets.admit_question(exchange.speaker.caller, self._clock())
            request = UnfinishedRequest(exchange, 0, body)
            asking = self._backend.vouched(must.handshake, exchange.speaker.caller)
            self._run_later(asking, partial(self._answered, request))
            return request

    def _home_of_newcomer(self, handshake: Json, exchange: Exchange) -> int | None:
        speaker = exchange.speaker
        if (
            not speaker.is_spread
            and not _is_refused(handshake, exchange)
            and self._backend.asks_about(handshake, speaker.caller)
        ):
            raise _MustAsk(handshake)
        return super()._home_of_newcomer(handshake, exchange)

    def _answered(self, request: UnfinishedRequest, outcome: object, now: float) -> None:
        """Go on with a request when the backend has answered, or did not."""
        exchange = request.exchange
        if exchange.is_lost:
            # No client learns of the session.
            request.done(None)
            return
        if isinstance(outcome, GivenUp):
            refuse(request)
            return
        if not isinstance(outcome, Vouched):
            outcome = Vouched(wait_s=_RETRY_S)
        speaker = exchange.speaker
        exchange.speaker = Speaker(
            replace(speaker.caller, vouched=outcome),
            speaker.browsers,
            speaker.is_cookieless,
            speaker.kind,
            host=speaker.host,
        )
        try:
            rest = super().receive(request.body, exchange)
        except RequestRefused as refused:
            request.done(refused)
        except BaseException:
            request.done(self.fail(exchange))
        else:
            if rest is None:
                request.done(None)
            else:
                rest.done = request.done


def _is_refused(handshake: Json, exchange: Exchange) -> bool:
    """Return whether any shard refuses a handshake before it looks at the login.

    Another page may have sent it, or it has credentials in its URL.
    """
    by_url = exchange.carrier.connection_type is ConnectionType.CALLBACK_POLLING
    is_unfit = by_url and "authentication" in ext_of(handshake)
    return is_unfit or exchange.speaker.kind is SpeakerKind.UNKNOWN


def _gives_unasked(gives: Gives, shard: int, body: bytes, exchange: Exchange) -> bool:
    """Give no connection whose request has an answer: the other worker would ask again."""
    return exchange.speaker.caller.vouched is None and gives(shard, body, exchange)
