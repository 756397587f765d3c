"""A store in memory: keeps what it is told, answers when a test lets it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import orjson

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.letter_quota import LetterQuota
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark, Mark, Marked
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move, Outcome
from holdfast.delivery.messages.publish_key import KEY_LIFE_S, PublishKey, publish_key_of
from holdfast.delivery.messages.session_record import Recorded, SessionRecord
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.store.format.records import pack_message, unpack_message
from holdfast.store.writing.loading import line_up

if TYPE_CHECKING:
    from holdfast.delivery.letters.dead import DeadLetter

# A session with its entries, in the order in which they are to be restored.
Found = tuple[SessionRecord, list[tuple[Mark, Message]]]


class FakeKeeper:
    """A naive `StorePort`; `turn` answers everything that was asked."""

    def __init__(self) -> None:
        self.is_available = self.is_prompt = True
        self.is_full = False
        self.keys_dropped = self.losses = 0
        self.letter_quota = LetterQuota()
        self.early: dict[str, BatchMark] = {}
        self.bodies: dict[int, Message] = {}
        self.queues: dict[str, dict[int, Mark]] = {}
        self.sessions: dict[str, SessionRecord] = {}
        self.requests: dict[str, bytes] = {}
        self.floors: dict[str, int] = {}
        self.letters: list[DeadLetter] = []
        self.held: dict[str, ChannelHold] = {}
        self.topics: dict[str, TopicRecord] = {}
        # Which message has a key, and since when.
        self.keyed: dict[str, tuple[int, float]] = {}
        # For how long servers have run.
        self.clock: Callable[[], float] = float
        # What `keep` is answered next.
        self.outcome = PersistOutcome.KEPT
        # Does not answer `keep` by itself.
        self.is_silent = False
        self._silent: list[Callable[[PersistOutcome], None]] = []
        self._answers: list[Callable[[], None]] = []

    @property
    def takes_messages(self) -> bool:
        return self.is_available

    def keep(
        self,
        message: Message,
        receivers: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        outcome = self.outcome
        key = publish_key_of(message)
        if outcome is PersistOutcome.KEPT and key is not None:
            outcome = self._claim(message, key)
        if outcome is PersistOutcome.KEPT:
            if not any(message.id in queue for queue in self.queues.values()):
                # As in the store, a copy from a history leaves it as it is.
                self.bodies[message.id] = message
            self.save_requests(fields)
            for receiver in receivers:
                self.queues.setdefault(receiver, {})[message.id] = Mark(message.id)
            self.hand_over_early(hand_overs)
        if self.is_silent:
            self._silent.append(done)
        else:
            self._answers.append(lambda: done(outcome))

    def _claim(self, message: Message, key: PublishKey) -> PersistOutcome:
        """Of messages with the same key only the first is kept within a day."""
        now = self.clock()
        first, since = self.keyed.get(key.digest, (message.id, now))
        if first != message.id and since + KEY_LIFE_S >= now:
            key.first = first
            return PersistOutcome.REPEATED
        self.keyed[key.digest] = message.id, now
        return PersistOutcome.KEPT

    def find_key(self, digest: str, done: Callable[[int | None], None]) -> None:
        first, since = self.keyed.get(digest, (0, 0.0))
        found = first if since + KEY_LIFE_S >= self.clock() else 0
        self._answers.append(lambda: done(found if self.is_available else None))

    def move(self, moves: Sequence[Move]) -> None:
        for each in moves:
            if (
                not each.stays
                and self.queues.get(each.source, {}).pop(each.message.id, None) is not None
            ):
                mark = Entry(each.message).mark()
                for at, receiver in enumerate(each.targets):
                    queue = self.queues.setdefault(receiver, {})
                    if at < each.remembering:
                        queue[mark.id] = mark
                    else:
                        queue.setdefault(mark.id, Mark(mark.id))

    def hand_over_early(self, hand_overs: Mapping[str, BatchMark]) -> None:
        """Have hand-overs before they happen."""
        for receiver, batch in hand_overs.items():
            if receiver not in self.early:
                self.mark(receiver, batch.marks())
                self.early[receiver] = batch

    def mark_batch(self, receiver: str, batch: BatchMark) -> None:
        early = self.early.pop(receiver, None)
        if early is not None:
            self.mark(receiver, [Mark(id) for id in early.ids])
        self.mark(receiver, batch.marks())

    def mark(self, receiver: str, marked: Collection[Marked]) -> None:
        queue = self.queues.get(receiver, {})
        for entry in marked:
            if entry.id in queue:
                queue[entry.id] = entry.mark()

    def settle(self, receiver: str, ids: Sequence[int], outcome: Outcome) -> None:
        self.drop(receiver, ids)

    def drop(self, receiver: str, ids: Sequence[int]) -> None:
        """These entries are gone."""
        for each in ids:
            self.queues.get(receiver, {}).pop(each, None)

    def dead_letter(
        self,
        dead: Sequence[UnwrittenLetter],
        receiver: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        if done is not None:
            self.after(done)
        self.letters += [each.letter() for each in dead]
        if receiver is not None:
            self.drop(receiver, [each.message for each in dead])

    def save(self, session: Recorded) -> None:
        record = session.record()
        self.sessions[record.key] = record
        self.queues.setdefault(record.key, {})

    def save_requests(self, fields: RequestFields) -> None:
        for name, value in fields.items():
            if value:
                self.requests[name] = value
            else:
                self.requests.pop(name, None)

    def save_floor(self, channel: str, floor: int) -> None:
        if floor:
            self.floors[channel] = floor
        else:
            self.floors.pop(channel, None)

    def leave_history(self, channel: str, id: int) -> None:
        self.drop(channel, [id])

    def forget(self, receiver: str, ids: Sequence[int]) -> None:
        self.sessions.pop(receiver, None)
        left = self.queues.pop(receiver, {}).keys() - set(ids)
        if left:
            # Entries that were not named stay without their session, and without marks.
            self.queues[receiver] = {id: Mark(id) for id in left}

    def save_channel_hold(self, channel: str, held: ChannelHold) -> None:
        self.held[channel] = held

    def release(self, channel: str) -> None:
        self.held.pop(channel, None)

    def save_topics(self, topics: Mapping[str, TopicRecord | None]) -> None:
        for name, record in topics.items():
            if record is None:
                self.topics.pop(name, None)
            else:
                self.topics[name] = record

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

    def forget_answers(self) -> None:
        """The process that asked was killed, so the answers are lost."""
        self._answers, self._silent = [], []

    def answer_late(self, outcome: PersistOutcome) -> None:
        """Answer the oldest `keep` that was not answered by itself; it may be asked again."""
        self._silent[0](outcome)

    def waiting(self, receiver: str) -> list[tuple[Mark, Message]]:
        """A queue in the order in which it is to be restored."""
        marks = self.queues.get(receiver, {}).values()
        found = [(mark, self.bodies[mark.id]) for mark in marks]
        line_up(found)
        return found

    def load(self, without_session: Callable[[str, Sequence[Message]], None]) -> Iterator[Found]:
        """What the next server finds: all sessions, and then the queues that have none."""
        sessions = dict(self.sessions)
        left = {receiver: self._read(receiver) for receiver in self.queues.keys() - sessions.keys()}
        for receiver, record in sessions.items():
            text = orjson.loads(orjson.dumps(record.to_json()))
            yield SessionRecord.of_json(text), self._read(receiver)
        for receiver, entries in left.items():
            if entries:
                without_session(receiver, [mark.with_former(message) for mark, message in entries])

    def _read(self, receiver: str) -> list[tuple[Mark, Message]]:
        return [
            (mark, unpack_message(each.id, pack_message(each)))
            for mark, each in self.waiting(receiver)
        ]


# The fake is what the core asks for; a type checker says so here.
_keeper: type[StorePort] = FakeKeeper
