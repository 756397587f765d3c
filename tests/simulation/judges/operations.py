"""Judges what operators do with dead letters, and with receivers that they hold back.

Each copy of a message ends in one way at its receiver: it is done, it is a letter, or an operator
has dropped that letter. A letter that was replayed is one more copy, of the next generation, at the
same receiver and nowhere else. Who is held back gets nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from tests.simulation.books import Letter
from tests.simulation.judges.copies import Copy
from tests.simulation.judges.excuses import HARMLESS, Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.oracle import Publish
from tests.simulation.refusing import TOLD
from tests.simulation.talker import Message
from tests.simulation.workers import Hand, Ledger

CHANNEL = "/tasks/a"
# How long before the reply to a subscribe the store may have had it.
_STORED_S = 1.0
# For so long what was on its way comes to a receiver that is held back.
_ON_THE_WAY_S = 1.0
# Faults through which a hold stays: it is stored before the operator hears of it.
_KEEP_HOLDS = HARMLESS | {
    *("kill_server", "kill_server_in_call", "terminate_server", "crash_server_often"),
    *("kill_supervisor", "stop_supervisor", "kill_importer", "restart_in_vain"),
}
# Clients lose their connections when a server without a supervisor is replaced.
_KEEP_CONNECTIONS = HARMLESS - {"restart"}
# Why a replay may leave out a letter.
_TOO_OFTEN = "generation"

# Of which message, how often it had been replayed, and for whom.
Place = tuple[str, str, int]


class Found(NamedTuple):
    """A dead letter as a list shows it: for whom, and of which copy of a message."""

    id: str
    receiver: str
    message: str
    generation: int

    @property
    def place(self) -> Place:
        return self.receiver, self.message, self.generation


class Asked(NamedTuple):
    """That an operator has asked a server for something."""

    at: float
    host: str
    what: str


@dataclass(slots=True, eq=False)
class Drop:
    """Letters that an operator wants to drop; the server may have said how many it has dropped."""

    letters: Sequence[Found]
    asked_at: float
    count: int | None = None
    answered_at: float = inf


@dataclass(slots=True, eq=False)
class Replay:
    """Letters that an operator replays: under which id, if it is known, and what came of it."""

    letters: Sequence[Found]
    asked_at: float
    id: str = ""
    # Whether all shards have begun.
    is_whole: bool = True
    told: Message | None = None
    # Whether the server does not know it.
    is_gone: bool = False
    over_at: float = inf


@dataclass(slots=True)
class _Doer:
    since: float = inf
    copies: dict[tuple[str, int], Copy] = field(default_factory=lambda: defaultdict(Copy))
    # Since when it is held back for sure.
    held_at: float = inf
    # Whether a release was asked for without an answer: it may come true at any time.
    may_be_released: bool = False


class _Failure(NamedTuple):
    asked: Asked
    at: float
    said: str
    is_of_standby: bool


class Operations(Ledger):
    """Collects what an operator does, and what comes of it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._doers: dict[str, _Doer] = defaultdict(_Doer)
        self.held_back: list[str] = []
        self._drops: list[Drop] = []
        self._replays: list[Replay] = []
        self._answers = 0
        self._failures: list[_Failure] = []
        # What came to somebody who was held back: since when, when, and what.
        self._intruders: list[tuple[float, float, str]] = []

    # What receivers do

    def subscribed(self, worker: str) -> None:
        doer = self._doers[worker]
        doer.since = min(doer.since, self._facts.now())

    def taken(self, worker: str, hand: Hand, *, is_marked: bool) -> None:
        now, doer = self._facts.now(), self._doers[worker]
        if hand.generation:
            self._facts.mark("a letter was replayed")
        if now > doer.held_at + _ON_THE_WAY_S:
            self._intruders.append((doer.held_at, now, f"{worker} got {hand.key}"))
        doer.copies[hand.key, hand.generation].taken.append(now)

    def says(self, worker: str, hands: Sequence[Hand]) -> None:
        for hand in hands:
            self._copy(worker, hand).said.add(hand.verdict)

    def settled(self, worker: str, hand: Hand) -> None:
        self._copy(worker, hand).sure.setdefault(hand.verdict, self._facts.now())

    def _copy(self, worker: str, hand: Hand) -> Copy:
        return self._doers[worker].copies[hand.key, hand.generation]

    # What the operator does

    @property
    def doers(self) -> Sequence[str]:
        """Those who have a session."""
        return [name for name, doer in self._doers.items() if doer.since < inf]

    @property
    def under_way(self) -> Sequence[Replay]:
        """The replays that are not over, as far as the operator knows."""
        return [
            each for each in self._replays if each.id and each.told is None and not each.is_gone
        ]

    def asks(self, host: str, what: str) -> Asked:
        """Note that the operator is about to ask for something."""
        self._answers += 1
        return Asked(self._facts.now(), host, what)

    def failed(self, asked: Asked, said: str) -> None:
        """Note that it was refused, or that there was no answer."""
        failure = _Failure(asked, self._facts.now(), said, self._facts.stands_by(asked.host))
        self._failures.append(failure)

    def drops(self, letters: Sequence[Found]) -> Drop:
        """Note that the operator is about to drop letters."""
        self._drops.append(Drop(letters, self._facts.now()))
        return self._drops[-1]

    def dropped(self, drop: Drop, count: int, *, is_whole: bool) -> None:
        """Note how many the server has dropped, perhaps without the answer of all shards."""
        if is_whole:
            drop.count, drop.answered_at = count, self._facts.now()

    def replays(self, letters: Sequence[Found]) -> Replay:
        """Note that the operator is about to replay letters."""
        self._replays.append(Replay(letters, self._facts.now()))
        return self._replays[-1]

    def begun(self, replay: Replay, id: str, *, is_whole: bool) -> None:
        """Note that the replay has begun."""
        replay.id, replay.is_whole = id, is_whole

    def over(self, replay: Replay, told: Message) -> None:
        """Note that the replay is over, and what the server says of it."""
        replay.told, replay.over_at = told, self._facts.now()

    def gone(self, replay: Replay) -> None:
        """Note that the server does not know the replay: its store may have lost it."""
        replay.is_gone = True

    def holds(self, doer: str) -> None:
        """Note that the operator is about to hold somebody back."""
        if doer not in self.held_back:
            self.held_back.append(doer)

    def held(self, doer: str) -> None:
        """Note that the server has done it."""
        its = self._doers[doer]
        if its.held_at == inf and not its.may_be_released:
            self._facts.mark("a receiver was held back")
            its.held_at = self._facts.now()

    def releases(self, doer: str) -> None:
        """Note that the operator is about to let somebody go on."""
        its = self._doers[doer]
        its.held_at, its.may_be_released = inf, True

    def let_go(self, doer: str) -> None:
        """Note that the server has done it."""
        self._doers[doer].may_be_released = False
        self.held_back = [each for each in self.held_back if each != doer]

    # What it means

    def unfinished(self, published: Mapping[str, Publish]) -> list[str]:
        """Return what has no end yet."""
        if not self._doers:
            return []
        letters = self._own_letters()
        ended = {(each.receiver, each.key, each.generation) for each in letters}
        ended |= self._dropped_copies(published)
        found = [f"operations: {name} is still held back" for name in self.held_back]
        found += [
            f"operations: the replay {each.id} is not over"
            for each in self.under_way
            if not self._facts.may_have_lost(each.asked_at, self._facts.now())
        ]
        for name, key, generation in self._due_copies(published, letters):
            copy = self._doers[name].copies.get((key, generation), Copy())
            has_end = None in copy.said or (name, key, generation) in ended
            if not has_end and not copy.may_have_lost_letter(self._facts):
                what = f"{key}, replayed {generation} times, has no end at {name}"
                found.append(f"operations: {what}")
        return found

    def _own_letters(self) -> list[Letter]:
        return [each for each in self._facts.letters() if each.channel == CHANNEL]

    def _due_copies(
        self, published: Mapping[str, Publish], letters: Collection[Letter]
    ) -> Iterator[Place]:
        """Yield the copies that must have an end: for whom, of which message, the generation."""
        for key, publish in published.items():
            is_due = publish.channel == CHANNEL and publish.id and publish.is_durable
            if is_due and not self._facts.may_be_gone(publish):
                for name, its in self._doers.items():
                    is_kept = not self._facts.may_have_lost(its.since - _STORED_S, its.since)
                    if its.since < publish.begun_at and is_kept:
                        yield name, key, 0
        for letter in letters:
            # Of what no publisher was told the id, nobody knows whether its letters were dropped.
            is_known = letter.job and published[letter.key].id
            if is_known and self._is_sure(letter.key, published):
                yield letter.receiver, letter.key, letter.generation + 1

    def _dropped_copies(self, published: Mapping[str, Publish]) -> set[Place]:
        """Return the copies whose letters the operator may have dropped."""
        keys = {publish.id: key for key, publish in published.items() if publish.id}
        found = (each for drop in self._drops for each in drop.letters)
        return {
            (each.receiver, keys[each.message], each.generation)
            for each in found
            if each.message in keys
        }

    def _is_sure(self, key: str, published: Mapping[str, Publish]) -> bool:
        """Return whether no failover may have lost anything of a message."""
        return not self._facts.may_have_lost(published[key].begun_at, self._facts.now())

    def violations(self, published: Mapping[str, Publish], excuses: Excuses) -> list[str]:
        """Return all broken promises."""
        return [
            *self.unfinished(published),
            *self._wrong_answers(excuses),
            *self._wrong_letters(published),
            *self._unburied(published, excuses),
            *self._returned(excuses),
            *self._unasked(published, excuses),
            *self._held_in_vain(excuses),
            *self._wrong_drops(excuses),
            *self._wrong_replays(excuses),
        ]

    def _wrong_answers(self, excuses: Excuses) -> Iterator[str]:
        excuses.judges("answer to an operator", self._answers)
        for failure in self._failures:
            if not self._may_fail(failure, excuses):
                asked = failure.asked
                yield (
                    f"S11: an operator was told {failure.said!r} at {failure.at:.3f} for "
                    f"{asked.what}, asked at {asked.at:.3f}"
                )

    def _may_fail(self, failure: _Failure, excuses: Excuses) -> bool:
        since, what = failure.asked.at, "answer to an operator"
        is_lost = failure.said.startswith("lost")
        is_of_trouble = is_lost or failure.said.startswith("503")
        if failure.is_of_standby and is_of_trouble:
            # It refuses everything, or does not listen there yet.
            excuses.count(what, "a standby")
            return True
        if failure.said.startswith("404") and self._facts.may_have_lost(0.0, failure.at):
            return True
        harmless = _KEEP_CONNECTIONS if is_lost else HARMLESS
        return is_of_trouble and excuses.excuse(what, since, failure.at, harmless=harmless)

    def _wrong_letters(self, published: Mapping[str, Publish]) -> Iterator[str]:
        """Say which letters nobody has caused, and which are there twice."""
        seen: set[Place] = set()
        for letter in self._own_letters():
            its = self._doers.get(letter.receiver)
            if its is None or not self._is_sure(letter.key, published):
                continue
            place = letter.receiver, letter.key, letter.generation
            copy = its.copies.get(place[1:], Copy())
            if letter.code not in {TOLD.get(each or "", each) for each in copy.said}:
                yield f"operations: {letter.key} is dead for {letter.receiver}: {letter.code}"
            if place in seen:
                yield f"operations: {letter.key} is dead for {letter.receiver} twice"
            seen.add(place)

    def _unburied(self, published: Mapping[str, Publish], excuses: Excuses) -> Iterator[str]:
        """Say which refusals have no letter, although nobody has dropped it."""
        ended = {(each.receiver, each.key, each.generation) for each in self._own_letters()}
        ended |= self._dropped_copies(published)
        for (name, key, generation), copy in self._all_copies():
            publish = published[key]
            # Of what no publisher was told the id, nobody knows whether it was dropped.
            if not publish.id or not self._is_sure(key, published):
                continue
            for at in copy.refusals:
                excuses.judges("refusal before an operator")
                is_kept = (name, key, generation) in ended or copy.comes_after(at)
                if not is_kept and not copy.may_leave_nothing(at, publish, excuses):
                    yield f"operations: {name} has refused {key} at {at:.3f}, and it is not dead"

    def _returned(self, excuses: Excuses) -> Iterator[str]:
        """Say what came again although its receiver had done with that copy."""
        for (name, key, _), copy in self._all_copies():
            for again in copy.returns(excuses, "settled copy"):
                yield f"operations: {name} got {key} at {again:.3f}, which it had settled"

    def _unasked(self, published: Mapping[str, Publish], excuses: Excuses) -> Iterator[str]:
        """Say which copies came of letters that nobody has replayed."""
        asked = {each.place for replay in self._replays for each in replay.letters}
        for (name, key, generation), copy in self._all_copies():
            if generation and copy.taken and published[key].id:
                excuses.judges("replayed message")
                if (name, published[key].id, generation - 1) not in asked:
                    yield f"operations: {name} got {key}, which nobody has replayed for it"

    def _all_copies(self) -> Iterator[tuple[Place, Copy]]:
        for name, its in self._doers.items():
            for (key, generation), copy in its.copies.items():
                yield (name, key, generation), copy

    def _held_in_vain(self, excuses: Excuses) -> Iterator[str]:
        for since, at, what in self._intruders:
            excuses.judges("message behind a hold")
            if not excuses.excuse("message behind a hold", since, at, harmless=_KEEP_HOLDS):
                yield f"operations: {what} at {at:.3f}, held back since {since:.3f}"

    def _wrong_drops(self, excuses: Excuses) -> Iterator[str]:
        kept = {each.id for each in self._own_letters()}
        for drop in self._drops:
            if drop.count is None or self._facts.may_have_lost(drop.asked_at, self._facts.now()):
                continue
            excuses.judges("drop")
            if drop.count != len(drop.letters) and not self._is_in_doubt(drop.letters, drop):
                yield f"operations: {drop.count} of {len(drop.letters)} letters were dropped"
            for each in drop.letters:
                if each.id in kept:
                    yield f"operations: the letter {each.id} was dropped, and is there"

    def _wrong_replays(self, excuses: Excuses) -> Iterator[str]:
        by_job: dict[str, int] = defaultdict(int)
        for letter in self._own_letters():
            by_job[letter.job] += 1
        for replay in self._replays:
            if replay.told is None or self._facts.may_have_lost(replay.asked_at, self._facts.now()):
                continue
            excuses.judges("replay")
            told, count = replay.told, len(replay.letters)
            is_clear = replay.is_whole and not self._is_in_doubt(replay.letters, replay)
            is_right = told["state"] == "done" and told["total"] == count
            is_right &= told["sent"] + told["skips"].get(_TOO_OFTEN, 0) == count
            if is_clear and not is_right:
                yield (
                    f"operations: the replay {replay.id} of {count} letters is {told['state']}: "
                    f"{told['sent']} of {told['total']} were sent; {told['skips']}"
                )
            elif is_clear and by_job[replay.id] != told["sent"]:
                yield (
                    f"operations: the replay {replay.id} says that it has sent {told['sent']}, and "
                    f"has taken {by_job[replay.id]}"
                )

    def _is_in_doubt(self, letters: Sequence[Found], asked: Drop | Replay) -> bool:
        """Return whether another request, perhaps without an answer, was about the same letters."""
        ids = {each.id for each in letters}
        every: list[Drop | Replay] = [*self._drops, *self._replays]
        others = [each for each in every if each is not asked]
        return any(ids & {one.id for one in each.letters} for each in others)
