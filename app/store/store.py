"""Implements `StorePort`: sends the changes of each turn together, once and in order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from sys import maxsize
from typing import TYPE_CHECKING

from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.letter_quota import LetterQuota
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark, Marked
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move, Outcome
from holdfast.delivery.messages.session_record import Recorded
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.store.format import scripts
from holdfast.store.format.deployment import Deployment
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.opening_scripts import release
from holdfast.store.format.publish_keys import KeyLimits, PublishKeys, StoreClock
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.framing.telling import Telling
from holdfast.store.links.eviction import refuse_eviction
from holdfast.store.links.link import StoreLink
from holdfast.store.links.reader import Reader
from holdfast.store.links.reply_errors import ScriptFailed
from holdfast.store.links.write_refusals import WriteRefusals
from holdfast.store.opening.asking_to_open import Opening
from holdfast.store.opening.lease import Lease
from holdfast.store.opening.write_right import StoreState, WriteRight
from holdfast.store.writing.journaling import Journaling, JournalOutlet
from holdfast.store.writing.loading import LoadedSession, Loading, WithoutSession
from holdfast.store.writing.pending_publishes import Confirm, PendingPublishes
from holdfast.store.writing.reconciliation import Knowledge
from holdfast.store.writing.single_calls import Probing, SingleCalls
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writer import TurnWriter
from holdfast.store.writing.turn_writes import PendingCall, TurnWrites, both
from holdfast.store.writing.unanswered_calls import UnansweredCalls
from holdfast.units import counted

if TYPE_CHECKING:
    from holdfast.store.framing.shard_log import ShardLog
    from holdfast.store.opening.lease_keeper import LeaseKeeper

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
# A store that has left a call unanswered for this long may be about to fail.
_PROMPT_S = 0.05
# How many writes may wait while a store that lost its state is reopened.
_MAX_WAITING = 100_000


class Store:
    """Stores everything that must survive this process, over one link; a `StorePort`.

    Args:
        link: An open link with `scripts.SCRIPTS`, used by this store only.
        opening: How this process opens the store.
        stamp: Returns a new id of a message.
        know: Returns what this process knows, for a store that has lost changes; None at the start.
        on_told: Called when a store that has lost changes has everything again.
        on_fenced: Called when another process has opened the store: stop, nothing is stored now.
        confirm: Reports whether replicas have the stored messages; None if that is not required.
        most_keys: How many publish keys to keep. Beyond that, the oldest are removed.
        letter_quota: The quota of the dead letters in this store.
        has_log: Whether there are other shards. The link then also has `log_scripts.LOG_SCRIPTS`.
        monotonic: The clock of this process; by default the event loop's.
    """

    def __init__(
        self,
        link: StoreLink,
        keys: RedisKeys,
        *,
        opening: Opening,
        stamp: Callable[[], int],
        know: Callable[[], Knowledge | None],
        on_told: Callable[[], None],
        on_fenced: Callable[[], None],
        confirm: Confirm | None = None,
        most_keys: int = maxsize,
        letter_quota: LetterQuota | None = None,
        has_log: bool = False,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.letter_quota = letter_quota or LetterQuota()
        self.link, self.keys = link, keys
        self._on_told, self._most_keys = on_told, most_keys
        self._journaling = Journaling(keys, opening.node)
        self._loop = asyncio.get_running_loop()
        self._clock = StoreClock(monotonic or self._loop.time)
        self._right = WriteRight(
            link,
            keys,
            opening=opening,
            clock=self._clock,
            on_opened=lambda epoch: self._calls.begin(epoch),
            on_lost=self._lost,
            on_again=self._tell_again,
            on_fenced=on_fenced,
            stamp=stamp,
        )
        self.layout = self._right.layout
        self._calls = UnansweredCalls(
            link, on_refused=self._right.lose, on_answered=self._open_if_lost
        )
        self._refusing = WriteRefusals(self._loop.time)
        self._probing = Probing(self._calls, keys, self._clock, self._refusing, stamp)
        self._turns = TurnBuffer()
        self.early = self._turns.early
        self._writer = TurnWriter(
            link,
            self._right,
            self._calls,
            self._turns,
            calls_of=self._calls_of,
            send=self._send,
            on_sent=self._open_if_lost,
        )
        self.journal = JournalOutlet(self._journaling, link, self._right, self._calls, self._writer)
        self._keyed = PublishKeys(self._probing.answered_at)
        self.shard_log = self._open_log(confirm is not None) if has_log else None
        self._pending = PendingPublishes(self._loop, confirm, lambda: self._calls.answered_name)
        self._telling = Telling(
            *(link, keys, self._right, self._calls, self._writer, self._turns, self.journal),
            answered_at=self._probing.answered_at,
            latest_keys=self._keyed.latest,
            know=know,
            unconfirmed=self._pending.unconfirmed,
            on_told=self._told,
            shard_log=self.shard_log,
        )
        self._single = SingleCalls(
            link, self._right, self._calls, self._writer, remember=self._telling.remember
        )
        # Set when a store that had lost changes has been told everything.
        self._has_everything = asyncio.Event()

    def _open_log(self, waits: bool) -> "ShardLog":
        from holdfast.store.framing.shard_log import ShardLog

        parts = self._right, self._calls, self._writer, self._turns, self._journaling
        return ShardLog(self.link, self.keys, *parts, self._probing.answered_at, self._clock, waits)

    async def look(self) -> None:
        """Learn the deployment of a store that another process has. Nothing is written."""
        await self._right.look()

    async def open(self) -> int:
        """Become the only writer. Returns an id; new ones must be above it."""
        await refuse_eviction(self.link)
        newest = await self._right.open()
        self._writer.send_all()
        return newest

    def load(self, without_session: WithoutSession) -> AsyncIterator[LoadedSession]:
        """Yield all sessions with their entries, unordered. Call once, before anything else.

        Args:
            without_session: Settles data stored for sessions that have ended.
        """
        return self.loading().sessions(self._turns.marked, without_session)

    def marked(self, receiver: str, ids: Collection[int]) -> None:
        """Record that a script returned these entries to a session's queue, with marks."""
        self._turns.marked(receiver, ids)

    def lease_keeper(self, lease: Lease, reader: Reader) -> "LeaseKeeper":
        """Return what keeps the lease of this store alive."""
        from holdfast.store.opening.lease_keeper import LeaseKeeper

        return LeaseKeeper(reader, self.keys, lease, self._right, on_refused=self._refused)

    def loading(self) -> Loading:
        """Return what reads the rest of the store."""
        return Loading(self.link, self.keys)

    async def answered(self) -> None:
        """Wait until all calls so far are answered."""
        self.after((is_answered := asyncio.Event()).set)
        self._writer.send_all()
        await is_answered.wait()

    async def give(self) -> None:
        """Write everything, and then nothing more: a successor may open the store."""
        self._probing.write_clock()
        await self.answered()
        self._right.give()

    async def take_back(self) -> None:
        """Have the store again after `give`. The successor has ended. Raises `StoreUnavailable`."""
        self._has_everything.clear()
        await self._right.take_back()
        if self._right.state is not StoreState.OPEN:
            await self._has_everything.wait()

    async def close(self, timeout_s: float, *, releases: bool = True) -> None:
        """Wait a limited time for open calls, then end the wait limits but not the link."""
        if self._right.is_open:
            # The next process continues from here.
            self._probing.write_clock()
            try:
                async with asyncio.timeout(timeout_s):
                    await self.answered()
                    if releases:
                        # Everything is written: the next process need not wait for the lease.
                        self._calls.make(release(self.keys), ignore)
                        await self.answered()
            except TimeoutError:
                if self._calls:
                    log.warning("%s to the store had no answer", counted(len(self._calls), "call"))
        self._telling.stop()
        self._pending.close()

    # The port

    @property
    def is_available(self) -> bool:
        return self._right.state is StoreState.OPEN and self.link.has_room

    @property
    def takes_messages(self) -> bool:
        return self.is_available and not self._refusing.reason

    @property
    def complaint(self) -> str | None:
        """Why no message can be stored now, or None."""
        if not self.is_available:
            return "the store cannot be reached"
        reason = self._refusing.reason
        return f"the store accepts no messages: {reason}" if reason else None

    @property
    def is_prompt(self) -> bool:
        return self._writer.sends_soon and self.link.silence_s < _PROMPT_S

    @property
    def is_full(self) -> bool:
        return self.link.is_full if self._right.may_write else len(self._turns) > _MAX_WAITING

    @property
    def keys_dropped(self) -> int:
        return self._keyed.dropped

    def keep(
        self,
        message: Message,
        receivers: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        if self.is_available:
            # A message that replicas must confirm is not handed over at once.
            brought = NO_HAND_OVERS if self._pending.waits else hand_overs
            self._turns.keep(message, receivers, done, fields, hand_overs=brought)
            self._writer.flush_soon()
        else:
            self._loop.call_soon(done, PersistOutcome.REFUSED)

    def move(self, moves: Sequence[Move]) -> None:
        self._turns.move(moves)
        self._writer.flush_soon()

    def mark(self, receiver: str, marked: Collection[Marked]) -> None:
        self._turns.mark(receiver, marked)
        self._note_hand_over()

    def mark_batch(self, receiver: str, batch: BatchMark) -> None:
        self._turns.mark_batch(receiver, batch)
        self._note_hand_over()

    def _note_hand_over(self) -> None:
        if self.is_prompt:
            # Otherwise the core makes the reply wait for the answer.
            self._turns.let_replies_leave()
        self._writer.flush_soon()

    def settle(self, receiver: str, ids: Sequence[int], outcome: Outcome) -> None:
        self._turns.settle(receiver, ids, outcome)
        self._writer.send_lazily()

    def dead_letter(
        self,
        dead: Sequence[UnwrittenLetter],
        receiver: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        self._turns.dead_letter(dead, receiver)
        if done is None:
            self._writer.flush_soon()
        else:
            self._writer.after(done)

    def save(self, session: Recorded) -> None:
        self._turns.save(session)
        self._writer.flush_soon()

    def save_requests(self, fields: RequestFields) -> None:
        self._turns.save_requests(fields)
        self._writer.flush_soon()

    def forget(self, receiver: str, ids: Sequence[int]) -> None:
        self._turns.forget(receiver, ids)
        self._writer.flush_soon()

    def leave_history(self, channel: str, id: int) -> None:
        self._turns.leave_history(channel, id)
        self._writer.send_lazily()

    def save_floor(self, channel: str, floor: int) -> None:
        if self.layout.form.has_floors:
            self._turns.save_floor(channel, floor)
            self._writer.send_lazily()

    def save_channel_hold(self, channel: str, held: ChannelHold) -> None:
        self.post(scripts.save_channel_holds(self.keys, {channel: held}))

    def release(self, channel: str) -> None:
        self.post(scripts.save_channel_holds(self.keys, {channel: None}))

    def save_topics(self, topics: Mapping[str, TopicRecord | None]) -> None:
        self.post(scripts.save_topics(self.keys, topics, self.layout.form))

    def after(self, done: Callable[[], None]) -> None:
        self._writer.after(done)

    def flush(self) -> None:
        self._writer.flush()

    def flush_by(self, end_turn_soon: Callable[[], None]) -> None:
        """Set the callback that makes the end of the turn call `flush`."""
        self._writer.flush_by(end_turn_soon)

    async def run(self, call: ScriptCall, *, timeout_s: float | None = _TIMEOUT_S) -> object:
        """Make a call after all earlier ones. Returns its answer.

        Raises `StoreUnavailable`. After the timeout, the change may still take effect.
        """
        return await self._single.run(call, timeout_s=timeout_s)

    def post(self, call: ScriptCall) -> None:
        """Make a call after all earlier ones, without waiting for its answer."""
        self._single.post(call)

    async def remove_reported(self, left: Mapping[str, Collection[int]]) -> None:
        """Remove the data of ended sessions. The journal reports it afterwards."""
        for receiver in await self.loading().gone(left):
            self._turns.remove_with_session(receiver, left[receiver])
        self._writer.send_all()

    # Calls and answers

    def _calls_of(self, turn: TurnWrites) -> Iterator[PendingCall]:
        parts = self.keys, self._key_limits(), self._calls.journal, self.shard_log
        brought, incarnation = self._turns.brought_by(turn), self._right.incarnation
        return turn.calls(*parts, brought=brought, incarnation=incarnation)

    def _key_limits(self) -> KeyLimits:
        return KeyLimits(self._clock(), self._most_keys, self.layout.form)

    def _send(self, outgoing: PendingCall) -> None:
        call, kept, note, _, is_reported, appended, _ = outgoing
        done: Callable[[object], None] = ignore
        if kept:
            done = partial(self._kept, outgoing, self._pending.begin(kept))
        if appended is not None:
            done = both(appended, done)
        self._telling.remember(call)
        number = 0
        if note:
            call, number = self._journaling.annotate(call, note)
            if is_reported:
                # All frames that report these events come after this call.
                self._calls.journal.skip_note(number)
                number = 0
        self._calls.make(
            call,
            done,
            note=number,
            may_be_refused=bool(kept),
            is_publish=bool(kept),
            may_be_skipped=appended is not None,  # see `shard_log`
        )

    def _open_if_lost(self) -> None:
        """Reopen a lost store once all earlier calls are answered; see `WriteRight.open_again`."""
        is_lost = self._right.state is StoreState.LOST
        if is_lost and not (self._calls or self._writer.is_sending):
            self._right.open_again()

    def _kept(self, sent: PendingCall, then: Callable[[object], None], reply: object) -> None:
        if sent.brought:
            self._writer.brought(sent.brought, reply)
        self._refusing.hear(reply, len(sent.kept))
        if isinstance(reply, list):
            self._keyed.hear((pending.message for pending in sent.kept), reply)
        then(reply)

    def probe(self) -> None:
        """Ask whether the store would accept a message: it may be reachable but out of memory."""
        if self.is_available:
            self._keyed.forget_old()
            self._probing.probe()
            self.link.flush()

    # The right to write

    @property
    def epoch(self) -> str:
        """The epoch in which this process may write."""
        return self._right.epoch

    @property
    def deployment(self) -> Deployment:
        """The deployment of the open store."""
        return self._right.deployment

    def _refused(self, why: ScriptFailed) -> None:
        self._right.lose(why)
        self._open_if_lost()

    def _lost(self) -> None:
        self._telling.stop()
        self._writer.refuse_messages()

    @property
    def losses(self) -> int:
        """How often the store has lost changes in use."""
        return self._right.losses

    def _tell_again(self) -> None:
        self.letter_quota.forget()
        self._telling.begin(self._key_limits())

    def _told(self) -> None:
        self._writer.send_all()
        self._single.post_waiting()
        self.journal.write_waiting()
        if self.shard_log is not None:
            self.shard_log.told()
        self._has_everything.set()
        self._on_told()
