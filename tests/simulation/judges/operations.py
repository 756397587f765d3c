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
from tests.simulation.judges.holds import Holds
from tests.simulation.oracle import Publish
from tests.simulation.refusing import TOLD
from tests.simulation.talker import Message
from tests.simulation.workers import Hand, Ledger

CHANNEL = "/tasks/a"
# Who gets only what operators send there.
STAND_IN = "substitute"
# The code of letters whose receiver an operator has ended.
_ENDED = "communication.noConnection.dead"
# For so long a request without an answer may still come true.
_COMES_TRUE_S = 20.0
# How long before the reply to a subscribe the store may have had it.
_STORED_S = 1.0
# Clients lose their connections when a server without a supervisor is replaced.
_KEEP_CONNECTIONS = HARMLESS - {"restart"}
# Why a replay may leave out a letter: it was replayed too often, or its receiver is not there.
_TOO_OFTEN, _NO_RECEIVER = "generation", "receiver"

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
    # Who gets all, if not their receivers, and the key of the new data of the only one.
    to: str = ""
    edited: str = ""
    id: str = ""
    # Whether all shards have begun.
    is_whole: bool = True
    told: Message | None = None
    # Whether the server does not know it.
    is_gone: bool = False
    over_at: float = inf


@dataclass(slots=True)
class _Span:
    """That a receiver has a subscription: since when, and until when for sure."""

    since: float
    until: float = inf


