"""Judges what becomes of messages that their receivers may refuse.

Each ends at each receiver in one way: it is acked, it is a dead letter with the code that was said,
or its lifetime is over. What is due later comes later, ahead of all else, and not before.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from tests.simulation.judges.copies import Copy
from tests.simulation.judges.excuses import HARMLESS, Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.oracle import Publish
from tests.simulation.refusing import CHANNEL, TOLD
from tests.simulation.talker import Message
from tests.simulation.workers import LATER, Hand, Ledger

# How much longer or shorter true time may be than by the clock of a server.
_SLOW, _FAST = 0.9, 1.1
# How long a server takes at most until it hands out what is due, and until nothing expired is left.
_DUE_S, _OVER_S = 2.0, 2.0
# How long before the reply to a subscribe the store may have had it.
_STORED_S = 1.0
# The longest pause that a server decides by itself.
_LEAST_PAUSE_S = 1.0
_OVERFLOW, _OF_ENTRIES = "resource.overflow.queue.", "resource.overflow.queue.entries"
# Something that is wrong: since when and until when a fault may excuse it, and what it is.
_Finding = tuple[float, float, str]
# Faults through which a receiver keeps its session and its server.
KEEP_CLOCKS = HARMLESS | {
    *("cut_connection", "lose_connection", "lose_direction", "hold_connection"),
    *("part_from_clients", "slow_network"),
}

# Faults through which its server knows what it has handed out.
_KEEP_HAND_OVERS = KEEP_CLOCKS | {"slow_server"}


@dataclass(slots=True)
class _Due:
    """That a receiver wants a message later: when it got it and said so, and after how long."""

    taken_at: float
    said_at: float
    delay_s: float
    # The longest time that it may take, by the server's clock.
    most_s: float
    # Whether the receiver has been waiting since then.
    is_patient: bool = True


@dataclass(slots=True)
class _Case(Copy):
    """What one receiver knows of one message, of which there is one copy for each."""

    due: dict[int, _Due] = field(default_factory=dict)
    # The numbers of the hand-overs that it has refused for good.
    refused: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Receiver:
    since: float = inf
    # The longest pause that its session has asked for, and whether its queue is short.
    pause_s: float = _LEAST_PAUSE_S
    is_narrow: bool = False
    # How many messages may come at once.
    most: float = inf
    cases: dict[str, _Case] = field(default_factory=lambda: defaultdict(_Case))
    # What it waits for: nothing new comes before that.
    waits_for: dict[str, _Due] = field(default_factory=dict)


class Refusals(Ledger):
    """Collects what receivers of one channel say of messages, and what comes again."""

    _name, _channel = "refusals", CHANNEL

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._receivers: dict[str, _Receiver] = defaultdict(_Receiver)
        # What comes too early, too late, or ahead of its turn: since when, until when, and with
        # which faults it may; with what is too early, when it had come before.
        self._early: list[tuple[float, _Finding]] = []
        self._late: list[_Finding] = []
        # What exceeds a limit (S10), and how often it was reached.
        self._exceeded: list[str] = []
        self._reached = 0
        # By what is due first, and when that came.
        self._ahead: list[tuple[str, float, _Finding]] = []

    # What happens

    def begins(self, worker: str, options: Message) -> None:
        its = self._receivers[worker]
        its.is_narrow = "queue" in options
        in_queue = options.get("queue", {}).get("maxEntries", inf)
        its.most = min(in_queue, options.get("maxEntries", inf))
        its.pause_s = max(_LEAST_PAUSE_S, options.get("delay", 60_000) / 1000)
        # Another client does not wait for what this one has refused.
        its.waits_for.clear()

    def subscribed(self, worker: str) -> None:
        its = self._receivers[worker]
        its.since = min(its.since, self._facts.now())

    def taken(self, worker: str, hand: Hand, *, is_marked: bool) -> None:
        now, its = self._facts.now(), self._receivers[worker]
        due = its.waits_for.pop(hand.key, None)
        if due is not None:
            self._comes_again(f"{worker} got {hand.key}", due, now)
        elif its.waits_for and hand.key not in its.cases:
            key, first = next(iter(its.waits_for.items()))
            what = f"{worker} got {hand.key} ahead of {key}, which it wants later"
            self._ahead.append((key, its.cases[key].taken[0], (first.said_at, now, what)))
        its.cases[hand.key].taken.append(now)

    def handed(self, worker: str, count: int) -> None:
        most = self._receivers[worker].most
        self._reached += count >= most
        if count > most:
            now = self._facts.now()
            self._exceeded.append(f"S10: {worker} got {count} messages at {now:.3f}, above {most}")

    def _comes_again(self, what: str, due: _Due, now: float) -> None:
        passed_s = now - due.said_at
        self._facts.mark("a refused message came again")
        if passed_s < due.delay_s / _FAST:
            said = f"{what} again after {passed_s:.3f} s, and not {due.delay_s:g}"
            self._early.append((due.taken_at, (due.said_at, now, said)))
        if due.is_patient and passed_s > due.most_s / _SLOW + _DUE_S:
            said = f"{what} again after {passed_s:.3f} s, and not {due.delay_s:g}"
            self._late.append((due.said_at, now, said))

    def says(self, worker: str, hands: Sequence[Hand]) -> None:
        now, its = self._facts.now(), self._receivers[worker]
        for hand in hands:
            case = its.cases[hand.key]
            case.said.add(hand.verdict)
            if hand.verdict not in (None, LATER):
                case.refused.add(hand.seq)
            if hand.verdict == LATER:
                delay_s = hand.delay_ms / 1000
                due = _Due(hand.taken_at, now, delay_s, max(delay_s, its.pause_s))
                # It may be said again, if nobody has answered.
                its.waits_for[hand.key] = case.due.setdefault(hand.seq, due)

    def settled(self, worker: str, hand: Hand) -> None:
        if hand.verdict != LATER:
            self._receivers[worker].cases[hand.key].sure.setdefault(hand.verdict, self._facts.now())

    def is_away(self, worker: str) -> None:
        for due in self._receivers[worker].waits_for.values():
            due.is_patient = False

    # What it means

    def unfinished(self, published: Mapping[str, Publish]) -> list[str]:
        """Return what has no end yet."""
        if not self._receivers:
            return []
        dead = {(each.receiver, each.key) for each in self._facts.letters()}
        kept = self._facts.kept(self._channel)
        found = [f"{self._name}: {key} is still in a store" for key in sorted(kept)]
        for name, its, key, publish in self._due_ends(published):
            case = its.cases.get(key, _Case())
            has_end = None in case.said or (name, key) in dead
            has_end = has_end or case.may_have_lost_letter(self._facts)
            if not has_end and publish.lifetime_s < inf:
                self._facts.mark("a lifetime has ended")
            elif not has_end:
                found.append(f"{self._name}: {key}, accepted as {publish.id}, has no end at {name}")
        return found

    def _due_ends(
        self, published: Mapping[str, Publish]
    ) -> Iterator[tuple[str, _Receiver, str, Publish]]:
        for key, publish in published.items():
            is_gone = not publish.id or self._facts.may_be_gone(publish)
            if publish.channel != self._channel or is_gone:
                continue
            if publish.is_durable:
                for name, its in self._receivers.items():
                    # Only publishes wait for replicas.
                    is_kept = not self._facts.may_have_lost(its.since - _STORED_S, its.since)
                    if its.since < publish.begun_at and is_kept:
                        yield name, its, key, publish

    def violations(
        self, published: Mapping[str, Publish], excuses: Excuses, *, have_one_clock: bool
    ) -> list[str]:
        """Return all broken promises.

        Args:
            have_one_clock: Whether lifetimes are measured by one clock, which nobody has set.
        """
        excuses.judges("limit of messages at once", self._reached)
        return [
            *self.unfinished(published),
            *self._exceeded,
            *self._misjudged(
                self._ahead_of(published),
                *(excuses, "message that is ahead of its turn", KEEP_CLOCKS),
            ),
            *self._too_early(excuses),
            *self._misjudged(self._late, excuses, "retry that is late", frozenset({"set_clock"})),
            *self._wrong_letters(excuses),
            *self._unburied(published, excuses),
            *self._returned(excuses),
            *(self._outlived(published, excuses) if have_one_clock else ()),
        ]

    def _too_early(self, excuses: Excuses) -> Iterator[str]:
        what = "retry that is early"
        for taken_at, found in self._early:
            # A server does not know the hand-overs of one that has ended since then, nor what is
            # said of them: the message is due at once.
            if not excuses.excuse(what, taken_at, found[1], harmless=_KEEP_HAND_OVERS):
                yield from self._misjudged([found], excuses, what, KEEP_CLOCKS)

    def _ahead_of(self, published: Mapping[str, Publish]) -> list[_Finding]:
        found = []
        for key, taken_at, (said_at, at, what) in self._ahead:
            publish = published[key]
            # What is over does not come again, nor what a server had that has ended since it came.
            if publish.lifetime_s == inf:
                found.append((said_at if publish.is_durable else taken_at, at, what))
        return found

    def _misjudged(
        self,
        found: Sequence[_Finding],
        excuses: Excuses,
        what: str,
        harmless: frozenset[str],
    ) -> Iterator[str]:
        for since, until, said in found:
            if not excuses.excuse(what, since, until, harmless=harmless):
                yield f"{self._name}: {said} at {until:.3f}"

    def _wrong_letters(self, excuses: Excuses) -> Iterator[str]:
        """Say which letters nobody has caused, and which are there twice."""
        seen: set[tuple[str, str]] = set()
        for letter in self._facts.letters():
            its = self._receivers.get(letter.receiver)
            if letter.channel != self._channel or its is None:
                continue
            excuses.judges("dead letter")
            case = its.cases.get(letter.key, _Case())
            told = {TOLD.get(each or "", each) for each in case.said}
            if letter.code.startswith(_OVERFLOW):
                self._facts.mark("a full queue has left a letter")
                is_right = its.is_narrow and not case.taken and letter.code == _OF_ENTRIES
            else:
                self._facts.mark("a refusal has left a letter")
                is_right = letter.code in told
            first = min(case.taken, default=0.0)
            if letter.code == _OF_ENTRIES and its.is_narrow and not is_right:
                # A shard that was killed takes it again, and now there may be no room.
                is_right = excuses.excuse(
                    "letter of a full queue", first, self._facts.now(), harmless=HARMLESS
                )
            lost = self._facts.may_have_lost(first, self._facts.now())
            if not is_right and not lost:
                yield f"{self._name}: {letter.key} is dead for {letter.receiver}: {letter.code}"
            place = letter.receiver, letter.key
            if place in seen and not lost:
                yield f"{self._name}: {letter.key} is dead for {letter.receiver} twice"
            seen.add(place)

    def _unburied(self, published: Mapping[str, Publish], excuses: Excuses) -> Iterator[str]:
        """Say which refusals have no letter, and which messages came again in spite of one."""
        dead = {(each.receiver, each.key) for each in self._facts.letters()}
        for name, key, case in self._all_cases():
            for at in case.refusals:
                excuses.judges("refusal")
                again = case.comes_after(at)
                if self._facts.may_have_lost(min(case.taken), self._facts.now()):
                    continue
                is_lost = not again and (name, key) not in dead
                if is_lost and not case.may_leave_nothing(at, published[key], excuses):
                    yield f"{self._name}: {name} has refused {key} at {at:.3f}, and it is not dead"
                if again and (name, key) in dead and len(case.refused) == 1:
                    yield f"{self._name}: {name} got {key} at {again[0]:.3f}, which is dead"

    def _returned(self, excuses: Excuses) -> Iterator[str]:
        """Say what came again although its receiver had done with it."""
        for name, key, case in self._all_cases():
            for again in case.returns(excuses, "settled message"):
                yield f"{self._name}: {name} got {key} at {again:.3f}, which it had settled"

    def _outlived(self, published: Mapping[str, Publish], excuses: Excuses) -> Iterator[str]:
        """Say what was handed out for the first time after the end of its lifetime."""
        for name, key, case in self._all_cases():
            publish = published[key]
            if publish.lifetime_s == inf or not publish.id:
                continue
            excuses.judges("lifetime")
            over_at = publish.accepted_at + publish.lifetime_s / _SLOW + _OVER_S
            first = case.taken[0]
            # A reply that was made in time may wait for the store, or on its way to the client.
            if first > over_at and not excuses.excuse(
                "lifetime", over_at, first, harmless=HARMLESS
            ):
                late = f"at {first:.3f}, which was over at {over_at:.3f}"
                yield f"{self._name}: {name} got {key} {late}"

    def _all_cases(self) -> Iterator[tuple[str, str, _Case]]:
        for name, its in self._receivers.items():
            for key, case in its.cases.items():
                yield name, key, case
