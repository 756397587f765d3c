"""The parts that hand-overs, failures and settlements share."""

from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.notices import Notices
from holdfast.delivery.guard.holds import Guard
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.ports.ledger import Ledger
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.settling.attempt_notes import AttemptNotes
from holdfast.delivery.shared_queues.places import WaitingPlaces

if TYPE_CHECKING:
    from holdfast.delivery.ports.receiver_owner import Owner

R = TypeVar("R", bound=Receiver)


class DeliveryParts(Generic[R]):
    """The ports and tables of one server's delivery."""

    # Not a dataclass, because mypyc does not compile generic ones.
    def __init__(
        self,
        owner: "Owner[R]",
        store: StorePort,
        *,
        journal: DeliveryJournal,
        ledger: Ledger,
        node: Node,
        guard: Guard,
        notices: Notices,
        attempt_notes: AttemptNotes,
        waiting_places: WaitingPlaces[R],
    ) -> None:
        self.owner = owner
        self.store = store
        self.journal = journal
        self.ledger = ledger
        self.counters = ledger.counters
        self.node = node
        self.guard = guard
        self.notices = notices
        self.attempt_notes = attempt_notes
        self.waiting_places = waiting_places
