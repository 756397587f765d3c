"""Invariants of deliveries: complete, as published, once, in order, and not while held back."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from tests.chaos.history import Phase
from tests.chaos.ledger import STORE_DIED, Ledger, belongs, by_copy, settlements_by_copy
from tests.chaos.manners import HOLDBACK
from tests.chaos.records import Copy, Delivery, Hold, Publish, Settlement, matches, subject_of
from tests.chaos.silence import Silence

# A command answers before the last response sent ahead of it has arrived.
ARRIVING_NS = 1_000_000_000

Found = Iterator[str]


def lost(ledger: Ledger) -> Found:
    """Which part of a publisher's messages is missing says where to look."""
    for owner in ledger.owners:
        missing = missing_of(ledger, owner)
        for publish in missing:
            part = _part(ledger, owner, publish, missing)
            yield f"{publish.tag} never reached {owner}, in the {part} of its publisher's"


def missing_of(ledger: Ledger, owner: str) -> list[Publish]:
    """What is missing although nothing excuses it."""
    absent = _absent(ledger, owner)
    return [each for each in absent if not _may_be_lost(ledger, each)]


def forgotten_by(ledger: Ledger, owner: str) -> list[Publish]:
    """What is missing as the durability allows."""
    return [each for each in _absent(ledger, owner) if _may_be_lost(ledger, each)]


def _may_be_lost(ledger: Ledger, publish: Publish) -> bool:
    return any(fault.may_have_lost(publish) for fault in ledger.faults)


def _absent(ledger: Ledger, owner: str) -> list[Publish]:
    found = {
        settlement.copy.tag
        for settlement in ledger.settlements
        if settlement.may_be_accepted and belongs(settlement.copy.subscriber, owner)
    }
    scan = ledger.last_scan
    if scan is not None:
        copies = [each.copy for each in scan.pending] + [each.copy for each in scan.dead]
        found |= {copy.tag for copy in copies if belongs(copy.subscriber, owner)}
    gaps = [gap for gap in ledger.gaps if gap.subscriber == owner]
    return [
        publish
        for publish in ledger.owed(owner)
        if publish.tag not in found
        and not ledger.had_expired(publish)
        and not any(gap.excuses(publish) for gap in gaps)
    ]


def _part(ledger: Ledger, owner: str, publish: Publish, missing: list[Publish]) -> str:
    gone = {each.tag for each in missing}
    theirs = [each for each in ledger.owed(owner) if each.publisher == publish.publisher]
    there = [each.serial for each in theirs if each.tag not in gone]
    if not there or publish.serial > max(there):
        return "postfix"
    return "prefix" if publish.serial < min(there) else "middle"


def from_nowhere(ledger: Ledger) -> Found:
    for delivery in ledger.deliveries:
        _, tag, _ = delivery.copy
        who = f"{delivery.copy.subscriber} got {tag or 'something'}"
        publish = ledger.publishes.get(tag)
        if publish is None:
            yield f"{who}, which nobody published"
        elif publish.begun_ns > delivery.at_ns:
            yield f"{who} before it was published"
        elif publish.outcome is Phase.FAIL:
            yield f"{who}, which was refused"
        elif publish.channel != delivery.channel:
            yield f"{who} on {delivery.channel} instead of {publish.channel}"
        elif publish.sha != delivery.sha:
            yield f"{who} with other bytes"
        elif not _was_asked_for(ledger, publish, delivery):
            yield f"{who}, who neither subscribed nor was addressed"


def _was_asked_for(ledger: Ledger, publish: Publish, delivery: Delivery) -> bool:
    if publish.destinations:
        return publish.is_for(delivery.copy.subscriber)
    return any(
        window.begun_ns <= delivery.at_ns and matches(window.pattern, delivery.channel)
        for window in ledger.windows_of(delivery.copy.subscriber)
    )


