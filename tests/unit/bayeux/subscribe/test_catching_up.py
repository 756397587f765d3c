"""A late subscriber gets what its channels keep: after the reply, in order, each message once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.replies import writing
from holdfast.bayeux.state.cursors import cursors_of
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.bayeux.wire.topic_options import TopicOptions
from holdfast.delivery.basics.channels import covers
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.routing.histories import Histories, HistoryLimits
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.journal.schema import Kind
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Socket, server_of
from tests.unit.bayeux.second_lives import RestartableServer, again, connect, drain, named, take
from tests.unit.journal.ledger import Writing

KEEPS = {"/a": ChannelSettings(history=5), "/b/**": ChannelSettings(history=3)}
DURABLE = {"/a": ChannelSettings(history=5, durable=True)}


@pytest.fixture
def server() -> Server:
    return server_of(channels=KEEPS)


def publish(server: Server, *data: object, channel: str = "/a") -> None:
    for each in data:
        server.for_extensions.publish(channel, each)
    server.turn()


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
    client.server.turn()
    return asked


def cursors(events: list[Json]) -> list[int]:
    return [event["ext"]["replay"]["cursor"] for event in events]


def test_a_late_subscriber_gets_the_newest_messages_in_order_after_the_reply(
    server: Server,
) -> None:
    publish(server, 1, 2, 3, 4, 5, 6)
    asked = subscribe(server.client(), "/a", history=last(3))
    assert asked.elements[0]["channel"] == "/meta/subscribe"
    assert asked.data == [4, 5, 6]


def test_a_long_history_with_cursors_is_spread_over_several_replies(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_MOST_WITH_CURSORS", 2)
    publish(server, 1, 2, 3, 4, 5)
    client = server.client()
    asked = subscribe(client, "/a", replay=-2)
    assert [asked.data, poll(client).data, poll(client).data] == [[1, 2], [3, 4], [5]]


def test_a_subscribe_can_ask_for_the_newest_messages_first(server: Server) -> None:
    publish(server, 1, 2, 3)
    assert subscribe(server.client(), "/a", history=last(2, newest_first=True)).data == [3, 2]


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
    server: Server, asked: Json, data: object
) -> None:
    publish(server, 1, 2, 3)
    assert subscribe(server.client(), "/a", **asked).data == data


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
    server: Server, asked: Json, named: str
) -> None:
    client = server.client()
    reply = subscribe(client, "/a", **asked).reply
    assert reply["error"] == f"400:user.illegalArgument,{named}:delivery_invalid"
    assert not client.session.subscriptions


def test_events_from_a_history_are_marked_as_initial_in_sessions_with_verdicts(
    server: Server,
) -> None:
    publish(server, 1)
    client = server.client(ext={"delivery": True})
    poll(client)
    subscribe(client, "/a", initialUpdate=True)
    publish(server, 2)
    flags = [event["ext"]["delivery"].get("initial") for event in poll(client).events]
    assert flags == [True, None]


def test_live_messages_follow_those_of_the_history_without_duplicates(server: Server) -> None:
    socket = Socket()
    client = server.connected(socket=socket, browser="b")
    publish(server, 1, 2)
    subscribe(client, "/a", replay=-2)
    publish(server, 3)
    data = [element["data"] for element in client.hear() if "data" in element]
    assert data == [1, 2, 3]


def test_a_message_that_already_waits_for_the_client_does_not_come_twice(server: Server) -> None:
    client = server.client(ext={"ack": True})
    client.subscribe("/a")
    publish(server, 1, 2)
    subscribe(client, "/**", replay=-2)
    assert poll(client).data == [1, 2]


def test_a_subscription_to_a_pattern_brings_the_history_of_each_channel(server: Server) -> None:
    for number, channel in enumerate(["/b/x", "/b/y", "/a", "/b/x/z", "/b/y"]):
        publish(server, number, channel=channel)
    assert subscribe(server.client(), "/b/*", replay=-2).data == [0, 1, 4]
    assert subscribe(server.client(), "/**", replay=-2).data == [0, 1, 2, 3, 4]
    assert subscribe(server.client(), "/b/x", "/a", history=last(1)).data == [0, 2]


@pytest.mark.parametrize(("depth", "data"), [(0, []), (1, [5]), (2, [4, 5]), (5, [4, 5])])
def test_a_history_brings_no_more_than_its_depth(depth: int, data: list[int]) -> None:
    server = Server(channels={"/a": ChannelSettings(history=depth)})
    publish(server, 1, 2, 3, 4, 5)
    assert subscribe(server.client(), "/a", history=last(2)).data == data


def test_a_filter_selects_from_the_history_too(server: Server) -> None:
    publish(server, 1, 2, 3, 4)
    asked = subscribe(server.client(), "/a", history=last(-1), filter="data > 2")
    assert asked.data == [3, 4]


def test_a_subscription_without_own_messages_gets_none_from_the_history(server: Server) -> None:
    client = server.client()
    client.publish("/a", "mine")
    publish(server, "other")
    assert subscribe(client, "/a", history=last(-1), local=False).data == ["other"]


def test_a_slow_filter_continues_in_later_turns() -> None:
    is_over = False
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: is_over)
    publish(server, 1, 2, 3)
    is_over = True
    client = server.client()
    asked = subscribe(client, "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    assert not client.session.subscriptions
    server.turn()
    assert asked.data == [2, 3]


def test_messages_published_while_a_filter_is_asked_come_only_from_replayed_channels() -> None:
    is_over = False
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: is_over)
    publish(server, 1, 2, 3)
    is_over = True
    client = server.client()
    asked = subscribe(client, "/a", "/b/**", replay={"/a": -2}, filter="data > 1")
    assert asked.is_held
    server.for_extensions.publish("/a", 4)
    server.for_extensions.publish("/b/x", 5)
    server.turn()
    assert asked.data == [2, 3, 4]


def test_a_history_is_read_only_once_for_a_slow_filter() -> None:
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(server, 1, 2, 3)
    asked = subscribe(server.client(), "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    # The messages that were read before still come.
    server.bayeux.state.hub.histories.erase("/a")
    server.turn()
    assert asked.data == [2, 3]


@pytest.mark.parametrize(("count", "has_own_turn"), [(100, False), (101, True)])
def test_a_reply_with_many_kept_messages_leaves_in_a_turn_of_its_own(
    count: int, *, has_own_turn: bool
) -> None:
    is_over = False
    kept = {"/a": ChannelSettings(history=200)}
    server = Server(DeliveryWire, channels=kept, is_turn_over=lambda: is_over)
    publish(server, *range(count))
    client = server.client()
    is_over = True
    asked = subscribe(client, "/a", replay=-2)
    while not client.session.subscriptions:
        server.go_on()
    assert asked.is_held is has_own_turn
    assert client.session.queue.count == (count if has_own_turn else 0)
    server.for_extensions.publish("/a", "later")
    server.turn()
    assert asked.data == [*range(count), *(["later"] if has_own_turn else [])]
    assert said_of(asked)["messages"] == count


def test_many_histories_are_read_over_several_turns() -> None:
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    for n, name in enumerate("xyz"):
        publish(server, n, channel=f"/b/{name}")
    for channels in (["/b/**"], ["/b/x", "/b/y", "/b/z"]):
        asked = subscribe(server.client(), *channels, replay=-2)
        turns = 0
        while asked.is_held:
            turns += 1
            server.go_on()
        assert turns >= 3
        assert asked.data == [0, 1, 2]


CHANGE = st.tuples(st.sampled_from(["publish", "erase"]), st.sampled_from(["/a", "/b/x", "/b/y"]))
BEFORE = st.lists(CHANGE, max_size=20)
BETWEEN_TURNS = st.lists(st.lists(CHANGE, max_size=6), max_size=6)


class Reading:
    """A client catches up in many turns, while histories are shortened and erased."""

    def __init__(self, before: list[tuple[str, str]]) -> None:
        self.server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
        # The channels and cursors of what was published, in order.
        self.published: list[tuple[str, int]] = []
        self.change(before)
        self.begun = len(self.published)

    def change(self, moves: list[tuple[str, str]]) -> None:
        histories = self.server.bayeux.state.hub.histories
        for move, channel in moves:
            if move == "erase":
                histories.erase(channel)
            else:
                self.server.for_extensions.publish(channel, len(self.published))
                self.published.append((channel, histories.newest // 1000))

    def finish(self, asked: Asked, changes: list[list[tuple[str, str]]]) -> None:
        waiting = iter(changes)
        while asked.is_held:
            self.change(next(waiting, []))
            self.server.go_on()
        # Whatever comes now comes because of the subscription.
        self.server.turn()


@pytest.mark.slow
@given(BEFORE, BETWEEN_TURNS, st.integers(0, 20))
def test_a_replay_over_many_turns_reports_all_losses_and_has_no_duplicates(
    before: list[tuple[str, str]], changes: list[list[tuple[str, str]]], seen: int
) -> None:
    reading = Reading(before)
    cursors = [cursor for _, cursor in reading.published]
    cursor = cursors[min(seen, len(cursors)) - 1] if seen and cursors else 5
    newest = reading.server.bayeux.state.hub.histories.newest // 1000
    asked = subscribe(reading.server.client(), "/a", "/b/**", replay=cursor)
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


@pytest.mark.parametrize("turns", range(4))
def test_what_was_erased_is_lost_even_if_its_channel_gets_a_message_meanwhile(turns: int) -> None:
    reading = Reading([("publish", "/b/x"), ("publish", "/b/y"), ("erase", "/b/x")])
    asked = subscribe(reading.server.client(), "/a", "/b/**", replay=5)
    reading.finish(asked, [*[[]] * turns, [("publish", "/b/x")]])
    assert asked.data == [1, 2][: 1 + asked.data.count(2)]
    assert said_of(asked)["lost"]["/b/**"]["to"] == reading.published[0][1]


@pytest.mark.slow
@given(BEFORE, BETWEEN_TURNS)
def test_a_history_of_one_message_brings_at_most_one_per_channel_and_all_later_ones(
    before: list[tuple[str, str]], changes: list[list[tuple[str, str]]]
) -> None:
    reading = Reading(before)
    asked = subscribe(reading.server.client(), "/a", "/b/**", history=last(1))
    reading.finish(asked, changes)
    assert asked.data == sorted(set(asked.data))
    newer = set(range(reading.begun, len(reading.published)))
    assert newer <= set(asked.data)
    older = [reading.published[n][0] for n in asked.data if n < reading.begun]
    assert len(older) == len(set(older))


def test_messages_that_are_kept_and_erased_while_a_filter_is_asked_still_come() -> None:
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(server, 1, 2, channel="/b/x")
    publish(server, 3)
    asked = subscribe(server.client(), "/**", history=last(1), filter="data > 0")
    server.go_on()
    server.for_extensions.publish("/a", 4)
    server.for_extensions.publish("/a", 5)
    server.bayeux.state.hub.histories.erase("/a")
    server.turn()
    assert asked.data == [2, 3, 4, 5]


def test_messages_on_a_channel_without_history_during_a_catch_up_are_reported_as_lost() -> None:
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(server, 1, channel="/b/x")
    seen = server.bayeux.state.hub.complete_cursor()
    asked = subscribe(server.client(), "/b/**", "/none", replay=seen)
    server.for_extensions.publish("/none", 2)
    server.for_extensions.publish("/b/x", 3)
    server.turn()
    assert asked.data == [3]
    assert said_of(asked)["lost"].keys() == {"/none"}


def test_the_right_to_replay_is_checked_again_after_all_histories_are_read() -> None:
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(server, 1, channel="/b/x")
    publish(server, 2, channel="/b/y")
    for replay in ({"/b/x": -2, "/b/y": -2}, -2):
        client = user(server, {"replay": "/b/**"})
        asked = subscribe(client, "/b/*", replay=replay)
        server.go_on()
        assert asked.is_held
        client.session.identity.grants = Granted(subscribe="/**")
        server.turn()
        assert asked.reply["error"] == REPLAY


def test_a_subscribe_whose_connection_closes_while_a_filter_is_asked_has_no_effect() -> None:
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(server, 1, 2, 3)
    client = server.client()
    asked = subscribe(client, "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    server.abort(asked)
    server.turn()
    assert not client.session.subscriptions
    assert not client.session.queue.count


def test_a_refused_subscribe_brings_no_kept_messages(server: Server) -> None:
    publish(server, 1)
    client = server.client()
    client.subscribe("/x")
    asked = subscribe(client, "/a", "/meta/connect", replay=-2)
    assert not asked.reply["successful"]
    assert poll(client).data == []


def test_a_message_leaves_the_history_when_its_lifetime_ends(server: Server) -> None:
    client = server.client()
    ext = {"delivery": {"expiration": {"lifeTime": 2000}}}
    client.publish("/a", 1, ext=ext)
    publish(server, 2)
    assert subscribe(server.client(), "/a", replay=-2).data == [1, 2]
    server.advance(2.1)
    assert subscribe(server.client(), "/a", replay=-2).data == [2]
    assert len(server.bayeux.state.hub.histories) == 1


def test_a_copy_from_a_history_has_no_destinations(server: Server) -> None:
    joe = server.client(ext={"delivery": {"session": "joe/1"}})
    server.turn()
    ext = {"delivery": {"destinations": [{"name": "joe"}]}}
    server.client().publish("/a", 1, ext=ext)
    server.turn()
    assert poll(joe).data == [1]
    (kept,) = server.bayeux.state.hub.histories
    assert kept.is_for("joe")
    subscribe(server.client(), "/a", replay=-2)
    assert not kept.initial().is_for("joe")


def test_a_message_for_destinations_only_is_not_kept(server: Server) -> None:
    joe = server.client(ext={"delivery": {"session": "joe/1"}})
    server.turn()
    ext = {"delivery": {"destinations": [{"name": "joe/1"}], "subscribable": False}}
    server.client().publish("/a", "secret", ext=ext)
    server.turn()
    assert subscribe(server.client(), "/a", replay=-2).data == []
    assert poll(joe).data == ["secret"]


def test_a_replay_brings_only_the_newest_messages_that_fit_into_the_queue() -> None:
    server = Server(channels=KEEPS, max_queue=4)
    publish(server, 1, 2, 3)
    asked = subscribe(server.client(), "/a", replay=0)
    assert asked.data == [2, 3]
    assert said_of(asked)["recovered"] is False
    assert server.balances()


@pytest.mark.parametrize("replay", [0, {"/b/**": 0}], ids=repr)
def test_messages_that_do_not_fit_are_reported_as_lost_by_subscription(replay: Any) -> None:
    server = Server(channels=KEEPS, max_queue=4)
    server.bayeux.state.hub.histories.floors.shared = 0
    publish(server, 1, channel="/b/x")
    publish(server, 2, channel="/b/y")
    publish(server, 3, 4, channel="/b/x")
    asked = subscribe(server.client(), "/b/**", replay=replay)
    assert asked.data == [3, 4]
    said = said_of(asked)
    messages = list(server.bayeux.state.hub.histories)
    assert said["lost"] == {"/b/**": {"from": 0, "to": messages[1].id // 1000}}


@pytest.mark.parametrize("how", [{"replay": -2}, {"history": {"numEntries": -1}}], ids=repr)
def test_a_subscribe_without_a_cursor_is_also_told_what_does_not_fit(how: Json) -> None:
    server = Server(channels=KEEPS, max_queue=4)
    publish(server, 1, 2, 3, channel="/b/x")
    publish(server, 4, channel="/a")
    asked = subscribe(server.client(), "/b/**", "/a", **how)
    said = said_of(asked)
    assert said["recovered"] is False
    ids = [message.id // 1000 for message in server.bayeux.state.hub.histories]
    assert said["lost"] == {"/b/**": {"from": ids[0] - 1, "to": ids[1]}}


# Replay


def test_a_client_continues_after_the_last_message_that_it_saw(server: Server) -> None:
    first = server.client()
    assert subscribe(first, "/a", replay=-1).reply["ext"]["replay"]["messages"] == 0
    publish(server, 1, 2)
    events = poll(first).events
    assert [event["data"] for event in events] == [1, 2]
    publish(server, 3)
    asked = subscribe(server.client(), "/a", replay=cursors(events)[-1])
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
def test_a_cursor_can_be_written_in_several_ways(
    server: Server, form: Callable[[Any], Any]
) -> None:
    publish(server, 1, 2, 3)
    messages = list(server.bayeux.state.hub.histories)
    assert subscribe(server.client(), "/a", replay=form(messages[0])).data == [2, 3]


def test_a_replay_can_start_at_a_time(server: Server) -> None:
    publish(server, 1)
    server.advance(1.0)
    now_ms = server.bayeux.state.node.now_ms()
    server.advance(0.1)
    publish(server, 2)
    assert subscribe(server.client(), "/a", replay={"time": now_ms}).data == [2]


@pytest.mark.parametrize(
    "replay",
    [
        *[-3, 1.5, "abc", "x" * 100, "9" * 19, [], 2**70],
        *[{"cursor": "1"}, {"cursor": -1}, {"time": None}, {"epoch": "x"}],
        *[{"cursor": 1, "time": 1}, {"/a": 1, "time": 1}, {"/a": "x"}],
    ],
    ids=repr,
)
def test_an_invalid_replay_option_is_refused(server: Server, replay: Any) -> None:
    client = server.client()
    reply = subscribe(client, "/a", replay=replay).reply
    assert reply["error"] == "400:user.illegalArgument,replay:ext_invalid"
    assert not client.session.subscriptions


def test_a_handshake_with_an_invalid_replay_option_is_refused(server: Server) -> None:
    reply = server.guest().handshake(ext={"replay": "x"}).reply
    assert reply["error"] == "400:user.illegalArgument,replay:ext_invalid"


@pytest.mark.parametrize("nothing", [None, False])
def test_a_replay_of_null_or_false_makes_an_ordinary_subscription(
    server: Server, nothing: object
) -> None:
    publish(server, 1)
    client = server.client(ext={"replay": nothing})
    message = {"channel": "/meta/subscribe", "subscription": "/a", "ext": {"replay": nothing}}
    asked = client.send(message)
    assert asked.data == []
    assert "ext" not in asked.reply
    assert "ext" not in poll(client).reply


def test_messages_that_are_no_longer_kept_are_reported_as_lost(server: Server) -> None:
    publish(server, 1)
    seen = server.bayeux.state.hub.complete_cursor()
    publish(server, 2, 3, 4, 5, 6, 7)
    asked = subscribe(server.client(), "/a", replay=seen)
    assert asked.data == [3, 4, 5, 6, 7]
    said = said_of(asked)
    assert said["recovered"] is False
    messages = list(server.bayeux.state.hub.histories)
    assert said["lost"]["/a"]["from"] == seen
    assert seen < said["lost"]["/a"]["to"] < messages[0].id // 1000


def test_a_channel_without_history_is_reported_as_not_recovered(server: Server) -> None:
    publish(server, 1, channel="/none")
    publish(server, 1)
    asked = subscribe(server.client(), "/none", replay=5)
    assert asked.reply["ext"]["replay"]["recovered"] is False


def test_a_channel_without_history_is_not_recovered_even_from_the_newest_kept_cursor(
    server: Server,
) -> None:
    publish(server, 1)
    seen = server.bayeux.state.hub.complete_cursor()
    publish(server, 2, channel="/none")
    asked = subscribe(server.client(), "/none", replay=seen)
    assert asked.reply["ext"]["replay"]["recovered"] is False


def test_a_cursor_of_another_epoch_starts_at_the_oldest_message_and_is_not_recovered(
    server: Server,
) -> None:
    publish(server, 1, 2)
    cursor = server.bayeux.state.hub.complete_cursor()
    asked = subscribe(server.client(), "/a", replay={"cursor": cursor, "epoch": "another"})
    assert asked.data == [1, 2]
    assert said_of(asked)["recovered"] is False


def test_a_pattern_is_recovered_only_if_no_messages_of_its_channels_are_missing(
    server: Server,
) -> None:
    publish(server, 1, channel="/b/x")
    seen = server.bayeux.state.hub.complete_cursor()
    publish(server, 2, channel="/b/y")
    asked = subscribe(server.client(), "/b/**", replay=seen)
    assert asked.data == [2]
    assert said_of(asked)["recovered"] is True
    publish(server, *range(4), channel="/b/y")
    said = said_of(subscribe(server.client(), "/b/**", replay=seen))
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
    server = Server(
        channels={
            name.removeprefix("-"): ChannelSettings(history=0 if name.startswith("-") else 10)
            for name in rules
        }
    )
    publish(server, 1, channel="/chat/x")
    seen = server.bayeux.state.hub.complete_cursor()
    publish(server, 2, channel="/quiet/x")
    publish(server, 3, channel="/chat/x")
    asked = subscribe(server.client(), pattern, replay=seen)
    assert said_of(asked)["recovered"] is is_kept


NOTHING = Qos(topic=TopicOptions(depth=HistoryDepth(0)))


@pytest.mark.parametrize(
    ("pattern", "is_whole"), [("/b/x", False), ("/b/*", False), ("/b/**", False), ("/b/y", True)]
)
def test_a_topic_that_keeps_nothing_is_not_recovered_although_its_rule_has_a_history(
    server: Server, pattern: str, is_whole: bool
) -> None:
    publish(server, 1, channel="/b/y")
    seen = server.bayeux.state.hub.complete_cursor()
    server.for_extensions.publish("/b/x", 2, qos=NOTHING)
    server.for_extensions.publish("/b/x", 3)
    asked = subscribe(server.client(), pattern, replay=seen)
    assert said_of(asked)["recovered"] is is_whole


@pytest.mark.parametrize("is_ended", [False, True])
def test_messages_that_a_topic_did_not_keep_are_not_recovered_when_it_keeps_again(
    server: Server, is_ended: bool
) -> None:
    publish(server, 1, channel="/b/x")
    seen = server.bayeux.state.hub.complete_cursor()
    server.for_extensions.publish("/b/x", 2, qos=NOTHING)
    assert server.bayeux.state.hub.histories.get("/b/x") is None
    if is_ended:
        server.advance(61.0)
        assert server.bayeux.state.topics.get("/b/x") is None
    else:
        kept = TopicOptions(depth=HistoryDepth(3))
        server.for_extensions.publish("/b/x", 0, qos=Qos(topic=kept, is_administrative=True))
    publish(server, 3, channel="/b/x")
    asked = subscribe(server.client(), "/b/x", replay=seen)
    assert asked.data == [3]
    assert said_of(asked)["recovered"] is False


def test_a_pattern_is_not_recovered_when_more_topics_keep_nothing_than_are_looked_at(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.delivery.routing.histories.MOST_LOOKS", 1)
    server.for_extensions.publish("/b/x/1", 1, qos=NOTHING)
    server.for_extensions.publish("/b/y/1", 1, qos=NOTHING)
    asked = subscribe(server.client(), "/b/*", replay=server.bayeux.state.hub.complete_cursor())
    assert said_of(asked)["recovered"] is False


def test_a_work_queue_under_a_pattern_does_not_prevent_its_recovery() -> None:
    rules = {
        "/**": ChannelSettings(history=10),
        "/jobs/**": ChannelSettings(work_queue=True),
    }
    server = Server(channels=rules)
    seen = server.bayeux.state.hub.complete_cursor()
    asked = subscribe(server.client(), "/**", replay=seen)
    assert said_of(asked)["recovered"] is True


def test_channels_beyond_the_limit_of_one_replay_are_not_recovered(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bayeux.subscribe.catching_up.MOST_CHANNELS", 1)
    seen = server.bayeux.state.hub.complete_cursor()
    publish(server, 1, channel="/b/x")
    publish(server, 2, channel="/b/y")
    asked = subscribe(server.client(), "/b/**", replay=seen)
    assert asked.data == [1]
    assert said_of(asked)["recovered"] is False
    several = subscribe(server.client(), "/b/x", "/b/y", "/b/*", replay=seen)
    assert several.data == [1]
    assert said_of(several)["lost"].keys() == {"/b/y", "/b/*"}
    named = subscribe(server.client(), "/b/**", replay={"/b/x": seen, "/b/y": -2})
    assert named.data == [1]
    assert said_of(named)["lost"].keys() == {"/b/**"}
    initial = subscribe(server.client(), "/b/**", history=last(1))
    assert initial.data == [1]
    assert said_of(initial)["recovered"] is False


def test_a_replay_that_has_read_many_messages_starts_no_further_history(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bayeux.subscribe.catching_up._MOST_MESSAGES", 2)
    publish(server, 1, 2, 3, channel="/b/x")
    publish(server, 4, channel="/b/y")
    asked = subscribe(server.client(), "/b/**", replay=-2)
    assert asked.data == [1, 2, 3]
    assert said_of(asked)["recovered"] is False
    named = subscribe(server.client(), "/b/**", replay={"/b/x": -2, "/b/y": -2})
    assert named.data == [1, 2, 3]
    assert said_of(named)["lost"].keys() == {"/b/**"}


@pytest.mark.parametrize("replay", [-1, {"/b/z/**": -2}, {"/other": -2}, {"/b/x": -1}], ids=repr)
def test_a_subscribe_that_wants_no_kept_messages_reads_no_history(
    server: Server, replay: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(server, 1, channel="/b/x")
    read: list[Any] = []
    monkeypatch.setattr(Histories, "covered_by", read.append)
    assert subscribe(server.client(), "/b/**", replay=replay).data == []
    assert not read


def test_a_cursor_for_a_channel_without_history_is_not_recovered(server: Server) -> None:
    publish(server, 1, channel="/none/x")
    asked = subscribe(server.client(), "/none/*", replay={"/none/x": 5})
    assert asked.reply["ext"]["replay"]["recovered"] is False


def test_a_replay_with_too_many_cursors_is_refused(server: Server) -> None:
    client = server.client()
    asked = subscribe(client, "/a", replay={f"/x/{number}": -2 for number in range(1_001)})
    assert asked.reply["error"] == "400:user.illegalArgument,replay:ext_invalid"


def test_a_refused_subscribe_reads_no_history(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(server, 1, channel="/b/x")
    read: list[Any] = []
    monkeypatch.setattr(Histories, "covered_by", read.append)
    asked = subscribe(server.client(), "/b/**", "/sys/deadMessage", replay=-2)
    assert not asked.reply["successful"]
    assert not read


def test_channels_of_a_pattern_can_start_at_different_cursors(server: Server) -> None:
    publish(server, 1, channel="/b/x")
    seen = server.bayeux.state.hub.complete_cursor()
    publish(server, 2, channel="/b/x")
    publish(server, 3, channel="/b/y")
    asked = subscribe(server.client(), "/b/**", replay={"/b/x": seen, "/b/**": -1})
    assert asked.data == [2]


# Cursors


def test_connect_replies_have_the_newest_cursor(server: Server) -> None:
    client = server.client(ext={"replay": True})
    before = poll(client).reply["ext"]["replay"]["cursor"]
    publish(server, 1)
    after = poll(client).reply["ext"]["replay"]
    assert after["epoch"] == ""
    assert after["cursor"] == list(server.bayeux.state.hub.histories)[-1].id // 1000 > before


def test_the_cursor_of_a_connect_reply_stays_before_unacked_messages(server: Server) -> None:
    client = server.client(ext={"ack": True, "replay": True})
    client.subscribe("/a")
    before = poll(client).reply["ext"]["replay"]["cursor"]
    publish(server, 1)
    answer = poll(client)
    (coming,) = cursors(answer.events)
    assert before < answer.elements[-1]["ext"]["replay"]["cursor"] < coming
    number = answer.elements[-1]["ext"]["ack"]
    acked = client.connect(ext={"ack": number}, advice={"timeout": 0})
    assert acked.reply["ext"]["replay"]["cursor"] == cursors(answer.events)[0]


def test_the_cursor_of_a_connect_reply_goes_back_for_a_replay(server: Server) -> None:
    publish(server, 1, 2)
    client = server.client(ext={"ack": True, "replay": True})
    promised = poll(client).reply["ext"]["replay"]["cursor"]
    subscribe(client, "/a", replay=-2)
    answer = poll(client)
    first, _ = cursors(answer.events)
    assert answer.elements[-1]["ext"]["replay"]["cursor"] == first - 1 < promised


def test_the_first_cursor_of_a_session_is_before_its_waiting_messages(server: Server) -> None:
    client = server.client(ext={"ack": True})
    client.subscribe("/a")
    publish(server, 1)
    subscribe(client, "/b/x", replay=-1)
    answer = poll(client)
    assert answer.elements[-1]["ext"]["replay"]["cursor"] < cursors(answer.events)[0]


def test_events_have_cursors_only_in_sessions_that_asked_and_on_channels_with_history(
    server: Server,
) -> None:
    asking, other = server.client(ext={"replay": True}), server.client()
    for client in (asking, other):
        client.subscribe("/a", "/c")
    publish(server, 1)
    publish(server, 2, channel="/c")
    assert ["ext" in event for event in poll(asking).events] == [True, False]
    assert ["ext" in event for event in poll(other).events] == [False, False]


def test_an_event_with_a_cursor_keeps_the_ext_of_its_publisher(server: Server) -> None:
    client = server.client(ext={"replay": True})
    client.subscribe("/a")
    (event,) = client.publish("/a", 1, ext={"mine": 1}).events
    assert event["ext"]["mine"] == 1
    assert event["ext"]["replay"]["cursor"]


def test_an_event_can_have_a_cursor_beside_its_delivery_ext(server: Server) -> None:
    client = server.client(ext={"delivery": True, "replay": True})
    client.subscribe("/a")
    poll(client)
    publish(server, 1)
    (event,) = poll(client).events
    assert event["ext"]["delivery"]["state"] == "OK"
    assert event["ext"]["replay"]["cursor"]


def test_salesforce_clients_find_the_replay_id_in_the_data_of_events(server: Server) -> None:
    hand = server.guest().handshake()
    assert hand.reply["ext"]["replay"] is True
    client = server.client()
    subscribe(client, "/a", replay={"/a": -1})
    publish(server, {"x": 1}, {"event": {"type": "new"}}, {"event": 5}, "text")
    events = poll(client).events
    ids = cursors(events)
    assert [event["data"] for event in events] == [
        {"x": 1, "event": {"replayId": ids[0]}},
        {"event": {"type": "new", "replayId": ids[1]}},
        {"event": 5},
        "text",
    ]


def test_a_client_that_asks_again_gets_one_cursor_in_the_form_it_asked_for_last(
    server: Server,
) -> None:
    client = server.client(ext={"replay": True})
    subscribe(client, "/a", replay={"/a": -1})
    subscribe(client, "/a", replay=-1)
    publish(server, {"x": 1})
    (event,) = poll(client).events
    assert event["data"] == {"x": 1}
    assert len(client.session.decorators) == 1


def test_the_next_client_of_a_session_gets_no_cursors_unless_it_asks_for_them() -> None:
    server = RestartableServer(channels=KEEPS)
    first, second = named(server), server.guest()
    subscribe(first, "/a", replay=-1)
    assert "replay" in poll(first).reply["ext"]
    take(second)
    poll(second)
    publish(server, 1)
    answer = poll(second)
    assert "replay" not in answer.elements[-1]["ext"]
    (event,) = answer.events
    assert "replay" not in event["ext"]


def test_a_server_without_histories_offers_no_replay() -> None:
    assert "ext" not in Server().guest().handshake().reply


@pytest.mark.slow
def test_the_cursor_form_remembers_a_limited_number_of_events(server: Server) -> None:
    client = server.client(ext={"replay": True})
    client.subscribe("/a")
    for number in range(1100):
        server.for_extensions.publish("/a", number)
    server.turn()
    assert len(poll(client).events) + len(poll(client).events) == 1100
    assert len(server.bayeux.state.cursor_form(has_replay_ids=False)._known) <= 1000


# Messages that wait for the store


def test_a_pending_publish_reaches_clients_that_subscribe_with_a_replay_meanwhile() -> None:
    server = Server(DeliveryWire, channels=DURABLE)
    client = server.client()
    asked = server.client().publish("/a", 1)
    server.client().publish("/a", 2)
    assert asked.is_held
    filtered = server.client()
    subscribe(filtered, "/a", replay=-2, filter="data > 1")
    subscribe(client, "/a", replay=-2)
    subscribe(client, "/a", replay=-2)
    promised = cursors_of(client.session)
    assert promised is not None
    cursor = promised.promised
    server.turn()
    assert asked.reply["successful"]
    answer = poll(client)
    assert answer.data == [1, 2]
    assert cursor < cursors(answer.events)[0]
    assert poll(filtered).data == [2]
    assert server.balances()


def test_a_publisher_without_echo_does_not_get_its_own_pending_publish() -> None:
    server = Server(
        DeliveryWire,
        channels={"/a": ChannelSettings(history=5, durable=True, broadcast_to_publisher=False)},
    )
    client = server.client()
    client.publish("/a", 1)
    subscribe(client, "/a", replay=-2)
    server.turn()
    assert poll(client).data == []


def test_the_store_has_the_messages_that_a_named_session_catches_up_on() -> None:
    server = RestartableServer(channels=DURABLE)
    publish(server, 1)
    client = server.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    connect(client, 0)
    server.for_extensions.publish("/a", 2)
    asked = subscribe(client, "/a", replay=-2)
    held = client.connect()
    assert asked.is_held
    assert held.is_held
    server.turn()
    assert asked.reply["successful"]
    assert held.data == [1, 2]
    assert len(server.store.queues["joe/1"]) == 2
    assert server.balances()
    server = server.reborn()
    client = again(client, server)
    assert connect(client, 0).elements[-1]["ext"]["replay"]
    assert drain(client, 0)[0] == [1, 2]
    assert server.store.queues["joe/1"] == {}


def test_a_subscriber_to_a_pending_publish_is_journalled_as_another_receiver_of_it() -> None:
    store = Writing()
    ack = partial(Ack, announces_batch=False)
    server = Server(DeliveryWire, ack, keeper=store, journal=store.writer, channels=DURABLE)
    client = server.client(ext={"ack": True, "delivery": {"session": "joe/1"}})
    server.client().publish("/a", 1)
    subscribe(client, "/a", replay=-2)
    server.turn()
    assert poll(client).data == [1]
    published = [each for each in store.events() if each.kind == Kind.PUBLISHED]
    assert [each.copies for each in published] == [0, 1]
    assert [bool(each.size) for each in published] == [True, False]


@pytest.mark.parametrize("outcome", [PersistOutcome.REFUSED, PersistOutcome.REPEATED])
def test_a_message_that_the_store_did_not_keep_is_not_caught_up_on(outcome: PersistOutcome) -> None:
    server = RestartableServer(channels=DURABLE)
    client = server.client(ext={"ack": True, "delivery": {"session": "joe/1"}})
    server.store.outcome = outcome
    server.client().publish("/a", 1)
    server.store.outcome = PersistOutcome.KEPT
    subscribe(client, "/a", replay=-2)
    server.turn()
    assert poll(client).data == []
    assert server.store.queues["joe/1"] == {}


# Restarts


def test_a_durable_history_survives_a_restart() -> None:
    server = RestartableServer(channels=DURABLE)
    publish(server, 1, 2, 3, 4, 5, 6, 7)
    seen = list(server.bayeux.state.hub.histories)[2].id // 1000
    assert len(server.store.queues["/a"]) == 5
    server = server.reborn()
    asked = subscribe(server.client(), "/a", replay=seen)
    assert asked.data == [6, 7]
    assert said_of(asked)["recovered"] is True
    publish(server, 8)
    assert subscribe(server.client(), "/a", replay=-2).data == [4, 5, 6, 7, 8]


def test_the_passing_messages_of_a_history_are_not_recovered_after_a_restart() -> None:
    server = RestartableServer(channels=KEEPS)
    publish(server, 1)
    seen = server.bayeux.state.hub.complete_cursor()
    named(server)
    publish(server, 2)
    server = server.reborn()
    asked = subscribe(server.client(), "/a", replay=-2)
    assert asked.data == [2], "a durable receiver made it durable"
    asked = subscribe(server.client(), "/a", replay=seen - 1)
    assert said_of(asked)["recovered"] is False


def test_a_history_that_no_rule_keeps_leaves_the_store_at_the_start() -> None:
    server = RestartableServer(channels=DURABLE)
    publish(server, 1)
    server = server.reborn(channels={})
    assert server.store.queues["/a"] == {}


def test_an_erased_history_leaves_the_store() -> None:
    server = RestartableServer(channels=DURABLE)
    publish(server, 1, 2)
    assert server.bayeux.state.hub.histories.erase("/a") == 2
    server.turn()
    assert server.store.queues["/a"] == {}


# Only the newest


def newest_only(server: Server) -> Client:
    client = server.client(ext={"ack": True, "delivery": True})
    poll(client)
    subscribe(client, "/b/**", newestOnly=True)
    client.subscribe("/c")
    return client


def test_a_newest_only_subscription_gets_the_newest_waiting_message_of_each_channel(
    server: Server,
) -> None:
    client = newest_only(server)
    for number, channel in enumerate(["/b/x", "/c", "/b/x", "/b/y", "/c", "/b/x"]):
        publish(server, number, channel=channel)
    assert poll(client).data == [1, 3, 4, 5]
    assert server.bayeux.state.counters.discarded[Reason.OUTDATED] == 2
    assert server.balances()


def test_a_named_session_with_newest_only_gets_one_message_after_being_away() -> None:
    server = RestartableServer(channels=DURABLE)
    client = named(server)
    subscribe(client, "/a", newestOnly=True)
    server.turn()
    client.disconnect()
    publish(server, 1, 2, 3)
    server = server.reborn()
    client = again(client, server)
    take(client)
    assert connect(client, 0).data == [3]
    assert list(server.store.queues["joe/1"]) == list(server.store.queues["/a"])[-1:]
    assert server.balances()


def test_a_newest_only_subscription_disregards_priorities(server: Server) -> None:
    client = newest_only(server)
    publisher = server.client()
    publisher.publish("/b/x", "old", ext={"delivery": {"priority": 1}})
    publisher.publish("/b/x", "new", ext={"delivery": {"priority": 9}})
    assert poll(client).data == ["new"]


def test_outdated_messages_make_room_in_a_full_queue() -> None:
    server = server_of(
        channels=KEEPS,
        max_queue=3,
    )
    client = newest_only(server)
    publish(server, *range(10), channel="/b/x")
    assert poll(client).data == [9]
    assert server.bayeux.state.counters.discarded[Reason.OVERFLOW_ENTRIES] == 0
    assert server.balances()


def test_a_plain_session_can_subscribe_to_the_newest_messages_only(server: Server) -> None:
    client = server.client()
    subscribe(client, "/a", newestOnly=True)
    poll(client)
    publish(server, 1, 2, 3)
    assert poll(client).data == [3]


def test_histories_keep_no_more_entries_than_the_server_allows() -> None:
    server = Server(channels=KEEPS, max_history=2)
    publish(server, 1, 2, 3)
    assert server.bayeux.state.hub.histories.dropped == 1
    assert subscribe(server.client(), "/a", replay=-2).data == [2, 3]


def test_a_publisher_beyond_its_share_of_histories_displaces_only_its_own_messages() -> None:
    limits = HistoryLimits(share_entries=2)
    server = Server(DeliveryWire, channels={"/a": ChannelSettings(history=9)})
    histories = server.bayeux.state.hub.histories
    histories.limits = limits
    one, other = (
        server.client(caller=Caller(address=each, network=each))
        for each in ("10.0.0.1", "10.0.0.2")
    )
    for n in (1, 2):
        other.publish("/a", n)
    for n in (3, 4, 5):
        one.publish("/a", n)
    publish(server, 6, 7, 8)
    server.turn()
    assert subscribe(server.client(), "/a", replay=-2).data == [1, 2, 4, 5, 6, 7, 8]
    assert histories.dropped == 1
    histories.erase("/a")
    for n in (1, 2, 3):
        one.publish("/a", n)
    assert subscribe(server.client(), "/a", replay=-2).data == [2, 3]


def test_the_share_of_a_publisher_is_limited_in_bytes() -> None:
    server = Server(
        DeliveryWire,
        channels={"/a": ChannelSettings(history=9)},
        quota_history_bytes=100,
    )
    one = server.client(caller=Caller(address="10.0.0.1", network="10.0.0.1"))
    for data in ("x" * 40, "y" * 40, "z" * 100):
        one.publish("/a", data)
        found = subscribe(server.client(), "/a", replay=-2).data
        assert found == ([data] if len(data) == 40 else [])


def test_a_message_of_a_durable_history_is_stored_first_even_without_durable_sessions() -> None:
    server = RestartableServer(channels=DURABLE, durable="none")
    asked = server.client().publish("/a", 1)
    assert asked.is_held
    server.turn()
    assert asked.reply["successful"]
    assert server.store.queues["/a"]


def test_a_topic_is_alive_while_its_history_or_a_queue_has_a_message() -> None:
    rule = ChannelSettings(topic=True, destroy_delay=-1, history=5)
    server = Server(DeliveryWire, channels={"/a": rule})
    client = server.client()
    client.publish("/a", 1, ext={"delivery": {"expiration": {"lifeTime": 1000}}})
    topic = server.bayeux.state.topics.get("/a")
    assert topic is not None
    assert topic.state.name == "ALIVE"
    late = server.client(ext={"delivery": True})
    poll(late)
    subscribe(late, "/*", replay=-2)
    assert topic.queued == 1
    server.advance(1.2)
    assert topic.kept == 0
    assert topic.state.name == "ALIVE", "it is in a queue"
    late.disconnect()
    server.turn()
    assert topic.state.name == "UNREFERENCED"


# Rights


class Granted:
    """What a login may do besides subscribing: operations, each on the channels of one pattern."""

    def __init__(self, **patterns: str) -> None:
        self.patterns = patterns

    def allows(self, operation: Operation, channel: str) -> bool:
        pattern = "/**" if operation is Operation.SUBSCRIBE else self.patterns.get(operation.value)
        return pattern is not None and covers(pattern, channel)


def user(server: Server, patterns: dict[str, str], *, ack: bool = False) -> Client:
    client = server.client(ext={"ack": ack})
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
    server: Server, rights: dict[str, str], channels: list[str], asked: Json, outcome: object
) -> None:
    publish(server, 1)
    publish(server, 2, channel="/b/x")
    client = user(server, rights)
    subscribed = subscribe(client, *channels, **asked)
    if isinstance(outcome, str):
        assert subscribed.reply["error"] == outcome
        assert not client.session.subscriptions
    else:
        assert subscribed.data == outcome
        assert client.session.subscriptions == set(channels)


def test_a_subscribe_is_refused_if_it_loses_the_right_while_its_filter_is_asked() -> None:
    server = Server(DeliveryWire, channels=KEEPS, is_turn_over=lambda: True)
    publish(server, 1, 2, 3)
    client = user(server, {"history": "/a"})
    asked = subscribe(client, "/a", history=last(-1), filter="data > 1")
    assert asked.is_held
    client.session.identity.grants = Granted()
    server.turn()
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
    server: Server, before: dict[str, str], after: dict[str, str], data: list[int]
) -> None:
    publish(server, 1)
    client = user(server, before, ack=True)
    subscribe(client, "/a", history=last(-1))
    publish(server, 3)
    client.session.identity.grants = Granted(**after)
    server.for_extensions.reauthorize(client.session)
    server.turn()
    assert poll(client).data == data
    assert server.balances()
