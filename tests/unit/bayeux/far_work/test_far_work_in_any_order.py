"""Each piece of work is done once, whatever is killed, restarted, lost or late.

The model knows which copies clients have, and what they may say of each. Work is done if a client
has acked a copy; without kills and lost contact, no session gets work that another one has.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.messages.storing import PersistOutcome
from tests.effort import TIMES
from tests.unit.bayeux.far_work.working import (
    JOBS,
    balances,
    is_done,
    settled,
    taker,
    working,
)
from tests.unit.bayeux.leaving.successors import at
from tests.unit.extensions.delivering import connect, no

if TYPE_CHECKING:
    from tests.unit.bayeux.harness import Asked, Client

# Each of them is at another shard. The home of the work is the shard of ann.
PEOPLE = ["ann/1", "bob/1", "carl/1"]
ANYBODY = st.sampled_from(PEOPLE)
SHARD = st.integers(0, 2)
CALM = [
    st.tuples(st.just("put"), SHARD, st.booleans()),
    st.tuples(st.just("put"), SHARD, st.booleans()),
    st.tuples(st.just("read"), SHARD, SHARD, st.integers(1, 3)),
    st.tuples(st.just("read"), SHARD, SHARD, st.integers(1, 3)),
    st.tuples(st.just("hear")),
    st.tuples(st.just("hear")),
    st.tuples(st.just("work"), ANYBODY),
    st.tuples(st.just("work"), ANYBODY),
    st.tuples(st.just("refuse"), ANYBODY),
    st.tuples(st.just("unsubscribe"), ANYBODY),
    st.tuples(st.just("subscribe"), ANYBODY),
    st.tuples(st.just("restart"), SHARD),
    st.tuples(st.just("wait"), st.integers(1, 5)),
]
ROUGH = [
    *CALM,
    st.tuples(st.just("kill"), SHARD),
    st.tuples(st.just("give_up"), SHARD),
    st.tuples(st.just("pause"), SHARD),
    st.tuples(st.just("lose"), SHARD, SHARD),
    st.tuples(st.just("leave"), ANYBODY),
]


class Play:
    """Three people at three shards work, and anybody puts work there."""

    def __init__(self) -> None:
        self.world = working(3)
        self.people: dict[str, Client] = {}
        self.number = 0
        # What was put, and whether it is stored; what its publisher was told.
        self.put_jobs: dict[int, bool] = {}
        self.told: list[tuple[int, Asked]] = []
        # Who was shown which job how often; what is in flight; and what was acked by whom.
        self.shown: Counter[int] = Counter()
        self.in_flight: dict[str, dict[int, Any]] = {name: {} for name in PEOPLE}
        self.acked: Counter[int] = Counter()
        self.refused: Counter[int] = Counter()
        # Whether everything so far was calm, so that no job is shown to two at once.
        self.is_calm = True
        for name in PEOPLE:
            self.people[name] = taker(self.world, name)
        settled(self.world)

    def put(self, shard: int, is_stored: bool) -> None:
        boss = self.world.client(shard)
        self.number += 1
        self.put_jobs[self.number] = is_stored
        ext = {} if is_stored else {"ext": {"delivery": {"persistent": False}}}
        self.told.append((self.number, boss.publish(JOBS, self.number, **ext)))
        boss.server.turn()

    def read(self, reader: int, writer: int, most: int) -> None:
        if reader != writer:
            self.world.shards[reader].read(writer, most)

    def hear(self) -> None:
        """Let all shards hear everything."""
        self.world.read_all()
        for shard in self.world.shards:
            shard.server.turn()

    def work(self, name: str, *verdicts: Any) -> None:
        """Ack what the person has, and take what there is."""
        client = self.people[name]
        if client.session.is_gone:
            return
        done = self.in_flight[name]
        asked = connect(client, *verdicts)
        client.server.turn()
        if asked.is_held:
            # Its store refuses everything at the moment; what was said counts nevertheless.
            return
        refused = {each["seq"] for each in verdicts}
        for job, event in [*done.items()]:
            del done[job]
            if event["ext"]["delivery"]["seq"] in refused:
                self.refused[job] += 1
            else:
                self.acked[job] += 1
        for event in asked.events:
            self.show(name, event)

    def show(self, name: str, event: Any) -> None:
        job = event["data"]
        if self.is_calm:
            others = [each for each in PEOPLE if job in self.in_flight[each]]
            assert others == [], (job, others)
            assert not self.acked[job]
        self.shown[job] += 1
        self.in_flight[name][job] = event

    def refuse(self, name: str) -> None:
        """Refuse the first job that the person has, and ack the rest."""
        events = [*self.in_flight[name].values()]
        if events:
            self.work(name, no(events[0], "user.update.error"))

    def unsubscribe(self, name: str) -> None:
        self.people[name].send({"channel": "/meta/unsubscribe", "subscription": JOBS})
        self.people[name].server.turn()

    def subscribe(self, name: str) -> None:
        self.people[name].subscribe(JOBS)
        self.people[name].server.turn()

    def leave(self, name: str) -> None:
        """End the session, and begin another one."""
        self.is_calm = False
        client = self.people[name]
        client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
        client.server.turn()
        self.come(name)

    def come(self, name: str) -> None:
        self.in_flight[name].clear()
        server = self.world.shards[self.world.home_of(name)].server
        client = self.people[name] = server.guest()
        client.handshake(ext={"ack": True, "delivery": {"session": name}})
        server.turn()
        self.subscribe(name)

    def restart(self, shard: int) -> None:
        if self.world.shards[shard].keeper.outcome is not PersistOutcome.KEPT:
            return
        self.world.shards[shard].restart()
        for name in PEOPLE:
            if self.world.home_of(name) == shard:
                at(self.people[name], self.world.shards[shard].server)

    def kill(self, shard: int) -> None:
        self.is_calm = False
        self.world.shards[shard].kill()
        for name in PEOPLE:
            if self.world.home_of(name) == shard:
                self.come(name)

    def give_up(self, shard: int) -> None:
        """Let no answer come in time to letters of a shard."""
        self.is_calm = False
        self.world.shards[shard].give_up()
        self.world.shards[shard].server.turn()

    def pause(self, shard: int) -> None:
        """Let the store of a shard refuse messages until the next pause."""
        self.is_calm = False
        keeper = self.world.shards[shard].keeper
        is_open = keeper.outcome is PersistOutcome.KEPT
        keeper.outcome = PersistOutcome.REFUSED if is_open else PersistOutcome.KEPT

    def lose(self, shard: int, other: int) -> None:
        """Let a shard be out of reach of another one for a while, or not any more."""
        self.is_calm = False
        if shard != other:
            self.world.shards[shard].away ^= {other}
            self.wait(60)

    def wait(self, tenths: int) -> None:
        for _ in range(tenths):
            for shard in self.world.shards:
                shard.server.advance(0.1)

    def end(self) -> None:
        for shard in self.world.shards:
            shard.keeper.outcome = PersistOutcome.KEPT
            shard.away.clear()
        settled(self.world, 7)
        for name in PEOPLE:
            self.subscribe(name)
        settled(self.world, 0.5)
        for _ in range(len(self.put_jobs) + 3):
            for name in PEOPLE:
                self.work(name)
            settled(self.world, 0.2)
        self.check()

    def check(self) -> None:
        letters = Counter(each.message for each in self._letters())
        dead = Counter(int(each.wire.rpartition(b":")[2][:-1]) for each in self._letters())
        assert all(count == 1 for count in letters.values()) or not self.is_calm
        for job, asked in self.told:
            is_lost = asked.is_held or asked.is_lost
            is_accepted = not is_lost and asked.elements[-1].get("successful", False)
            if is_accepted and (self.put_jobs[job] or self.is_calm):
                assert self.acked[job] or dead[job], job
            if self.is_calm:
                assert self.acked[job] + dead[job] <= 1
        assert is_done(self.world)
        assert balances(self.world)
        for shard in self.world.shards:
            assert shard.keeper.inbox == {}
            assert len(shard.inbox) == len(shard.sent) == 0
        if self.is_calm:
            counted = sum(each.server.bayeux.state.counters.acked for each in self.world.shards)
            assert counted <= sum(self.acked.values())

    def _letters(self) -> list[Any]:
        return [each for shard in self.world.shards for each in shard.keeper.letters]


def play(steps: list[Any]) -> None:
    acting = Play()
    for kind, *args in steps:
        getattr(acting, kind)(*args)
    acting.end()


@pytest.mark.slow
@given(st.lists(st.one_of(*CALM), max_size=40))
@settings(max_examples=25 * TIMES)
def test_no_session_gets_work_that_another_one_has(steps: list[Any]) -> None:
    play(steps)


@pytest.mark.slow
@given(st.lists(st.one_of(*ROUGH), max_size=40))
@settings(max_examples=30 * TIMES)
def test_work_that_was_accepted_is_done_whatever_happens(steps: list[Any]) -> None:
    play(steps)
