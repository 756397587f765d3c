"""A late subscriber gets what its channels keep: after the reply, in order, each message once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux import answers
from holdfast.bayeux.caller import Caller
from holdfast.bayeux.login import Login, LoginMethod
from holdfast.bayeux.operation import Operation
from holdfast.bayeux.options import ChannelRule, Durable
from holdfast.bayeux.qos import Qos
from holdfast.bayeux.topic_options import TopicOptions
from holdfast.delivery.channels import covers
from holdfast.delivery.counters import Reason
from holdfast.delivery.history_depth import HistoryDepth, HistoryLimits
from holdfast.delivery.kept_messages import Histories
from holdfast.delivery.persist_outcome import PersistOutcome
from holdfast.delivery.queue import QueueLimits
from holdfast.delivery.topics import TopicConfig
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.journal.schema import Kind
from tests.unit.bayeux.harness import Asked, Client, House, Json, Socket
from tests.unit.bayeux.second_lives import KeptHouse, again, connect, drain, named, take
from tests.unit.journal.ledger import JournaledStore

KEEPS = {"/a": ChannelRule(history=HistoryDepth(5)), "/b/**": ChannelRule(history=HistoryDepth(3))}
DURABLE = {"/a": ChannelRule(history=HistoryDepth(5), durable=True)}


@pytest.fixture
def house() -> House:
    return House(DeliveryWire, partial(Ack, announces_batch=False), channels=KEEPS)


def publish(house: House, *data: object, channel: str = "/a") -> None:
    for each in data:
        house.server.publish(channel, each)
    house.turn()


def subscribe(client: Client, *channels: str, replay: Any = None, **delivery: Any) -> Asked:
    ext: Json = {}
    if replay is not None:
        ext["replay"] = replay
    if delivery:
        ext["delivery"] = delivery
    return client.send({"channel": "/meta/subscribe", "subscription": list(channels), "ext": ext})


def said_of(asked: Asked) -> Json:
    """What the reply says about the replay."""
    said: Json = asked.elements[0]["ext"]["replay"]
    return said


def last(count: int, *, newest_first: bool = False) -> Json:
    return {"numEntries": count, "newestFirst": newest_first}


def poll(client: Client) -> Asked:
    asked = client.connect(advice={"timeout": 0})
    client.house.turn()
    return asked


def cursors(events: list[Json]) -> list[int]:
    return [event["ext"]["replay"]["cursor"] for event in events]


def test_a_late_subscriber_gets_the_newest_messages_in_order_after_the_reply(house: House) -> None:
    publish(house, 1, 2, 3, 4, 5, 6)
    asked = subscribe(house.client(), "/a", history=last(3))
    assert asked.elements[0]["channel"] == "/meta/subscribe"
    assert asked.data == [4, 5, 6]


def test_a_long_history_with_cursors_is_spread_over_several_replies(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST_WITH_CURSORS", 2)
    publish(house, 1, 2, 3, 4, 5)
    client = house.client()
    asked = subscribe(client, "/a", replay=-2)
    assert [asked.data, poll(client).data, poll(client).data] == [[1, 2], [3, 4], [5]]


def test_a_subscribe_can_ask_for_the_newest_messages_first(house: House) -> None:
    publish(house, 1, 2, 3)
    assert subscribe(house.client(), "/a", history=last(2, newest_first=True)).data == [3, 2]


@pytest.mark.parametrize(
    ("asked", "data"),
    [
        ({"initialUpdate": True}, [3]),
        ({"history": {}}, [3]),
        ({"history": {"numEntries": -1, "newestFirst": False}}, [1, 2, 3]),
        ({"history": {"numEntries": 2}, "initialUpdate": False}, []),
        ({"history": {"numEntries": 0}}, []),
        ({"initialUpdate": False}, []),
        ({"history": None}, []),
    ],
    ids=repr,
)
def test_a_subscribe_gets_as_much_of_a_history_as_it_asks_for(
    house: House, asked: Json, data: object
) -> None:
    publish(house, 1, 2, 3)
    assert subscribe(house.client(), "/a", **asked).data == data


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"initialUpdate": 1}, "initialUpdate"),
        ({"history": 5}, "history"),
        ({"history": {"numEntries": "5"}}, "history"),
        ({"history": {"numEntries": -2}}, "history"),
        ({"history": {"newestFirst": 0}}, "history"),
        ({"history": {"entries": 5}}, "history"),
    ],
    ids=repr,
)
def test_an_invalid_history_option_is_refused_by_name(
    house: House, asked: Json, named: str
) -> None:
    client = house.client()
    reply = subscribe(client, "/a", **asked).reply
    assert reply["error"] == f"400:user.illegalArgument,{named}:delivery_invalid"
    assert not client.session.subscriptions


def test_events_from_a_history_are_marked_as_initial_in_sessions_with_verdicts(
    house: House,
) -> None:
    publish(house, 1)
    client = house.client(ext={"delivery": True})
    poll(client)
    subscribe(client, "/a", initialUpdate=True)
    publish(house, 2)
    flags = [event["ext"]["delivery"].get("initial") for event in poll(client).events]
    assert flags == [True, None]


def test_live_messages_follow_those_of_the_history_without_duplicates(house: House) -> None:
    socket = Socket()
    client = house.connected(socket=socket, browser="b")
    publish(house, 1, 2)
    subscribe(client, "/a", replay=-2)
    publish(house, 3)
    data = [element["data"] for element in client.hear() if "data" in element]
    assert data == [1, 2, 3]


def test_a_message_that_already_waits_for_the_client_does_not_come_twice(house: House) -> None:
    client = house.client(ext={"ack": True})
    client.subscribe("/a")
    publish(house, 1, 2)
    subscribe(client, "/**", replay=-2)
    assert poll(client).data == [1, 2]


def test_a_subscription_to_a_pattern_brings_the_history_of_each_channel(house: House) -> None:
    for number, channel in enumerate(["/b/x", "/b/y", "/a", "/b/x/z", "/b/y"]):
        publish(house, number, channel=channel)
    assert subscribe(house.client(), "/b/*", replay=-2).data == [0, 1, 4]
    assert subscribe(house.client(), "/**", replay=-2).data == [0, 1, 2, 3, 4]
    assert subscribe(house.client(), "/b/x", "/a", history=last(1)).data == [0, 2]


@pytest.mark.parametrize(("depth", "data"), [(0, []), (1, [5]), (2, [4, 5]), (5, [4, 5])])
def test_a_history_brings_no_more_than_its_depth(depth: int, data: list[int]) -> None:
    history = HistoryDepth(depth) if depth else None
    house = House(channels={"/a": ChannelRule(history=history)})
    publish(house, 1, 2, 3, 4, 5)
    assert subscribe(house.client(), "/a", history=last(2)).data == data


def test_a_filter_selects_from_the_history_too(house: House) -> None:
    publish(house, 1, 2, 3, 4)
    asked = subscribe(house.client(), "/a", history=last(-1), filter="data > 2")
    assert asked.data == [3, 4]


def test_a_subscription_without_own_messages_gets_none_from_the_history(house: House) -> None:
    client = house.client()
    client.publish("/a", "mine")
    publish(house, "other")
    assert subscribe(client, "/a", history=last(-1), local=False).data == ["other"]


def test_a_slow_filter_continues_in_later_turns() -> None:
    is_over = False
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: is_over)
    publish(house, 1, 2, 3)
    is_over = True
    client = house.client()
    asked = subscribe(client, "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    assert not client.session.subscriptions
    house.turn()
    assert asked.data == [2, 3]


def test_messages_published_while_a_filter_is_asked_come_only_from_replayed_channels() -> None:
    is_over = False
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: is_over)
    publish(house, 1, 2, 3)
    is_over = True
    client = house.client()
    asked = subscribe(client, "/a", "/b/**", replay={"/a": -2}, filter="data > 1")
    assert asked.is_held
    house.server.publish("/a", 4)
    house.server.publish("/b/x", 5)
    house.turn()
    assert asked.data == [2, 3, 4]


def test_a_history_is_read_only_once_for_a_slow_filter() -> None:
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(house, 1, 2, 3)
    asked = subscribe(house.client(), "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    # The messages that were read before still come.
    house.bayeux.state.hub.histories.erase("/a")
    house.turn()
    assert asked.data == [2, 3]


def test_many_histories_are_read_over_several_turns() -> None:
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    for n, name in enumerate("xyz"):
        publish(house, n, channel=f"/b/{name}")
    for channels in (["/b/**"], ["/b/x", "/b/y", "/b/z"]):
        asked = subscribe(house.client(), *channels, replay=-2)
        turns = 0
        while asked.is_held:
            turns += 1
            house.go_on()
        assert turns >= 3
        assert asked.data == [0, 1, 2]


CHANGE = st.tuples(st.sampled_from(["publish", "erase"]), st.sampled_from(["/a", "/b/x", "/b/y"]))
BEFORE = st.lists(CHANGE, max_size=20)
BETWEEN_TURNS = st.lists(st.lists(CHANGE, max_size=6), max_size=6)


class Reading:
    """A client catches up in many turns, while histories are shortened and erased."""

    def __init__(self, before: list[tuple[str, str]]) -> None:
        self.house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
        # The channels and cursors of what was published, in order.
        self.published: list[tuple[str, int]] = []
        self.change(before)
        self.begun = len(self.published)

    def change(self, moves: list[tuple[str, str]]) -> None:
        histories = self.house.bayeux.state.hub.histories
        for move, channel in moves:
            if move == "erase":
                histories.erase(channel)
            else:
                self.house.server.publish(channel, len(self.published))
                self.published.append((channel, histories.newest // 1000))

    def finish(self, asked: Asked, changes: list[list[tuple[str, str]]]) -> None:
        waiting = iter(changes)
        while asked.is_held:
            self.change(next(waiting, []))
            self.house.go_on()
        # Whatever comes now comes because of the subscription.
        self.house.turn()


@pytest.mark.slow
@given(BEFORE, BETWEEN_TURNS, st.integers(0, 20))
def test_a_replay_over_many_turns_reports_all_losses_and_has_no_duplicates(
    before: list[tuple[str, str]], changes: list[list[tuple[str, str]]], seen: int
) -> None:
    reading = Reading(before)
    cursors = [cursor for _, cursor in reading.published]
    cursor = cursors[min(seen, len(cursors)) - 1] if seen and cursors else 5
    newest = reading.house.bayeux.state.hub.histories.newest // 1000
    asked = subscribe(reading.house.client(), "/a", "/b/**", replay=cursor)
    reading.finish(asked, changes)
    said = said_of(asked)
    lost = said.get("lost", {})
    assert asked.data == sorted(set(asked.data))
    for n, (channel, at) in enumerate(reading.published):
        missing = lost.get("/a" if channel == "/a" else "/b/**", {"from": 0, "to": 0})
        is_lost = missing["from"] < at <= missing["to"]
        assert (n in asked.data) == (at > cursor) or (is_lost and at > cursor)
        assert n in asked.data or n < reading.begun
    assert said["recovered"] is not bool(lost)
    assert all(each["to"] <= newest for each in lost.values())


@pytest.mark.slow
@given(BEFORE, BETWEEN_TURNS)
def test_a_history_of_one_message_brings_at_most_one_per_channel_and_all_later_ones(
    before: list[tuple[str, str]], changes: list[list[tuple[str, str]]]
) -> None:
    reading = Reading(before)
    asked = subscribe(reading.house.client(), "/a", "/b/**", history=last(1))
    reading.finish(asked, changes)
    assert asked.data == sorted(set(asked.data))
    newer = set(range(reading.begun, len(reading.published)))
    assert newer <= set(asked.data)
    older = [reading.published[n][0] for n in asked.data if n < reading.begun]
    assert len(older) == len(set(older))


def test_messages_that_are_kept_and_erased_while_a_filter_is_asked_still_come() -> None:
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(house, 1, 2, channel="/b/x")
    publish(house, 3)
    asked = subscribe(house.client(), "/**", history=last(1), filter="data > 0")
    house.go_on()
    house.server.publish("/a", 4)
    house.server.publish("/a", 5)
    house.bayeux.state.hub.histories.erase("/a")
    house.turn()
    assert asked.data == [2, 3, 4, 5]


def test_messages_on_a_channel_without_history_during_a_catch_up_are_reported_as_lost() -> None:
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(house, 1, channel="/b/x")
    seen = house.bayeux.state.hub.settled_cursor()
    asked = subscribe(house.client(), "/b/**", "/none", replay=seen)
    house.server.publish("/none", 2)
    house.server.publish("/b/x", 3)
    house.turn()
    assert asked.data == [3]
    assert said_of(asked)["lost"].keys() == {"/none"}


def test_the_right_to_replay_is_checked_again_after_all_histories_are_read() -> None:
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(house, 1, channel="/b/x")
    publish(house, 2, channel="/b/y")
    for replay in ({"/b/x": -2, "/b/y": -2}, -2):
        client = user(house, {"replay": "/b/**"})
        asked = subscribe(client, "/b/*", replay=replay)
        house.go_on()
        assert asked.is_held
        client.session.identity.grants = Granted(subscribe="/**")
        house.turn()
        assert asked.reply["error"] == REPLAY


def test_a_subscribe_whose_connection_closes_while_a_filter_is_asked_has_no_effect() -> None:
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(house, 1, 2, 3)
    client = house.client()
    asked = subscribe(client, "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    house.abort(asked)
    house.turn()
    assert not client.session.subscriptions
    assert not client.session.queue.count


def test_a_refused_subscribe_brings_no_kept_messages(house: House) -> None:
    publish(house, 1)
    client = house.client()
    client.subscribe("/x")
    asked = subscribe(client, "/a", "/meta/connect", replay=-2)
    assert not asked.reply["successful"]
    assert poll(client).data == []


def test_a_message_leaves_the_history_when_its_lifetime_ends(house: House) -> None:
    client = house.client()
    ext = {"delivery": {"expiration": {"lifeTime": 2000}}}
    client.publish("/a", 1, ext=ext)
    publish(house, 2)
    assert subscribe(house.client(), "/a", replay=-2).data == [1, 2]
    house.advance(2.1)
    assert subscribe(house.client(), "/a", replay=-2).data == [2]
    assert len(house.bayeux.state.hub.histories) == 1


def test_a_copy_from_a_history_has_no_destinations(house: House) -> None:
    joe = house.client(ext={"delivery": {"session": "joe/1"}})
    house.turn()
    ext = {"delivery": {"destinations": [{"name": "joe"}]}}
    house.client().publish("/a", 1, ext=ext)
    house.turn()
    assert poll(joe).data == [1]
    (kept,) = house.bayeux.state.hub.histories
    assert kept.is_for("joe")
    subscribe(house.client(), "/a", replay=-2)
    assert not kept.initial().is_for("joe")


def test_a_message_for_destinations_only_is_not_kept(house: House) -> None:
    joe = house.client(ext={"delivery": {"session": "joe/1"}})
    house.turn()
    ext = {"delivery": {"destinations": [{"name": "joe/1"}], "subscribable": False}}
    house.client().publish("/a", "secret", ext=ext)
    house.turn()
    assert subscribe(house.client(), "/a", replay=-2).data == []
    assert poll(joe).data == ["secret"]


def test_a_replay_brings_only_the_newest_messages_that_fit_into_the_queue() -> None:
    house = House(channels=KEEPS, queue_limits=QueueLimits(entries=4))
    publish(house, 1, 2, 3)
    asked = subscribe(house.client(), "/a", replay=0)
    assert asked.data == [2, 3]
    assert said_of(asked)["recovered"] is False
    assert house.balances()


@pytest.mark.parametrize("replay", [0, {"/b/**": 0}], ids=repr)
def test_messages_that_do_not_fit_are_reported_as_lost_by_subscription(replay: Any) -> None:
    house = House(channels=KEEPS, queue_limits=QueueLimits(entries=4))
    house.bayeux.state.hub.histories.floor = 0
    publish(house, 1, channel="/b/x")
    publish(house, 2, channel="/b/y")
    publish(house, 3, 4, channel="/b/x")
    asked = subscribe(house.client(), "/b/**", replay=replay)
    assert asked.data == [3, 4]
    said = said_of(asked)
    messages = list(house.bayeux.state.hub.histories)
    assert said["lost"] == {"/b/**": {"from": 0, "to": messages[1].id // 1000}}


@pytest.mark.parametrize("how", [{"replay": -2}, {"history": {"numEntries": -1}}], ids=repr)
def test_a_subscribe_without_a_cursor_is_also_told_what_does_not_fit(how: Json) -> None:
    house = House(channels=KEEPS, queue_limits=QueueLimits(entries=4))
    publish(house, 1, 2, 3, channel="/b/x")
    publish(house, 4, channel="/a")
    asked = subscribe(house.client(), "/b/**", "/a", **how)
    said = said_of(asked)
    assert said["recovered"] is False
    ids = [message.id // 1000 for message in house.bayeux.state.hub.histories]
    assert said["lost"] == {"/b/**": {"from": ids[0] - 1, "to": ids[1]}}


# Replay


def test_a_client_continues_after_the_last_message_that_it_saw(house: House) -> None:
    first = house.client()
    assert subscribe(first, "/a", replay=-1).reply["ext"]["replay"]["messages"] == 0
    publish(house, 1, 2)
    events = poll(first).events
    assert [event["data"] for event in events] == [1, 2]
    publish(house, 3)
    asked = subscribe(house.client(), "/a", replay=cursors(events)[-1])
    assert asked.data == [3]
    said = said_of(asked)
    assert said["recovered"] is True
    assert "lost" not in said


@pytest.mark.parametrize(
    "form",
    [
        lambda message: message.id // 1000,
        lambda message: f"test-{message.id}",
        lambda message: str(message.id),
        lambda message: {"cursor": message.id // 1000},
        lambda message: {"cursor": message.id // 1000, "epoch": ""},
        lambda message: {"/a": message.id // 1000},
    ],
    ids=["cursor", "id", "time stamp", "object", "epoch", "map"],
)
def test_a_cursor_can_be_written_in_several_ways(house: House, form: Callable[[Any], Any]) -> None:
    publish(house, 1, 2, 3)
    messages = list(house.bayeux.state.hub.histories)
    assert subscribe(house.client(), "/a", replay=form(messages[0])).data == [2, 3]


def test_a_replay_can_start_at_a_time(house: House) -> None:
    publish(house, 1)
    house.advance(1.0)
    now_ms = house.bayeux.state.node.now_ms()
    house.advance(0.1)
    publish(house, 2)
    assert subscribe(house.client(), "/a", replay={"time": now_ms}).data == [2]


@pytest.mark.parametrize(
    "replay",
    [
        *[-3, 1.5, "abc", "x" * 100, "9" * 19, [], 2**70],
        *[{"cursor": "1"}, {"cursor": -1}, {"time": None}, {"epoch": "x"}],
        *[{"cursor": 1, "time": 1}, {"/a": 1, "time": 1}, {"/a": "x"}],
    ],
    ids=repr,
)
def test_an_invalid_replay_option_is_refused(house: House, replay: Any) -> None:
    client = house.client()
    reply = subscribe(client, "/a", replay=replay).reply
    assert reply["error"] == "400:user.illegalArgument,replay:ext_invalid"
    assert not client.session.subscriptions


def test_a_handshake_with_an_invalid_replay_option_is_refused(house: House) -> None:
    reply = house.guest().handshake(ext={"replay": "x"}).reply
    assert reply["error"] == "400:user.illegalArgument,replay:ext_invalid"


@pytest.mark.parametrize("nothing", [None, False])
def test_a_replay_of_null_or_false_makes_an_ordinary_subscription(
    house: House, nothing: object
) -> None:
    publish(house, 1)
    client = house.client(ext={"replay": nothing})
    message = {"channel": "/meta/subscribe", "subscription": "/a", "ext": {"replay": nothing}}
    asked = client.send(message)
    assert asked.data == []
    assert "ext" not in asked.reply
    assert "ext" not in poll(client).reply


def test_messages_that_are_no_longer_kept_are_reported_as_lost(house: House) -> None:
    publish(house, 1)
    seen = house.bayeux.state.hub.settled_cursor()
    publish(house, 2, 3, 4, 5, 6, 7)
    asked = subscribe(house.client(), "/a", replay=seen)
    assert asked.data == [3, 4, 5, 6, 7]
    said = said_of(asked)
    assert said["recovered"] is False
    messages = list(house.bayeux.state.hub.histories)
    assert said["lost"]["/a"]["from"] == seen
    assert seen < said["lost"]["/a"]["to"] < messages[0].id // 1000


def test_a_channel_without_history_is_reported_as_not_recovered(house: House) -> None:
    publish(house, 1, channel="/none")
    publish(house, 1)
    asked = subscribe(house.client(), "/none", replay=5)
    assert asked.reply["ext"]["replay"]["recovered"] is False


def test_a_channel_without_history_is_not_recovered_even_from_the_newest_kept_cursor(
    house: House,
) -> None:
    publish(house, 1)
    seen = house.bayeux.state.hub.settled_cursor()
    publish(house, 2, channel="/none")
    asked = subscribe(house.client(), "/none", replay=seen)
    assert asked.reply["ext"]["replay"]["recovered"] is False


def test_a_cursor_of_another_epoch_starts_at_the_oldest_message_and_is_not_recovered(
    house: House,
) -> None:
    publish(house, 1, 2)
    cursor = house.bayeux.state.hub.settled_cursor()
    asked = subscribe(house.client(), "/a", replay={"cursor": cursor, "epoch": "another"})
    assert asked.data == [1, 2]
    assert said_of(asked)["recovered"] is False


def test_a_pattern_is_recovered_only_if_no_messages_of_its_channels_are_missing(
    house: House,
) -> None:
    publish(house, 1, channel="/b/x")
    seen = house.bayeux.state.hub.settled_cursor()
    publish(house, 2, channel="/b/y")
    asked = subscribe(house.client(), "/b/**", replay=seen)
    assert asked.data == [2]
    assert said_of(asked)["recovered"] is True
    publish(house, *range(4), channel="/b/y")
    said = said_of(subscribe(house.client(), "/b/**", replay=seen))
    assert said["recovered"] is False


@pytest.mark.parametrize(
    ("rules", "pattern", "is_kept"),
    [
        (["/**", "-/quiet/**"], "/**", False),
        (["/**", "-/quiet/**"], "/quiet/*", False),
        (["/**", "-/quiet/**"], "/loud/**", True),
        (["/**", "-/quiet/x"], "/quiet/*", False),
        (["/**", "-/quiet/x"], "/quiet/x/**", True),
        (["/**", "-/quiet/x/**"], "/quiet/*", True),
        (["-/**", "/chat/**"], "/chat/**", True),
        (["/chat/**"], "/**", False),
        (["/chat/*"], "/chat/**", False),
    ],
    ids=str,
)
def test_a_pattern_is_recovered_only_if_all_its_channels_have_a_history(
    rules: list[str], pattern: str, is_kept: bool
) -> None:
    house = House(
        channels={
            name.removeprefix("-"): ChannelRule(
                history=None if name.startswith("-") else HistoryDepth(10)
            )
            for name in rules
        }
    )
    publish(house, 1, channel="/chat/x")
    seen = house.bayeux.state.hub.settled_cursor()
    publish(house, 2, channel="/quiet/x")
    publish(house, 3, channel="/chat/x")
    asked = subscribe(house.client(), pattern, replay=seen)
    assert said_of(asked)["recovered"] is is_kept


NOTHING = Qos(topic=TopicOptions(depth=HistoryDepth(0)))


@pytest.mark.parametrize(
    ("pattern", "is_whole"), [("/b/x", False), ("/b/*", False), ("/b/**", False), ("/b/y", True)]
)
def test_a_topic_that_keeps_nothing_is_not_recovered_although_its_rule_has_a_history(
    house: House, pattern: str, is_whole: bool
) -> None:
    publish(house, 1, channel="/b/y")
    seen = house.bayeux.state.hub.settled_cursor()
    house.server.publish("/b/x", 2, qos=NOTHING)
    house.server.publish("/b/x", 3)
    asked = subscribe(house.client(), pattern, replay=seen)
    assert said_of(asked)["recovered"] is is_whole


@pytest.mark.parametrize("is_ended", [False, True])
def test_messages_that_a_topic_did_not_keep_are_not_recovered_when_it_keeps_again(
    house: House, is_ended: bool
) -> None:
    publish(house, 1, channel="/b/x")
    seen = house.bayeux.state.hub.settled_cursor()
    house.server.publish("/b/x", 2, qos=NOTHING)
    assert house.bayeux.state.hub.histories.get("/b/x") is None
    if is_ended:
        house.advance(61.0)
        assert house.bayeux.state.topics.get("/b/x") is None
    else:
        kept = TopicOptions(depth=HistoryDepth(3))
        house.server.publish("/b/x", 0, qos=Qos(topic=kept, is_administrative=True))
    publish(house, 3, channel="/b/x")
    asked = subscribe(house.client(), "/b/x", replay=seen)
    assert asked.data == [3]
    assert said_of(asked)["recovered"] is False


def test_a_pattern_is_not_recovered_when_more_topics_keep_nothing_than_are_looked_at(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.delivery.kept_messages.MOST_LOOKS", 1)
    house.server.publish("/b/x/1", 1, qos=NOTHING)
    house.server.publish("/b/y/1", 1, qos=NOTHING)
    asked = subscribe(house.client(), "/b/*", replay=house.bayeux.state.hub.settled_cursor())
    assert said_of(asked)["recovered"] is False


def test_a_work_queue_under_a_pattern_does_not_prevent_its_recovery() -> None:
    rules = {
        "/**": ChannelRule(history=HistoryDepth(10)),
        "/jobs/**": ChannelRule(is_work_queue=True),
    }
    house = House(channels=rules)
    seen = house.bayeux.state.hub.settled_cursor()
    asked = subscribe(house.client(), "/**", replay=seen)
    assert said_of(asked)["recovered"] is True


def test_channels_beyond_the_limit_of_one_replay_are_not_recovered(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bayeux.catching_up.MOST_CHANNELS", 1)
    seen = house.bayeux.state.hub.settled_cursor()
    publish(house, 1, channel="/b/x")
    publish(house, 2, channel="/b/y")
    asked = subscribe(house.client(), "/b/**", replay=seen)
    assert asked.data == [1]
    assert said_of(asked)["recovered"] is False
    several = subscribe(house.client(), "/b/x", "/b/y", "/b/*", replay=seen)
    assert several.data == [1]
    assert said_of(several)["lost"].keys() == {"/b/y", "/b/*"}
    named = subscribe(house.client(), "/b/**", replay={"/b/x": seen, "/b/y": -2})
    assert named.data == [1]
    assert said_of(named)["lost"].keys() == {"/b/**"}
    initial = subscribe(house.client(), "/b/**", history=last(1))
    assert initial.data == [1]
    assert said_of(initial)["recovered"] is False


def test_a_replay_that_has_read_many_messages_starts_no_further_history(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bayeux.catching_up._MOST_MESSAGES", 2)
    publish(house, 1, 2, 3, channel="/b/x")
    publish(house, 4, channel="/b/y")
    asked = subscribe(house.client(), "/b/**", replay=-2)
    assert asked.data == [1, 2, 3]
    assert said_of(asked)["recovered"] is False
    named = subscribe(house.client(), "/b/**", replay={"/b/x": -2, "/b/y": -2})
    assert named.data == [1, 2, 3]
    assert said_of(named)["lost"].keys() == {"/b/**"}


@pytest.mark.parametrize("replay", [-1, {"/b/z/**": -2}, {"/other": -2}, {"/b/x": -1}], ids=repr)
def test_a_subscribe_that_wants_no_kept_messages_reads_no_history(
    house: House, replay: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(house, 1, channel="/b/x")
    read: list[Any] = []
    monkeypatch.setattr(Histories, "covered_by", read.append)
    assert subscribe(house.client(), "/b/**", replay=replay).data == []
    assert not read


def test_a_cursor_for_a_channel_without_history_is_not_recovered(house: House) -> None:
    publish(house, 1, channel="/none/x")
    asked = subscribe(house.client(), "/none/*", replay={"/none/x": 5})
    assert asked.reply["ext"]["replay"]["recovered"] is False


def test_a_replay_with_too_many_cursors_is_refused(house: House) -> None:
    client = house.client()
    asked = subscribe(client, "/a", replay={f"/x/{number}": -2 for number in range(1_001)})
    assert asked.reply["error"] == "400:user.illegalArgument,replay:ext_invalid"


def test_a_refused_subscribe_reads_no_history(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(house, 1, channel="/b/x")
    read: list[Any] = []
    monkeypatch.setattr(Histories, "covered_by", read.append)
    asked = subscribe(house.client(), "/b/**", "/sys/deadMessage", replay=-2)
    assert not asked.reply["successful"]
    assert not read


def test_channels_of_a_pattern_can_start_at_different_cursors(house: House) -> None:
    publish(house, 1, channel="/b/x")
    seen = house.bayeux.state.hub.settled_cursor()
    publish(house, 2, channel="/b/x")
    publish(house, 3, channel="/b/y")
    asked = subscribe(house.client(), "/b/**", replay={"/b/x": seen, "/b/**": -1})
    assert asked.data == [2]


# Cursors


def test_connect_replies_have_the_newest_cursor(house: House) -> None:
    client = house.client(ext={"replay": True})
    before = poll(client).reply["ext"]["replay"]["cursor"]
    publish(house, 1)
    after = poll(client).reply["ext"]["replay"]
    assert after["epoch"] == ""
    assert after["cursor"] == list(house.bayeux.state.hub.histories)[-1].id // 1000 > before


def test_the_cursor_of_a_connect_reply_stays_before_unacked_messages(house: House) -> None:
    client = house.client(ext={"ack": True, "replay": True})
    client.subscribe("/a")
    before = poll(client).reply["ext"]["replay"]["cursor"]
    publish(house, 1)
    answer = poll(client)
    (coming,) = cursors(answer.events)
    assert before < answer.elements[-1]["ext"]["replay"]["cursor"] < coming
    number = answer.elements[-1]["ext"]["ack"]
    acked = client.connect(ext={"ack": number}, advice={"timeout": 0})
    assert acked.reply["ext"]["replay"]["cursor"] == cursors(answer.events)[0]


def test_the_cursor_of_a_connect_reply_goes_back_for_a_replay(house: House) -> None:
    publish(house, 1, 2)
    client = house.client(ext={"ack": True, "replay": True})
    promised = poll(client).reply["ext"]["replay"]["cursor"]
    subscribe(client, "/a", replay=-2)
    answer = poll(client)
    first, _ = cursors(answer.events)
    assert answer.elements[-1]["ext"]["replay"]["cursor"] == first - 1 < promised


def test_the_first_cursor_of_a_session_is_before_its_waiting_messages(house: House) -> None:
    client = house.client(ext={"ack": True})
    client.subscribe("/a")
    publish(house, 1)
    subscribe(client, "/b/x", replay=-1)
    answer = poll(client)
    assert answer.elements[-1]["ext"]["replay"]["cursor"] < cursors(answer.events)[0]


def test_events_have_cursors_only_in_sessions_that_asked_and_on_channels_with_history(
    house: House,
) -> None:
    asking, other = house.client(ext={"replay": True}), house.client()
    for client in (asking, other):
        client.subscribe("/a", "/c")
    publish(house, 1)
    publish(house, 2, channel="/c")
    assert ["ext" in event for event in poll(asking).events] == [True, False]
    assert ["ext" in event for event in poll(other).events] == [False, False]


def test_an_event_with_a_cursor_keeps_the_ext_of_its_publisher(house: House) -> None:
    client = house.client(ext={"replay": True})
    client.subscribe("/a")
    (event,) = client.publish("/a", 1, ext={"mine": 1}).events
    assert event["ext"]["mine"] == 1
    assert event["ext"]["replay"]["cursor"]


def test_an_event_can_have_a_cursor_beside_its_delivery_ext(house: House) -> None:
    client = house.client(ext={"delivery": True, "replay": True})
    client.subscribe("/a")
    poll(client)
    publish(house, 1)
    (event,) = poll(client).events
    assert event["ext"]["delivery"]["state"] == "OK"
    assert event["ext"]["replay"]["cursor"]


def test_salesforce_clients_find_the_replay_id_in_the_data_of_events(house: House) -> None:
    hand = house.guest().handshake()
    assert hand.reply["ext"]["replay"] is True
    client = house.client()
    subscribe(client, "/a", replay={"/a": -1})
    publish(house, {"x": 1}, {"event": {"type": "new"}}, {"event": 5}, "text")
    events = poll(client).events
    ids = cursors(events)
    assert [event["data"] for event in events] == [
        {"x": 1, "event": {"replayId": ids[0]}},
        {"event": {"type": "new", "replayId": ids[1]}},
        {"event": 5},
        "text",
    ]


def test_a_server_without_histories_offers_no_replay() -> None:
    assert "ext" not in House().guest().handshake().reply


@pytest.mark.slow
def test_the_cursor_form_remembers_a_limited_number_of_events(house: House) -> None:
    client = house.client(ext={"replay": True})
    client.subscribe("/a")
    for number in range(1100):
        house.server.publish("/a", number)
    house.turn()
    assert len(poll(client).events) + len(poll(client).events) == 1100
    assert len(house.bayeux.state.cursor_form(has_replay_ids=False)._known) <= 1000


# Messages that wait for the store


def test_a_pending_publish_reaches_clients_that_subscribe_with_a_replay_meanwhile() -> None:
    house = House(DeliveryWire, channels=DURABLE)
    client = house.client()
    asked = house.client().publish("/a", 1)
    house.client().publish("/a", 2)
    assert asked.is_held
    filtered = house.client()
    subscribe(filtered, "/a", replay=-2, filter="data > 1")
    subscribe(client, "/a", replay=-2)
    subscribe(client, "/a", replay=-2)
    promised = client.session.cursors
    assert promised is not None
    cursor = promised.promised
    house.turn()
    assert asked.reply["successful"]
    answer = poll(client)
    assert answer.data == [1, 2]
    assert cursor < cursors(answer.events)[0]
    assert poll(filtered).data == [2]
    assert house.balances()


def test_a_publisher_without_echo_does_not_get_its_own_pending_publish() -> None:
    house = House(
        DeliveryWire,
        channels={
            "/a": ChannelRule(history=HistoryDepth(5), durable=True, broadcast_to_publisher=False)
        },
    )
    client = house.client()
    client.publish("/a", 1)
    subscribe(client, "/a", replay=-2)
    house.turn()
    assert poll(client).data == []


def test_the_store_has_the_messages_that_a_named_session_catches_up_on() -> None:
    house = KeptHouse(channels=DURABLE)
    publish(house, 1)
    client = house.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    connect(client, 0)
    house.server.publish("/a", 2)
    asked = subscribe(client, "/a", replay=-2)
    held = client.connect()
    assert asked.is_held
    assert held.is_held
    house.turn()
    assert asked.reply["successful"]
    assert held.data == [1, 2]
    assert len(house.store.queues["joe/1"]) == 2
    assert house.balances()
    house = house.reborn()
    client = again(client, house)
    assert connect(client, 0).elements[-1]["ext"]["replay"]
    assert drain(client, 0)[0] == [1, 2]
    assert house.store.queues["joe/1"] == {}


def test_a_subscriber_to_a_pending_publish_is_journalled_as_another_receiver_of_it() -> None:
    store = JournaledStore()
    ack = partial(Ack, announces_batch=False)
    house = House(DeliveryWire, ack, keeper=store, journal=store.writer, channels=DURABLE)
    client = house.client(ext={"ack": True, "delivery": {"session": "joe/1"}})
    house.client().publish("/a", 1)
    subscribe(client, "/a", replay=-2)
    house.turn()
    assert poll(client).data == [1]
    published = [each for each in store.events() if each.kind == Kind.PUBLISHED]
    assert [each.copies for each in published] == [0, 1]
    assert [bool(each.size) for each in published] == [True, False]


@pytest.mark.parametrize("outcome", [PersistOutcome.REFUSED, PersistOutcome.REPEATED])
def test_a_message_that_the_store_did_not_keep_is_not_caught_up_on(outcome: PersistOutcome) -> None:
    house = KeptHouse(channels=DURABLE)
    client = house.client(ext={"ack": True, "delivery": {"session": "joe/1"}})
    house.store.outcome = outcome
    house.client().publish("/a", 1)
    house.store.outcome = PersistOutcome.KEPT
    subscribe(client, "/a", replay=-2)
    house.turn()
    assert poll(client).data == []
    assert house.store.queues["joe/1"] == {}


# Restarts


def test_a_durable_history_survives_a_restart() -> None:
    house = KeptHouse(channels=DURABLE)
    publish(house, 1, 2, 3, 4, 5, 6, 7)
    seen = list(house.bayeux.state.hub.histories)[2].id // 1000
    assert len(house.store.queues["/a"]) == 5
    house = house.reborn()
    asked = subscribe(house.client(), "/a", replay=seen)
    assert asked.data == [6, 7]
    assert said_of(asked)["recovered"] is True
    publish(house, 8)
    assert subscribe(house.client(), "/a", replay=-2).data == [4, 5, 6, 7, 8]


def test_the_passing_messages_of_a_history_are_not_recovered_after_a_restart() -> None:
    house = KeptHouse(channels=KEEPS)
    publish(house, 1)
    seen = house.bayeux.state.hub.settled_cursor()
    named(house)
    publish(house, 2)
    house = house.reborn()
    asked = subscribe(house.client(), "/a", replay=-2)
    assert asked.data == [2], "a durable receiver made it durable"
    asked = subscribe(house.client(), "/a", replay=seen - 1)
    assert said_of(asked)["recovered"] is False


def test_a_history_that_no_rule_keeps_leaves_the_store_at_the_start() -> None:
    house = KeptHouse(channels=DURABLE)
    publish(house, 1)
    house = house.reborn(channels={})
    assert house.store.queues["/a"] == {}


def test_an_erased_history_leaves_the_store() -> None:
    house = KeptHouse(channels=DURABLE)
    publish(house, 1, 2)
    assert house.bayeux.state.hub.histories.erase("/a") == 2
    house.turn()
    assert house.store.queues["/a"] == {}


# Only the newest


def newest_only(house: House) -> Client:
    client = house.client(ext={"ack": True, "delivery": True})
    poll(client)
    subscribe(client, "/b/**", newestOnly=True)
    client.subscribe("/c")
    return client


def test_a_newest_only_subscription_gets_the_newest_waiting_message_of_each_channel(
    house: House,
) -> None:
    client = newest_only(house)
    for number, channel in enumerate(["/b/x", "/c", "/b/x", "/b/y", "/c", "/b/x"]):
        publish(house, number, channel=channel)
    assert poll(client).data == [1, 3, 4, 5]
    assert house.bayeux.state.counters.discarded[Reason.OUTDATED] == 2
    assert house.balances()


def test_a_named_session_with_newest_only_gets_one_message_after_being_away() -> None:
    house = KeptHouse(channels=DURABLE)
    client = named(house)
    subscribe(client, "/a", newestOnly=True)
    house.turn()
    client.disconnect()
    publish(house, 1, 2, 3)
    house = house.reborn()
    client = again(client, house)
    take(client)
    assert connect(client, 0).data == [3]
    assert list(house.store.queues["joe/1"]) == list(house.store.queues["/a"])[-1:]
    assert house.balances()


def test_a_newest_only_subscription_disregards_priorities(house: House) -> None:
    client = newest_only(house)
    publisher = house.client()
    publisher.publish("/b/x", "old", ext={"delivery": {"priority": 1}})
    publisher.publish("/b/x", "new", ext={"delivery": {"priority": 9}})
    assert poll(client).data == ["new"]


def test_outdated_messages_make_room_in_a_full_queue() -> None:
    house = House(
        DeliveryWire,
        partial(Ack, announces_batch=False),
        channels=KEEPS,
        queue_limits=QueueLimits(entries=3),
    )
    client = newest_only(house)
    publish(house, *range(10), channel="/b/x")
    assert poll(client).data == [9]
    assert house.bayeux.state.counters.discarded[Reason.OVERFLOW_ENTRIES] == 0
    assert house.balances()


def test_a_plain_session_can_subscribe_to_the_newest_messages_only(house: House) -> None:
    client = house.client()
    subscribe(client, "/a", newestOnly=True)
    poll(client)
    publish(house, 1, 2, 3)
    assert poll(client).data == [3]


def test_histories_keep_no_more_entries_than_the_server_allows() -> None:
    house = House(channels=KEEPS, history_limits=HistoryLimits(entries=2))
    publish(house, 1, 2, 3)
    assert house.bayeux.state.hub.histories.dropped == 1
    assert subscribe(house.client(), "/a", replay=-2).data == [2, 3]


def test_a_publisher_beyond_its_share_of_histories_displaces_only_its_own_messages() -> None:
    limits = HistoryLimits(share_entries=2)
    house = House(DeliveryWire, channels={"/a": ChannelRule(history=HistoryDepth(9))})
    histories = house.bayeux.state.hub.histories
    histories.limits = limits
    one, other = (
        house.client(caller=Caller(address=each, network=each)) for each in ("10.0.0.1", "10.0.0.2")
    )
    for n in (1, 2):
        other.publish("/a", n)
    for n in (3, 4, 5):
        one.publish("/a", n)
    publish(house, 6, 7, 8)
    house.turn()
    assert subscribe(house.client(), "/a", replay=-2).data == [1, 2, 4, 5, 6, 7, 8]
    assert histories.dropped == 1
    histories.erase("/a")
    for n in (1, 2, 3):
        one.publish("/a", n)
    assert subscribe(house.client(), "/a", replay=-2).data == [2, 3]


def test_the_share_of_a_publisher_is_limited_in_bytes() -> None:
    house = House(
        DeliveryWire,
        channels={"/a": ChannelRule(history=HistoryDepth(9))},
        history_limits=HistoryLimits(share_bytes=100),
    )
    one = house.client(caller=Caller(address="10.0.0.1", network="10.0.0.1"))
    for data in ("x" * 40, "y" * 40, "z" * 100):
        one.publish("/a", data)
        found = subscribe(house.client(), "/a", replay=-2).data
        assert found == ([data] if len(data) == 40 else [])


def test_a_message_of_a_durable_history_is_stored_first_even_without_durable_sessions() -> None:
    house = KeptHouse(channels=DURABLE, durable=Durable.NONE)
    asked = house.client().publish("/a", 1)
    assert asked.is_held
    house.turn()
    assert asked.reply["successful"]
    assert house.store.queues["/a"]


def test_a_topic_is_alive_while_its_history_or_a_queue_has_a_message() -> None:
    rule = ChannelRule(topic=TopicConfig(destroy_delay_ms=-1), history=HistoryDepth(5))
    house = House(DeliveryWire, channels={"/a": rule})
    client = house.client()
    client.publish("/a", 1, ext={"delivery": {"expiration": {"lifeTime": 1000}}})
    topic = house.bayeux.state.topics.get("/a")
    assert topic is not None
    assert topic.state.name == "ALIVE"
    late = house.client(ext={"delivery": True})
    poll(late)
    subscribe(late, "/*", replay=-2)
    assert topic.queued == 1
    house.advance(1.2)
    assert topic.kept == 0
    assert topic.state.name == "ALIVE", "it is in a queue"
    late.disconnect()
    house.turn()
    assert topic.state.name == "UNREFERENCED"


# Rights


class Granted:
    """What a login may do besides subscribing: operations, each on the channels of one pattern."""

    def __init__(self, **patterns: str) -> None:
        self.patterns = patterns

    def allows(self, operation: Operation, channel: str) -> bool:
        pattern = "/**" if operation is Operation.SUBSCRIBE else self.patterns.get(operation.value)
        return pattern is not None and covers(pattern, channel)


def user(house: House, patterns: dict[str, str], *, ack: bool = False) -> Client:
    client = house.client(ext={"ack": ack})
    client.session.identity.login = Login("joe", LoginMethod.PASSWORD)
    client.session.identity.grants = Granted(create="/**", publish="/**", **patterns)
    return client


HISTORY = "403:denied_by_rights:history_denied"
REPLAY = "403:denied_by_rights:replay_denied"


@pytest.mark.parametrize(
    ("rights", "channels", "asked", "outcome"),
    [
        ({}, ["/a"], {"history": {}}, HISTORY),
        ({}, ["/a"], {"initialUpdate": True}, HISTORY),
        ({}, ["/a"], {"initialUpdate": False}, []),
        ({}, ["/a"], {"history": {"numEntries": 0}}, []),
        ({"replay": "/a"}, ["/a"], {"history": {}}, HISTORY),
        ({"history": "/a"}, ["/a"], {"history": {}}, [1]),
        ({"history": "/a"}, ["/a", "/b/x"], {"history": {}}, HISTORY),
        ({"history": "/b/*"}, ["/b/*"], {"history": {}}, [2]),
        ({"history": "/b/*"}, ["/b/**"], {"history": {}}, HISTORY),
        ({}, ["/a"], {"replay": -2}, REPLAY),
        ({}, ["/a"], {"replay": -1}, []),
        ({}, ["/a"], {"replay": 0}, REPLAY),
        ({"history": "/a"}, ["/a"], {"replay": -2}, REPLAY),
        ({"replay": "/a"}, ["/a"], {"replay": -2}, [1]),
        ({"replay": "/a"}, ["/**"], {"replay": -2}, REPLAY),
        ({"replay": "/a"}, ["/**"], {"replay": {"/a": -2}}, [1]),
        ({"replay": "/a"}, ["/**"], {"replay": {"/a": -2, "/b/x": -2}}, REPLAY),
        ({"replay": "/a"}, ["/**"], {"replay": {"/a": -2, "/b/x": -1}}, [1]),
        ({"replay": "/a"}, ["/a", "/b/x"], {"replay": {"/a": -2}}, [1]),
        ({"replay": "/a"}, ["/a"], {"replay": {"/a": -2, "/b/x": -2}}, [1]),
    ],
    ids=repr,
)
def test_the_history_of_a_channel_needs_the_right_to_read_it(
    house: House, rights: dict[str, str], channels: list[str], asked: Json, outcome: object
) -> None:
    publish(house, 1)
    publish(house, 2, channel="/b/x")
    client = user(house, rights)
    subscribed = subscribe(client, *channels, **asked)
    if isinstance(outcome, str):
        assert subscribed.reply["error"] == outcome
        assert not client.session.subscriptions
    else:
        assert subscribed.data == outcome
        assert client.session.subscriptions == set(channels)


def test_a_subscribe_is_refused_if_it_loses_the_right_while_its_filter_is_asked() -> None:
    house = House(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(house, 1, 2, 3)
    client = user(house, {"history": "/a"})
    asked = subscribe(client, "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    client.session.identity.grants = Granted()
    house.turn()
    assert asked.reply["error"] == HISTORY
    assert not client.session.subscriptions


@pytest.mark.parametrize(
    ("before", "after", "data"),
    [
        ({"history": "/**"}, {"history": "/b/**"}, [3]),
        ({"history": "/**"}, {"replay": "/**"}, [1, 3]),
        ({"history": "/**"}, {}, [3]),
    ],
    ids=repr,
)
def test_waiting_messages_from_a_history_are_withdrawn_with_the_right_to_it(
    house: House, before: dict[str, str], after: dict[str, str], data: list[int]
) -> None:
    publish(house, 1)
    client = user(house, before, ack=True)
    subscribe(client, "/a", history=last(-1))
    publish(house, 3)
    client.session.identity.grants = Granted(**after)
    house.server.reauthorize(client.session)
    house.turn()
    assert poll(client).data == data
    assert house.balances()
