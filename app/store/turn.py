"""What one turn of the event loop has for the store: few calls, however much it is."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from app.delivery.deaths import Buried
from app.delivery.keeper import Batch, Kept, Mark
from app.delivery.messages import Message
from app.delivery.recorder import Recorder, Silence
from app.store import scripts
from app.store.keyed import Claim
from app.store.keys import Keys
from app.store.scripts import Call

if TYPE_CHECKING:
    from app.delivery.session_record import Recorded

K = TypeVar("K")
T = TypeVar("T")

# What one call may cost, in entries of queues, about 1 us each: nobody else is served meanwhile.
_MOST = 5000
_SESSION = 10
_MARK = 4
_MESSAGE = 3
_KEY = 5
_LETTER = 20
_BYTES = 1024
# Longer batches are remembered entry by entry: a batch stays in the store until the next one.
_MOST_OF_BATCH = 50
_SILENCE = Silence()


class Keeping(NamedTuple):
    """A message that is to be kept, and who wants to know."""

    message: Message
    keys: Sequence[str]
    done: Callable[[Kept], None]


class Outgoing(NamedTuple):
    """A call, and what must be done about it when its answer is known."""

    call: Call
    kept: Sequence[Keeping] = ()
    dead: Sequence[Buried] = ()
    # What the journal will tell of it.
    note: bytes = b""
    # Nobody is handed anything that the store must know of before: the rest may follow later.
    is_patient: bool = False


class Turn:
    """What goes out together: disown, save, keep, hand over, mark, settle, bury, forget."""

    __slots__ = (
        "acking",
        "batches",
        "dead",
        "disowned",
        "forgotten",
        "gone",
        "keyed",
        "left",
        "marks",
        "messages",
        "sessions",
        "settled",
        "unmarked",
    )

    def __init__(self) -> None:
        self.disowned: list[Claim] = []
        self.sessions: dict[str, Recorded] = {}
        self.messages: list[Keeping] = []
        self.keyed: list[Keeping] = []
        self.batches: dict[str, Batch] = {}
        self.marks: dict[str, dict[int, Mark]] = {}
        # Messages with the sessions that are done with them; all these; what of it had marks.
        self.settled: dict[int, list[str]] = {}
        self.acking: set[str] = set()
        self.unmarked: dict[str, list[int]] = {}
        # Their letters are made with the calls.
        self.dead: list[tuple[Buried, str | None]] = []
        # Sessions with what was left of their queues, and the same by messages.
        self.forgotten: dict[str, Sequence[int]] = {}
        self.left: dict[int, list[str]] = {}
        # Messages that leave a queue in this turn, but not as settled ones.
        self.gone: set[int] = set()

    def __len__(self) -> int:
        """How much there is, roughly."""
        return (
            len(self.disowned)
            + len(self.sessions)
            + len(self.messages)
            + len(self.keyed)
            + len(self.batches)
            + len(self.marks)
            + len(self.settled)
            + len(self.gone)
            + len(self.dead)
            + len(self.forgotten)
        )

    @property
    def may_leave_acks(self) -> bool:
        """Whether acks may follow later.

        A batch takes the place of the one before: of whoever gets one, the store must know what it
        has taken, or that would come again as new.
        """
        others = self.marks or self.dead or self.forgotten or self.left
        return not others and self.acking.isdisjoint(self.batches)

    def calls(
        self, keys: Keys, epoch: str, most_keys: int, recorder: Recorder | None = None
    ) -> Iterator[Outgoing]:
        """One call for each kind, unless that would take too long; with what is recorded of it."""
        told = recorder or _SILENCE
        # Most turns have one kind or two.
        if self.disowned or self.sessions:
            yield from self._first(keys, epoch)
        if self.messages:
            yield from self._coming(keys, epoch, told)
        if self.keyed:
            yield from self._coming_keyed(keys, epoch, most_keys, told)
        if self.batches or self.marks:
            yield from self._handed(keys, epoch, told)
        if self.settled:
            yield from self._settled(keys, epoch, told)
        if self.unmarked or self.dead:
            yield from self._leaving(keys, epoch, told)
        if self.forgotten or self.left:
            yield from self._forgotten(keys, epoch, told)

    def _first(self, keys: Keys, epoch: str) -> Iterator[Outgoing]:
        for claims in _parts(self.disowned, repeat(_KEY)):
            yield Outgoing(scripts.disown(keys, epoch, claims))
        for sessions in _parts(self.sessions.values(), repeat(_SESSION)):
            records = [session.record() for session in sessions]
            yield Outgoing(scripts.save(keys, epoch, records))

    def _coming(self, keys: Keys, epoch: str, told: Recorder) -> Iterator[Outgoing]:
        for messages in _parts(self.messages, map(_cost_of_message, self.messages)):
            pairs = [(keeping.message, keeping.keys) for keeping in messages]
            call = scripts.keep(keys, epoch, pairs)
            yield Outgoing(call, kept=messages, note=told.kept(pairs))

    def _coming_keyed(
        self, keys: Keys, epoch: str, most_keys: int, told: Recorder
    ) -> Iterator[Outgoing]:
        # What is recorded of one that repeats another must not be written down.
        alone = 0 if told is _SILENCE else _MOST
        costs = [_KEY + _cost_of_message(each) + alone for each in self.keyed]
        for messages in _parts(self.keyed, costs):
            pairs = [(keeping.message, keeping.keys) for keeping in messages]
            call = scripts.keep_keyed(keys, epoch, pairs, most_keys)
            yield Outgoing(call, kept=messages, note=told.kept(pairs))

    def _handed(self, keys: Keys, epoch: str, told: Recorder) -> Iterator[Outgoing]:
        for batches in _shares(self.batches, [_SESSION] * len(self.batches)):
            call = scripts.hand_over(keys, epoch, batches)
            yield Outgoing(call, note=told.handed_over(batches))
        is_patient = not any(map(_has_first_hand_over, self.marks.values()))
        for marks in _shares_of_marks(self.marks):
            call = scripts.mark(keys, epoch, marks)
            yield Outgoing(call, note=told.marked(marks), is_patient=is_patient)

    def _settled(self, keys: Keys, epoch: str, told: Recorder) -> Iterator[Outgoing]:
        for settled in _shares(self.settled, _costs_of_leaving(self.settled)):
            call = scripts.settle(keys, epoch, settled)
            yield Outgoing(call, note=told.settled(settled), is_patient=True)

    def _leaving(self, keys: Keys, epoch: str, told: Recorder) -> Iterator[Outgoing]:
        for unmarked in _shares(self.unmarked, map(len, self.unmarked.values())):
            yield Outgoing(scripts.unmark(keys, epoch, unmarked))
        for part in _parts(self.dead, map(_cost_of_letter, self.dead)):
            letters = [(dead.letter(), key) for dead, key in part]
            call = scripts.bury(keys, epoch, letters)
            dead = [each for each, _ in part]
            yield Outgoing(call, dead=dead, note=told.buried(letters), is_patient=True)

    def _forgotten(self, keys: Keys, epoch: str, told: Recorder) -> Iterator[Outgoing]:
        for forgotten in _shares(self.forgotten, map(_cost_of_session, self.forgotten.values())):
            yield Outgoing(scripts.forget(keys, epoch, forgotten), note=told.left(forgotten))
        # Told with its session; the rest of a killed process's is removed by who loads next.
        for left in _shares(self.left, _costs_of_leaving(self.left)):
            yield Outgoing(scripts.settle(keys, epoch, left), is_patient=True)


class Turns:
    """Collects in the order of events what is given out in the order of turns.

    What must come after something that a turn gives out later begins a new turn.
    """

    def __init__(self) -> None:
        self._turns = [Turn()]
        # Entries that have marks of their own in the store, or will have.
        self._marked: dict[str, set[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._turns))

    def take(self) -> list[Turn]:
        """What has been collected."""
        turns, self._turns = self._turns, [Turn()]
        return turns

    def take_urgent(self) -> list[Turn]:
        """The same; but acks wait for more of their kind if they may."""
        turns = self.take()
        if len(turns) == 1 and turns[0].may_leave_acks:
            turn, rest = turns[0], self._turns[0]
            rest.acking, turn.acking = turn.acking, rest.acking
            rest.settled, turn.settled = turn.settled, rest.settled
            rest.unmarked, turn.unmarked = turn.unmarked, rest.unmarked
        return turns

    def drop_messages(self) -> list[Keeping]:
        """The messages, which are then no longer to be kept."""
        taken: list[Keeping] = []
        for turn in self._turns:
            taken += turn.messages + turn.keyed
            turn.messages, turn.keyed = [], []
        return taken

    def save(self, session: "Recorded") -> None:
        """The last record of a session wins."""
        turn = self._turns[-1]
        if session.key in turn.forgotten:
            turn = self._next()
        turn.sessions[session.key] = session

    def keep(self, message: Message, keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        """A message, which may have left these queues before."""
        turn = self._turns[-1]
        if (
            message.id in turn.settled
            or message.id in turn.gone
            or (turn.forgotten and not turn.forgotten.keys().isdisjoint(keys))
        ):
            turn = self._next()
        kind = turn.messages if message.key is None else turn.keyed
        kind.append(Keeping(message, keys, done))
        if message.generation:
            for key in keys:
                self.marked(key, (message.id,))

    def disown(self, claims: Iterable[Claim]) -> None:
        """Messages that are not kept after all have no keys."""
        self._turns[-1].disowned += claims

    def hand_over(self, key: str, batch: Batch) -> None:
        """The last batch of a session counts, but for entries that have marks."""
        if key in self._marked or len(batch.ids) > _MOST_OF_BATCH:
            self.mark(key, batch.marks())
            return
        turn = self._turns[-1]
        if key in turn.batches:
            # The journal tells of each hand-over.
            turn = self._next()
        turn.batches[key] = batch

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        """The last mark of an entry wins, but the journal tells of each hand-over."""
        entries = self._turns[-1].marks.setdefault(key, {})
        if entries and any(_hides_hand_over(entries.get(mark.id), mark) for mark in marks):
            entries = self._next().marks.setdefault(key, {})
        for mark in marks:
            entries[mark.id] = mark
        self.marked(key, [mark.id for mark in marks])

    def marked(self, key: str, ids: Collection[int]) -> None:
        """These entries have marks in the store."""
        if ids:
            self._marked.setdefault(key, set()).update(ids)

    def settle(self, key: str, ids: Sequence[int]) -> None:
        """Entries are gone."""
        turn = self._turns[-1]
        turn.acking.add(key)
        settled = turn.settled
        for id in ids:
            if id in settled:
                settled[id].append(key)
            else:
                settled[id] = [key]
        if key in self._marked:
            turn.unmarked.setdefault(key, []).extend(self._unmark(key, ids))

    def _unmark(self, key: str, ids: Iterable[int]) -> Collection[int]:
        """Those of these entries that had marks."""
        marked = self._marked[key]
        found = marked.intersection(ids)
        marked -= found
        if not marked:
            del self._marked[key]
        return found

    def bury(self, dead: Sequence[Buried], key: str | None) -> None:
        """Entries are dead, and their marks gone with them."""
        turn = self._turns[-1]
        ids = [each.message for each in dead]
        turn.dead += [(each, key) for each in dead]
        turn.gone.update(ids)
        if key is not None and key in self._marked:
            self._unmark(key, ids)

    def forget(self, key: str, ids: Sequence[int]) -> None:
        """A session is gone, and its marks with it."""
        turn = self._turns[-1]
        turn.sessions.pop(key, None)
        turn.forgotten[key] = ids
        turn.gone.update(ids)
        self.leave(key, ids)
        self._marked.pop(key, None)

    def leave(self, key: str, ids: Iterable[int]) -> None:
        """Entries go with their session, which tells of them."""
        left = self._turns[-1].left
        for id in ids:
            left.setdefault(id, []).append(key)

    def _next(self) -> Turn:
        self._turns.append(Turn())
        return self._turns[-1]


def _has_first_hand_over(marks: Mapping[int, Mark]) -> bool:
    """Whether a receiver is about to get any of these; repeats wait until the store has them."""
    return any(mark.seq > 0 and mark.attempts <= 1 for mark in marks.values())


def _hides_hand_over(before: Mark | None, mark: Mark) -> bool:
    """Whether nobody would hear of a hand-over if only the later mark were written down."""
    return before is not None and before.seq > 0 and before.seq != mark.seq


def _cost_of_message(keeping: Keeping) -> int:
    return _MESSAGE + len(keeping.keys) + len(keeping.message.wire) // _BYTES


def _costs_of_leaving(entries: Mapping[int, Sequence[str]]) -> list[int]:
    return [_MESSAGE + len(keys) for keys in entries.values()]


def _cost_of_session(ids: Sequence[int]) -> int:
    # They are in its note.
    return _SESSION + len(ids)


def _cost_of_letter(pair: tuple[Buried, str | None]) -> int:
    return _LETTER + pair[0].size // _BYTES


def _shares(entries: Mapping[K, T], costs: Iterable[int]) -> Iterator[Mapping[K, T]]:
    """A table in parts, as below; mostly it is one call's."""
    known = list(costs)
    if sum(known) > _MOST:
        yield from map(dict, _parts(entries.items(), known))
    elif entries:
        yield entries


def _shares_of_marks(
    marks: Mapping[str, Mapping[int, Mark]],
) -> Iterator[Mapping[str, Mapping[int, Mark]]]:
    """A table in parts; one session may have more than there is room for in a call."""
    if sum(map(len, marks.values())) * _MARK <= _MOST:
        if marks:
            yield marks
        return
    single = [(key, mark) for key, entries in marks.items() for mark in entries.values()]
    for part in _parts(single, repeat(_MARK)):
        share: dict[str, dict[int, Mark]] = {}
        for key, mark in part:
            share.setdefault(key, {})[mark.id] = mark
        yield share


def _parts(items: Collection[T], costs: Iterable[int]) -> Iterator[list[T]]:
    """The items in their order, in parts that cost no more than one call may, or have one item."""
    if not items:
        return
    known = list(islice(costs, len(items)))
    if sum(known) <= _MOST:
        yield list(items)
        return
    part: list[T] = []
    total = 0
    for item, more in zip(items, known, strict=True):
        if part and total + more > _MOST:
            yield part
            part, total = [], 0
        part.append(item)
        total += more
    if part:
        yield part
