"""The log of this shard: how its frames get into the store, and which of them stay there."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.cluster.frames import DURABLE, Facts
from holdfast.cluster.log import ForShard, Log, parts_of
from holdfast.cluster.messages import answered, entry_of, framed, preceding, size_of
from holdfast.cluster.places import Place, place_of
from holdfast.cluster.rows import OthersRows
from holdfast.cluster.trimming import Trimming
from holdfast.delivery.messages.message import Message
from holdfast.sharding.early import Early
from holdfast.sharding.followed import Followed
from holdfast.sharding.latest_frames import LatestFrames
from holdfast.sharding.passing import Passing
from holdfast.sharding.ports import ShardStore
from holdfast.store.format.log_scripts import FOR_ALL, Parts
from holdfast.store.framing.log_state import LogState


class OwnLog:
    """Writes and trims the log of this shard; a `LogPort`.

    Args:
        rows: Says which other shards have durable receivers.
        may_speak: Returns whether this process has the shard for certain.
        early: Counts messages that did not wait any longer for the store.
    """

    def __init__(
        self,
        store: ShardStore,
        others: Sequence[int],
        rows: OthersRows,
        may_speak: Callable[[], bool],
        early: Early,
    ) -> None:
        self._store = store
        self._others = others
        self.rows = rows
        self.log = Log(self)
        self.trimming = Trimming(others)
        self.latest = LatestFrames()
        self._followed = Followed(others)
        self.log.passing = self.passing = Passing(
            *(self.log, self._followed, early),
            end=lambda: self.trimming.end,
            may_speak=may_speak,
        )
        # The books: how many entries of messages, calls and facts the log has got.
        self.appended = 0

    # The port

    @property
    def is_available(self) -> bool:
        return self._store.is_available

    def append(self, count: int, parts: Mapping[str, bytes], done: Callable[[bool], None]) -> None:
        self._store.append(count, parts, done)

    def append_facts(
        self, facts: Facts, parts: Mapping[str, bytes], done: Callable[[Place | None], None]
    ) -> None:
        def stated(text: str | None) -> None:
            done(None if text is None else place_of(text))

        self._store.append_facts(facts, parts, stated)

    # What a turn stores

    def pass_on(self, message: Message, now: float, *, is_early: bool = False) -> bool:
        """Pass on a message that is not stored: it leaves at the end of the turn.

        Returns whether any shard may have receivers of it.
        """
        if self.passing.is_pruned(message.channel, now):
            return False
        self.passing.add(entry_of(message), is_early=is_early)
        return True

    def log_on(self, message: Message) -> None:
        """Do the same by the log, whether there are links or not."""
        self.passing.add_to_log(entry_of(message))

    def flush(self, now: float) -> None:
        """End the turn of what is passed on."""
        self.passing.flush()
        self.log.flush(now)

    def size_of(self, message: Message) -> int:
        """Return how many bytes of a frame the message needs; 0 if others do not get it."""
        return size_of(message)

    def frame_of(self, messages: Sequence[Message], now: float) -> Parts | None:
        """Return what others get of these messages, once for each message."""
        before = preceding(messages)
        if before:
            for each in before:
                self.passing.add_to_log(each)
            self.log.flush(now)
        entries = framed(messages)
        answers = answered(messages, waits=self._store.waits_for_replicas)
        if not (entries or answers):
            return None
        shards: set[int] = set()
        for channel in {each.channel for each in entries if each.flags & DURABLE}:
            shards.update(self.rows.shards(channel))
        channels = frozenset([each.channel for each in entries])
        addressed = [ForShard(each) for each in entries]
        addressed += [ForShard(each.answer, each.shard) for each in answers]
        names = [each.name for each in answers]
        parts = parts_of(addressed, behind=self.passing.behind())
        return Parts(len(addressed), parts, names, frozenset(shards), channels)

    def on_appended(self, n: int, frame: Parts, *, has_facts: bool, now: float) -> None:
        """Take note of a frame that the log has now, in its order."""
        self.appended += frame.entries
        needed_by: Iterable[int] = self._others
        if not has_facts:
            needed_by = {*frame.needed_by, *(int(each) for each in frame.parts if each != FOR_ALL)}
        size = sum(len(part) for part in frame.parts.values())
        before = self.trimming.end
        self.trimming.appended(n, frame.entries, size, needed_by, now)
        self.latest.add_frame(before, self.trimming.end, frame, now)
        self._followed.put(frame.channels, self.trimming.end)

    def saw(self, shard: int, place: Place, now: float) -> None:
        """Take note of how far a shard has taken the log."""
        self.trimming.saw(shard, place, now)
        self._followed.saw(shard, place)

    # The life of the log

    def begin(self, found: LogState, now: float) -> None:
        """Go on with the log as it is at the beginning of an incarnation."""
        self._followed.begin(place_of(found.end))
        self.trimming.begin(
            found.nonce,
            found.fence,
            place_of(found.end),
            [(place_of(each.before), place_of(each.place), each.size) for each in found.frames],
            found.links,
            now,
        )

    def tick(self, now: float) -> None:
        """Append what waits, and remove what no shard needs."""
        self._followed.tick(now)
        self.passing.tick(now)
        self.log.tick(now)
        self.latest.forget(now - self._store.unanswered_s)
        if self._store.is_available:
            trim = self.trimming.tick(now)
            if trim is not None:
                self._store.trim(*trim)
