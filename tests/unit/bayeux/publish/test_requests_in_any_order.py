"""Each request has one outcome, as at a single server, also if shards are killed at any time."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.messages.storing import PersistOutcome
from tests.effort import TIMES
from tests.unit.bayeux.far_work.working import JOBS, RULES, settled
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.asking import POWER, asking
from tests.unit.extensions.delivering import connect

PEOPLE = ["ann/1", "bob/1", "carl/1"]
ANYBODY = st.sampled_from(PEOPLE)
SHARD = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("ask"), ANYBODY, st.sampled_from(["first", "all", "one"]), st.booleans()),
    st.tuples(st.just("read"), SHARD, SHARD, st.integers(1, 3)),
    st.tuples(st.just("read"), SHARD, SHARD, st.integers(1, 3)),
    st.tuples(st.just("listen"), ANYBODY),
    st.tuples(st.just("reply"), ANYBODY, st.integers(0, 3)),
    st.tuples(st.just("give_up"), SHARD),
    st.tuples(st.just("kill"), SHARD),
    st.tuples(st.just("pause"), SHARD),
    st.tuples(st.just("wait"), st.integers(1, 30)),
)
TIMEOUT_S = 5
# What a reply may be answered, besides success.
FAULTS = ("duplicate_reply", "late_reply")


class Told(NamedTuple):
    """A publish, and the last request with it."""

    asked: Asked
    channel: str

    @property
    def error(self) -> str | None:
        """None if the client cannot know whether it was accepted."""
        if self.asked.is_held:
            return None
        [reply] = [each for each in self.asked.replies if each["channel"] == self.channel]
        error: str = reply.get("error", "")
        return None if "unknown:" in error else error


class Play:
    """Three people at three shards ask and answer each other.

    Each of them hears each request, or, if it is work, one of them does.
    """

    def __init__(self, channel: str) -> None:
        self.channel = channel
        self.timeout = f"408:{channel}:timeout"
        self.no_responders = f"404:{channel}:no_responders"
        self.world = asking(3, **RULES)
        self.people: dict[str, Client] = {}
        self.channels: dict[str, str] = {}
        # By the data of a request: who asked, how, and what the publish was told.
        self.asked: list[tuple[str, str, Told]] = []
        # By person, the requests that it got, and what came on its reply channel.
        self.got: dict[str, list[Json]] = {name: [] for name in PEOPLE}
        self.outcomes: dict[str, list[Json]] = {name: [] for name in PEOPLE}
        # What each told about each request.
        self.replies: list[tuple[str, int, Told]] = []
        self.waiting: list[tuple[str, Asked]] = []
        # When each was sent, and those that a shard may have forgotten when it was killed: its own
        # ones, and any that were over.
        self.times: list[float] = []
        self.forgotten: set[int] = set()
        # Requests that are work and not stored, and all that a kill may have ended.
        self.passing: set[int] = set()
        self.gone: set[int] = set()
        for name in PEOPLE:
            self.come(name, True)
            self.people[name].subscribe(channel)
            self.people[name].server.turn()
        settled(self.world)

    def come(self, name: str, request: Any) -> None:
        server = self.world.shards[self.world.home_of(name)].server
        client = self.people[name] = server.guest()
        ext = {"ack": True, "request": request, "delivery": {"session": name}}
        handshake = client.handshake(ext=ext)
        self.channels[name] = handshake.elements[0]["ext"]["ret"]
        server.turn()

    def ask(self, name: str, mode: str, is_kept: bool) -> None:
        number = len(self.asked)
        reply_to = f"{self.channels[name]}/{4_000_000 + number}"
        ext = {"replyTo": reply_to, "timeout": TIMEOUT_S * 1000, "request": mode}
        if not is_kept:
            ext["delivery"] = {"persistent": False}
            self.passing |= {number} if self.channel == JOBS else set()
        told = self._publish(name, self.channel, number, ext=ext)
        self.asked.append((name, mode, told))
        self.times.append(self.people[name].server.now)

    def reply(self, name: str, place: int) -> None:
        if self.got[name]:
            event = self.got[name][place % len(self.got[name])]
            told = self._publish(name, event["ext"]["replyTo"], f"{name} {event['data']}")
            self.replies.append((name, event["data"], told))

    def _publish(self, name: str, channel: str, data: Any, **fields: Any) -> Told:
        client = self.people[name]
        asked = client.publish(channel, data, **fields)
        client.server.turn()
        self.waiting.append((name, asked))
        self.hear()
        return Told(asked, channel)

    def hear(self) -> None:
        """Events travel with any reply."""
        for name, asked in self.waiting:
            if not asked.is_held:
                self._take(name, asked.events)
        self.waiting = [each for each in self.waiting if each[1].is_held]

    def _take(self, name: str, events: list[Json]) -> None:
        for event in events:
            if event["channel"] == self.channel:
                self.got[name].append(event)
            else:
                self.outcomes[name].append(event)

    def listen(self, name: str) -> None:
        self.hear()
        while True:
            asked = connect(self.people[name])
            self.people[name].server.turn()
            if not asked.events:
                break
            self._take(name, asked.events)
        self.hear()

    def read(self, reader: int, writer: int, most: int) -> None:
        if reader != writer:
            self.world.shards[reader].read(writer, most)

    def give_up(self, shard: int) -> None:
        self.world.shards[shard].give_up()
        self.world.shards[shard].server.turn()

    def kill(self, shard: int) -> None:
        here = [name for name in PEOPLE if self.world.home_of(name) == shard]
        for name in here:
            # All that was heard is acked.
            self.listen(name)
        self.forgotten |= {at for at, each in enumerate(self.asked) if each[0] in here}
        over = self.world.shards[shard].server.now - TIMEOUT_S
        self.forgotten |= {at for at, time in enumerate(self.times) if time <= over}
        self.world.shards[shard].kill()
        self.gone |= self.passing
        for name in here:
            self.come(name, self.channels[name])

    def pause(self, shard: int) -> None:
        """Let the store of a shard refuse messages until the next pause."""
        keeper = self.world.shards[shard].keeper
        is_open = keeper.outcome is PersistOutcome.KEPT
        keeper.outcome = PersistOutcome.REFUSED if is_open else PersistOutcome.KEPT

    def wait(self, tenths: int) -> None:
        for shard in self.world.shards:
            shard.server.advance(tenths / 10)

    def end(self) -> None:
        for shard in self.world.shards:
            shard.keeper.outcome = PersistOutcome.KEPT
        for _ in range(3):
            self.world.read_all()
            self.wait(30)
        self.world.read_all()
        for name in PEOPLE:
            self.listen(name)
        # Of work, the home hears that it is done.
        self.world.read_all()
        for number, (name, mode, told) in enumerate(self.asked):
            self._check(number, name, mode, told)
        for shard in self.world.shards:
            assert shard.server.bayeux.state.requests.outstanding == 0
            assert shard.server.balances()
            assert shard.keeper.requests == {}
            assert shard.keeper.inbox == {}
            assert len(shard.inbox) == len(shard.sent) == 0

    def _check(self, number: int, name: str, mode: str, told: Told) -> None:
        reply_to = f"{self.channels[name]}/{4_000_000 + number}"
        found = [each for each in self.outcomes[name] if each["channel"] == reply_to]
        data = [each.get("error", each["data"]) for each in found]
        replies = [(who, each.error) for who, at, each in self.replies if at == number]
        counted = {f"{who} {number}" for who, error in replies if error == ""}
        perhaps = counted | {f"{who} {number}" for who, error in replies if error is None}
        for who, error in replies:
            if error and number not in self.forgotten and not error.startswith("503:"):
                assert error.endswith(FAULTS), (who, error)
        if told.error == "" and data == [self.no_responders] and number in self.gone:
            assert not counted
        elif told.error == "":
            self._check_outcome(mode, data, counted, perhaps)
        else:
            # No one knows whether it was sent.
            assert told.error is None or data == []

    def _check_outcome(
        self, mode: str, data: list[Any], counted: set[str], perhaps: set[str]
    ) -> None:
        if mode == "all" and data != [self.timeout]:
            *data, end = data
            assert data
            assert end["replies"] == len(data)
            # A shard may not have said in time who was asked.
            assert 0 <= end["missing"] <= len(PEOPLE) - len(data)
        elif mode != "all":
            assert len(data) == 1
        if data == [self.no_responders]:
            # Nobody was there at the moment.
            assert mode == "one"
            assert not counted
        elif data != [self.timeout]:
            assert len({*data}) == len(data)
            assert counted <= {*data} <= perhaps
        else:
            assert not counted


@pytest.mark.slow
@pytest.mark.parametrize("channel", [POWER, JOBS])
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=50 * TIMES)
def test_each_request_has_one_outcome(channel: str, steps: list[Any]) -> None:
    play = Play(channel)
    for kind, *args in steps:
        getattr(play, kind)(*args)
        play.hear()
    play.end()
