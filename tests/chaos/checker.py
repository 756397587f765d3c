"""Checks whether the server kept its promises in a history, and counts the outcomes of messages."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tests.chaos import accounts, arrivals, outcomes, work
from tests.chaos.arrivals import forgotten_by, missing_of
from tests.chaos.entries import open_ledger
from tests.chaos.history import Operation, Phase, read
from tests.chaos.ledger import Ledger
from tests.chaos.records import Copy

# The number of examples that are shown of each violation.
EXAMPLES = 5


class Invariant(Enum):
    """The numbers are those of the literature on such checkers."""

    NO_LOSS = "I1: what was acknowledged to its publisher reaches every subscriber"
    FROM_SOMEWHERE = "I2: what arrives was published, there and with these bytes"
    NO_DUPLICATE = "I4: what comes again says so, and never after it was accepted"
    ORDER = "I5: in the order of publishing"
    ACKS = "I6: batches are numbered upwards and queues stay within their limits"
    ACCOUNTS = "I7: the server's books balance"
    ONE_FATE = "I8: every entry waits, or is dead, or is acked: one of these, once"
    ATTEMPTS = "I9: no attempt is forgotten"
    REPLAY = "I10: a replay delivers once"
    HOLD = "I11: nothing arrives while the receiver is held back"
    ONE_MESSAGE = "I12: what is sent again with its key is the message that it was"
    ONE_RECEIVER = "I13: work is with one receiver at a time, and is done once"
    ONE_OUTCOME = "I14: a request has one outcome"


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: Invariant
    text: str


CHECKS: dict[Invariant, Callable[[Ledger], Iterator[str]]] = {
    Invariant.NO_LOSS: arrivals.lost,
    Invariant.FROM_SOMEWHERE: arrivals.from_nowhere,
    Invariant.NO_DUPLICATE: arrivals.duplicates,
    Invariant.ORDER: arrivals.disorder,
    Invariant.ACKS: accounts.bad_acks,
    Invariant.ACCOUNTS: accounts.unbalanced,
    Invariant.ONE_FATE: accounts.more_than_one_fate,
    Invariant.ATTEMPTS: accounts.forgotten_attempts,
    Invariant.REPLAY: accounts.bad_replays,
    Invariant.HOLD: arrivals.broken_holds,
    Invariant.ONE_MESSAGE: arrivals.multiplied,
    Invariant.ONE_RECEIVER: work.with_two,
    Invariant.ONE_OUTCOME: outcomes.not_one,
}


@dataclass(slots=True)
class Result:
    """Counts of messages (attempts, acked, recovered), copies and requests, and all violations."""

    attempts: int = 0
    acked: int = 0
    recovered: int = 0
    delivered: int = 0
    processed: int = 0
    duplicated: int = 0
    dead: int = 0
    expired: int = 0
    pending: int = 0
    held: int = 0
    lost: int = 0
    forgotten: int = 0
    asked: int = 0
    answered: int = 0
    faults: int = 0
    violations: list[Violation] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        return not self.violations

    @property
    def broken(self) -> set[Invariant]:
        return {violation.invariant for violation in self.violations}

    def report(self) -> str:
        """The counts in one line, below it some examples of each violation."""
        names = [name for name in self.__slots__ if name != "violations"]
        counts = " ".join(f"{name} {getattr(self, name)}" for name in names)
        found = [f"valid? {str(self.is_valid).lower()}: {counts}"]
        for invariant, count in Counter(each.invariant for each in self.violations).items():
            found.append(f"{count} x {invariant.value}")
            texts = [each.text for each in self.violations if each.invariant is invariant]
            found.extend(f"  {text}" for text in texts[:EXAMPLES])
        return "\n".join(found)


def check_file(path: Path) -> Result:
    return check(read(path))


def check(operations: Sequence[Operation]) -> Result:
    """Pure: the same history gives the same result."""
    ledger = open_ledger(operations)
    result = _counted(ledger)
    for invariant, violations in CHECKS.items():
        result.violations.extend(Violation(invariant, text) for text in violations(ledger))
    return result


def _counted(ledger: Ledger) -> Result:
    published = ledger.publishes.values()
    copies = [delivery.copy for delivery in ledger.deliveries]
    unknown = {each.tag for each in published if each.outcome is Phase.INFO}
    result = Result(
        attempts=len(published),
        acked=sum(each.outcome is Phase.OK for each in published),
        recovered=len(unknown & {copy.tag for copy in copies}),
        delivered=len(set(copies)),
        processed=len({each.copy for each in ledger.settlements if each.is_accepted}),
        duplicated=len(copies) - len(set(copies)),
        lost=sum(len(missing_of(ledger, each)) for each in ledger.owners),
        forgotten=sum(len(forgotten_by(ledger, each)) for each in ledger.owners),
        asked=len(ledger.requests),
        answered=len({each.fields["tag"] for each in ledger.outcomes if each.fields["by"]}),
        faults=len(ledger.faults),
    )
    scan = ledger.last_scan
    if scan is not None:
        result.dead, result.pending = len(scan.dead), len(scan.pending)
        held = {hold.subscriber for hold in ledger.holds if hold.until_ns > scan.at_ns}
        result.held = sum(entry.copy.subscriber in held for entry in scan.pending)
    result.expired = _expired(ledger, set(copies))
    return result


def _expired(ledger: Ledger, delivered: set[Copy]) -> int:
    return sum(
        Copy(subscriber, publish.tag, 0) not in delivered
        for subscriber in ledger.subscribers
        for publish in ledger.owed(subscriber)
        if ledger.had_expired(publish)
    )
