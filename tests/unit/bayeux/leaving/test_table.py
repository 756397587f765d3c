"""Whatever a server has in memory has a row in the table of what becomes of it."""

from collections import Counter

from holdfast.bayeux.leaving.table import TABLE, Fate
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.identity import Identity
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Event, Message
from holdfast.delivery.queues.charged import ChargedQueue
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.queues.in_flight import InFlight
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.requests.request import Request
from holdfast.delivery.routing.histories import KeptMessages
from holdfast.delivery.shared_queues.shared_queues import SharedQueue
from tests.unit.bayeux.harness import Server

# Objects of which a server has one, by their attributes, and of which it has many, by their slots.
_MANY = (
    Session,
    Receiver,
    Identity,
    InFlight,
    CallbackQueue,
    ChargedQueue,
    Entry,
    Dispatcher,
    Event,
    Message,
    SharedQueue,
    KeptMessages,
    Request,
)


def attributes() -> set[str]:
    bayeux = Server().bayeux
    found = {
        f"{type(each).__name__}.{name}"
        for each in (bayeux, bayeux.state, bayeux.life)
        for name in vars(each)
    }
    return found | {f"{kind.__name__}.{name}" for kind in _MANY for name in kind.__slots__}


def test_each_attribute_is_in_one_row() -> None:
    named = Counter(each for row in TABLE for each in row.of)
    assert {each for each, count in named.items() if count > 1} == set()
    assert {*named} == attributes()


def test_each_row_says_why_it_is_harmless() -> None:
    assert {row.fate for row in TABLE} == {*Fate}
    assert all(row.what and row.why and row.of for row in TABLE)
