"""Clients that say of each message what became of it, and are not there all the time."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.actors import Plan
from tests.simulation.session import (
    DISCONNECT,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Session,
    batch_of,
    id_of,
)
from tests.simulation.talker import Denied, Lost, Message

# What is due again later.
LATER = "communication.busy"
# The property of a message that was made of a dead letter, with its id.
_LETTER = "__deadMessageId"
_PAUSE_S = 0.2
# How often a worker takes its time behind a connect, and how much.
_WORKS, _WORKS_S = 0.4, 1.0
# How often it then begins with another session, leaves, subscribes again, or is away, perhaps for
# longer than the server waits for it: each includes those before it.
_FORGETS, _LEAVES, _TURNS, _VANISHES = 0.02, 0.04, 0.07, 0.1
_VANISHES_S = 15.0


@dataclass(frozen=True, slots=True)
class Trade:
    """What workers do."""

    # Each subscribes to one of these.
    patterns: Sequence[str]
    # What they say of messages if they do not do them, and how often. None: it is done.
    verdicts: Mapping[str | None, float]
    # After how long those are due again that are due later.
    delays_ms: Sequence[int]
    # What they ask for in a handshake: each for one of these.
    options: Sequence[Message]
    # Whether they subscribe anew now and then.
    turns: bool = True
    # How often they say nothing of what is behind a message that is due later, although they
    # acknowledge the batch: it comes again.
    leaves_open: float = 0.0


@dataclass(slots=True)
class Hand:
    """A message in the hands of a worker, and the number of this hand-over."""

    key: str
    seq: int
    taken_at: float
    # What the worker says of it: None if it has done it.
    verdict: str | None = None
    # After how long it is due again.
    delay_ms: int = 0
    # How often the message has been replayed, its id, and the dead letter that it was made of.
    generation: int = 0
    id: str = ""
    letter: str = ""
    # Whether the worker says nothing of it, and its ack of the batch is not for it.
    is_open: bool = False


class Ledger:
    """Is told what workers get, and what they say of it."""

    def begins(self, worker: str, options: Message) -> None:
        """Note that a worker is about to begin a session, or to resume its own."""

    def subscribed(self, worker: str) -> None:
        """Note that a worker has its subscription."""

    def taken(self, worker: str, hand: Hand, *, is_marked: bool) -> None:
        """Note that a worker has got a message, perhaps marked as one that was handed out."""

    def handed(self, worker: str, count: int) -> None:
        """Note that so many messages have come with one reply."""

    def says(self, worker: str, hands: Sequence[Hand]) -> None:
        """Note that a worker is about to say what became of these."""

    def settled(self, worker: str, hand: Hand) -> None:
        """Note that the server knows what became of a message."""

    def released(self, worker: str, hands: Sequence[Hand]) -> None:
        """Note that others may get these from now on."""

    def is_away(self, worker: str) -> None:
        """Note that a worker does not connect for a while."""


class Worker:
    """Does what comes, refuses some of it, and loses contact now and then.

    Args:
        now: Returns the true time.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        trade: Trade,
        truth: Ledger,
        now: Callable[[], float],
        *,
        is_named: bool,
    ) -> None:
        self._name = name
        self._plan = plan
        self._trade = trade
        self._truth = truth
        self._now = now
        self._is_named = is_named
        self._session = Session(
            plan.manners, f"{name}/1" if is_named else "", acks=True, take=self._take
        )
        # How many sessions this worker has had: the server knows one without a name by its session.
        self._sessions = 0
        self._pattern = ""
        self._options: Message = {}
        # What came with the reply that the next connect acknowledges, and since then.
        self._handed: list[Hand] = []
        self._fresh: list[Hand] = []
        # Whether the server may know already what the next connect says.
        self._is_in_doubt = False

    @property
    def _who(self) -> str:
        return self._name if self._is_named else f"{self._name}#{self._sessions}"

    async def run(self) -> None:
        """Work for ever."""
        self._pattern = random.choice(self._trade.patterns)
        self._options = random.choice(self._trade.options)
        while True:
            try:
                if not self._session.client_id:
                    await self._begin()
                await self._connect()
                await self._work()
                if not self._plan.is_over:
                    await self._be_unreliable()
            except (Lost, Denied):
                self._doubt()
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _begin(self) -> None:
        self._release()
        self._sessions += 1
        self._truth.begins(self._who, self._options)
        await self._session.begin(delivery=self._options)
        await self._tell(SUBSCRIBE)
        self._truth.subscribed(self._who)

    async def _tell(self, what: str) -> None:
        try:
            await self._session.send(what, subscription=self._pattern)
        except (Lost, Denied):
            # Without its subscription it is no session of this worker.
            self._session.forget()
            raise

    async def _connect(self) -> None:
        self._fresh = []
        self._truth.released(self._who, self._handed)
        if self._is_in_doubt:
            self._close()
        self._truth.says(self._who, self._handed)
        reply = await self._session.connect(**_verdicts_of(self._handed))
        self._truth.handed(self._who, len(self._fresh))
        if batch_of(reply) is None:
            raise Lost("no batch")
        if not self._is_in_doubt:
            for hand in self._handed:
                self._truth.settled(self._who, hand)
        self._handed, self._is_in_doubt = self._fresh, False

    async def _work(self) -> None:
        """Do what has come, or decide not to."""
        for place, hand in enumerate(self._handed):
            if not self._plan.is_over:
                hand.verdict = self._decide()
            if hand.verdict == LATER:
                # What is behind it, it has done.
                hand.delay_ms = random.choice(self._trade.delays_ms)
                if self._trade.leaves_open:
                    self._divide(self._handed[place + 1 :])
                break
        if not self._plan.is_over and random.random() < _WORKS:
            await asyncio.sleep(_WORKS_S * random.random())

    def _decide(self) -> str | None:
        verdicts = self._trade.verdicts
        [found] = random.choices([*verdicts], [*verdicts.values()])
        return found

    def _divide(self, behind: Sequence[Hand]) -> None:
        """Have done some of what is behind a message that is due later, and refuse some."""
        for hand in behind:
            hand.is_open = random.random() < self._trade.leaves_open
            if not hand.is_open and (verdict := self._decide()) != LATER:
                hand.verdict = verdict

    def _close(self) -> None:
        """Say something of each message, because it is unknown what the server knows."""
        for hand in self._handed:
            hand.is_open = False

    async def _be_unreliable(self) -> None:
        chance = random.random()
        if chance < _FORGETS:
            self._session.forget()
        elif chance < _LEAVES:
            await self._leave()
        elif chance < _TURNS:
            if self._trade.turns:
                await self._tell(UNSUBSCRIBE)
                await self._tell(SUBSCRIBE)
        elif chance < _VANISHES:
            await self._vanish()

    async def _leave(self) -> None:
        self._release()
        try:
            await self._session.send(DISCONNECT)
        finally:
            self._session.forget()

    async def _vanish(self) -> None:
        self._truth.released(self._who, self._handed)
        self._truth.is_away(self._who)
        await asyncio.sleep(_VANISHES_S * random.random())
        self._is_in_doubt = True

    def _doubt(self) -> None:
        """Note that the server may know what was said of messages, and that some do not count."""
        self._truth.released(self._who, [*self._handed, *self._fresh])
        self._is_in_doubt = True

    def _release(self) -> None:
        """Have nothing in hand, because the session ends."""
        self._truth.released(self._who, self._handed)
        self._handed, self._is_in_doubt = [], False

    def _take(self, event: Message) -> None:
        told = event["ext"]["delivery"]
        hand = Hand(event["data"]["key"], told["seq"], self._now())
        hand.generation, hand.id = told.get("generation", 0), id_of(event)
        hand.letter = (told.get("properties") or {}).get(_LETTER, "")
        self._fresh.append(hand)
        self._truth.taken(self._who, hand, is_marked=bool(told.get("redelivered")))


def _verdicts_of(hands: Sequence[Hand]) -> Message:
    """Return what a connect says of messages besides its ack, which is for all others."""
    found = [_verdict(each) for each in hands if each.verdict is not None]
    if any(each.verdict == LATER for each in hands):
        # An ack alone would not be for what is behind that one.
        done = [each for each in hands if each.verdict is None and not each.is_open]
        found += [{"seq": each.seq, "state": "OK"} for each in done]
    return {"delivery": {"verdicts": found}} if found else {}


def _verdict(hand: Hand) -> Message:
    verdict = {"seq": hand.seq, "errorCode": hand.verdict, "message": "not done"}
    return verdict | ({"delay": hand.delay_ms} if hand.verdict == LATER else {})
