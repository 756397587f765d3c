"""The parts that hand-overs, failures and all ways out of a queue use."""

from typing import Generic, TypeVar

from holdfast.delivery.attempt_notes import AttemptNotes
from holdfast.delivery.delivery_journal import DeliveryJournal
from holdfast.delivery.guard import Guard
from holdfast.delivery.ledger import Ledger
from holdfast.delivery.node import Node
from holdfast.delivery.notices import Notices
from holdfast.delivery.owner import Owner
from holdfast.delivery.receivers import Receiver
from holdfast.delivery.store_port import StorePort
from holdfast.delivery.waiting_places import WaitingPlaces

R = TypeVar("R", bound=Receiver)


class DeliveryParts(Generic[R]):
    """The ports and tables of one server's delivery."""

    # No data class: mypyc compiles none that is generic.
    def __init__(
        self,
        owner: Owner[R],
        store: StorePort,
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
