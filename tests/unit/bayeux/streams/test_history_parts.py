"""Requests without a session read a history in order: each message once, or learn of a loss."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.streams.history_parts import (
    MOST_BYTES,
    MOST_MESSAGES,
    HistoryLost,
    HistoryMissing,
    HistoryPart,
    PlaceInvalid,
)
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Server, server_of

KEEPS = {
    "/a": ChannelSettings(history=5),
    "/durable": ChannelSettings(history=5, durable=True),
    "/many": ChannelSettings(history=3000, history_bytes=64 * 1024**2),
}


@pytest.fixture
def server() -> Server:
    return server_of(channels=KEEPS)


def channel_of(server: Server, name: str) -> Channel:
    return server.bayeux.state.channels.named(name)


def publish(server: Server, *data: object, channel: str = "/a", **options: Any) -> None:
    for each in data:
        server.client().publish(channel, each, **options)
    server.turn()


def read(server: Server, after: int | None = None, channel: str = "/a") -> HistoryPart:
    return server.bayeux.streams.read(channel_of(server, channel), after)


def data_of(part: HistoryPart) -> list[Any]:
    return [orjson.loads(each.wire)["data"] for each in part.messages]


def test_a_reader_goes_on_where_it_stopped(server: Server) -> None:
    publish(server, 1, 2)
    first = read(server)
    publish(server, 3)
    second = read(server, first.until)
    third = read(server, second.until)
    assert (data_of(first), data_of(second), data_of(third)) == ([1, 2], [3], [])
    assert third.until == second.until


def test_an_empty_history_has_a_place_from_which_a_reader_goes_on(server: Server) -> None:
    place = read(server).until
    publish(server, 1)
    assert data_of(read(server, place)) == [1]


def test_the_end_of_a_history_is_behind_its_last_message(server: Server) -> None:
    publish(server, 1)
    end = server.bayeux.streams.end_of(channel_of(server, "/a"))
    publish(server, 2)
    assert data_of(read(server, end)) == [2]


@pytest.mark.parametrize("channel", ["/none", "/a/b"])
def test_a_channel_that_keeps_nothing_has_nothing_to_read(server: Server, channel: str) -> None:
    publish(server, 1, channel=channel)
    with pytest.raises(HistoryMissing):
        read(server, channel=channel)
    with pytest.raises(HistoryMissing):
        server.bayeux.streams.end_of(channel_of(server, channel))


def test_a_topic_that_keeps_messages_against_its_rule_can_be_read(server: Server) -> None:
    topic = {"delivery": {"topic": {"history": {"maxEntries": 3}}}}
    publish(server, 1, channel="/topic", ext=topic)
    assert data_of(read(server, channel="/topic")) == [1]


def test_a_place_that_no_history_has_reached_is_invalid(server: Server) -> None:
    publish(server, 1)
    with pytest.raises(PlaceInvalid):
        read(server, read(server).until + 10**9)


def test_a_reader_learns_which_messages_have_left_before_it_came(server: Server) -> None:
    publish(server, 1)
    place = read(server).until
    publish(server, 2, 3, 4, 5, 6, 7)
    with pytest.raises(HistoryLost) as lost:
        read(server, place)
    assert lost.value.first == place
    assert data_of(read(server, lost.value.last)) == [3, 4, 5, 6, 7]


def test_expired_messages_are_no_loss(server: Server) -> None:
    place = read(server).until
    publish(server, 1, ext={"delivery": {"expiration": {"lifeTime": 2000}}})
    publish(server, 2)
    alive = read(server, place)
    assert alive.ends_ms == server.bayeux.state.node.now_ms() + 2000
    server.advance(2.1)
    expired = read(server, place)
    assert (data_of(expired), expired.ends_ms) == ([2], 0)


def test_a_part_has_a_bounded_size_and_says_whether_there_is_more(server: Server) -> None:
    publish(server, *["x" * 100_000] * 5, channel="/many")
    part = read(server, channel="/many")
    assert (len(part.messages), part.is_last) == (2, False)
    assert sum(len(each.wire) for each in part.messages) <= MOST_BYTES
    rest = read(server, part.until, channel="/many")
    last = read(server, rest.until, channel="/many")
    assert (len(rest.messages), rest.is_last) == (2, False)
    assert (len(last.messages), last.is_last) == (1, True)


def test_a_part_has_a_bounded_number_of_messages(server: Server) -> None:
    publish(server, *range(MOST_MESSAGES + 1), channel="/many")
    part = read(server, channel="/many")
    assert (data_of(part), part.is_last) == ([*range(MOST_MESSAGES)], False)
    rest = read(server, part.until, channel="/many")
    assert (data_of(rest), rest.is_last) == ([MOST_MESSAGES], True)


def test_a_message_larger_than_a_part_comes_alone(server: Server) -> None:
    publish(server, "x" * 2 * MOST_BYTES, "y", channel="/many")
    part = read(server, channel="/many")
    assert (len(part.messages), part.is_last) == (1, False)
    assert data_of(read(server, part.until, channel="/many")) == ["y"]


def test_a_message_that_may_still_come_holds_back_those_behind_it(server: Server) -> None:
    keeper = server.keeper
    place = read(server, channel="/durable").until
    keeper.is_silent = True
    server.client().publish("/durable", 1)
    keeper.answer_late(PersistOutcome.UNKNOWN)
    keeper.is_silent = False
    publish(server, 2, channel="/durable")
    # Message 2 is shown to subscribers, but a reader that got it would miss message 1 later.
    assert data_of(read(server, place, channel="/durable")) == []
    assert server.bayeux.streams.end_of(channel_of(server, "/durable")) == place
    keeper.answer_late(PersistOutcome.KEPT)
    server.turn()
    assert data_of(read(server, place, channel="/durable")) == [1, 2]


# Waiting


def test_a_reader_is_woken_once_by_messages_of_its_channel_alone(server: Server) -> None:
    streams, woken = server.bayeux.streams, list[str]()

    def wake() -> None:
        woken.append("woken")

    streams.wait(["/a"], wake)
    publish(server, 1, channel="/many")
    assert woken == []
    publish(server, 2, 3)
    assert len(woken) == 1
    streams.wait_no_more(wake)
    streams.wait(["/a"], wake)
    publish(server, 4)
    assert len(woken) == 2
    streams.wait_no_more(wake)
    streams.wait(["/a"], wake)
    streams.wait_no_more(wake)
    publish(server, 5)
    assert len(woken) == 2
    assert not streams._waiting


def test_a_reader_is_woken_when_nothing_holds_messages_back_any_more(server: Server) -> None:
    streams, keeper, woken = server.bayeux.streams, server.keeper, list[str]()
    place = read(server, channel="/durable").until
    keeper.is_silent = True
    server.client().publish("/durable", 1)
    keeper.answer_late(PersistOutcome.UNKNOWN)
    keeper.is_silent = False
    publish(server, 2, channel="/durable")
    streams.wait(["/durable"], lambda: woken.append("woken"))
    keeper.answer_late(PersistOutcome.REFUSED)
    assert woken == ["woken"]
    assert data_of(read(server, place, channel="/durable")) == [2]


def test_a_server_that_stops_wakes_all_readers_and_lets_none_wait(server: Server) -> None:
    streams, woken = server.bayeux.streams, list[str]()
    streams.wait(["/a"], lambda: woken.append("a"))
    streams.wait(["/none"], lambda: woken.append("none"))
    assert streams.may_wait
    server.stop()
    assert sorted(woken) == ["a", "none"]
    assert not streams.may_wait


# Whatever happens

PUBLISH = st.sampled_from(["publish", "unknown"])
OTHERS = st.sampled_from(["kept", "refused", "erase", "later", "read 0", "read 1"])


class Readers:
    """Two readers of a history, and the naive truth about them."""

    def __init__(self) -> None:
        self.server = server_of(channels=KEEPS)
        self.channel = channel_of(self.server, "/durable")
        start = read(self.server, channel="/durable").until
        self.places = [start, start]
        self.got: list[list[int]] = [[], []]
        self.lost: list[list[tuple[int, int]]] = [[], []]
        self.published = 0

    def do(self, step: str) -> None:
        keeper = self.server.keeper
        match step.split():
            case ["publish"]:
                self._publish()
            case ["unknown"]:
                keeper.is_silent = True
                self._publish()
                keeper._silent[-1](PersistOutcome.UNKNOWN)
                keeper.is_silent = False
            case ["kept" | "refused" as outcome]:
                if keeper._silent:
                    keeper._silent.pop(0)(PersistOutcome[outcome.upper()])
            case ["erase"]:
                self.server.bayeux.state.hub.histories.erase("/durable")
            case ["later"]:
                self.server.advance(1.0)
            case ["read", reader]:
                self._read(int(reader))
            case other:
                raise AssertionError(other)
        self.server.turn()

    def _publish(self) -> None:
        self.published += 1
        self.server.for_extensions.publish("/durable", self.published)

    def _read(self, reader: int) -> None:
        try:
            part = read(self.server, self.places[reader], channel="/durable")
        except HistoryLost as lost:
            self.lost[reader].append((lost.first, lost.last))
            self.places[reader] = lost.last
            return
        self.got[reader] += [each.id // 1000 for each in part.messages]
        self.places[reader] = part.until


@pytest.mark.slow
@given(st.lists(PUBLISH | OTHERS, max_size=40))
def test_readers_get_all_messages_in_order_once_or_learn_of_the_loss(steps: list[str]) -> None:
    readers = Readers()
    arrival = readers.server.bayeux.state.hub.histories.arrival
    for step in [*steps, *["kept"] * 40, *["read 0", "read 1"] * 3]:
        readers.do(step)
    entered: set[int] = set()
    while arrival.message is not None and arrival.next is not None:
        entered.add(arrival.message.id // 1000)
        arrival = arrival.next
    for got, lost in zip(readers.got, readers.lost, strict=True):
        assert got == sorted(set(got))
        assert {*got} <= entered
        assert all(any(a < each <= b for a, b in lost) for each in entered - {*got})