def duplicates(ledger: Ledger) -> Found:
    settled = settlements_by_copy(each for each in ledger.settlements if each.is_accepted)
    returned = _Returned(ledger)
    # Subscribers that catch up from a cursor may get some messages again.
    readers = {each.subscriber for each in ledger.windows if each.has_cursor}
    for copy, deliveries in by_copy(ledger.deliveries).items():
        if ledger.is_shared(copy) or copy.subscriber in readers:
            continue
        for earlier, later in pairwise(deliveries):
            if later.redelivered != 0 or returned.between(earlier, later):
                continue
            if not ledger.forgot(earlier, later.at_ns):
                yield f"{copy.tag} came to {copy.subscriber} again and did not say so"
        accepted = settled.get(copy, [])
        for delivery in deliveries:
            if any(_was_certain(ledger, each, delivery, deliveries) for each in accepted):
                yield f"{copy.tag} came to {copy.subscriber} after it was accepted"


def _was_certain(
    ledger: Ledger, settlement: Settlement, delivery: Delivery, deliveries: Iterable[Delivery]
) -> bool:
    """Whether a message was delivered although its acceptance cannot have been undone."""
    if delivery.asked_ns < settlement.begun_ns:
        return False
    if ledger.is_void(settlement, deliveries, settlement.ended_ns):
        return False
    may_be_new = ledger.died(settlement.begun_ns, delivery.at_ns, STORE_DIED) or ledger.is_void(
        settlement, deliveries, delivery.at_ns
    )
    says_so = delivery.redelivered or may_be_new
    return not says_so or not ledger.forgives(settlement, delivery.at_ns)


class _Returned:
    """Entries that returned behind one that failed were never tried, and need not be marked."""

    def __init__(self, ledger: Ledger) -> None:
        self._refusals: dict[str, list[Settlement]] = defaultdict(list)
        for settlement in ledger.settlements:
            if settlement.returns:
                self._refusals[settlement.copy.subscriber].append(settlement)
        # The first entry in each answer that may have had no verdict in time.
        self._overdue: dict[tuple[str, int], Delivery] = {}
        before: dict[Copy, Delivery] = {}
        for delivery in ledger.deliveries:
            if delivery.redelivered and _is_overdue(ledger, before.get(delivery.copy), delivery):
                key = (delivery.copy.subscriber, delivery.asked_ns)
                self._overdue.setdefault(key, delivery)
            before[delivery.copy] = delivery

    def between(self, earlier: Delivery, later: Delivery) -> bool:
        overdue = self._overdue.get((later.copy.subscriber, later.asked_ns))
        if overdue is not None and overdue.seq < later.seq:
            return True
        return any(
            settlement.seq < earlier.seq and earlier.at_ns <= settlement.begun_ns <= later.at_ns
            for settlement in self._refusals[earlier.copy.subscriber]
        )


def _is_overdue(ledger: Ledger, before: Delivery | None, delivery: Delivery) -> bool:
    """Whether the response timeout may have passed since its last hand-over, without acks."""
    if delivery.timeout_ns is None:
        return False
    if before is not None:
        return before.asked_ns + delivery.timeout_ns <= delivery.at_ns
    publish = ledger.publishes.get(delivery.copy.tag)
    return publish is not None and publish.begun_ns + delivery.timeout_ns <= delivery.at_ns


def multiplied(ledger: Ledger) -> Found:
    """Publishes that became several messages, as their replies, repeats and deliveries show."""
    messages: dict[str, set[str]] = defaultdict(set)
    for publish in ledger.publishes.values():
        messages[publish.tag].add(publish.received)
    for repeat in ledger.repeats:
        if repeat.is_ok:
            messages[repeat.fields["tag"]].add(repeat.fields["received"])
    for delivery in ledger.deliveries:
        messages[delivery.copy.tag].add(delivery.received)
    for tag, received in messages.items():
        count = len(received - {""})
        if count > 1:
            yield f"{tag} is {count} messages"


