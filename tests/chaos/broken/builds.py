"""Servers that are broken on purpose, each in one way, to see that the checker notices."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.bayeux.meta import connect
from holdfast.bayeux.publish import qos
from holdfast.bayeux.session import Session
from holdfast.compose.storage import Storage
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.shared_queues.subjects import Subjects
from holdfast.delivery.shared_queues.work_queues import WorkQueues
from holdfast.extensions.delivery_wire import DeliveryDecorator
from holdfast.store.given_slices import GivenSlices
from holdfast.store.links.call_numbers import CallNumbers
from holdfast.store.store import Store
from holdfast.store.writing.replicas import Replicas
from holdfast.store.writing.turn_buffer import TurnBuffer
from tests.chaos.checker import Invariant
from tests.chaos.nemesis import Kind, Step


@dataclass(frozen=True, slots=True)
class Build:
    """How the server is broken, what brings it to light, and what the checker should say."""

    damage: Callable[[], None]
    breaks: Invariant
    steps: tuple[Step, ...] = ()
    # How long receivers stay held back.
    held_s: float = 0.4
    # Whether it shows among people who write to each other and share work.
    is_of_correspondents: bool = False
    # Whether it shows when servers hand over.
    hands_over: bool = False
    # Whether it shows when a replica of the store takes over.
    needs_replica: bool = False

    @property
    def name(self) -> str:
        return self.damage.__name__


def _among_correspondents(
    damage: Callable[[], None], breaks: Invariant, steps: tuple[Step, ...] = ()
) -> Build:
    return Build(damage, breaks, steps, is_of_correspondents=True)


def _of_hand_overs(damage: Callable[[], None], breaks: Invariant, steps: tuple[Step, ...]) -> Build:
    return Build(damage, breaks, steps, hands_over=True)


# Settled for longer than a kill excuses.
_LATER_S = 3.0
_HAND_OVER_AND_KILL = (
    Step(0.7, (Kind.HAND_OVER,), 0.1),
    Step(_LATER_S, (Kind.KILL_SERVER,), 0.1),
)
# Three, because the first two die before the other server leaves.
_FAIL_AND_KILL = (
    *[Step(0.7, (Kind.FAIL_HAND_OVER,), 0.1)] * 3,
    Step(_LATER_S, (Kind.KILL_SERVER,), 0.1),
)
_KILL = (Step(0.7, (Kind.KILL_SERVER,), 0.1),)
_KILL_OFTEN = (Step(0.7, (Kind.KILL_SERVER,), 0.1), Step(0.6, (Kind.KILL_SERVER,), 0.1))
_LOSE_POWER = (Step(0.7, (Kind.LOSE_POWER,), 0.1),)
_GO_BACK = (Step(0.7, (Kind.TAKE_STORE_BACK,), 0.6), Step(0.2, (Kind.KILL_SERVER,), 0.1))
_PROMOTE = (Step(0.3, (Kind.PROMOTE_AND_KILL,), 0.5),)
_EAT = (Step(0.3, (Kind.EAT_EVENTS,), 0.5), Step(0.3, (Kind.EAT_EVENTS,), 0.5))


def publishers_are_answered_before_the_store() -> None:
    keep = Store.keep

    def hasty(
        self: Store,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        keep(self, message, keys, lambda _: None, fields, hand_overs=hand_overs)
        self._loop.call_soon(done, PersistOutcome.KEPT)

    _replace(Store, "keep", hasty)


def dead_letters_are_dropped() -> None:
    dead_letter = Store.dead_letter

    def drop(
        self: Store,
        dead: Sequence[UnwrittenLetter],
        key: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        if key is not None:
            self.settle(key, [each.message for each in dead], ACKED)
        dead_letter(self, (), None, done)

    _replace(Store, "dead_letter", drop)


def attempts_are_not_marked() -> None:
    # Nor do messages bring their first ones.
    _replace(TurnBuffer, "announce", lambda *_: NO_HAND_OVERS)
    _replace(Store, "mark_batch", _nothing)
    _replace(Store, "mark", _nothing)


def redeliveries_do_not_say_so() -> None:
    rarely = DeliveryDecorator._rarely

    def quietly(self: DeliveryDecorator, session: Session, message: Message, _: int) -> bytes:
        return rarely(self, session, message, 0)

    _replace(DeliveryDecorator, "_rarely", quietly)


def lost_replies_are_not_looked_for() -> None:
    _replace(connect, "_look_for_lost_reply", _nothing)


def holdback_is_ignored() -> None:
    _replace(Dispatcher, "hold_back", _nothing)


def keys_are_ignored() -> None:
    _replace(qos, "key_of", _nothing)


def everybody_gets_what_is_for_a_subject() -> None:
    def takers(self: Subjects[Session], _: str) -> list[Session]:
        siblings = [each for known in self._sessions.values() for each in known.values()]
        return [each for each in siblings if each.takes_addressed]

    _replace(Subjects, "_takers", takers)


def work_goes_to_everybody() -> None:
    _replace(WorkQueues, "_assign", Subjects._assign)


def requests_end_in_two_steps() -> None:
    """A reply is stored first, and then the end of its request."""
    keep = Store.keep

    def slowly(
        self: Store,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        is_end = not any(fields.values())
        left = NO_FIELDS if is_end else fields
        keep(self, message, keys, done, left, hand_overs=hand_overs)
        if is_end and fields:
            self._loop.call_later(0.5, self.save_requests, fields)

    _replace(Store, "keep", slowly)


def what_was_given_stays_in_the_store() -> None:
    _replace(Storage, "remove_given", _soon_nothing)


def what_was_given_and_taken_back_stays_in_the_store() -> None:
    _replace(GivenSlices, "revoke", _nothing)


def calls_are_not_numbered() -> None:
    """A store that went back goes unnoticed."""
    next_word = CallNumbers.next

    def needing_nothing(self: CallNumbers, *, may_be_refused: bool) -> str:
        before, name, _, oldest = next_word(self, may_be_refused=may_be_refused).split()
        return f"{before} {name} 0 {oldest}"

    _replace(CallNumbers, "next", needing_nothing)
    _replace(CallNumbers, "_is_expected", lambda *_: True)


def replicas_are_not_waited_for() -> None:
    def hasty(_: Replicas, stored_ids: Sequence[int | str], done: Callable[[bool], None]) -> None:
        asyncio.get_running_loop().call_soon(done, bool(stored_ids))

    _replace(Replicas, "confirm", hasty)


BUILDS = {
    build.name: build
    for build in (
        Build(publishers_are_answered_before_the_store, Invariant.NO_LOSS, _LOSE_POWER),
        Build(dead_letters_are_dropped, Invariant.ONE_FATE),
        Build(attempts_are_not_marked, Invariant.ATTEMPTS, _KILL, held_s=math.inf),
        Build(redeliveries_do_not_say_so, Invariant.NO_DUPLICATE, _EAT),
        Build(lost_replies_are_not_looked_for, Invariant.ORDER, _EAT),
        Build(holdback_is_ignored, Invariant.HOLD),
        Build(keys_are_ignored, Invariant.ONE_MESSAGE),
        Build(calls_are_not_numbered, Invariant.NO_LOSS, _GO_BACK, held_s=2.0),
        Build(
            replicas_are_not_waited_for,
            Invariant.NO_LOSS,
            _PROMOTE,
            held_s=math.inf,
            needs_replica=True,
        ),
        _of_hand_overs(what_was_given_stays_in_the_store, Invariant.ACKS, _HAND_OVER_AND_KILL),
        _of_hand_overs(
            what_was_given_and_taken_back_stays_in_the_store, Invariant.ACKS, _FAIL_AND_KILL
        ),
        _among_correspondents(everybody_gets_what_is_for_a_subject, Invariant.FROM_SOMEWHERE),
        _among_correspondents(work_goes_to_everybody, Invariant.ONE_RECEIVER),
        _among_correspondents(requests_end_in_two_steps, Invariant.ONE_OUTCOME, _KILL_OFTEN),
    )
}


def _nothing(*_: object) -> None:
    """Instead of what should be done."""


async def _soon_nothing(*_: object) -> None:
    """Instead of what takes time."""


def _replace(owner: object, name: str, broken: object) -> None:
    """Only what is there can be broken: a name that has changed must be noticed here."""
    getattr(owner, name)
    setattr(owner, name, broken)
