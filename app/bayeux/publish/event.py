"""The publish of an event: what a client, an extension or the server wants to publish."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.publish.point_to_point import accounts_of
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.json_text import NoNumber, to_json, to_strict_json
from holdfast.delivery.messages.message import ORDINARY_PRIORITY
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.routing.selections import Candidate

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message


class EventPublish(Publish[Session]):
    """Passed from its publisher to `Publishing`, which creates the message, and then to the hub."""

    __slots__ = (
        *("event", "far_accounts", "is_unchanged", "lazy_s"),
        *("now", "prepared", "qos", "refused", "sender"),
    )

    def __init__(
        self,
        channel: Channel,
        event: Json,
        now: float,
        *,
        sender: Session | None = None,
        qos: Qos | None = None,
    ) -> None:
        super().__init__(channel)
        self.event = event
        self.now = now
        # None if the server publishes, or another shard.
        self.sender = sender
        self.qos = qos
        # How long it may wait for other messages; overrides the channel's rule.
        self.lazy_s: float | None = None
        # Why it is refused, if that was not known at once.
        self.refused: Refused | None = None
        # If a client of another shard publishes: its accounts, and what is called with the message
        # before the hub gets it.
        self.far_accounts: Sequence[str] | None = None
        self.prepared: Callable[[Message], None] | None = None
        # Whether nothing is published: the newest message of the channel has the same data, or its
        # topic was configured.
        self.is_unchanged = False

    @property
    def accounts(self) -> Sequence[str]:
        """The accounts of the publisher, wherever it is."""
        return accounts_of(self.sender) if self.far_accounts is None else self.far_accounts

    def select_as_of(self, sender: str) -> None:
        """Let subscriptions select by what this publish says, and by this name of the sender."""
        qos = self.qos
        self.candidate = Candidate(
            channel=self.channel.name,
            data=self.event.get("data"),
            sender=sender,
            priority=ORDINARY_PRIORITY if qos is None else qos.priority,
            properties=None if qos is None else qos.properties,
        )

    def prepare(self) -> None:
        """Prepare the message, which the hub gets next."""
        if self.prepared is not None:
            self.prepared(self.message)

    def over(self, outcome: PersistOutcome) -> None:
        """Tell who waits for it what became of it."""
        if self.step is not None:
            self.step.known(outcome)
        if self.done is not None:
            self.done(outcome)

    def doubt_refusals(self) -> None:
        """Call a refusal an unknown outcome: other shards have carried out the publish already.

        So it is done in part, and a repeat with its key does the rest.
        """
        if self.step is not None:
            self.step = RequestStep(self.step.fields, partial(_doubtful, self.step.known))
        if self.done is not None:
            self.done = partial(_doubtful, self.done)


def _doubtful(tell: Callable[[PersistOutcome], None], outcome: PersistOutcome) -> None:
    tell(PersistOutcome.UNKNOWN if outcome is PersistOutcome.REFUSED else outcome)


class Encoder:
    """Encodes what clients and the server publish."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._most_bytes = state.options.max_message_size

    def encoded(self, event: Json, sender: Session | None) -> bytes:
        """Encode an event. Raises `Refused` if it is too large."""
        state = self._state
        is_touched = sender is None or state.installed.has_others or not state.rights.are_open
        wire = self._write(event, sender) if is_touched else to_json(event)
        if len(wire) > self._most_bytes:
            raise Refused(ErrorReply.MESSAGE_TOO_LARGE, str(self._most_bytes))
        return wire

    def _write(self, event: Json, sender: Session | None) -> bytes:
        """Encode an event. Raises an exception if an extension made it unfit for JSON."""
        try:
            return to_strict_json(event)
        except NoNumber as error:
            raise NoNumber(f"{error}: {self._state.installed.authors(sender)}") from error
