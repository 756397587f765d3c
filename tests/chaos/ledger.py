"""A history in terms of the invariants: what was owed to whom, what arrived, and its outcome."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.chaos.history import Operation, Phase
from tests.chaos.records import (
    Copy,
    Delivery,
    Fault,
    Gap,
    Hold,
    Publish,
    Scan,
    Settlement,
    Stall,
    Window,
    subject_of,
)

# An acceptance may reach the store so much later than its reply reaches the receiver.
SETTLING_NS = 2_000_000_000
# The store may not have read what was sent to it so shortly before a scan.
SENDING_NS = 50_000_000
# A server that waits for its store goes on handing over for 50 ms and one turn of its loop.
_HANDING_OUT_NS = 200_000_000

STORE_DIED = frozenset(
    {
        "kill store",
        "lose power",
        "promote replica of dead primary, kill server",
        "promote replica of frozen primary, kill server",
    }
)
# The server lives, and tells the replica again what it lacks.
PROMOTIONS = frozenset({"promote replica of dead primary", "promote replica of frozen primary"})
DEATHS = STORE_DIED | {"kill server", "kill server that hands over"}
STORE_FAULTS = STORE_DIED | {"pause store"}


@dataclass(slots=True)
class Ledger:
    """Everything that the checker looks at, each list in the order of time."""

    publishes: dict[str, Publish] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    connects: list[Operation] = field(default_factory=list)
    replays: list[Operation] = field(default_factory=list)
    repeats: list[Operation] = field(default_factory=list)
    requests: list[Operation] = field(default_factory=list)
    outcomes: list[Operation] = field(default_factory=list)
    counters: list[Operation] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    # When receivers ended their sessions.
    endings: dict[str, list[int]] = field(default_factory=dict)
    end_ns: int = 0
    # Caches by the time of a death: the last publish that was kept before it, and the last
    # request of each receiver.
    _last_kept_ns: dict[int, int] = field(default_factory=dict)
    _last_asked: dict[int, dict[str, int]] = field(default_factory=dict)
    _sessions: dict[str, set[str]] = field(default_factory=dict)

    @property
    def subscribers(self) -> list[str]:
        return sorted({window.subscriber for window in self.windows})

    @property
    def owners(self) -> list[str]:
        """All who are owed messages: subscribers, subjects, sessions and work queues."""
        found = set(self.subscribers)
        for publish in self.publishes.values():
            found |= publish.destinations
            if publish.is_work:
                found.add(queue_of(publish))
        return sorted(found)

    @property
    def last_scan(self) -> Scan | None:
        return self.scans[-1] if self.scans else None

    def windows_of(self, subscriber: str) -> list[Window]:
        return [window for window in self.windows if window.subscriber == subscriber]

    def owed(self, owner: str) -> Iterator[Publish]:
        """Accepted publishes that this owner was to get."""
        windows = self.windows_of(owner)
        for publish in self.publishes.values():
            if publish.outcome is Phase.OK and (
                owner in publish.destinations
                or (publish.is_work and owner == queue_of(publish))
                or any(window.owes(publish) for window in windows)
            ):
                yield publish

    def is_shared(self, copy: Copy) -> bool:
        """Whether other sessions may have had the message and returned it to come again."""
        publish = self.publishes.get(copy.tag)
        if publish is None:
            return False
        subject = subject_of(copy.subscriber)
        is_of_several = subject in publish.destinations and len(self.sessions_of(subject)) > 1
        return publish.is_work or is_of_several

    def is_work(self, copy: Copy) -> bool:
        publish = self.publishes.get(copy.tag)
        return publish is not None and publish.is_work

    def sessions_of(self, subject: str) -> set[str]:
        """The sessions of a subject that ever received anything or asked for it."""
        if subject not in self._sessions:
            known = {each.process for each in self.connects}
            known |= {each.copy.subscriber for each in self.deliveries}
            self._sessions[subject] = {each for each in known if subject_of(each) == subject}
        return self._sessions[subject]

    def had_expired(self, publish: Publish) -> bool:
        if publish.life_ms is None:
            return False
        return self.end_ns - publish.begun_ns > publish.life_ms * 1_000_000

    def died(self, since_ns: int, until_ns: int, kinds: frozenset[str] = DEATHS) -> bool:
        """Whether a process died in this time."""
        return any(
            fault.ended_ns >= since_ns and fault.begun_ns <= until_ns and self._kills(fault, kinds)
            for fault in self.faults
        )

    def _kills(self, fault: Fault, kinds: frozenset[str]) -> bool:
        """Whether the fault kills; a frozen store dies with its server, with unread writes."""
        if fault.kind in kinds:
            return True
        return fault.kind == "restart server" and any(
            other.kind == "pause store"
            and other.begun_ns <= fault.ended_ns
            and other.ended_ns >= fault.begun_ns
            for other in self.faults
        )

    def forgot(self, delivery: Delivery, until_ns: int) -> bool:
        """Whether the store may have lost this hand-over."""
        if self.died(delivery.asked_ns, until_ns, STORE_DIED):
            return True
        return any(
            self._kills(fault, DEATHS)
            and delivery.asked_ns <= fault.ended_ns
            and fault.begun_ns <= until_ns
            and not self._had_answer(delivery, fault)
            and delivery.at_ns >= self.unread_since_ns(self._last_asked_ns(delivery, fault))
            for fault in self.faults
        )

    def may_be_untold(self, delivery: Delivery, scan_ns: int) -> bool:
        """Whether a replica that has just taken over may not know of this hand-over yet."""
        return any(
            fault.kind in PROMOTIONS
            and fault.begun_ns - _HANDING_OUT_NS <= delivery.at_ns
            and fault.begun_ns <= scan_ns <= fault.ended_ns + SETTLING_NS
            for fault in self.faults
        )

    def unread_since_ns(self, at_ns: int) -> int:
        """Since when the store may not have read of hand-overs; stalls do not count."""
        since_ns = at_ns - _HANDING_OUT_NS
        for stall in reversed(self.stalls):
            if stall.begun_ns < at_ns and stall.ended_ns > since_ns:
                since_ns -= min(stall.ended_ns, at_ns) - stall.begun_ns
        return since_ns

    def _had_answer(self, delivery: Delivery, death: Fault) -> bool:
        """Whether the store answered between this hand-over and the death.

        Then it had read of the hand-over, which the server had sent before.
        """
        if death.begun_ns not in self._last_kept_ns:
            kept = [each.begun_ns for each in self._kept if each.ended_ns <= death.begun_ns]
            self._last_kept_ns[death.begun_ns] = max(kept, default=-1)
        return self._last_kept_ns[death.begun_ns] >= delivery.at_ns

    @property
    def _kept(self) -> Iterator[Publish]:
        return (each for each in self.publishes.values() if each.outcome is Phase.OK)

    def _last_asked_ns(self, delivery: Delivery, death: Fault) -> int:
        """The time of the receiver's last request that was answered before this death.

        Without an answer of its store, a server hands entries over only for a short time. When a
        receiver got them proves nothing, because delivery may take long on a slow machine.
        """
        if death.begun_ns not in self._last_asked:
            asked = self._last_asked[death.begun_ns] = {}
            for each in self.deliveries:
                if each.asked_ns <= death.begun_ns:
                    asked[each.copy.subscriber] = max(
                        each.asked_ns, asked.get(each.copy.subscriber, 0)
                    )
        return max(
            delivery.asked_ns, self._last_asked[death.begun_ns].get(delivery.copy.subscriber, 0)
        )

    def is_void(
        self, settlement: Settlement, deliveries: Iterable[Delivery], until_ns: int
    ) -> bool:
        """Whether it settles a hand-over that the store lost, which cannot be accepted.

        The deliveries are those of the same copy.
        """
        meant = [each for each in deliveries if each.at_ns <= settlement.begun_ns]
        return bool(meant) and self.forgot(meant[-1], until_ns)

    def forgives(self, settlement: Settlement, seen_ns: int) -> bool:
        """Whether a death may have undone what was settled before the store knew it.

        The store learns of it soon; if it was away, soon after its return.
        """
        safe_ns = settlement.ended_ns + SETTLING_NS
        for fault in self.faults:
            was_away = fault.begun_ns <= safe_ns and fault.ended_ns >= settlement.begun_ns
            if fault.kind in STORE_FAULTS and was_away:
                safe_ns = max(safe_ns, fault.ended_ns + SETTLING_NS)
        return self.died(settlement.begun_ns, min(safe_ns, seen_ns))


def queue_of(publish: Publish) -> str:
    """The name of the work queue in the store."""
    return f"work:{publish.channel}"


def belongs(subscriber: str, owner: str) -> bool:
    """Whether entries of this session, or of this subject's or channel's queue, are the owner's."""
    return owner in (subscriber, subject_of(subscriber)) or owner.startswith("work:")


def by_copy(found: Iterable[Delivery]) -> dict[Copy, list[Delivery]]:
    """Deliveries of the same message to the same subscriber."""
    copies: dict[Copy, list[Delivery]] = defaultdict(list)
    for delivery in found:
        copies[delivery.copy].append(delivery)
    return copies


def settlements_by_copy(found: Iterable[Settlement]) -> dict[Copy, list[Settlement]]:
    copies: dict[Copy, list[Settlement]] = defaultdict(list)
    for settlement in found:
        copies[settlement.copy].append(settlement)
    return copies
