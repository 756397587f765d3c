"""The store behind the port `Keeper`: what a turn brings leaves together, once and in order."""

import asyncio
import logging
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from enum import Enum
from functools import partial
from itertools import chain
from time import perf_counter

from app.delivery.deaths import Buried
from app.delivery.guard import Held
from app.delivery.keeper import Batch, Kept, Mark
from app.delivery.letter_room import LetterRoom
from app.delivery.messages import Message
from app.delivery.recorder import Recorder
from app.delivery.session_record import Recorded
from app.store import scripts
from app.store.connection import StoreUnavailable
from app.store.eviction import refuse_eviction
from app.store.journaling import Journaling
from app.store.keyed import Claim, Keyed
from app.store.keys import Keys
from app.store.line import Line
from app.store.loading import Loaded, Loading, Orphaned
from app.store.refusals import ScriptFailed, StoreRefused
from app.store.refusing import Refusing
from app.store.scripts import Call, Take
from app.store.turn import Keeping, Outgoing, Turns
from app.store.waiting import Confirm, Waiting, hear, tell

log = logging.getLogger(__name__)

_PATIENCE_S, _PAUSE_S = 5.0, 1.0
# So long calls are made in one turn of the event loop.
_TURN_S = 0.005
# How long acks wait for company on their way to the store.
_LAZY_S = 0.05
# A store that owes an answer and has said nothing for so long may be about to die.
_PROMPT_S = 0.05
# How many keys of messages are remembered.
_MOST_KEYS = 1_000_000
# What may wait while a store that lost its state is opened again.
_MAX_WAITING = 100_000


class State(Enum):
    """What this process may do in the store."""

    NEW = "new"
    OPEN = "open"
    # The store knows nothing any more: it was emptied.
    LOST = "lost"
    # Another process has opened it since.
    FENCED = "fenced"


_OPEN = State.OPEN