@dataclass(slots=True)
class _Doer:
    spans: list[_Span] = field(default_factory=list)
    copies: dict[tuple[str, int], Copy] = field(default_factory=lambda: defaultdict(Copy))
    # When an operator has asked for the end of its session, and until when the last one may come.
    ends: list[float] = field(default_factory=list)
    ends_by: float = -inf


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
        self.holds = Holds(facts)
        # Whether there are several shards, each of which knows its own receivers.
        self.has_shards = False
        self.has_stand_in = False
        # The keys of messages by the numbers in the ids under which they came, and which letters
        # edited ones have named.
        self._keys: dict[str, str] = {}
        self._named: dict[tuple[str, str], None] = {}
        self._drops: list[Drop] = []
        self._replays: list[Replay] = []
        self._answers = 0
        self._failures: list[_Failure] = []

    # What receivers do

    def subscribed(self, worker: str) -> None:
        if worker == STAND_IN:
            self.has_stand_in = True
            return
        doer, now = self._doers[worker], self._facts.now()
        if now > doer.ends_by and (not doer.spans or doer.spans[-1].until < inf):
            doer.spans.append(_Span(now))

    def taken(self, worker: str, hand: Hand, *, is_marked: bool) -> None:
        now, doer = self._facts.now(), self._doers[worker]
        if hand.generation:
            self._facts.mark("a letter was replayed")
        self.holds.taken(worker, CHANNEL, hand.key)
        if hand.id:
            self._keys[_number_in(hand.id)] = hand.key
        if hand.letter:
            self._named[hand.key, hand.letter] = None
        doer.copies[hand.key, hand.generation].taken.append(now)

    def says(self, worker: str, hands: Sequence[Hand]) -> None:
        for hand in hands:
            self._copy(worker, hand).said.add(hand.verdict)

    def settled(self, worker: str, hand: Hand) -> None:
        self._copy(worker, hand).sure.setdefault(hand.verdict, self._facts.now())

    def _copy(self, worker: str, hand: Hand) -> Copy:
        return self._doers[worker].copies[hand.key, hand.generation]

    # What the operator does

    def now(self) -> float:
        return self._facts.now()

    @property
    def doers(self) -> Sequence[str]:
        """Those who have a session."""
        return [name for name, doer in self._doers.items() if doer.spans]

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

    def replays(self, letters: Sequence[Found], *, to: str = "", edited: str = "") -> Replay:
        """Note that the operator is about to replay letters, perhaps otherwise."""
        self._replays.append(Replay(letters, self._facts.now(), to, edited))
        return self._replays[-1]

    def of_messages_not_sent_on(self, letters: Sequence[Found]) -> list[Found]:
        """Return letters of messages that the stand-in was never sent, one of each."""
        sent = {each.message for replay in self._replays if replay.to for each in replay.letters}
        others = {each.message: each for each in letters if each.receiver != STAND_IN}
        return [each for message, each in others.items() if message not in sent]

    def begun(self, replay: Replay, id: str, *, is_whole: bool) -> None:
        """Note that the replay has begun."""
        replay.id, replay.is_whole = id, is_whole

    def over(self, replay: Replay, told: Message) -> None:
        """Note that the replay is over, and what the server says of it."""
        replay.told, replay.over_at = told, self._facts.now()

    def gone(self, replay: Replay) -> None:
        """Note that the server does not know the replay: its store may have lost it."""
        replay.is_gone = True

    def ends(self, doer: str) -> None:
        """Note that the operator is about to end a session; a hold ends with it."""
        its, now = self._doers[doer], self._facts.now()
        its.ends.append(now)
        its.ends_by = inf
        if its.spans:
            its.spans[-1].until = min(its.spans[-1].until, now)
        self.holds.releases(doer)

    def ended(self, doer: str, *, is_sure: bool) -> None:
        """Note that the server has done it, or may still."""
        if is_sure:
            self._facts.mark("an operator has ended a session")
            self.holds.let_go(doer)
        self._doers[doer].ends_by = self._facts.now() + (0.0 if is_sure else _COMES_TRUE_S)

    def has_ended(self, name: str, since: float, until: float) -> bool:
        """Return whether an operator may have ended the session of this name in between."""
        its = self._doers.get(name.partition("/")[0])
        return its is not None and any(
            since <= at + _COMES_TRUE_S and at <= until for at in its.ends
        )

    # What it means

    def unfinished(self, published: Mapping[str, Publish]) -> list[str]:
        """Return what has no end yet."""
        if not self._doers:
            return []
        published = self._with_edited(published)
        letters = self._own_letters()
        ended = {(each.receiver, each.key, each.generation) for each in letters}
        ended |= self._dropped_copies(published)
        found = [*self.holds.unfinished()]
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

    def _with_edited(self, published: Mapping[str, Publish]) -> dict[str, Publish]:
        """Return all messages, also those that operators have made of letters."""
        edited = {
            each.edited: Publish("operator", 0, CHANNEL, each.asked_at)
            for each in self._replays
            if each.edited
        }
        return {**published, **edited}

    def _due_copies(
        self, published: Mapping[str, Publish], letters: Collection[Letter]
    ) -> Iterator[Place]:
        """Yield the copies that must have an end: for whom, of which message, the generation."""
        for key, publish in published.items():
            is_due = publish.channel == CHANNEL and publish.id and publish.is_durable
            if is_due and not self._facts.may_be_gone(publish):
                for name, its in self._doers.items():
                    if any(self._has(span, publish) for span in its.spans):
                        yield name, key, 0
        known = {*self._keys_by_number(published).values()}
        for letter in letters:
            # Of what has no id yet, nobody knows whether its letters were dropped.
            if letter.job and letter.key in known and self._is_sure(letter.key, published):
                yield from self._due_of(letter)

    def _has(self, span: _Span, publish: Publish) -> bool:
        """Return whether a receiver has its subscription for sure while something is published."""
        is_kept = not self._facts.may_have_lost(span.since - _STORED_S, span.since)
        return span.since < publish.begun_at and publish.accepted_at < span.until and is_kept

    def _due_of(self, letter: Letter) -> Iterator[Place]:
        """Yield the copy that was made of a letter, unless any of several may be."""
        replays = [each for each in self._replays if each.id == letter.job] or [
            each
            for each in self._replays
            if not each.id and letter.id in {one.id for one in each.letters}
        ]
        if any(each.edited and not each.id for each in replays):
            # Whether its own letter was dropped is not known.
            return
        if letter.is_new and not all(each.is_whole for each in replays):
            # A shard that has not begun the replay keeps what others give it.
            return
        places = {
            (each.to or letter.receiver, each.edited or letter.key, letter.generation + 1)
            for each in replays
        }
        if len(places) == 1:
            yield from places

    def _keys_by_number(self, published: Mapping[str, Publish]) -> dict[str, str]:
        """Return the keys of messages by the numbers in their ids."""
        told = {_number_in(publish.id): key for key, publish in published.items() if publish.id}
        # An edited message has the number of its replay.
        edited = {each.id: each.edited for each in self._replays if each.edited and each.id}
        return {**self._keys, **told, **edited}

    def _dropped_copies(self, published: Mapping[str, Publish]) -> set[Place]:
        """Return the copies whose letters the operator may have dropped."""
        keys = self._keys_by_number(published)
        found = (each for drop in self._drops for each in drop.letters)
        return {
            (each.receiver, keys[number], each.generation)
            for each in found
            if (number := _number_in(each.message)) in keys
        }

    def _is_sure(self, key: str, published: Mapping[str, Publish]) -> bool:
        """Return whether no failover may have lost anything of a message."""
        return not self._facts.may_have_lost(published[key].begun_at, self._facts.now())

    def violations(
        self, published: Mapping[str, Publish], excuses: Excuses, *, have_one_clock: bool
    ) -> list[str]:
        """Return all broken promises.

        Args:
            have_one_clock: Whether holds end by one clock, which nobody has set.
        """
        published = self._with_edited(published)
        return [
            *self.unfinished(published),
            *self._wrong_answers(excuses),
            *self._wrong_letters(published),
            *self._unburied(published, excuses),
            *self._returned(excuses),
            *self._unasked(published, excuses),
            *self.holds.violations(excuses, have_one_clock=have_one_clock),
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
        is_unknown = failure.said.startswith(("400", "404"))
        if failure.said.startswith("404") and self._facts.may_have_lost(0.0, failure.at):
            return True
        about = next((name for name in self._doers if name in failure.asked.what), "")
        if is_unknown and about and self.has_ended(about, 0.0, failure.at):
            excuses.count(what, "a session that was ended")
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
            codes = {TOLD.get(each or "", each) for each in copy.said}
            if letter.code not in codes and not (letter.code == _ENDED and its.ends):
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
            if not self._is_sure(key, published):
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
        """Say which copies came of letters that nobody has replayed so."""
        keys = self._keys_by_number(published)
        asked = {
            (
                replay.to or each.receiver,
                replay.edited or keys.get(_number_in(each.message)),
                each.generation,
            )
            for replay in self._replays
            for each in replay.letters
        }
        for (name, key, generation), copy in self._all_copies():
            if copy.taken and (generation or name == STAND_IN):
                excuses.judges("replayed message")
                if (name, key, generation - 1) not in asked:
                    yield f"operations: {name} got {key}, which nobody has replayed for it"
        letters = {each.edited: each.letters[0].id for each in self._replays if each.edited}
        for key, letter in self._named:
            if letters.get(key) != letter:
                yield f"operations: {key} says that it was letter {letter}"

    def _all_copies(self) -> Iterator[tuple[Place, Copy]]:
        for name, its in self._doers.items():
            for (key, generation), copy in its.copies.items():
                yield (name, key, generation), copy

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
            left_out = told["skips"].get(_TOO_OFTEN, 0)
            if self._may_lack_receivers(replay):
                left_out += told["skips"].get(_NO_RECEIVER, 0)
            is_right &= told["sent"] + left_out == count
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

    def _may_lack_receivers(self, replay: Replay) -> bool:
        """Return whether a receiver is at another shard than its letter, or was ended."""
        names = {each.receiver for each in replay.letters}
        is_elsewhere = bool(replay.to) and self.has_shards
        return is_elsewhere or any(self.has_ended(each, 0.0, replay.over_at) for each in names)

    def _is_in_doubt(self, letters: Sequence[Found], asked: Drop | Replay) -> bool:
        """Return whether another request, perhaps without an answer, was about the same letters."""
        ids = {each.id for each in letters}
        every: list[Drop | Replay] = [*self._drops, *self._replays]
        others = [each for each in every if each is not asked]
        return any(ids & {one.id for one in each.letters} for each in others)


def _number_in(id: str) -> str:
    """Return the number of a message, behind the name of its deployment."""
    return id.rpartition("-")[2]
