"""Servers that are broken on purpose, each in one way, to see that the checker notices."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from holdfast.bayeux.leaving import giving
from holdfast.bayeux.meta import connect
from holdfast.bayeux.publish import qos
from holdfast.bayeux.publish.qos import key_of
from holdfast.bayeux.session import Session
from holdfast.bayeux.state import changed_session
from holdfast.bayeux.state.cursors import Cursors
from holdfast.bayeux.wire.codec import Json
from holdfast.compose.storage import Storage
from holdfast.delivery.basics.feature_records import without_record
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.publish_key import PublishKey, publish_key_of
from holdfast.delivery.messages.session_record import HoldRecord, SessionRecord
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.queues import in_flight
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.shared_queues.subjects import Subjects
from holdfast.delivery.shared_queues.work_queues import WorkQueues
from holdfast.extensions.delivery_wire import DeliveryDecorator
from holdfast.store import scripts
from holdfast.store.call_numbers import CallNumbers
from holdfast.store.given_slices import GivenSlices
from holdfast.store.replicas import Replicas
from holdfast.store.script import Script
from holdfast.store.store import Store
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
_HAND_OVER = (Step(0.7, (Kind.HAND_OVER,), 0.1), Step(0.7, (Kind.HAND_OVER,), 0.1))
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
# The one whose messages wait meanwhile has just left.
_KILL_WHILE_AWAY = (Step(0.15, (Kind.KILL_SERVER,), 0.1), *_KILL_OFTEN, *_KILL_OFTEN)
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
    ) -> None:
        keep(self, message, keys, lambda _: None, fields)
        self._loop.call_soon(done, PersistOutcome.KEPT)

    _replace(Store, "keep", hasty)


def dead_letters_take_two_steps() -> None:
    dead_letter = Store.dead_letter

    def slowly(
        self: Store,
        dead: Sequence[UnwrittenLetter],
        key: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        if key is not None:
            self.settle(key, [each.message for each in dead], ACKED)
        self._loop.call_later(0.5, dead_letter, self, dead, None)
        dead_letter(self, (), None, done)

    _replace(Store, "dead_letter", slowly)


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
    _replace(Store, "mark_batch", _nothing)
    _replace(Store, "mark", _nothing)


def acks_do_not_reach_the_store() -> None:
    _replace(Store, "settle", _nothing)


def redeliveries_do_not_say_so() -> None:
    rarely = DeliveryDecorator._rarely

    def quietly(self: DeliveryDecorator, session: Session, message: Message, _: int) -> bytes:
        return rarely(self, session, message, 0)

    _replace(DeliveryDecorator, "_rarely", quietly)


def what_returns_comes_reversed() -> None:
    _replace(in_flight, "by_place", lambda entry: -entry.place)


def lost_replies_are_not_looked_for() -> None:
    _replace(connect, "_look_for_lost_reply", _nothing)


def what_was_acked_comes_again() -> None:
    acknowledge = CallbackQueue.acknowledge

    def reluctantly(self: CallbackQueue, batch: int) -> Sequence[Message]:
        self.keep_pending([seq for seq, entry in self.in_flight().items() if not entry.redelivered])
        stayed = [entry.message for entry in self.in_flight().values() if entry.is_pending]
        settled = acknowledge(self, batch)
        self.keep_pending(())
        return [*stayed, *settled]

    _replace(CallbackQueue, "acknowledge", reluctantly)


def holdback_is_ignored() -> None:
    _replace(Dispatcher, "hold_back", _nothing)


def bodies_go_with_their_first_entry() -> None:
    _rewrite("SETTLE", "if redis.call('EXISTS', receivers) == 0 then", "if true then")


def holds_are_forgotten_at_a_restart() -> None:
    stored_form = changed_session.stored_form

    def forgetful(session: Session, now_ms: int) -> SessionRecord:
        return replace(stored_form(session, now_ms), hold=HoldRecord())

    for place in (changed_session, giving):
        _replace(place, "stored_form", forgetful)


def keys_are_ignored() -> None:
    _replace(qos, "key_of", _nothing)


def keys_are_forgotten_at_a_restart() -> None:
    life = f"in this life {time.time_ns()} "
    _replace(qos, "key_of", lambda session, given: key_of(session, life + given))


def keys_take_two_steps() -> None:
    """The key is there before the message, which a death between them loses."""
    keep = Store.keep

    def slowly(
        self: Store,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
    ) -> None:
        if publish_key_of(message) is None:
            keep(self, message, keys, done, fields)
            return

        def then(kept: PersistOutcome) -> None:
            if kept is PersistOutcome.KEPT:
                message.records = without_record(message.records, PublishKey)
                self._loop.call_later(0.5, keep, self, message, keys, done)
            else:
                done(kept)

        keep(self, message, (), then)

    _replace(Store, "keep", slowly)


def what_moves_stays_in_the_store() -> None:
    _rewrite("MOVE", "redis.call('SREM', receivers, ARGV[at + 2])", "")


def what_moves_forgets_its_attempts() -> None:
    _replace(Entry, "for_others", lambda self: self.message)


def what_waits_for_subjects_is_not_stored() -> None:
    keep = Store.keep

    def lightly(
        self: Store,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
    ) -> None:
        keep(self, message, [key for key in keys if not key.endswith("/0")], done, fields)

    _replace(Store, "keep", lightly)


def everybody_gets_what_is_for_a_subject() -> None:
    def takers(self: Subjects[Session], _: str) -> list[Session]:
        siblings = [each for known in self._sessions.values() for each in known.values()]
        return [each for each in siblings if each.takes_addressed]

    _replace(Subjects, "_takers", takers)


def work_goes_to_everybody() -> None:
    _replace(WorkQueues, "_assign", Subjects._assign)


def cursors_do_not_wait() -> None:
    add_to = Cursors.add_to

    def hastily(self: Cursors, reply: Json, settled: int, _: Sequence[int]) -> None:
        add_to(self, reply, settled, ())

    _replace(Cursors, "add_to", hastily)


def requests_end_in_two_steps() -> None:
    """A reply is stored first, and then the end of its request."""
    keep = Store.keep

    def slowly(
        self: Store,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
    ) -> None:
        is_end = not any(fields.values())
        keep(self, message, keys, done, NO_FIELDS if is_end else fields)
        if is_end and fields:
            self._loop.call_later(0.5, self.save_requests, fields)

    _replace(Store, "keep", slowly)


def what_was_given_stays_in_the_store() -> None:
    _replace(Storage, "remove_given", _soon_nothing)


def what_was_given_and_taken_back_stays_in_the_store() -> None:
    _replace(GivenSlices, "revoke", _nothing)


def what_waits_is_not_given() -> None:
    _replace(giving, "_tried", lambda *_, **__: [])
    _replace(giving, "_NewEntries", lambda: SimpleNamespace(of=lambda *_, **__: []))


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
        Build(dead_letters_take_two_steps, Invariant.NO_LOSS, _KILL_OFTEN),
        Build(dead_letters_are_dropped, Invariant.ONE_FATE),
        Build(attempts_are_not_marked, Invariant.ATTEMPTS, _KILL, held_s=math.inf),
        Build(acks_do_not_reach_the_store, Invariant.ONE_FATE),
        Build(redeliveries_do_not_say_so, Invariant.NO_DUPLICATE, _EAT),
        Build(what_returns_comes_reversed, Invariant.ORDER, _EAT),
        Build(lost_replies_are_not_looked_for, Invariant.ORDER, _EAT),
        Build(what_was_acked_comes_again, Invariant.NO_DUPLICATE),
        Build(holdback_is_ignored, Invariant.HOLD),
        Build(bodies_go_with_their_first_entry, Invariant.NO_LOSS, _KILL),
        Build(keys_are_ignored, Invariant.ONE_MESSAGE),
        Build(keys_are_forgotten_at_a_restart, Invariant.ONE_MESSAGE, _KILL),
        Build(keys_take_two_steps, Invariant.NO_LOSS, _KILL_OFTEN),
        Build(calls_are_not_numbered, Invariant.NO_LOSS, _GO_BACK, held_s=2.0),
        Build(holds_are_forgotten_at_a_restart, Invariant.HOLD, _KILL_OFTEN, held_s=math.inf),
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
        _of_hand_overs(what_waits_is_not_given, Invariant.NO_LOSS, _HAND_OVER),
        _among_correspondents(what_moves_stays_in_the_store, Invariant.ONE_RECEIVER, _KILL),
        _among_correspondents(what_moves_forgets_its_attempts, Invariant.NO_DUPLICATE),
        _among_correspondents(
            what_waits_for_subjects_is_not_stored, Invariant.NO_LOSS, _KILL_WHILE_AWAY
        ),
        _among_correspondents(everybody_gets_what_is_for_a_subject, Invariant.FROM_SOMEWHERE),
        _among_correspondents(work_goes_to_everybody, Invariant.ONE_RECEIVER),
        _among_correspondents(cursors_do_not_wait, Invariant.NO_LOSS),
        _among_correspondents(requests_end_in_two_steps, Invariant.ONE_OUTCOME, _KILL_OFTEN),
    )
}


def _nothing(*_: object) -> None:
    """Instead of what should be done."""


async def _soon_nothing(*_: object) -> None:
    """Instead of what takes time."""


def _rewrite(name: str, line: str, broken_line: str) -> None:
    """Break one line of a script, with and without its note."""

    def broken(script: Script, with_note: Script | None = None) -> Script:
        assert line in script.source
        return Script(script.name, script.source.replace(line, broken_line), with_note)

    script: Script = getattr(scripts, name)
    assert script.with_note is not None
    with_note = broken(script.with_note)
    instead = {script.with_note: with_note, script: broken(script, with_note)}
    scripts.SCRIPTS[:] = [instead.get(each, each) for each in scripts.SCRIPTS]
    _replace(scripts, name, instead[script])


def _replace(owner: object, name: str, broken: object) -> None:
    """Only what is there can be broken: a name that has changed must be noticed here."""
    getattr(owner, name)
    setattr(owner, name, broken)
