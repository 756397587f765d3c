"""The store of a shard in memory: what it is told is there at once, and the answers come later."""

from collections.abc import Callable, Mapping, Sequence

from holdfast.cluster.places import NOWHERE, Incarnation, Place, text_of
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.sharding.ports import ShardStore
from holdfast.store.format.log_scripts import Parts, Step
from holdfast.store.framing.log_state import LogState, StoredFrame, TakenLog
from holdfast.store.framing.other_shard import OtherShard
from holdfast.store.framing.shard_log import LogOwner, Taken, Taking
from tests.unit.delivery.fake_keeper import FakeKeeper

Frame = tuple[bytes, Mapping[bytes, bytes]]


class StoreModel(FakeKeeper):
    """A store that outlives the processes of its shard."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.owner: LogOwner | None = None
        self.number = number
        self.waits_for_replicas = False
        # How many incarnations there were, and calls in the last one.
        self.fence = self.calls = 0
        self.frames: list[tuple[Place, Frame]] = []
        self.end = NOWHERE
        self.incarnations: list[Incarnation] = []
        self.links: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self.facts_at = NOWHERE
        self.taken: dict[int, TakenLog] = {}
        self.inbox: dict[str, bytes] = {}

    @property
    def nonce(self) -> str:
        return f"{self.number}{self.fence:07d}"

    def open(self) -> LogState:
        """Another process opens it. What the one before it was not answered is lost."""
        self.forget_answers()
        self.early.clear()
        self.is_available = True
        self.unanswered_s = 0.0
        self.fence, self.calls = self.fence + 1, 0
        frames = [
            StoredFrame(fields[b"before"].decode(), str(place), sum(map(len, fields.values())))
            for place, (_, fields) in self.frames
        ]
        return LogState(
            *(self.nonce, self.fence, str(self.end), text_of(self.incarnations), frames),
            *({**self.links}, {**self.taken}, {**self.facts}, {**self.inbox}),
        )

    # What its own shard does

    def keep(
        self,
        message: Message,
        receivers: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        assert self.owner is not None
        self.owner.flush()
        frame = self.owner.frame_of([message])
        if frame is not None and not self._is_repeat(message):
            self._append(frame)
        FakeKeeper.keep(self, message, receivers, done, fields, hand_overs=hand_overs)

    def _is_repeat(self, message: Message) -> bool:
        key = publish_key_of(message)
        return key is not None and self.keyed.get(key.digest, (message.id,))[0] != message.id

    def append(
        self, count: int, parts: Mapping[str, bytes], done: Callable[[bool], None], /
    ) -> None:
        is_there = self.is_available
        if is_there:
            self._append(Parts(count, parts))
        self.after(lambda: done(is_there))

    def append_facts(
        self,
        facts: Mapping[str, str],
        parts: Mapping[str, bytes],
        done: Callable[[str | None], None],
        answered: Sequence[str] = (),
        /,
    ) -> None:
        self._append(Parts(len(facts) + len(answered), parts, answered), has_facts=bool(facts))
        for name, value in facts.items():
            if value:
                self.facts[name] = value
            else:
                self.facts.pop(name, None)
        if facts:
            self.facts_at = self.end
        text = str(self.end)
        self.after(lambda: done(text))

    def _append(self, frame: Parts, *, has_facts: bool = False) -> None:
        self.calls += 1
        n, before = self.calls, self.end
        self.end = Place(self.nonce, self.fence, n, before.total + frame.entries)
        if before.nonce != self.nonce:
            self.incarnations.append(Incarnation(self.nonce, self.fence, n))
        fields = {name.encode(): part for name, part in frame.parts.items()}
        fields |= {b"before": str(before).encode(), b"place": str(self.end).encode()}
        self.frames.append((self.end, (self.end.id.encode(), fields)))
        for name in frame.answered:
            self.inbox.pop(name, None)
        owner = self.owner
        assert owner is not None
        self.after(lambda: owner.on_appended(n, frame, has_facts))

    def take(
        self,
        step: Step,
        messages: Sequence[tuple[Message, Sequence[str]]],
        others_calls: Mapping[str, bytes],
        /,
        *,
        done: Callable[[Taken], None],
        hand_overs: Mapping[str, BatchMark],
    ) -> None:
        taken = self._take(step, messages, others_calls)
        if taken.taking is Taking.DONE:
            for receiver, batch in hand_overs.items():
                # Only the first one of those that have not happened yet.
                if receiver not in self.early:
                    self.mark_batch(receiver, batch)
                    self.early[receiver] = batch
        self.after(lambda: done(taken))

    def _take(
        self,
        step: Step,
        messages: Sequence[tuple[Message, Sequence[str]]],
        others_calls: Mapping[str, bytes],
    ) -> Taken:
        if not self.is_available:
            return Taken(Taking.FAILED)
        found = self.taken.get(step.shard, TakenLog("", ""))
        if found.place != step.before:
            return Taken(Taking.ELSEWHERE, found.place)
        self.calls += 1
        self.taken[step.shard] = TakenLog(step.behind, step.passed or found.passed)
        self.inbox |= others_calls
        for message, receivers in messages:
            # Not by `keep` of this class: it has been framed where it was accepted.
            FakeKeeper.keep(self, message, receivers, lambda _: None)
        return Taken(Taking.DONE)

    def trim(self, first: str, removed: Sequence[str], links: Mapping[str, str], /) -> None:
        self.calls += 1
        begin = _number(first)
        self.frames = [
            (place, frame)
            for place, frame in self.frames
            if _number(place.id) >= begin and place.id not in removed
        ]
        self.links = {id: place for id, place in (self.links | {**links}).items() if place}
        while len(self.incarnations) > 1 and _number(self.incarnations[1].id) <= begin:
            del self.incarnations[0]

    # What other shards read

    def told(self) -> OtherShard:
        return OtherShard(
            self.nonce if self.fence else "", str(self.end), str(self.facts_at), {**self.facts}
        )

    def read(self, after: str, most: int) -> list[Frame]:
        return [frame for place, frame in self.frames if _number(place.id) > _number(after)][:most]

    def looked_at(self, id: str) -> tuple[str, str]:
        return text_of(self.incarnations), self.links.get(id, "")


def _number(id: str) -> tuple[int, int]:
    fence, _, n = id.partition("-")
    return int(fence), int(n)


_store: type[ShardStore] = StoreModel
