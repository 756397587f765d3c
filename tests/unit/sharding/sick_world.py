"""Several shards. One store is frozen, full or hidden for a while; everything else works."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.store.log_scripts import Step
from holdfast.store.shard_log import Taken, Taking
from tests.unit.bayeux.harness import Asked
from tests.unit.sharding.member_world import Person, ReadableStore, Shard, World

# After so long without an answer, a store counts as away, and a message waits no longer for it.
_AWAY_S = 5.0
_SICK_S = 5.0, 13.0
_HIDDEN_S = 8.0
# How late a message may come that waits for nothing: clients ask, and shards read, now and then.
_SOON_S = 3.0
# How long a message waits that is not stored, and how long ticks, reads, links and clients take.
_LATEST_S = 5.0 + 4.0


class SickStore(ReadableStore):
    """A store that may be frozen or full."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.is_frozen = self.takes_nothing = False
        # The calls that it has got meanwhile.
        self._calls_to_do: list[Callable[[], None]] = []
        # The publishers that wait for its answers.
        self._unanswered: list[tuple[float, Callable[[PersistOutcome], None]]] = []
        self.now = 0.0

    def freeze(self) -> None:
        self.is_frozen, self.is_readable = True, False

    def fill(self) -> None:
        self.takes_nothing = True

    def hide(self) -> None:
        """Only its own shard can reach it, which removes what it has had for ten seconds."""
        self.is_readable = False

    def heal(self) -> None:
        self.is_frozen = self.takes_nothing = False
        self.is_readable = self.is_available = True
        self._unanswered.clear()
        calls, self._calls_to_do = self._calls_to_do, []
        for call in calls:
            call()

    def carry_out(self, call: Callable[[], None]) -> None:
        if self.is_frozen:
            self._calls_to_do.append(call)
        else:
            call()

    def keep(
        self,
        message: Message,
        receivers: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
    ) -> None:
        if self.takes_nothing:
            assert self.owner is not None
            self.owner.flush()
            self.owner.frame_of([message])
            self.after(partial(done, PersistOutcome.REFUSED))
        else:
            if self.is_frozen:
                self._unanswered.append((self.now, done))
            super().keep(message, receivers, done, fields)

    def tick(self, now: float) -> None:
        """Tell publishers after a while that nobody knows what has become of their messages."""
        self.now = now
        late = [done for since, done in self._unanswered if now - since > _AWAY_S]
        del self._unanswered[: len(late)]
        for done in late:
            done(PersistOutcome.UNKNOWN)

    def append(
        self, count: int, parts: Mapping[str, bytes], done: Callable[[bool], None], /
    ) -> None:
        if self.takes_nothing:
            self.after(lambda: done(False))
        else:
            self.carry_out(lambda: ReadableStore.append(self, count, parts, done))

    def append_facts(
        self,
        facts: Mapping[str, str],
        parts: Mapping[str, bytes],
        done: Callable[[str | None], None],
        letters: Sequence[str] = (),
        /,
    ) -> None:
        self.carry_out(lambda: ReadableStore.append_facts(self, facts, parts, done, letters))

    def take(
        self,
        step: Step,
        messages: Sequence[tuple[Message, Sequence[str]]],
        letters: Mapping[str, bytes],
        /,
        *,
        done: Callable[[Taken], None],
        hand_overs: Mapping[str, BatchMark],
    ) -> None:
        if self.takes_nothing and (messages or letters):
            self.after(lambda: done(Taken(Taking.REFUSED)))
        else:
            self.carry_out(
                lambda: ReadableStore.take(
                    self, step, messages, letters, done=done, hand_overs=hand_overs
                )
            )

    def trim(self, first: str, removed: Sequence[str], links: Mapping[str, str], /) -> None:
        self.carry_out(lambda: ReadableStore.trim(self, first, removed, links))


