"""A store in memory: keeps what it is told, answers when a test lets it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.delivery.deaths import Buried
from app.delivery.guard import Held
from app.delivery.keeper import Batch, Keeper, Kept, Mark
from app.delivery.letter_room import LetterRoom
from app.delivery.messages import Message
from app.delivery.publish_keys import LIFE_NS, Key
from app.delivery.session_record import Recorded, SessionRecord

if TYPE_CHECKING:
    from app.delivery.dead_letters import DeadLetter


class FakeKeeper:
    """A naive `Keeper`; `turn` answers everything that was asked."""

    def __init__(self) -> None:
        self.is_available = self.is_prompt = True
        self.is_full = False
        self.keys_dropped = 0
        self.letter_room = LetterRoom()
        self.bodies: dict[int, Message] = {}
        self.queues: dict[str, dict[int, Mark]] = {}
        self.sessions: dict[str, SessionRecord] = {}
        self.letters: list[DeadLetter] = []
        self.held: dict[str, Held] = {}
        # Which message has a key.
        self.keyed: dict[str, int] = {}
        # What `keep` is answered next.
        self.outcome = Kept.KEPT
        # Does not answer `keep` by itself.
        self.is_silent = False
        self._silent: list[Callable[[Kept], None]] = []
        self._answers: list[Callable[[], None]] = []

    @property
    def takes_messages(self) -> bool:
        return self.is_available

    def keep(self, message: Message, keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        outcome = self.outcome
        if outcome is Kept.KEPT and message.key is not None:
            outcome = self._claim(message, message.key)
        if outcome is Kept.KEPT:
            self.bodies[message.id] = message
            for key in keys:
                self.queues.setdefault(key, {})[message.id] = Mark(message.id)
        if self.is_silent:
            self._silent.append(done)
        else:
            self._answers.append(lambda: done(outcome))

    def _claim(self, message: Message, key: Key) -> Kept:
        """Of messages with the same key only the first is kept within a day."""
        first = self.keyed.get(key.digest, message.id)
        if first != message.id and first + LIFE_NS > message.id:
            key.first = first
            return Kept.REPEATED
        self.keyed[key.digest] = message.id
        return Kept.KEPT

    def hand_over(self, key: str, batch: Batch) -> None:
        self.mark(key, batch.marks())

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        queue = self.queues.get(key, {})
        for mark in marks:
            if mark.id in queue:
                queue[mark.id] = mark

    def settle(self, key: str, ids: Sequence[int]) -> None:
        for each in ids:
            self.queues.get(key, {}).pop(each, None)

    def bury(self, dead: Sequence[Buried], key: str | None) -> None:
        self.letters += [each.letter() for each in dead]
        if key is not None:
            self.settle(key, [each.message for each in dead])

    def save(self, session: Recorded) -> None:
        record = session.record()
        self.sessions[record.key] = record
        self.queues.setdefault(record.key, {})

    def forget(self, key: str, ids: Sequence[int]) -> None:
        self.sessions.pop(key, None)
        self.queues.pop(key, None)

    def hold(self, channel: str, held: Held) -> None:
        self.held[channel] = held

    def release(self, channel: str) -> None:
        self.held.pop(channel, None)

    def after(self, done: Callable[[], None]) -> None:
        self._answers.append(done)

    def flush(self) -> None:
        pass

    # What tests do

    def turn(self) -> bool:
        """Answer what was asked so far; whether there was anything."""
        answers, self._answers = self._answers, []
        for answer in answers:
            answer()
        return bool(answers)

    def answer_late(self, outcome: Kept) -> None:
        """Answer the oldest `keep` that was not answered by itself; it may be asked again."""
        self._silent[0](outcome)

    def waiting(self, key: str) -> list[tuple[Mark, Message]]:
        """A queue in the order in which it is to be restored."""
        marks = self.queues.get(key, {}).values()
        ordered = sorted(
            marks,
            key=lambda mark: (
                not mark.position,
                mark.position,
                -self.bodies[mark.id].priority,
                mark.id,
            ),
        )
        return [(mark, self.bodies[mark.id]) for mark in ordered]


# The fake is what the core asks for; a type checker says so here.
_keeper: type[Keeper] = FakeKeeper
