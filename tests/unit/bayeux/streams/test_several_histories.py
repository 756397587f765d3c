"""Requests read several histories together: each message once and in order, or its loss."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.streams.several_histories import (
    Lost,
    SeveralHistories,
    SeveralPart,
    TooManyHistories,
)
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.routing.histories import MOST_LOOKS
from holdfast.delivery.routing.kept_messages import cursor_of
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Server, server_of

KEEPS = {
    "/rooms/**": ChannelSettings(history=3, durable=True),
    "/news": ChannelSettings(history=3, durable=True),
}


@pytest.fixture
def server() -> Server:
    return server_of(channels=KEEPS)


def publish(server: Server, channel: str, data: object) -> None:
    server.for_extensions.publish(channel, data)
    server.turn()


def read(server: Server, *names: str, after: int | None = None) -> SeveralPart:
    channels = [server.bayeux.state.channels.named(each) for each in names]
    return SeveralHistories(server.bayeux.state).read(channels, after)


def data_of(part: SeveralPart) -> list[object]:
    return [orjson.loads(each.wire)["data"] for each in part.messages]


def test_messages_of_several_channels_come_in_the_order_of_their_publishes(server: Server) -> None:
    for channel, data in (("/rooms/a", 1), ("/news", 2), ("/rooms/b/c", 3), ("/other", 4)):
        publish(server, channel, data)
    first = read(server, "/rooms/**", "/news")
    publish(server, "/rooms/a", 5)
    second = read(server, "/rooms/**", "/news", after=first.until)
    assert (data_of(first), data_of(second)) == ([1, 2, 3], [5])
    assert data_of(read(server, "/rooms/*")) == [1, 5]


def test_what_two_patterns_match_comes_once(server: Server) -> None:
    publish(server, "/rooms/a", 1)
    assert data_of(read(server, "/rooms/a", "/rooms/*", "/**")) == [1]


def test_channels_that_keep_nothing_are_named(server: Server) -> None:
    part = read(server, "/none", "/rooms/empty", "/none/**", after=0)
    assert (part.missing, part.messages) == (["/none"], [])


def test_the_loss_of_one_channel_is_told_once_and_does_not_keep_others_back(
    server: Server,
) -> None:
    place = read(server, "/rooms/*", "/news").until
    publish(server, "/news", "kept")
    for number in range(5):
        publish(server, "/rooms/a", number)
    part = read(server, "/rooms/*", "/news", after=place)
    assert data_of(part) == ["kept", 2, 3, 4]
    [lost] = part.lost
    assert (lost.channel, lost.first) == ("/rooms/a", place)
    again = read(server, "/rooms/*", "/news", after=part.until)
    assert (again.lost, again.messages) == ([], [])


def test_the_loss_of_a_whole_history_is_told_for_its_pattern(server: Server) -> None:
    place = read(server, "/rooms/*").until
    publish(server, "/rooms/a", 1)
    server.bayeux.state.histories.erase("/rooms/a")
    part = read(server, "/rooms/*", after=place)
    assert [each.channel for each in part.lost] == ["/rooms/*"]
    assert read(server, "/rooms/*", after=part.until).lost == []


def test_patterns_that_match_too_many_channels_are_refused() -> None:
    server = server_of(channels={"/many/*": ChannelSettings(history=1)})
    for number in range(MOST_LOOKS + 1):
        server.for_extensions.publish(f"/many/{number}", 1)
    server.turn()
    with pytest.raises(TooManyHistories):
        read(server, "/many/*")


def test_a_pattern_wakes_its_readers(server: Server) -> None:
    streams, woken = server.bayeux.streams, list[str]()

    def wake() -> None:
        woken.append("woken")

    streams.wait(["/rooms/**", "/news"], wake)
    publish(server, "/other", 1)
    assert woken == []
    publish(server, "/rooms/a/b", 2)
    assert woken == ["woken"]
    streams.wait_no_more(wake)
    publish(server, "/news", 3)
    assert woken == ["woken"]


# Whatever happens

CHANNELS = ["/rooms/a", "/rooms/b", "/news"]
PUBLISH = st.tuples(st.sampled_from(["publish", "unknown"]), st.sampled_from(CHANNELS))
ERASE = st.tuples(st.just("erase"), st.sampled_from(CHANNELS))
OTHERS = st.tuples(st.sampled_from(["kept", "refused", "later", "read"]), st.just(""))


class Reading:
    """A reader of all channels, and the naive truth about it."""

    def __init__(self) -> None:
        self.server = server_of(channels=KEEPS)
        self.histories = SeveralHistories(self.server.bayeux.state)
        named = self.server.bayeux.state.channels.named
        self.channels = [named("/rooms/*"), named("/news")]
        self.place = self.histories.read(self.channels, None).until
        self.got: list[int] = []
        self.lost: list[Lost] = []
        self.published = 0

    def do(self, step: str, channel: str) -> None:
        keeper = self.server.keeper
        match step:
            case "publish":
                self._publish(channel)
            case "unknown":
                keeper.is_silent = True
                self._publish(channel)
                keeper._silent[-1](PersistOutcome.UNKNOWN)
                keeper.is_silent = False
            case "kept" | "refused":
                if keeper._silent:
                    keeper._silent.pop(0)(PersistOutcome[step.upper()])
            case "erase":
                self.server.bayeux.state.histories.erase(channel)
            case "later":
                self.server.advance(1.0)
            case "read":
                self._read()
            case other:
                raise AssertionError(other)
        self.server.turn()

    def _publish(self, channel: str) -> None:
        self.published += 1
        self.server.for_extensions.publish(channel, self.published)

    def _read(self) -> None:
        part = self.histories.read(self.channels, self.place)
        self.got += [cursor_of(each.id) for each in part.messages]
        self.lost += part.lost
        assert part.until >= self.place
        self.place = part.until

    def knows_of_loss(self, channel: str, cursor: int) -> bool:
        names = {channel, "/rooms/*"} if channel.startswith("/rooms/") else {channel}
        return any(each.channel in names and each.first < cursor <= each.last for each in self.lost)


@pytest.mark.slow
@given(st.lists(PUBLISH | ERASE | OTHERS, max_size=40))
def test_a_reader_gets_all_messages_in_order_once_or_learns_of_the_loss(
    steps: list[tuple[str, str]],
) -> None:
    reading = Reading()
    arrival = reading.server.bayeux.state.histories.arrival
    for step, channel in [*steps, *[("kept", "")] * 40, *[("read", "")] * 3]:
        reading.do(step, channel)
    entered: dict[int, str] = {}
    while arrival.message is not None and arrival.next is not None:
        entered[cursor_of(arrival.message.id)] = arrival.message.channel
        arrival = arrival.next
    assert reading.got == sorted(set(reading.got))
    assert {*reading.got} <= {*entered}
    for cursor in {*entered} - {*reading.got}:
        assert reading.knows_of_loss(entered[cursor], cursor)
