"""Invariants of work queues: each message has one receiver at a time, and is processed once."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.ledger import Ledger
from tests.chaos.records import Delivery

Found = Iterator[str]


def with_two(ledger: Ledger) -> Found:
    """Messages at a second receiver although the first cannot have given them up."""
    for tag, deliveries in _work(ledger).items():
        for earlier, later in pairwise(deliveries):
            one, other = earlier.copy.subscriber, later.copy.subscriber
            if one == other or _may_have_given_up(ledger, earlier, later):
                continue
            yield f"{tag} came to {other} while {one} had it or had done it"
        yield from _unflagged(ledger, tag, deliveries)
    yield from _kept_twice(ledger)


def _work(ledger: Ledger) -> dict[str, list[Delivery]]:
    found: dict[str, list[Delivery]] = defaultdict(list)
    for delivery in ledger.deliveries:
        if ledger.is_work(delivery.copy):
            found[delivery.copy.tag].append(delivery)
    return found


def _may_have_given_up(ledger: Ledger, earlier: Delivery, later: Delivery) -> bool:
    """Whether the receiver refused a message, was held back, or may have seemed to be gone."""
    subscriber, since_ns, until_ns = earlier.copy.subscriber, earlier.asked_ns, later.at_ns
    return (
        any(fault.begun_ns <= until_ns and fault.ended_ns >= since_ns for fault in ledger.faults)
        or any(
            settlement.copy.subscriber == subscriber
            and not settlement.is_accepted
            and since_ns <= settlement.begun_ns <= until_ns
            for settlement in ledger.settlements
        )
        or any(
            hold.subscriber == subscriber
            and hold.asked_ns <= until_ns
            and hold.until_ns >= since_ns
            for hold in ledger.holds
        )
        or any(since_ns <= at_ns <= until_ns for at_ns in ledger.endings.get(subscriber, ()))
        or _lost_its_session(ledger, subscriber, since_ns, until_ns)
    )


def _lost_its_session(ledger: Ledger, subscriber: str, since_ns: int, until_ns: int) -> bool:
    """Whether an answer to it was lost in this time, or it handshook again as if after a crash."""
    mine = [
        each
        for each in ledger.connects
        if each.process == subscriber and since_ns <= each.begun_ns <= until_ns
    ]
    clients = {each.fields.get("client") for each in mine}
    return len(clients) > 1 or not all(each.is_ok for each in mine)


def _unflagged(ledger: Ledger, tag: str, deliveries: list[Delivery]) -> Found:
    for earlier, later in pairwise(deliveries):
        was_behind = any(
            settlement.returns
            and settlement.copy.subscriber == earlier.copy.subscriber
            and settlement.seq < earlier.seq
            and earlier.at_ns <= settlement.begun_ns <= later.at_ns
            for settlement in ledger.settlements
        )
        before, after = earlier.redelivered or 0, later.redelivered or 0
        is_less = after < max(before, 1)
        if is_less and not was_behind and not ledger.forgot(earlier, later.at_ns):
            yield f"{tag} was redelivered {before} times, then {after} times to another"


def _kept_twice(ledger: Ledger) -> Found:
    for scan in ledger.scans:
        has: dict[str, list[str]] = defaultdict(list)
        copies = [each.copy for each in scan.pending] + [each.copy for each in scan.dead]
        for copy in copies:
            if ledger.is_work(copy):
                has[copy.tag].append(copy.subscriber)
        for tag, subscribers in has.items():
            if len(subscribers) > 1:
                yield f"{tag} is with {' and '.join(sorted(subscribers))}"
