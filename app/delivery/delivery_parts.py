"""What hand-overs, failures and all ways out of a queue have in common."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from holdfast.delivery.counters import Counters
from holdfast.delivery.delivery_journal import DeliveryJournal
from holdfast.delivery.guard import Guard
from holdfast.delivery.history import History
from holdfast.delivery.node import Node
from holdfast.delivery.notices import Notices
from holdfast.delivery.owner import Owner
from holdfast.delivery.receivers import Receiver
from holdfast.delivery.store_port import StorePort

R = TypeVar("R", bound=Receiver)


@dataclass(frozen=True)
class DeliveryParts(Generic[R]):
    """The ports and tables of one server's delivery."""

    owner: Owner[R]
    store: StorePort
    journal: DeliveryJournal
    counters: Counters
    node: Node
    guard: Guard
    notices: Notices
    history: History
