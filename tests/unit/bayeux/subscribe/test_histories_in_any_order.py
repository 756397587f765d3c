"""Subscribes bring what another shard keeps, each message once and in order, whatever happens."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orjson import loads

from holdfast.settings import ChannelSettings
from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Json
from tests.unit.bayeux.publish.stage import ANYBODY, EVENTS, PEOPLE, Stage
from tests.unit.extensions.delivering import connect

# Their homes are the second and the third of three shards.
CHANNELS = ["/home/a", "/home/b"]
RULES = {"/home/*": ChannelSettings(history=1000, history_bytes=1_000_000, durable=True)}
STEPS = st.one_of(
    st.tuples(st.just("publish"), ANYBODY, st.sampled_from(CHANNELS)),
    st.tuples(st.just("join"), ANYBODY, st.sampled_from([*CHANNELS, "/home/*", "/**"])),
    st.tuples(st.just("resume"), ANYBODY),
    *EVENTS,
)


class Reader:
    """What one person knows: the subscription, the last cursor, what came since each subscribe."""

    def __init__(self) -> None:
        self.pattern = ""
        self.cursor = 0
        self.asked: Asked | None = None
        self.parts: list[list[Any]] = []

    @property
    def reply(self) -> Json | None:
        """The answer to the last subscribe."""
        if self.asked is None or self.asked.is_held:
            return None
        [reply] = [each for each in self.asked.replies if each["channel"] == "/meta/subscribe"]
        return reply

    @property
    def is_joining(self) -> bool:
        return self.asked is not None and self.asked.is_held


class Play(Stage):
    """They talk on two channels, and come again and again."""

    def __init__(self) -> None:
        super().__init__(channels=RULES)
        self.sent = 0
        self.readers = {name: Reader() for name in PEOPLE}

    def publish(self, name: str, channel: str) -> None:
        asked = self.clients[name].publish(channel, self.sent, ext={"delivery": {"priority": 5}})
        self.sent += 1
        self.clients[name].server.turn()
        self.wait_for(name, asked)

    def join(self, name: str, pattern: str) -> None:
        """Begin with everything that is kept."""
        reader = self.readers[name]
        if not reader.is_joining:
            self._leave(name)
            reader.pattern, reader.parts = pattern, []
            self._subscribe(name, -2)

    def resume(self, name: str) -> None:
        """Go on behind the last cursor of a connect."""
        reader = self.readers[name]
        if reader.pattern and not reader.is_joining and reader.cursor:
            self._leave(name)
            self._subscribe(name, {"cursor": reader.cursor})

    def _leave(self, name: str) -> None:
        reader, client = self.readers[name], self.clients[name]
        if reader.pattern:
            client.send({"channel": "/meta/unsubscribe", "subscription": reader.pattern})
            client.server.turn()
        self.listen(name)
        self.heard[name] = []

    def _subscribe(self, name: str, replay: Any) -> None:
        reader, client = self.readers[name], self.clients[name]
        fields = {"subscription": reader.pattern, "ext": {"replay": replay}}
        reader.parts.append([])
        self.heard[name] = reader.parts[-1]
        reader.cursor = 0
        reader.asked = client.send({"channel": "/meta/subscribe", **fields})
        client.server.turn()
        self.wait_for(name, reader.asked)

    def listen(self, name: str) -> None:
        self.hear_replies()
        reader, client = self.readers[name], self.clients[name]
        while True:
            asked = connect(client)
            client.server.turn()
            reply = asked.replies[0]
            if not asked.data:
                break
            self.heard[name] += asked.data
        reply = asked.replies[0]
        if "replay" in reply.get("ext", {}):
            reader.cursor = reply["ext"]["replay"]["cursor"]
        self.hear_replies()

    def kill(self, shard: int) -> None:
        super().kill(shard)
        for name, reader in self.readers.items():
            if self.world.home_of(name) == shard and reader.is_joining:
                # It may have subscribed or not, so it begins again.
                reader.asked = None
                self._leave(name)
                reader.pattern, reader.parts = "", []

    def repeat(self) -> None:
        for name, reader in self.readers.items():
            if reader.reply is not None and not reader.reply["successful"]:
                assert reader.reply["error"].startswith("503:"), reader.reply
                self.join(name, reader.pattern)

    def check(self) -> None:
        kept = {name: self._kept(name) for name in CHANNELS}
        for reader in self.readers.values():
            if not reader.pattern:
                continue
            assert reader.reply is not None
            assert reader.reply["successful"]
            names = CHANNELS if reader.pattern.endswith("*") else [reader.pattern]
            for name in names:
                self._check(reader, kept[name])

    def _kept(self, channel: str) -> list[Any]:
        home = self.world.home_of_channel(channel)
        assert home is not None
        found = self.world.shards[home].server.bayeux.state.histories.get(channel)
        return [loads(each.wire)["data"] for each in found or ()]

    def _check(self, reader: Reader, kept: list[Any]) -> None:
        parts = [[each for each in part if each in kept] for part in reader.parts]
        for part in parts:
            # In order, and each once.
            assert part == [each for each in kept if each in part]
        # Nothing is missing, although a few may have come again.
        assert {each for part in parts for each in part} == {*kept}
        if len(parts) == 1:
            assert parts[0] == kept


@pytest.mark.slow
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=50 * TIMES)
def test_subscribes_miss_nothing_that_any_shard_keeps(steps: list[Any]) -> None:
    Play().play(steps)
