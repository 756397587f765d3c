"""What one turn of the event loop has for the store: few calls, however much it is."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from app.delivery.dead_letters import DeadLetter
from app.delivery.keeper import Kept, Mark
from app.delivery.messages import Message
from app.delivery.recorder import Recorder, Silence
from app.store import scripts
from app.store.keyed import Claim
from app.store.keys import Keys
from app.store.scripts import Call

if TYPE_CHECKING:
    from app.delivery.session_record import SessionRecord

T = TypeVar("T")

# What one call may cost, in entries of queues, about 1 us each: nobody else is served meanwhile.
_MOST = 5000
_SESSION = 10
_KEY = 5
_LETTER = 20
# A session that is forgotten may have a long queue.
_FORGOTTEN = 500
_BYTES = 1024
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
    letters: Sequence[DeadLetter] = ()
    # What goes into the journal with it.
    frame: bytes = b""


class Turn:
    """What goes out together: disown, save, keep, mark, settle, bury, forget."""

    __slots__ = (
        "disowned",
        "forgotten",
        "gone",
        "keyed",
        "letters",
        "marks",
        "messages",
        "sessions",
        "settled",
    )

    def __init__(self) -> None:
        self.disowned: list[Claim] = []
        self.sessions: dict[str, SessionRecord] = {}
        self.messages: list[Keeping] = []
        self.keyed: list[Keeping] = []
        self.marks: dict[str, dict[int, Mark]] = {}
        self.settled: dict[str, list[int]] = {}
        self.letters: list[tuple[DeadLetter, str | None]] = []
        self.forgotten: dict[str, None] = {}
        # Messages that leave a queue in this turn.
        self.gone: set[int] = set()

    def __len__(self) -> int:
        """How much there is, roughly."""
        return (
            len(self.disowned)
            + len(self.sessions)
            + len(self.messages)
            + len(self.keyed)
            + len(self.marks)
            + len(self.gone)
            + len(self.letters)
            + len(self.forgotten)
        )

    def calls(
        self, keys: Keys, epoch: str, most_keys: int, recorder: Recorder | None = None
    ) -> Iterator[Outgoing]:
        """One call for each kind, unless that would take too long; with what is recorded of it."""
        told = recorder or _SILENCE
        for claims in _parts(self.disowned, repeat(_KEY)):
            yield Outgoing(scripts.disown(keys, epoch, claims))
        for records in _parts(self.sessions.values(), repeat(_SESSION)):
            yield Outgoing(scripts.save(keys, epoch, records))
        for messages in _parts(self.messages, map(_cost_of_message, self.messages)):
            pairs = [(keeping.message, keeping.keys) for keeping in messages]
            call = scripts.keep(keys, epoch, pairs)
            yield Outgoing(call, kept=messages, frame=told.kept(pairs))
        # What is recorded of one that repeats another must not be written down.
        alone = 0 if recorder is None else _MOST
        costs = [_KEY + _cost_of_message(each) + alone for each in self.keyed]
        for messages in _parts(self.keyed, costs):
            pairs = [(keeping.message, keeping.keys) for keeping in messages]
            call = scripts.keep_keyed(keys, epoch, pairs, most_keys)
            yield Outgoing(call, kept=messages, frame=told.kept(pairs))
        for marks in map(dict, _parts(self.marks.items(), map(len, self.marks.values()))):
            yield Outgoing(scripts.mark(keys, epoch, marks), frame=told.marked(marks))
        for settled in map(dict, _parts(self.settled.items(), map(len, self.settled.values()))):
            yield Outgoing(scripts.settle(keys, epoch, settled), frame=told.settled(settled))
        for letters in _parts(self.letters, map(_cost_of_letter, self.letters)):
            call = scripts.bury(keys, epoch, letters)
            dead = [letter for letter, _ in letters]
            yield Outgoing(call, letters=dead, frame=told.buried(letters))
        for forgotten in _parts(self.forgotten, repeat(_FORGOTTEN)):
            yield Outgoing(scripts.forget(keys, epoch, forgotten), frame=told.forgotten(forgotten))


class Turns:
    """Collects in the order of events what is given out in the order of turns.

    What must come after something that a turn gives out later begins a new turn.
    """

    def __init__(self) -> None:
        self._turns = [Turn()]

    def __len__(self) -> int:
        return sum(map(len, self._turns))

    def take(self) -> list[Turn]:
        """What has been collected."""
        turns, self._turns = self._turns, [Turn()]
        return turns

    def take_messages(self) -> list[Keeping]:
        """The messages, which are then no longer to be kept."""
        taken: list[Keeping] = []
        for turn in self._turns:
            taken += turn.messages + turn.keyed
            turn.messages, turn.keyed = [], []
        return taken

    def save(self, record: "SessionRecord") -> None:
        """The last record of a session wins."""
        turn = self._turns[-1]
        if record.key in turn.forgotten:
            turn = self._next()
        turn.sessions[record.key] = record

    def keep(self, message: Message, keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        """A message, which may have left these queues before."""
        turn = self._turns[-1]
        if message.id in turn.gone or (
            turn.forgotten and not turn.forgotten.keys().isdisjoint(keys)
        ):
            turn = self._next()
        kind = turn.messages if message.key is None else turn.keyed
        kind.append(Keeping(message, keys, done))

    def disown(self, claims: Iterable[Claim]) -> None:
        """Messages that are not kept after all have no keys."""
        self._turns[-1].disowned += claims

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        """The last mark of an entry wins."""
        entries = self._turns[-1].marks.setdefault(key, {})
        for mark in marks:
            entries[mark.id] = mark

    def settle(self, key: str, ids: Sequence[int]) -> None:
        """Entries are gone."""
        turn = self._turns[-1]
        turn.settled.setdefault(key, []).extend(ids)
        turn.gone.update(ids)

    def bury(self, letters: Sequence[DeadLetter], key: str | None) -> None:
        """Entries are dead."""
        turn = self._turns[-1]
        for letter in letters:
            turn.letters.append((letter, key))
            turn.gone.add(letter.message)

    def forget(self, key: str) -> None:
        """A session is gone."""
        turn = self._turns[-1]
        turn.sessions.pop(key, None)
        turn.forgotten[key] = None

    def _next(self) -> Turn:
        self._turns.append(Turn())
        return self._turns[-1]


def _cost_of_message(keeping: Keeping) -> int:
    return len(keeping.keys) + len(keeping.message.wire) // _BYTES


def _cost_of_letter(pair: tuple[DeadLetter, str | None]) -> int:
    return _LETTER + pair[0].size // _BYTES


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
