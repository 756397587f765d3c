"""Judges requests that are refused in part, and batches that their receivers refuse in part.

What must be refused comes to nobody, and what was accepted beside it comes in its order. What a
receiver leaves open behind a message that is due later comes again, behind that one, in the old
order, and before anything new.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.judges.refusals import KEEP_CLOCKS, Refusals
from tests.simulation.oracle import Publish
from tests.simulation.talker import Message
from tests.simulation.workers import Hand

CHANNEL = "/lots/a"


class Batches(Refusals):
    """Collects what publishers are told, and what receivers say."""

    _name, _channel = "batches", CHANNEL

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._wrong: set[str] = set()
        # What may be out of order: it was published again, or nobody knows what became of it.
        self._unsure: set[str] = set()
        self._intruders: list[str] = []
        # What each receiver has left open, and since when.
        self._open: dict[str, dict[str, float]] = defaultdict(dict)
        self._behind: list[tuple[float, float, str]] = []

    # What publishers do

    def wrong(self, key: str) -> str:
        """Note the key of a message that must be refused."""
        self._wrong.add(key)
        return key

    def unsure(self, keys: Iterable[str]) -> None:
        """Note that nobody knows what became of these, or that they are published again."""
        self._unsure.update(keys)

    def answered(self, dues: Sequence[str], replies: Sequence[Message]) -> None:
        """Note what came of the messages of a request."""
        if len({reply["successful"] for reply in replies}) > 1 and any(dues):
            self._facts.mark("a request was refused in part")

    # What receivers do

    def begins(self, worker: str, options: Message) -> None:
        super().begins(worker, options)
        self._open[worker].clear()

    def taken(self, worker: str, hand: Hand, *, is_marked: bool) -> None:
        if hand.key in self._wrong:
            self._intruders.append(f"{worker} got {hand.key}, which must be refused")
            return
        its, now = self._receivers[worker], self._facts.now()
        left, places = self._open[worker], {key: n for n, key in enumerate(its.cases)}
        since = left.pop(hand.key, None)
        if since is not None:
            self._facts.mark("what was behind a refused message came again")
        place = places.get(hand.key, len(places))
        since_of = {**left, **{key: due.said_at for key, due in its.waits_for.items()}}
        ahead = [each for each in since_of if places[each] < place]
        if ahead and (since is not None or hand.key not in places):
            began = min(since_of[each] for each in ahead)
            self._behind.append((began, now, f"{worker} got {hand.key} ahead of {ahead[0]}"))
        super().taken(worker, hand, is_marked=is_marked)

    def says(self, worker: str, hands: Sequence[Hand]) -> None:
        hands = [each for each in hands if each.key not in self._wrong]
        super().says(worker, [each for each in hands if not each.is_open])
        left = self._open[worker]
        for hand in hands:
            if hand.is_open:
                left.setdefault(hand.key, self._facts.now())
            else:
                left.pop(hand.key, None)

    def settled(self, worker: str, hand: Hand) -> None:
        if not hand.is_open and hand.key not in self._wrong:
            super().settled(worker, hand)

    # What it means

    def violations(
        self, published: Mapping[str, Publish], excuses: Excuses, *, have_one_clock: bool
    ) -> list[str]:
        """Return all broken promises."""
        return [
            *super().violations(published, excuses, have_one_clock=have_one_clock),
            *(f"batches: {each}" for each in self._intruders),
            *self._misjudged(
                self._behind, excuses, "message that is behind a refused one", KEEP_CLOCKS
            ),
            *self._disordered(published),
        ]

    def _disordered(self, published: Mapping[str, Publish]) -> Iterator[str]:
        """Say what came behind a later one of its publisher, first of all times that it came."""
        for name, its in self._receivers.items():
            last: dict[str, int] = defaultdict(int)
            for key in its.cases:
                publish = published[key]
                if key in self._unsure or not publish.is_durable or not publish.id:
                    continue
                if publish.serial < last[publish.publisher]:
                    yield f"batches: {name} got {key} behind a later one"
                last[publish.publisher] = max(publish.serial, last[publish.publisher])