def disorder(ledger: Ledger) -> Found:
    """First arrivals, deliveries in one answer, or acceptances that are out of order."""
    silence = Silence(ledger)
    came = _firsts(each.copy for each in ledger.deliveries)
    yield from _rising(ledger, came, "came", silence)
    for subscriber, answers in _answers(ledger).items():
        for answer in answers:
            yield from _rising(ledger, answer, f"came in one answer to {subscriber}")
    yield from _less_urgent_first(ledger)
    accepted = _firsts(each.copy for each in ledger.settlements if each.is_accepted)
    yield from _rising(ledger, accepted, "was accepted", silence)


def _less_urgent_first(ledger: Ledger) -> Found:
    """Messages to a subject that do not come by priority, then age; redeliveries may differ."""
    before: dict[tuple[str, int], Publish] = {}
    for delivery in ledger.deliveries:
        subscriber, tag, _ = delivery.copy
        publish = ledger.publishes.get(tag)
        if publish is None or ledger.is_shared(delivery.copy) or delivery.redelivered:
            continue
        if subject_of(subscriber) not in publish.destinations or not publish.received:
            continue
        earlier = before.get((subscriber, delivery.asked_ns), publish)
        if publish.urgency < earlier.urgency:
            yield f"{tag} came behind {earlier.tag}, for {subscriber}, and is more urgent or older"
        before[subscriber, delivery.asked_ns] = publish


def _firsts(copies: Iterable[Copy]) -> Iterable[Copy]:
    return dict.fromkeys(copy for copy in copies if not copy.generation)


def _answers(ledger: Ledger) -> dict[str, list[list[Copy]]]:
    answers: dict[tuple[str, int], list[Copy]] = defaultdict(list)
    for each in ledger.deliveries:
        if not each.copy.generation:
            answers[each.copy.subscriber, each.asked_ns].append(each.copy)
    by_subscriber: dict[str, list[list[Copy]]] = defaultdict(list)
    for (subscriber, _), copies in answers.items():
        by_subscriber[subscriber].append(copies)
    return by_subscriber


def _rising(
    ledger: Ledger, copies: Iterable[Copy], how: str, silence: Silence | None = None
) -> Found:
    last: dict[tuple[str, str, str, int, bool], tuple[Publish, Copy]] = {}
    for copy in copies:
        publish = ledger.publishes.get(copy.tag)
        if ledger.is_shared(copy):
            continue
        # A publish whose publisher gave up waiting may arrive behind later ones.
        if publish is None or publish.outcome is not Phase.OK:
            continue
        key = (copy.subscriber, *publish.order(copy.subscriber))
        before, other = last.get(key, (None, copy))
        if before is not None and before.serial >= publish.serial:
            if silence is not None and silence.hid(copy, other):
                continue
            yield f"{publish.tag} {how} behind {before.tag}, for {copy.subscriber}"
        last[key] = publish, copy


def broken_holds(ledger: Ledger) -> Found:
    for hold in ledger.holds:
        if hold.is_verdict and _was_in_vain(ledger, hold):
            continue
        late_ns = hold.certain_ns + ARRIVING_NS
        for delivery in ledger.deliveries:
            # Answers to requests from the time of the hold may arrive when it ends.
            if delivery.copy.subscriber != hold.subscriber or delivery.at_ns >= hold.until_ns:
                continue
            if delivery.asked_ns >= hold.asked_ns or delivery.at_ns > late_ns:
                yield f"{delivery.copy.tag} came to {hold.subscriber} while it was held back"


def _was_in_vain(ledger: Ledger, hold: Hold) -> bool:
    """Whether the refusal that asked for it is one of a hand-over that the store lost."""
    refusals = [
        each
        for each in ledger.settlements
        if each.copy.subscriber == hold.subscriber
        and each.code == HOLDBACK
        and each.begun_ns <= hold.asked_ns
    ]
    if not refusals:
        return False
    last = max(refusals, key=lambda each: each.begun_ns)
    deliveries = [each for each in ledger.deliveries if each.copy == last.copy]
    return ledger.is_void(last, deliveries, hold.certain_ns)