class Witness(Person):
    """Somebody whose messages may be in another order after a store was away for five seconds."""

    def hear(self, asked: Asked) -> None:
        world = cast("SickWorld", self.world)
        for _, _, number in asked.data:
            world.check_lateness(self, number)
        super().hear(asked)

    def check(self) -> None:
        world = cast("SickWorld", self.world)
        for key in {*self.due, *self.heard}:
            heard = self.heard[key]
            for at, number in enumerate(heard):
                for earlier in heard[:at]:
                    is_so = earlier < number or world.may_overtake(number, earlier)
                    assert is_so, f"{key} out of order: {number} behind {earlier}"
            missing = {*self.due[key]} - {*heard}
            assert not missing, f"person {self.number} lacks {missing} of {key}"


class SickWorld(World):
    """Messages that are not stored, and sessions without a name, do not notice the sickness."""

    store_type = SickStore
    person_type = Witness
    reads = 6

    def __init__(self, seed: int) -> None:
        # When each message was published, and which ones are not stored.
        self.published_at: dict[int, float] = {}
        self.passing: set[int] = set()
        self.sick: SickStore | None = None
        # Since when and for how long at least, and earlier times.
        self._sick_since = self._sick_for_s = 0.0
        self._away: list[tuple[float, float]] = []
        self.sicknesses = 0
        self._rests = False
        super().__init__(seed, has_faults=False)

    def may_overtake(self, number: int, earlier: int) -> bool:
        """Whether a message may come behind a later one that has waited for it for five seconds.

        Whatever the log has may come late while stores are away. Healthy ones need a moment, too.
        """
        at, earlier_at = self.published_at[number], self.published_at[earlier]
        return any(
            since - _SOON_S <= at <= until - _AWAY_S + _SOON_S and earlier_at <= until + _SOON_S
            for since, until in self._away
        )

    def _step(self) -> None:
        self.now += self.random.random() * 0.02
        if self.sick is None:
            if self.random.random() < 0.02:
                self._begin()
        elif self.now - self._sick_since > self._sick_for_s:
            self._heal()
        sick = self.sick
        if sick is not None and sick.is_frozen:
            sick.tick(self.now)
            sick.is_available = self.now - self._sick_since < _AWAY_S
        shard = self.random.choice([*self.shards.values()])
        shard.tick()
        for other in self.shards:
            if other != shard.number:
                shard.read(other, 8)
        self.random.choice([each for each in self.people if not each.is_named]).listen()
        super()._step()

    def _begin(self) -> None:
        self._sick_since, self._sick_for_s = self.now, self.random.uniform(*_SICK_S)
        self.sick = cast("SickStore", self.random.choice([*self.stores.values()]))
        self.random.choice([self.sick.freeze, self.sick.fill, self.sick.hide])()
        if not (self.sick.is_frozen or self.sick.takes_nothing):
            self._sick_for_s = min(self._sick_for_s, _HIDDEN_S)

    def _heal(self) -> None:
        if self.sick is not None:
            self.sick.heal()
            self.sick = None
            since = self._sick_since
            if self._away and since - self._away[-1][1] < _SOON_S:
                # What has waited for the one store waits for the next one.
                since, _ = self._away.pop()
            self._away.append((since, self.now))
            self.sicknesses += 1

    def check_lateness(self, person: Person, number: int) -> None:
        """Check how late a message that is not stored comes to somebody who asks all the time."""
        if number in self.passing and not (person.is_named or self._rests):
            assert self.now - self.published_at[number] < _LATEST_S, "late"

    def rest(self) -> None:
        self._heal()
        for person in self.people:
            person.listen()
            for key, due in person.due.items():
                for number in {*due} - {*person.heard[key]}:
                    self.check_lateness(person, number)
        self._rests = True
        for line in self.lines:
            if line.is_cut:
                line.begin()
        super().rest()

    def _publish(self, shard: Shard) -> None:
        self.published_at[self.published + 1] = self.now
        super()._publish(shard)

    def _must_hear(self, person: Person, persistent: bool | None) -> bool:
        if persistent is False:
            self.passing.add(self.published)
        return True

    def _repeat(self, shard: Shard) -> None:
        """Keys are for other worlds."""
