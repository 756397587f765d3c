"""Invariants of what the store has: batches, limits, books, one outcome per entry, attempts."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.history import Phase
from tests.chaos.ledger import SENDING_NS, SETTLING_NS, STORE_DIED, Ledger, by_copy
from tests.chaos.records import Copy, Delivery, Scan, Settlement, subject_of

WAYS = ("acked", "waiting", "in_flight", "dead", "expired", "discarded", "moved")

Found = Iterator[str]


def bad_acks(ledger: Ledger) -> Found:
    batches: dict[tuple[str, str], int] = {}
    for connect in ledger.connects:
        batch = connect.fields.get("batch")
        if not connect.is_ok or batch is None:
            continue
        key = connect.process, connect.fields["client"]
        if batch <= batches.get(key, -1):
            yield f"batch {batch} came to {connect.process} after batch {batches[key]}"
        batches[key] = batch
    for scan in ledger.scans:
        yield from _overfull(ledger, scan)


def _overfull(ledger: Ledger, scan: Scan) -> Found:
    """Limits are exceeded; a durable message that has just been published does not count yet."""
    waiting: dict[str, int] = defaultdict(int)
    for entry in scan.pending:
        publish = ledger.publishes.get(entry.copy.tag)
        if publish is None or publish.ended_ns + SENDING_NS < scan.at_ns:
            waiting[entry.copy.subscriber] += 1
    for subscriber, limit in scan.limits.items():
        if waiting[subscriber] > limit:
            yield f"{waiting[subscriber]} entries wait for {subscriber}, the limit is {limit}"


def unbalanced(ledger: Ledger) -> Found:
    for counters in ledger.counters:
        fields = counters.fields
        sum_ = sum(fields.get(way, 0) for way in WAYS)
        if not counters.is_ok:
            continue
        entered = fields["accepted"] + fields.get("restored", 0)
        if entered != sum_:
            yield f"{entered} entries came in, but {sum_} are accounted for: {fields}"


def more_than_one_fate(ledger: Ledger) -> Found:
    for scan in ledger.scans:
        pending = {entry.copy for entry in scan.pending}
        for copy in sorted({each.copy for each in scan.dead} & pending):
            yield f"{copy.tag} is dead and waits for {copy.subscriber}"
        letters: dict[Copy, set[str]] = defaultdict(set)
        for each in scan.dead:
            letters[each.copy].add(each.letter)
        for copy, found in letters.items():
            if len(found) > 1:
                yield f"{copy.tag} died {len(found)} times for {copy.subscriber}"
    if ledger.last_scan is not None:
        yield from _fates_of_settled(ledger, ledger.last_scan)


def _fates_of_settled(ledger: Ledger, scan: Scan) -> Found:
    dead = {each.copy for each in scan.dead}
    pending = {each.copy for each in scan.pending}
    copies = by_copy(ledger.deliveries)
    # A message that waits for a subject with one session waits for that session.
    pending |= {
        each._replace(subscriber=subscriber)
        for each in pending
        if each.subscriber.endswith("/0")
        for subscriber in ledger.sessions_of(subject_of(each.subscriber))
    }
    for settlement in ledger.settlements:
        copy = settlement.copy
        if ledger.is_shared(copy) or ledger.forgives(settlement, scan.at_ns):
            continue
        if ledger.is_void(settlement, copies.get(copy, ()), settlement.ended_ns):
            continue
        was_long_ago = settlement.ended_ns + SETTLING_NS <= scan.at_ns
        if settlement.is_accepted and copy in dead:
            yield f"{copy.tag} was accepted by {copy.subscriber} and is dead"
        elif settlement.is_accepted and copy in pending and was_long_ago:
            yield f"{copy.tag} was accepted by {copy.subscriber} and still waits"
        elif settlement.buries and copy not in dead and was_long_ago:
            yield f"{copy.tag} was refused by {copy.subscriber} and is nowhere"


def forgotten_attempts(ledger: Ledger) -> Found:
    yield from _seqs(ledger)
    copies = by_copy(ledger.deliveries)
    for copy, deliveries in copies.items():
        if ledger.is_shared(copy):
            continue
        for earlier, later in pairwise(deliveries):
            before, after = earlier.redelivered or 0, later.redelivered or 0
            if after < before and not _store_died(ledger, earlier, later):
                yield f"{copy.tag} for {copy.subscriber}: redelivered {before}, then {after}"
    for scan in ledger.scans:
        # The store may learn of the last attempts just after a scan; a dead letter has all of them.
        read_ns = ledger.unread_since_ns(scan.at_ns)
        counts = [(each.copy, each.attempts, read_ns) for each in scan.pending]
        counts += [(each.copy, each.attempts, scan.at_ns) for each in scan.dead]
        for copy, attempts, until_ns in counts:
            if ledger.is_shared(copy):
                continue
            deliveries = copies.get(_session_of(ledger, copy), [])
            seen = [each for each in deliveries if each.at_ns <= until_ns]
            certain = [
                each
                for each in seen
                if not ledger.forgot(each, scan.at_ns)
                and not ledger.may_be_untold(each, scan.at_ns)
            ]
            if len(certain) > attempts:
                yield f"{copy.tag} came to {copy.subscriber} {len(seen)} times, {attempts} counted"


def _session_of(ledger: Ledger, copy: Copy) -> Copy:
    """The copy as the only session of its subject had it before it went back to the subject."""
    if copy.subscriber.endswith("/0"):
        for subscriber in ledger.sessions_of(subject_of(copy.subscriber)):
            return copy._replace(subscriber=subscriber)
    return copy


def _seqs(ledger: Ledger) -> Found:
    last: dict[tuple[str, int], Delivery] = {}
    for delivery in ledger.deliveries:
        subscriber = delivery.copy.subscriber
        before = last.get((subscriber, delivery.life))
        is_back = before is not None and 0 < delivery.seq <= before.seq
        if before is not None and is_back and not _store_died(ledger, before, delivery):
            yield f"seq {delivery.seq} came to {subscriber} after {before.seq}"
        last[subscriber, delivery.life] = delivery


def _store_died(ledger: Ledger, earlier: Delivery, later: Delivery) -> bool:
    """A store that dies may lose what was not on disk yet."""
    return ledger.died(earlier.asked_ns, later.at_ns, STORE_DIED)


def bad_replays(ledger: Ledger) -> Found:
    replays = sum(replay.outcome is not Phase.FAIL for replay in ledger.replays)
    generations: dict[tuple[str, str], set[int]] = defaultdict(set)
    accepted: dict[tuple[str, str], Settlement] = {}
    for settlement in ledger.settlements:
        if settlement.is_accepted:
            accepted.setdefault(settlement.copy[:2], settlement)
    for delivery in ledger.deliveries:
        subscriber, tag, generation = delivery.copy
        generations[subscriber, tag].add(generation)
        settlement_ = accepted.get((subscriber, tag))
        if settlement_ is None or generation <= settlement_.copy.generation:
            continue
        if delivery.asked_ns >= settlement_.begun_ns:
            yield f"{tag} was replayed to {subscriber}, who had accepted it"
    for (subscriber, tag), seen in generations.items():
        if max(seen) > replays:
            yield f"{tag} came to {subscriber} in generation {max(seen)} after {replays} replays"
