"""The log of this shard in its store, and what this shard takes from the logs of others.

The order of the frames is the order of the calls, of whatever kind. So none is made again behind
later ones: a call that the store refused has failed.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.store.format import log_scripts, scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.log_scripts import NO_CALLS, LoggedFrame, Parts, Step
from holdfast.store.format.publish_keys import first_of
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.framing.log_state import LogState, StoredFrame, TakenLog, read_log_state
from holdfast.store.links.link import Answer, StoreLink
from holdfast.store.links.reader import Reader
from holdfast.store.links.reply_errors import StoreRefused
from holdfast.store.links.resp import Word
from holdfast.store.opening.write_right import StoreState, WriteRight
from holdfast.store.writing.journaling import Journaling
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writer import TurnWriter
from holdfast.store.writing.unanswered_calls import UnansweredCalls

if TYPE_CHECKING:
    from holdfast.store.opening.counter import Counter

Facts = Mapping[str, str]
# How many calls of others one script tells.
_MOST_TOLD = 500


class Taking(Enum):
    """What became of a call that takes something from the log of another shard."""

    DONE = "done"
    # The store has another place in that log, so nothing was taken.
    ELSEWHERE = "elsewhere"
    # The store is full.
    REFUSED = "refused"
    # The store is away, or was opened again.
    FAILED = "failed"


class Taken(NamedTuple):
    """What became of it, and the place that the store has if it is another one."""

    taking: Taking
    found: str = ""


class LogOwner(Protocol):
    """What this shard has for others, and has of them. All methods are called in order."""

    def flush(self) -> None:
        """Append the passing messages so far: durable ones follow, which were accepted later."""
        ...

    def size_of(self, message: Message, /) -> int:
        """Return how many bytes of a frame the message needs; 0 if others do not get it."""
        ...

    def frame_of(self, messages: Sequence[Message], /) -> Parts | None:
        """Return what others get of messages that a call stores; None if they get nothing.

        It is called once for each call. A message may be in several calls, and is framed once.
        """
        ...

    def on_appended(self, n: int, frame: Parts, has_facts: bool, /) -> None:
        """Take note of a frame that the log has now, in its order. `n` numbers its call."""
        ...

    def latest_frames(self) -> Sequence[LoggedFrame]:
        """Return the frames of the last seconds, oldest first: the store may have lost some."""
        ...

    def again(self, frame: LoggedFrame, /) -> Parts | None:
        """Return a frame with the same messages and calls, if it has any."""
        ...

    def begin_again(self, begun: LogState, /) -> tuple[Facts, Mapping[str, bytes]]:
        """Begin a new incarnation, because the store has lost changes.

        Returns what corrects the facts in the store, and the parts of a frame with it, which is the
        first one of this incarnation; no parts if the facts stay as they are.
        """
        ...

    def places(self) -> Mapping[int, TakenLog]:
        """Return how far the logs of others are taken, as far as the store has confirmed it."""
        ...

    def inbox(self) -> Mapping[str, bytes]:
        """Return the calls of others that are not done, by name."""
        ...

    def on_begun_again(self) -> None:
        """Go on: the store has everything again."""
        ...


class ShardLog:
    """Appends frames, takes frames of others, and frames what a turn stores."""

    def __init__(
        self,
        link: StoreLink,
        keys: RedisKeys,
        right: WriteRight,
        calls: UnansweredCalls,
        writer: TurnWriter,
        buffer: TurnBuffer,
        journaling: Journaling,
        answered_at: Callable[[], float],
        store_clock: Callable[[], int],
        waits_for_replicas: bool,
    ) -> None:
        # Nothing crosses before it is set.
        self.owner: LogOwner | None = None
        self.waits_for_replicas = waits_for_replicas
        self._link = link
        self._keys = keys
        self._right = right
        self._calls = calls
        self._writer = writer
        self._buffer = buffer
        self._journaling = journaling
        self._loop = asyncio.get_running_loop()
        self._answered_at = answered_at
        self._store_clock = store_clock
        # Frames of facts that were told while the store could not be written to.
        self._waiting: list[Callable[[], None]] = []
        # Whether a turn is about to be sent, which also sends the calls before it.
        self._precedes_turn = False
        buffer.framing = self
        writer.before_turn = self._flush

    def counter(
        self, reader: Reader, clock: Callable[[], float], raised: Callable[[float], None]
    ) -> "Counter":
        """Return what shows other shards that this process lives."""
        from holdfast.store.opening.counter import Counter

        return Counter(reader, self._keys, self._right, clock, raised)

    @property
    def is_available(self) -> bool:
        """Whether the store takes frames now."""
        return self._right.state is StoreState.OPEN and self._link.has_room

    @property
    def unanswered_s(self) -> float:
        """How long ago the store last answered."""
        return self._loop.time() - self._answered_at()

    async def read(self) -> LogState:
        """Read what the store says about logs, after it was opened and before it is written to."""
        return await read_log_state(self._link, self._keys, self._right.epoch)

    # Writing

    def append(self, count: int, parts: Mapping[str, bytes], done: Callable[[bool], None]) -> None:
        """Append a frame of passing entries. `done` hears whether the log has it."""
        if self._right.state is not StoreState.OPEN:
            self._loop.call_soon(done, False)
            return
        frame = Parts(count, parts)
        answered = partial(self._answered, frame, done)
        self._make(log_scripts.append(self._keys, frame), answered)

    def _answered(self, frame: Parts, done: Callable[[bool], None], reply: object) -> None:
        is_there = not isinstance(reply, Exception)
        if is_there:
            self._note(frame)
        done(is_there)

    def append_facts(
        self,
        facts: Facts,
        parts: Mapping[str, bytes],
        done: Callable[[str | None], None],
        answered: Sequence[str] = (),
    ) -> None:
        """Append a frame of facts, places, or answers to calls. A full store takes it, too.

        `done` gets the text of the place behind it, or of a later one; None if the log does not
        have it. While the store is told what it had lost, the frame waits.
        """
        frame = Parts(len(facts) + len(answered), parts, answered)
        stating = partial(self._append_facts, facts, frame, done)
        if self._right.state is StoreState.OPEN:
            stating()
        elif self._right.state is StoreState.FENCED:
            self._loop.call_soon(done, None)
        else:
            self._waiting.append(stating)

    def _append_facts(self, facts: Facts, frame: Parts, done: Callable[[str | None], None]) -> None:
        answered = partial(self._stated, facts, frame, done)
        self._calls.make(log_scripts.append_facts(self._keys, facts, frame), answered)
        self._link.flush()

    def _stated(
        self, facts: Facts, frame: Parts, done: Callable[[str | None], None], reply: object
    ) -> None:
        if isinstance(reply, list):
            self._note(frame, has_facts=bool(facts))
            done(reply[0].decode())
        else:
            done(None)

    def find_key(self, digest: str, done: Callable[[int | None], None]) -> None:
        """Find the message of this shard with a publish key, behind all that the store has.

        `done` hears its id, 0 if there is none, and None if the store is unavailable.
        """
        if self.is_available:
            found = partial(self._found_key, done)
            self._link.call(["HGET", self._keys.keyed, digest], found)
        else:
            self._loop.call_soon(done, None)

    def _found_key(self, done: Callable[[int | None], None], reply: object) -> None:
        done(first_of(reply, self._store_clock()))

    def trim(self, first: str, removed: Sequence[str], links: Mapping[str, str]) -> None:
        """Remove frames before the first one that stays, and further ones; set or remove links."""
        if self._right.state is StoreState.OPEN:
            call = log_scripts.trim_log(self._keys, first, removed, links)
            self._calls.make(call, ignore)
            self._link.flush()

    # Frames of what a turn stores

    def size_of(self, message: Message, /) -> int:
        """Return how many bytes of a frame the message needs; 0 if others do not get it."""
        return 0 if self.owner is None else self.owner.size_of(message)

    def framed(
        self, call: ScriptCall, messages: Sequence[Message], /
    ) -> tuple[ScriptCall, Answer | None]:
        """Return the call with the frame of these messages, and what hears its answer."""
        frame = None if self.owner is None else self.owner.frame_of(messages)
        if frame is None:
            return call, None
        return log_scripts.with_frame(self._keys, call, frame), partial(self._framed, frame)

    def _framed(self, frame: Parts, reply: object) -> None:
        # A repeated publish key appends nothing: then the reply names the message before.
        is_repeated = isinstance(reply, list) and len(reply) > 1 and bool(reply[1])
        if not (is_repeated or isinstance(reply, Exception)):
            self._note(frame)

    def _flush(self) -> None:
        """Append what precedes a turn, which is sent together with it."""
        if self.owner is not None:
            self._precedes_turn = True
            self.owner.flush()
            self._precedes_turn = False

    # Taking

    def take(
        self,
        step: Step,
        messages: Sequence[tuple[Message, Sequence[str]]],
        others_calls: Mapping[str, bytes] = NO_CALLS,
        *,
        done: Callable[[Taken], None],
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        """Store messages of another shard for these sessions, and its calls; move the place on.

        Without any of these, a full store does so, too. Scripts are answered in order.

        Args:
            hand_overs: What sessions will get at once. The script stores it, too, if it may.
        """
        if self._right.state is not StoreState.OPEN:
            self._loop.call_soon(done, Taken(Taking.FAILED))
            return
        if self._writer.is_sending:
            # The journal expects the answers to its notes in the order in which it made them, and
            # has made one for the next part. What sessions will get may be something else by then.
            self._writer.send_behind(partial(self.take, step, messages, others_calls, done=done))
            return
        early = self._buffer.announce(hand_overs) if hand_overs else NO_HAND_OVERS
        number = 0
        call = log_scripts.take(
            self._keys,
            [step],
            messages,
            self._right.layout.form,
            others_calls=others_calls,
            hand_overs=early,
            incarnation=self._right.incarnation,
        )
        if messages and (note := self._calls.journal.note_kept(messages, early)):
            call, number = self._journaling.annotate(call, note)
        self._make(call, partial(self._took, early, done), note=number)

    def _took(
        self, early: Mapping[str, BatchMark], done: Callable[[Taken], None], reply: object
    ) -> None:
        if early:
            self._writer.brought(early, reply)
        if isinstance(reply, list) and self._right.state is not StoreState.OPEN:
            # The store went back, and soon has the place again that this process knows.
            done(Taken(Taking.FAILED))
        elif isinstance(reply, list):
            done(Taken(Taking.ELSEWHERE, cast("bytes", reply[2]).decode()))
        elif isinstance(reply, StoreRefused):
            done(Taken(Taking.REFUSED))
        elif isinstance(reply, Exception):
            done(Taken(Taking.FAILED))
        else:
            done(Taken(Taking.DONE))

    # A store that has lost changes

    async def begin_again(self) -> None:
        """Tell the frames that the log has lost, and then, before all others, the facts that hold.

        Others read the facts in the store when they see this incarnation. The frames come back
        under their ids, so a reader that has taken one stays behind it. If the log has gone on
        without some of them, they follow as new frames: readers drop the messages that they have.
        """
        if self.owner is None:
            return
        latest = self.owner.latest_frames()
        for lost in latest:
            self._calls.tell(log_scripts.restore_frame(self._keys, lost), False)
        begun = await self.read()
        facts, parts = self.owner.begin_again(begun)
        if not parts:
            return
        frame = Parts(len(facts), parts)
        call = log_scripts.append_facts(self._keys, facts, frame)
        self._calls.tell(call, False, partial(self._stated, facts, frame, ignore))
        for lost in _passed_over(latest, begun.frames):
            again = self.owner.again(lost)
            if again is not None:
                answered = partial(self._answered, again, ignore)
                self._calls.tell(log_scripts.append(self._keys, again), True, answered)

    async def tell_taken(self) -> None:
        """Tell how far logs are taken, and which calls of others are not done.

        The store has the messages already. Without the places it would get them again.
        """
        if self.owner is None:
            return
        found = cast("list[bytes]", await self._link.ask("HKEYS", self._keys.inbox))
        stored, undone = {name.decode() for name in found}, self.owner.inbox()
        changed = dict.fromkeys(stored - undone.keys(), b"")
        changed |= {name: undone[name] for name in undone.keys() - stored}
        names = [*changed]
        for at in range(0, len(names), _MOST_TOLD):
            self._put(
                self._keys.inbox, [(name, changed[name]) for name in names[at : at + _MOST_TOLD]]
            )
        for shard, (place, passed) in self.owner.places().items():
            fields = (f"place {shard}", place), (f"passed {shard}", passed)
            self._put(self._keys.meta, fields)

    def _put(self, key: str, fields: Iterable[tuple[str, Word]]) -> None:
        args: list[Word] = []
        for field in fields:
            args += field
        self._calls.tell(ScriptCall(scripts.PUT, [self._keys.meta, key], args), False)

    def told(self) -> None:
        """Go on: the store has everything again."""
        waiting, self._waiting = self._waiting, []
        for stating in waiting:
            stating()
        if self.owner is not None:
            self.owner.on_begun_again()

    def _make(self, call: ScriptCall, done: Answer, *, note: int = 0) -> None:
        # As with publishes, what a store that was opened again lacks goes before it.
        self._calls.make(
            call, done, note=note, may_be_refused=True, is_publish=True, may_be_skipped=True
        )
        if not self._precedes_turn:
            self._link.flush()

    def _note(self, frame: Parts, *, has_facts: bool = False) -> None:
        if self.owner is not None:
            self.owner.on_appended(self._calls.answered, frame, has_facts)


def _passed_over(
    latest: Sequence[LoggedFrame], stored: Sequence[StoredFrame]
) -> Iterator[LoggedFrame]:
    """Yield the frames that a log has gone on without: the next one stands behind an earlier one.

    All others that it does not have were trimmed. Who has subscribed since must not get them.
    """
    numbers = [_number_of(each.place) for each in stored]
    for each in latest:
        number = _number_of(each.place)
        at = bisect_left(numbers, number)
        if at < len(numbers) and _number_of(stored[at].before) < number < numbers[at]:
            yield each


def _number_of(place: str) -> tuple[int, int]:
    """Return the numbers of the incarnation and of the call that wrote the frame before a place."""
    _, id, _ = (place or "- 0-0 0").split(" ")
    incarnation, _, call = id.partition("-")
    return int(incarnation), int(call)
