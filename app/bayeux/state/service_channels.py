"""Service channels: requests to the server itself, such as CometD's remote calls."""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, TypeVar

from holdfast.bayeux.session import Exchange, Session, TurnOver
from holdfast.bayeux.wire.hooks import check_hook
from holdfast.delivery.basics.channels import Channel, Channels
from holdfast.delivery.basics.json_text import whole

T = TypeVar("T")
# Delivers an event to a single session.
Deliver = Callable[[Session, dict[str, Any]], None]

ILLEGAL: Final = "user.illegalArgument"
# How many items one call lists or changes: the maximum, and the default.
_MOST: Final = 1000
_USUAL: Final = 100
# How many items, of a few microseconds each, between two checks of the turn budget.
FEW: Final = 25


class CallInvalid(Exception):
    """The call cannot be carried out. `code` is one of xmlBlaster's error codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def to_json(self) -> dict[str, Any]:
        """Return the data for the caller."""
        return {"code": self.code, "message": str(self)}


def limit_of(given: Mapping[str, Any], *, least: int = 1) -> int:
    """Return the `limit` of a call. Raises `CallInvalid`."""
    limit = whole(given.get("limit", _USUAL))
    if limit is None or not least <= limit <= _MOST:
        raise CallInvalid(ILLEGAL, f"limit must be a number from {least} to {_MOST}")
    return limit


class ServiceCall:
    """A call of a service, which may answer at once, later, or never."""

    def __init__(
        self,
        deliver: Deliver,
        is_turn_over: Callable[[], bool],
        *,
        exchange: Exchange,
        session: Session,
        channel: str,
        message: dict[str, Any],
        reply: dict[str, Any],
    ) -> None:
        # The request that carries the call, for the server's own services, and when its handling
        # started or continued.
        self.exchange = exchange
        self.now = exchange.now
        self.session = session
        self.channel = channel
        self.message = message
        # The reply to the publish, which may be sent later.
        self.reply = reply
        # Whether the reply waits until the store has the changes of the call.
        self.is_kept = False
        self._deliver = deliver
        self._is_turn_over = is_turn_over

    def carry_out(self, begin: Callable[[], Generator[None, None, T]]) -> T:
        """Run the steps of long work over as many turns as necessary. Returns the work's result.

        Until then the client's next message waits, so a client has one such work at a time. Raises
        `TurnOver`: the service is called again, with a new call, and checks the client's rights
        again.
        """
        steps: Generator[None, None, T] = self.exchange.take_progress() or begin()
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                result: T = ended.value
                return result
            if self._is_turn_over():
                self.exchange.progress = steps
                raise TurnOver

    @property
    def data(self) -> object:
        """The data that the caller sent."""
        return self.message["data"]

    def answer(self, data: object) -> None:
        """Send the caller the result."""
        self._answer(data, successful=True)

    def fail(self, data: object) -> None:
        """Send the caller the failure."""
        self._answer(data, successful=False)

    def _answer(self, data: object, *, successful: bool) -> None:
        event = {"channel": self.channel, "data": data, "successful": successful}
        # The client finds its call by this id, and recognises the answer by its data.
        message_id = self.message.get("id")
        if message_id is not None:
            event["id"] = str(message_id)
        self._deliver(self.session, event)


Service = Callable[[ServiceCall], None]
# Results are checked, because services are untyped.
_Served = Callable[[ServiceCall], object]


class Services:
    """The functions that serve channels, or patterns of channels."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._services: dict[str, _Served] = {}
        # What extensions answer about subjects here when other shards ask.
        self.of_subjects: dict[str, Callable[[Any], Any]] = {}

    def add(self, pattern: str, service: Service) -> None:
        """Let the service answer calls on matching channels. It may raise `Refused`."""
        check_hook(f"the service of {pattern}", service)
        self._services[self._channels.named(pattern).name] = service

    def find(self, channel: Channel) -> _Served | None:
        """Return the service with the most specific pattern for the channel."""
        for name in channel.lookups:
            if name in self._services:
                return self._services[name]
        return None