class Store:
    """Everything that must survive this process, on one line; a `Keeper`.

    Args:
        line: Open, with `scripts.SCRIPTS`; nobody else writes on it.
        node: Who opens the store, for people who look into it.
        seed: Random text, for a store that is empty.
        on_flushed: The store was emptied while we used it. Save and keep everything again.
        on_fenced: Another process has opened the store. Nothing is kept any more: stop.
        confirm: Whether what the store has kept is kept elsewhere, too, if it must be.
        most_keys: How many keys of messages are remembered; then the oldest go.
        recorder: Gives the journal's notes, if anybody keeps a journal.
        letter_room: The account of the dead letters that are here.
    """

    def __init__(
        self,
        line: Line,
        keys: Keys,
        *,
        node: str,
        seed: Callable[[], str],
        on_flushed: Callable[[], None],
        on_fenced: Callable[[], None],
        confirm: Confirm | None = None,
        most_keys: int = _MOST_KEYS,
        recorder: Recorder | None = None,
        letter_room: LetterRoom | None = None,
    ) -> None:
        self.letter_room = letter_room or LetterRoom()
        self.line = line
        self.keys = keys
        self._node = node
        self._seed = seed
        self._on_flushed = on_flushed
        self._on_fenced = on_fenced
        self._most_keys = most_keys
        self._recorder = recorder
        self._journaling = Journaling(keys, node)
        self._loop = asyncio.get_running_loop()
        self._state = State.NEW
        self.epoch = ""
        self._turns = Turns()
        self._is_due = False
        self._end_turn_soon: Callable[[], None] = self._end_turn_soon_alone
        # Calls `_leave` for acks, which wait for company.
        self._lazy: asyncio.TimerHandle | None = None
        self._afters: list[Callable[[], None]] = []
        # What leaves queues in very large turns follows in later ones; who waits for that turn.
        self._rest: Iterator[Outgoing] | None = None
        self._rest_afters: list[Callable[[], None]] = []
        # Who waits until it has left.
        self._rest_gone: asyncio.Event | None = None
        self._waiting = Waiting(self._loop, confirm)
        self._keyed = Keyed(self._disown)
        self._refusing = Refusing(self._loop.time)
        self._is_probing = False
        # Answers come in the order of the calls; with some the journal hears of a note.
        self._sent: deque[tuple[Callable[[object], None], int]] = deque()
        self._answers = 0
        # Who is called after so many answers.
        self._followers: deque[tuple[int, Callable[[], None]]] = deque()

    async def open(self) -> int:
        """Become the one who writes; the id of the newest message that was ever kept, or 0."""
        await refuse_eviction(self.line)
        call = scripts.open_store(self.keys, seed=self._seed(), node=self._node)
        answer: asyncio.Future[object] = self._loop.create_future()
        self.line.script(call.script, call.keys, call.args, partial(hear, answer))
        self.line.flush()
        reply = await answer
        if isinstance(reply, ScriptFailed) and reply.code == "VERSION":
            raise StoreUnavailable(
                f"the store was written by another version of holdfast ({reply}): "
                "start that one, or use an empty store"
            )
        if not isinstance(reply, list):
            raise StoreUnavailable(f"the store cannot be opened: {reply}")
        self._opened(reply)
        self._leave()
        return int(reply[1] or 0)

    def load(self, orphaned: Orphaned) -> AsyncIterator[Loaded]:
        """All sessions with their entries, in no order; to be used once, before anything else.

        Args:
            orphaned: Settles what is kept for sessions that are gone.
        """
        return Loading(self.line, self.keys).sessions(self._turns.marked, orphaned)

    def marked(self, key: str, ids: Collection[int]) -> None:
        """A script has put these entries back into a session's queue, and marked them."""
        self._turns.marked(key, ids)

    async def held_channels(self) -> dict[str, Held]:
        """The channels that were held back, and why."""
        return await Loading(self.line, self.keys).held_channels()

    async def answered(self) -> None:
        """Everything so far was answered."""
        is_answered = asyncio.Event()
        self.after(is_answered.set)
        await is_answered.wait()

    async def close(self, patience_s: float) -> None:
        """Give what is under way some time to be answered."""
        if self._state is State.OPEN:
            try:
                await asyncio.wait_for(self.answered(), patience_s)
            except TimeoutError:
                if self._sent:
                    log.warning("%d calls to the store were not answered", len(self._sent))
        self._waiting.close()

    # The port

    @property
    def is_available(self) -> bool:
        return self._state is _OPEN and self.line.has_room

    @property
    def takes_messages(self) -> bool:
        return self.is_available and not self._refusing.reason

    @property
    def complaint(self) -> str | None:
        """Why no message can be kept now, if so."""
        if not self.is_available:
            return "the store cannot be reached"
        reason = self._refusing.reason
        return f"the store takes no messages: {reason}" if reason else None

    @property
    def is_prompt(self) -> bool:
        return self._rest is None and self.line.silence_s < _PROMPT_S

    @property
    def is_full(self) -> bool:
        return self.line.is_full if self._state is _OPEN else len(self._turns) > _MAX_WAITING

    @property
    def keys_dropped(self) -> int:
        return self._keyed.dropped

    def keep(self, message: Message, keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        if self.is_available:
            self._turns.keep(message, keys, done)
            self._flush_soon()
        else:
            self._loop.call_soon(done, Kept.REFUSED)

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        self._turns.mark(key, marks)
        self._flush_soon()

    def hand_over(self, key: str, batch: Batch) -> None:
        self._turns.hand_over(key, batch)
        self._flush_soon()

    def settle(self, key: str, ids: Sequence[int]) -> None:
        self._turns.settle(key, ids)
        # Nobody waits for it: the acks of some turns make one call.
        if self._lazy is None:
            self._lazy = self._loop.call_later(_LAZY_S, self._leave_with_company)

    def bury(self, dead: Sequence[Buried], key: str | None) -> None:
        self._turns.bury(dead, key)
        self._flush_soon()

    def save(self, session: Recorded) -> None:
        self._turns.save(session)
        self._flush_soon()

    def forget(self, key: str, ids: Sequence[int]) -> None:
        self._turns.forget(key, ids)
        self._flush_soon()

    def hold(self, channel: str, held: Held) -> None:
        self.tell(lambda epoch: scripts.hold(self.keys, epoch, {channel: held}))

    def release(self, channel: str) -> None:
        self.tell(lambda epoch: scripts.hold(self.keys, epoch, {channel: None}))

    def after(self, done: Callable[[], None]) -> None:
        self._afters.append(done)
        self._flush_soon()

    def flush(self) -> None:
        if self._is_due and self._rest is None:
            self._is_due = False
            self._send_turns(everything=bool(self._afters))

    def flush_by(self, end_turn_soon: Callable[[], None]) -> None:
        """Whoever ends turns calls `flush` then; nobody else need do it."""
        self._end_turn_soon = end_turn_soon

    def _flush_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._end_turn_soon()

    def _end_turn_soon_alone(self) -> None:
        self._loop.call_soon(self.flush)

    def _leave_with_company(self) -> None:
        """Acks have waited long enough; behind the rest of a turn they wait for that."""
        if self._rest is None:
            self._leave()
        else:
            self._lazy = self._loop.call_later(_LAZY_S, self._leave_with_company)

    def _leave(self) -> None:
        """All that was collected leaves, acks that wait for company, too."""
        self._send_rest()
        self._send_turns(everything=True)
        self._send_rest()

    def _send_turns(self, *, everything: bool) -> None:
        if everything and self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        if self._state is State.FENCED:
            self._turns, self._afters = Turns(), []
        if self._state is not State.OPEN:
            return
        if not self.line.is_up:
            self._refuse_messages()
        *turns, last = self._turns.take() if everything else self._turns.take_urgent()
        for turn in turns:
            for outgoing in turn.calls(self.keys, self.epoch, self._most_keys, self._recorder):
                self._send(outgoing)
        self._rest = last.calls(self.keys, self.epoch, self._most_keys, self._recorder)
        self._rest_afters, self._afters = self._afters, []
        self._send_some()

    def _send_some(self) -> None:
        """Send what there is time for in this turn of the event loop."""
        rest = self._rest
        if rest is None:
            return
        ends_at, has_sent = perf_counter() + _TURN_S, False
        for outgoing in rest:
            if has_sent and outgoing.is_patient and perf_counter() > ends_at:
                self._rest = chain((outgoing,), rest)
                # What is read meanwhile is answered when its turn ends, one call behind the next.
                self._loop.call_soon(self._loop.call_soon, self._send_some)
                self.line.flush()
                return
            self._send(outgoing)
            has_sent = True
        self._end_rest()

    def _send_rest(self) -> None:
        """What comes next must not overtake what was not sent yet."""
        if self._rest is not None:
            for outgoing in self._rest:
                self._send(outgoing)
            self._end_rest()

    def _end_rest(self) -> None:
        self._rest = None
        if self._rest_gone is not None:
            self._rest_gone.set()
            self._rest_gone = None
        afters, self._rest_afters = self._rest_afters, []
        for done in afters:
            if self._sent:
                self._followers.append((self._answers + len(self._sent), done))
            else:
                self._loop.call_soon(done)
        self.line.flush()
        self._open_if_lost()
        # What has come meanwhile.
        self.flush()

    async def run(
        self, call: Callable[[str], Call], *, patience_s: float | None = _PATIENCE_S
    ) -> object:
        """The answer to a call, which is made for an epoch; behind all that came before."""
        if self._rest is not None:
            # To take all of it along would keep others waiting.
            self._rest_gone = self._rest_gone or asyncio.Event()
            await self._rest_gone.wait()
        self._leave()
        if not self.is_available:
            raise StoreUnavailable("the store is away")
        answer: asyncio.Future[object] = self._loop.create_future()
        self._call(call(self.epoch), partial(hear, answer), may_be_refused=True)
        self.line.flush()
        try:
            reply = await asyncio.wait_for(answer, patience_s)
        except TimeoutError as error:
            raise StoreUnavailable("the store does not answer; it may do it yet") from error
        if isinstance(reply, Exception):
            raise StoreUnavailable(f"the store did not do it: {reply}") from reply
        return reply

    def tell(self, call: Callable[[str], Call]) -> None:
        """Make a call that nobody waits for; behind all that came before."""
        self._leave()
        if self._state is State.OPEN:
            self._call(call(self.epoch), _ignore)
            self.line.flush()

    def record(self, recorder: Recorder) -> None:
        """From now on this is asked for the journal's notes."""
        self._recorder = recorder

    async def left_notes(self) -> dict[int, bytes]:
        """What the journal was to tell when the process before this one ended, by number."""
        return await self._journaling.left_notes(self.line)

    async def remove_told(self, left: Mapping[str, Collection[int]]) -> None:
        """What these sessions left, of which the journal tells behind this."""
        for key in await Loading(self.line, self.keys).gone(left):
            self._turns.leave(key, left[key])
        self._leave()

    def replay_take(self, epoch: str, job: str, takes: Sequence[Take]) -> tuple[Call, int | None]:
        """The call that makes letters messages, and the number of its note, if it has one."""
        call = scripts.replay_take(self.keys, epoch, job, takes)
        if self._recorder is None:
            return call, None
        note = self._recorder.replayed([(take.letter, take.key) for take in takes])
        return self._journaling.annotate(call, note)

    def told(self, notes: Iterable[int]) -> None:
        """What these notes say has been told besides."""
        if self._recorder is not None:
            for number in notes:
                self._recorder.told(number)

    def write_frame(
        self, frame: bytes, done: Callable[[object], None], notes: Sequence[int] = ()
    ) -> None:
        """Write a frame of the journal, which takes the place of these notes."""
        if self._rest is None:
            # Of calls that are not made yet no frame tells.
            self._leave()
        if self._state is State.OPEN:
            self._call(self._journaling.frame(self.epoch, frame, notes), done, may_be_refused=True)
            self.line.flush()

    # Calls and answers

    def _send(self, outgoing: Outgoing) -> None:
        call, kept, dead, note, _ = outgoing
        done: Callable[[object], None] = _ignore
        if kept:
            done = partial(self._kept, kept, self._waiting.begin(kept))
        elif dead:
            done = partial(self._buried, dead)
        number = 0
        if note:
            call, number = self._carry(call, note)
        self._call(call, done, note=number, may_be_refused=bool(kept))

    def _carry(self, call: Call, note: bytes) -> tuple[Call, int]:
        """The call with its note, and the number of that if the journal is to hear of it."""
        carrying, number = self._journaling.annotate(call, note)
        if call.script is not scripts.FORGET:
            return carrying, number
        # Frames that tell what became of it all come behind this call.
        self.told((number,))
        return carrying, 0

    def _call(
        self,
        call: Call,
        done: Callable[[object], None],
        *,
        note: int = 0,
        may_be_refused: bool = False,
    ) -> None:
        self._sent.append((done, note))
        script, keys, args = call
        self.line.script(script, keys, args, self._answered, may_be_refused=may_be_refused)

    def _answered(self, reply: object) -> None:
        done, note = self._sent.popleft()
        self._answers += 1
        if isinstance(reply, ScriptFailed) and reply.code == "EPOCH":
            self._lose(str(reply))
        elif isinstance(reply, ScriptFailed):
            log.error("the store did not do what it was told: %s", reply)
        if note and self._recorder is not None:
            # That of a message which repeats another is not there either.
            is_repeated = isinstance(reply, list) and bool(reply[1])
            is_there = not (is_repeated or isinstance(reply, Exception))
            self._recorder.answered(note, is_there=is_there)
        done(reply)
        while self._followers and self._followers[0][0] <= self._answers:
            self._loop.call_soon(self._followers.popleft()[1])
        self._open_if_lost()

    def _open_if_lost(self) -> None:
        """When all calls of before are answered: one that comes later would look like fenced."""
        if self._state is State.LOST and self._rest is None and not self._sent:
            self._open_again()

    def _kept(
        self, messages: Sequence[Keeping], told: Callable[[object], None], reply: object
    ) -> None:
        if isinstance(reply, StoreRefused):
            self._refusing.hear(str(reply), len(messages))
            # It may have been kept before its answer was lost and the call repeated.
            for keeping in messages:
                if self._recorder is not None:
                    self._recorder.refused(keeping.message, keeping.keys)
                for key in keeping.keys:
                    self.settle(key, (keeping.message.id,))
            self._keyed.refuse(keeping.message for keeping in messages)
        elif isinstance(reply, list):
            self._keyed.hear((keeping.message for keeping in messages), reply)
        if not isinstance(reply, Exception):
            self._refusing.end()
        told(reply)

    def probe(self) -> None:
        """Ask whether the store would take a message: one without memory is there all the same."""
        if self.is_available and not self._is_probing:
            self._is_probing = True
            self._call(scripts.probe(self.keys, self.epoch), self._probed, may_be_refused=True)
            self.line.flush()

    def _probed(self, reply: object) -> None:
        self._is_probing = False
        if isinstance(reply, StoreRefused):
            self._refusing.hear(str(reply), 0)
        elif not isinstance(reply, Exception):
            self._refusing.end()

    def _disown(self, claims: Sequence[Claim], done: Callable[[], None]) -> None:
        self._turns.disown(claims)
        self.after(done)

    def _buried(self, dead: Sequence[Buried], reply: object) -> None:
        if self._state is State.LOST and isinstance(reply, ScriptFailed):
            self.bury(dead, None)

    def _refuse_messages(self) -> None:
        self._loop.call_soon(tell, self._turns.drop_messages(), Kept.REFUSED)

    # Who may write

    def _opened(self, reply: list[bytes]) -> None:
        self.epoch = reply[0].decode()
        self._state = State.OPEN

    def _lose(self, text: str) -> None:
        if self._state is not State.OPEN:
            return
        is_gone = text.endswith("gone")
        self._state = State.LOST if is_gone else State.FENCED
        self._refuse_messages()
        if not is_gone:
            log.error("another process has opened the store: nothing is kept any more")
            self._loop.call_soon(self._on_fenced)

    def _open_again(self) -> None:
        """When all calls of before are answered: one that is repeated must not look like fenced."""
        log.error("the store has lost everything: it is told again")
        call = scripts.open_store(self.keys, seed=self._seed(), node=self._node)
        self.line.script(call.script, call.keys, call.args, self._opened_again)
        self.line.flush()

    def _opened_again(self, reply: object) -> None:
        if not isinstance(reply, list):
            log.error("the store cannot be opened: %s", reply)
            self._loop.call_later(_PAUSE_S, self._open_again)
            return
        self._opened(reply)
        self.letter_room.forget()
        self._on_flushed()
        self._leave()


def _ignore(_: object) -> None:
    """Nobody waits for it."""
