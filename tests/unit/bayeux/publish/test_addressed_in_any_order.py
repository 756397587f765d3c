"""Each destination gets what the reply says once, and in order, also if shards are killed."""

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.messages.storing import PersistOutcome
from tests.unit.bayeux.harness import Asked, Json
from tests.unit.bayeux.publish.addressing import forced, heard, named, reported, subscribed
from tests.unit.bayeux.publish.shards import World

PEOPLE = ["ann/1", "bob/1", "carl/1"]
NAMES = st.lists(st.sampled_from(["ann", "bob/1", "carl", "dora", "ann/1"]), min_size=1, max_size=3)
ANYBODY = st.sampled_from(PEOPLE)
STEPS = st.one_of(
    st.tuples(st.just("publish"), ANYBODY, NAMES, st.booleans(), st.booleans()),
    st.tuples(st.just("say"), ANYBODY),
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.just("listen"), ANYBODY),
    st.tuples(st.just("give_up"), st.integers(0, 2)),
    st.tuples(st.just("kill"), st.integers(0, 2)),
    st.tuples(st.just("pause"), st.integers(0, 2)),
)


class Sent(NamedTuple):
    """One publish: by whom, to whom, and the last request with it."""

    sender: str
    # Destinations; none for subscribers alone.
    to: list[Any]
    # Whether subscribers get it.
    is_shown: bool
    is_keyed: bool
    asked: Asked
    is_repeated: bool = False

    @property
    def reply(self) -> Json | None:
        """The reply, if there is one and the outcome is known."""
        if self.asked.is_held:
            return None
        [reply] = [each for each in self.asked.replies if not each["channel"].startswith("/meta")]
        return None if "unknown:" in reply.get("error", "") else reply


class Play:
    """Three people at three shards address each other, and repeat what has no outcome."""

    def __init__(self) -> None:
        self.world = World(3)
        self.clients = {name: subscribed(self.world, name) for name in PEOPLE}
        self.heard: dict[str, list[int]] = {name: [] for name in PEOPLE}
        self.sent: list[Sent] = []
        # Those that are not answered.
        self.replies: list[tuple[str, Asked]] = []

    def publish(self, sender: str, names: list[str], is_shown: bool, is_keyed: bool) -> None:
        # There is no client dora, but messages may wait.
        to = [forced(name) if name == "dora" else name for name in dict.fromkeys(names)]
        asked = self._ask(sender, to, len(self.sent), is_shown, is_keyed)
        self.sent.append(Sent(sender, to, is_shown, is_keyed, asked))

    def say(self, sender: str) -> None:
        asked = self._ask(sender, [], len(self.sent), is_shown=True, is_keyed=False)
        self.sent.append(Sent(sender, [], True, False, asked))

    def _ask(
        self, sender: str, to: list[Any], number: int, is_shown: bool, is_keyed: bool
    ) -> Asked:
        qos: Json = {"key": str(number)} if is_keyed else {"priority": 5}
        if to:
            qos |= {"destinations": to, "subscribable": is_shown}
        client = self.clients[sender]
        asked = client.publish("/news", number, ext={"delivery": qos})
        client.server.turn()
        self.replies.append((sender, asked))
        self.hear_replies()
        return asked

    def hear_replies(self) -> None:
        """Events travel with any reply."""
        late = []
        for name, asked in self.replies:
            if asked.is_held:
                late.append((name, asked))
            else:
                self.heard[name] += asked.data
        self.replies = late

    def read(self, reader: int, writer: int, most: int) -> None:
        if reader != writer:
            self.world.shards[reader].read(writer, most)

    def listen(self, name: str) -> None:
        self.hear_replies()
        self.heard[name] += heard(self.clients[name])
        self.hear_replies()

    def give_up(self, shard: int) -> None:
        self.world.shards[shard].sent.give_up()
        self.world.shards[shard].server.turn()

    def kill(self, shard: int) -> None:
        for name in PEOPLE:
            if self.world.home_of(name) == shard:
                # All that was heard is acked.
                self.listen(name)
        self.world.shards[shard].kill()
        for name in PEOPLE:
            if self.world.home_of(name) == shard:
                self.clients[name] = named(self.world, name)

    def pause(self, shard: int) -> None:
        """Let the store of a shard refuse messages until the next pause."""
        keeper = self.world.shards[shard].keeper
        is_open = keeper.outcome is PersistOutcome.KEPT
        keeper.outcome = PersistOutcome.REFUSED if is_open else PersistOutcome.KEPT

    def end(self) -> None:
        for shard in self.world.shards:
            shard.keeper.outcome = PersistOutcome.KEPT
        self.world.read_all()
        for number, sent in enumerate(self.sent):
            if sent.is_keyed and sent.reply is None:
                asked = self._ask(sent.sender, sent.to, number, sent.is_shown, is_keyed=True)
                self.sent[number] = sent._replace(asked=asked, is_repeated=True)
        self.world.read_all()
        for name in PEOPLE:
            self.listen(name)
        for number in range(len(self.sent)):
            self._check(number)
        self._check_order()
        for shard in self.world.shards:
            assert shard.server.balances()
            assert shard.keeper.inbox == {}
            assert len(shard.inbox) == len(shard.sent) == 0

    def _check(self, number: int) -> None:
        sent, reply = self.sent[number], self.sent[number].reply
        assert reply is not None or not sent.is_keyed
        got = Counter(name for name in PEOPLE for each in self.heard[name] if each == number)
        assert max(got.values(), default=0) <= 1
        if reply is None:
            # Without a key, the publisher does not repeat it: anybody may have it.
            return
        found = reported(reply) if sent.to and "ext" in reply else []
        reports = {name.removeprefix("client/"): state for name, state in found}
        is_shown = sent.is_shown and reply["successful"]
        for person in PEOPLE:
            subject = person.partition("/")[0]
            taken = [reports.get(name) == "OK" for name in (person, subject)]
            assert got[person] == (is_shown or any(taken))

    def _check_order(self) -> None:
        """What one publisher says to all is heard in its order."""
        for heard_here in self.heard.values():
            for sender in PEOPLE:
                numbers = [
                    each
                    for each in heard_here
                    if self.sent[each].sender == sender
                    and self.sent[each].is_shown
                    and not self.sent[each].is_repeated
                    # What is unknown may come late.
                    and self.sent[each].reply is not None
                ]
                assert numbers == sorted(numbers)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=300)
def test_every_destination_gets_what_the_reply_says_once(steps: list[Any]) -> None:
    play = Play()
    for kind, *args in steps:
        getattr(play, kind)(*args)
        play.hear_replies()
    play.end()
