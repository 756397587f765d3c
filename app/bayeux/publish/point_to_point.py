"""Point-to-point: messages addressed to subjects and sessions."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.bayeux.limits.usage import Payer
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.destinations import (
    FAILED,
    IGNORED,
    OK,
    QUEUED,
    Destination,
    outcome,
)
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.error_codes import CODES, NO_CONNECTION
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.shared_queues.places import WaitingPlaces
from holdfast.delivery.shared_queues.shared_queues import OverQuota, Undeliverable
from holdfast.delivery.shared_queues.subjects import DENIED, UNKNOWN
from holdfast.delivery.shared_queues.unclaimed_names import is_unclaimed

if TYPE_CHECKING:
    from holdfast.delivery.queues.charged import ChargedQueue

# Messages without subscribers travel on this channel.
PTP = "/service/ptp"
# Below it, each message may have a channel for itself.
_BELOW = PTP + "/"
_ERRORS = {
    UNKNOWN: ErrorReply.DESTINATION_UNKNOWN,
    DENIED: ErrorReply.DESTINATION_DENIED,
    # Errors of sessions that the message would have created.
    CODES["user.configuration.maxSession"]: ErrorReply.SESSIONS_EXCEEDED,
    NO_CONNECTION: ErrorReply.STORE_UNAVAILABLE,
}


class SenderOverQuota(Exception):
    """No destination takes the message, because too many of its sender's messages wait."""

    def __init__(self, kind: str, outcomes: list[dict[str, Any]]) -> None:
        super().__init__()
        # The quota.
        self.kind = kind
        self.outcomes = outcomes


class Addressing:
    """The receivers of one addressed message, and the reply's report about its destinations."""

    __slots__ = (
        "_message",
        "_passing",
        "_places",
        "_reserved",
        "_senders",
        "_shared_queues",
        "_size",
        "_subjects",
        "keys",
        "outcomes",
        "receivers",
    )

    def __init__(
        self, places: WaitingPlaces[Session], message: Message, senders: Sequence[str]
    ) -> None:
        self._places, self._subjects = places, places.subjects
        self._message = message
        self._size = len(message.wire)
        self._senders = senders
        # The queues of subjects that get it.
        self._shared_queues: list[ChargedQueue] = []
        # Sessions that get it for their subject and are not durable yet.
        self._passing: list[Session] = []
        # The sessions in whose queues room is reserved, each once.
        self._reserved: Sequence[Session] = ()
        self.receivers: list[Session] = []
        self.outcomes: list[dict[str, Any]] = []
        # The destinations that accept it.
        self.keys: list[str] = []

    def add_session(self, destination: Destination, session: Session) -> None:
        """Address the message to a session."""
        self.receivers.append(session)
        self._taken(destination, QUEUED if is_unclaimed(session) else OK)

    def add_subject(self, destination: Destination) -> None:
        """Address the message to a subject's sessions, or its queue. Raises `Undeliverable`."""
        takers = self._takers(destination)
        self._passing += [each for each in takers if not each.is_durable]
        self.receivers += takers
        if not takers:
            shared = self._subjects.queue_for(destination.subject, self._message, self._senders)
            self.receivers.append(shared.receiver)
            self._shared_queues.append(shared.queue)
        self._taken(destination, OK if takers else QUEUED)

    def _takers(self, destination: Destination) -> Sequence[Session]:
        try:
            return self._subjects.takers(destination.subject, self._size)
        except Undeliverable:
            if not destination.forces_queuing:
                raise
            return ()

    def _taken(self, destination: Destination, state: str) -> None:
        self.keys.append(destination.key)
        self.outcomes.append(outcome(destination, state))

    def reserve(self) -> None:
        """Reserve room for the message until the store has it."""
        self._reserved = tuple(dict.fromkeys(self.receivers))
        for each in self._reserved:
            each.queue.reserve(self._size)

    def make_durable(self, store: StorePort) -> bool:
        """Make durable the sessions that get it for their subject. Returns whether they are.

        If the store is unavailable, they stay as they are.
        """
        if self._passing and not store.is_available:
            return False
        self._subjects.make_durable(self._passing)
        return True

    def release(self, persisted: PersistOutcome) -> None:
        """Release the reserved room: the message is in its queues, or will not come."""
        if persisted is not PersistOutcome.KEPT:
            for queue in self._shared_queues:
                queue.discharge(self._message)
        for each in self._reserved:
            each.queue.release(self._size)
            self._places.made_room(each)
        self._reserved = ()


class PointToPoint:
    """Finds the receivers of addressed messages.

    Args:
        open: Creates the session in which a message of this size is to wait, or raises
            `Undeliverable`.
    """

    def __init__(
        self,
        places: WaitingPlaces[Session],
        open: Callable[[Destination, int, Payer, float], Session],
    ) -> None:
        self._places, self._subjects = places, places.subjects
        self._open = open

    def address(
        self,
        message: Message,
        destinations: Sequence[Destination],
        *,
        sender: Session | None,
        now: float,
        accounts: Sequence[str] | None = None,
    ) -> Addressing:
        """Address the message. Raises `Refused` or `SenderOverQuota` if no destination takes it.

        The sender, who may be at another shard, has these accounts.
        """
        accounts = accounts_of(sender) if accounts is None else accounts
        payer = Payer(sender, accounts)
        addressing = Addressing(self._places, message, accounts)
        failures: list[tuple[Destination, Undeliverable]] = []
        for each in destinations:
            try:
                if each.number:
                    session = self._session(each, len(message.wire), payer, now)
                    addressing.add_session(each, session)
                else:
                    addressing.add_subject(each)
            except Undeliverable as undeliverable:
                code = undeliverable.code
                if each.is_optional and code is UNKNOWN:
                    addressing.outcomes.append(outcome(each, IGNORED))
                else:
                    failures.append((each, undeliverable))
                    addressing.outcomes.append(outcome(each, FAILED, code.text))
        if failures and not addressing.keys:
            first, why = failures[0]
            if isinstance(why, OverQuota):
                raise SenderOverQuota(why.quota, addressing.outcomes)
            ext = {"delivery": {"destinations": addressing.outcomes}}
            error = _ERRORS.get(why.code, ErrorReply.DESTINATION_FULL)
            raise Refused(error, why.code.text, first.name, ext=ext)
        addressing.reserve()
        message.addressed = addressing.keys
        return addressing

    def _session(self, destination: Destination, size: int, payer: Payer, now: float) -> Session:
        """Find or create the session that a message is addressed to. Raises `Undeliverable`."""
        try:
            return self._subjects.session(destination.subject, destination.key, size)
        except Undeliverable as undeliverable:
            if not (destination.forces_queuing and undeliverable.code is UNKNOWN):
                raise
            return self._open(destination, size, payer, now)


def is_ptp(channel: str) -> bool:
    """Return whether messages on the channel go to destinations only."""
    return channel == PTP or channel.startswith(_BELOW)


def accounts_of(sender: Session | None) -> Sequence[str]:
    """Return the accounts charged for a session's waiting messages: its address and subject.

    As with other quotas, clients on this machine are not charged.
    """
    if sender is None or not sender.caller.network:
        return ()
    network, subject = sender.caller.network, sender.subject
    return (network,) if subject == NOBODY else (network, f"client/{subject}")


def account_of(accounts: Sequence[str]) -> str:
    """Return the account for a session's messages in histories: its subject or address."""
    return accounts[-1] if accounts else ""
