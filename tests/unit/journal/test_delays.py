"""What the journal says of delayed messages, and that its books balance."""

from collections import Counter
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.journal.frame import decode
from holdfast.journal.schema import BOOKS, SETTLED, Event, Kind
from holdfast.journal.unfold import unfold
from tests.unit.bayeux.harness import Server, server_of
from tests.unit.bayeux.publish.test_delays import cancel, delay, read, reader
from tests.unit.journal.ledger import Writing

if TYPE_CHECKING:
    from tests.unit.delivery.fake_keeper import FakeKeeper


def journaled() -> Server:
    keeper = Writing()
    return server_of(keeper=cast("FakeKeeper", keeper), journal=keeper.writer)


def events(server: Server) -> list[Event]:
    keeper = cast("Writing", server.keeper)
    keeper.writer.flush(0.0)
    return [event for frame in keeper.shelf.frames for event in unfold(decode(frame))]


def of(server: Server, id: str) -> list[tuple[str, str | None]]:
    number = int(id.rpartition("-")[2])
    return [(each.kind, each.receiver) for each in events(server) if each.msg == number]


def balances(server: Server) -> bool:
    """Whether the counters of the node are the sums of its events."""
    sums: Counter[str] = Counter()
    for each in events(server):
        sums[each.kind] += (each.copies or 0) if each.kind == Kind.PUBLISHED else 1
    counters = server.bayeux.state.counters
    told = {name: sum(sums[kind] for kind in kinds) for name, kinds in BOOKS.items()}
    return told == {
        "accepted": counters.accepted,
        **counters.books(),
    }


@pytest.mark.parametrize("persistent", [True, False])
def test_a_delayed_message_is_journalled_as_delayed_then_due_and_published_once(
    persistent: bool,
) -> None:
    server = journaled()
    joe = reader(server)
    reply = delay(server.client(), 1, persistent=persistent)
    assert balances(server)
    server.advance(1.3)
    read(joe), read(joe)
    assert of(server, reply["ext"]["delivery"]["id"]) == [
        (Kind.PUBLISHED, None),
        (Kind.DELAYED, "delay:/0"),
        (Kind.DUE, "delay:/0"),
    ]
    # Readers count the publishes that have a size.
    published = [each for each in events(server) if each.kind == Kind.PUBLISHED and each.size]
    assert [(each.channel, each.copies) for each in published] == [("/a", 1)]
    ends = [each.kind for each in events(server) if each.kind in SETTLED]
    assert ends.count(Kind.ACKED) == 1
    assert balances(server)


@pytest.mark.parametrize("persistent", [True, False])
def test_a_cancelled_message_is_journalled_as_discarded_and_not_as_published(
    persistent: bool,
) -> None:
    server = journaled()
    reply = delay(server.client(), 1, persistent=persistent)
    assert cancel(server, reply)
    server.advance(1.3)
    assert of(server, reply["ext"]["delivery"]["id"])[1:] == [
        (Kind.DELAYED, "delay:/0"),
        (Kind.DISCARDED, "delay:/0"),
    ]
    found = events(server)
    assert [each.code for each in found if each.kind == Kind.DISCARDED] == ["cancelled"]
    assert not [each for each in found if each.kind == Kind.PUBLISHED and each.size]
    assert balances(server)


def test_one_that_cannot_be_delivered_is_journalled_as_dead() -> None:
    server = journaled()
    reply = delay(server.client(), 1, destinations=["joe"], subscribable=False)
    server.advance(1.3)
    assert of(server, reply["ext"]["delivery"]["id"])[-1] == (Kind.DEAD, "delay:/0")
    assert balances(server)
