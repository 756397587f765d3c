"""Delayed messages: accepted now, published when they are due."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.bayeux.publish.delaying import MOST
from holdfast.bayeux.wire.caller import Caller
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.shared_queues.delays import KEY, delays_of
from holdfast.settings import ChannelSettings
from tests.effort import TIMES
from tests.unit.bayeux.harness import Client, Json, Server, server_of
from tests.unit.bayeux.publish.test_point_to_point import arriving, named, restarted
from tests.unit.extensions.delivering import connect
from tests.unit.extensions.requesting import requester, requesting

SECOND = 1000


def delay(client: Client, data: object, ms: int = SECOND, channel: str = "/a", **qos: Any) -> Json:
    """Publish with a delay; the reply."""
    asked = client.publish(channel, data, ext={"delivery": {"delay": ms, **qos}})
    client.server.turn()
    return asked.reply


def reader(server: Server, name: str = "joe/1", channel: str = "/a") -> Client:
    client = named(server, name)
    client.subscribe(channel)
    server.turn()
    return client


def read(client: Client) -> list[Any]:
    data = connect(client).data
    client.server.turn()
    return data


def waiting(server: Server) -> list[Any]:
    """The data of the messages that wait, in the order in which they will be published."""
    return [
        json.loads(each.message.wire)["event"]["data"]
        for each in delays_of(server.bayeux.state.waiting_places).waiting()
    ]


def cancel(server: Server, reply: Json) -> bool:
    number = int(reply["ext"]["delivery"]["id"].rpartition("-")[2])
    found = delays_of(server.bayeux.state.waiting_places).cancel(number)
    server.turn()
    return found is not None


def test_a_delayed_message_is_accepted_now_and_delivered_when_it_is_due() -> None:
    server = server_of()
    joe = reader(server)
    reply = delay(server.client(), 1)
    assert reply["successful"]
    said = reply["ext"]["delivery"]
    assert (said["state"], said["delay"]) == ("OK", SECOND)
    assert said["id"] == f"test-{said['rcvTimestamp']}"
    server.advance(0.9)
    assert (read(joe), waiting(server)) == ([], [1])
    server.advance(0.2)
    assert (read(joe), waiting(server)) == ([1], [])
    assert server.balances()


def test_a_delayed_message_goes_to_those_who_subscribe_before_it_is_due() -> None:
    server = server_of()
    early = reader(server, "ann/1")
    delay(server.client(), 1)
    early.unsubscribe("/a")
    late = reader(server)
    server.advance(1.2)
    assert (read(early), read(late)) == ([], [1])


def test_messages_are_delivered_by_due_time_and_then_in_the_order_of_their_publishes() -> None:
    server = server_of()
    joe, sender = reader(server), server.client()
    for data, ms in ((1, 3000), (2, 1000), (3, 2000)):
        delay(sender, data, ms)
    assert waiting(server) == [2, 3, 1]
    server.sleep(10)
    server.advance(0.1)
    assert read(joe) == [2, 3, 1]


def test_a_delayed_message_is_counted_as_published_when_it_is_delivered_and_once() -> None:
    server = server_of()
    reader(server)
    counters = server.bayeux.state.counters
    delay(server.client(), 1)
    assert counters.published == 0
    server.advance(1.2)
    assert (counters.published, counters.moved) == (1, 1)


def test_a_message_without_a_delay_says_nothing_of_one() -> None:
    server = server_of()
    joe = reader(server)
    reply = delay(server.client(), 1, ms=0)
    assert "delay" not in reply["ext"]["delivery"]
    assert read(joe) == [1]


@pytest.mark.parametrize("bad", [-1, "1", True, 1.5, None, 7 * 24 * 3600 * 1000 + 1, 10**20])
def test_a_delay_that_is_no_number_of_milliseconds_or_too_long_is_refused(bad: object) -> None:
    server = server_of()
    asked = server.client().publish("/a", 1, ext={"delivery": {"delay": bad}})
    assert asked.reply["error"] == "400:user.publish,delay:delivery_invalid"
    assert waiting(server) == []


@pytest.mark.parametrize(
    ("channel", "fields"),
    [
        ("/service/ptp", {"data": {"destinations": ["joe"], "content": 1}}),
        ("/service/echo", {}),
        ("/a", {"delivery": {"administrative": True}}),
    ],
)
def test_a_delay_of_something_that_is_answered_at_once_is_refused(
    channel: str, fields: Json
) -> None:
    server = server_of()
    ext = {"delivery": {"delay": 1, **fields.get("delivery", {})}}
    reply = server.client().publish(channel, fields.get("data", 1), ext=ext).reply
    assert reply["error"] == "400:user.publish,delay:delivery_invalid"
    assert waiting(server) == []


def test_a_request_may_not_be_delayed() -> None:
    server = requesting()
    ann = requester(server)
    reply = ann.ask(delivery={"delay": 1})
    assert reply["error"] == "400:user.publish,delay:delivery_invalid"
    assert waiting(server) == []
    assert server.balances()


# Restarts


def test_a_delayed_message_survives_a_restart_and_keeps_its_time() -> None:
    server = server_of()
    reader(server)
    delay(server.client(), 1)
    delay(server.client(), 2, 5 * SECOND)
    server.advance(0.5)
    after = restarted(server)
    assert waiting(after) == [1, 2]
    after.advance(0.4)
    assert waiting(after) == [1, 2]
    after.advance(0.3)
    assert waiting(after) == [2]
    assert read(arriving(after, "joe/1")) == [1]
    assert after.balances()


def test_what_became_due_while_the_server_was_down_is_delivered_at_once_in_order() -> None:
    server = server_of()
    reader(server)
    sender = server.client()
    delay(sender, 1, 3 * SECOND)
    delay(sender, 2, 2 * SECOND)
    after = restarted(server)
    after.sleep(3600)
    after.advance(0.1)
    assert read(arriving(after, "joe/1")) == [2, 1]


def test_a_message_that_was_published_before_a_kill_is_not_published_again() -> None:
    server = server_of()
    reader(server)
    delay(server.client(), 1)
    records = dict(server.keeper.queues[KEY])
    server.advance(1.2)
    # The process was killed after the publish and before the record left.
    server.keeper.queues[KEY] = records
    after = restarted(server)
    after.advance(0.3)
    assert read(arriving(after, "joe/1")) == [1]
    assert not server.keeper.queues[KEY]
    assert after.balances()


def test_a_record_that_this_version_cannot_read_stays_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    reader(server)
    sender = server.client()
    delay(sender, 1)
    delay(sender, 2)
    unreadable = server.keeper.bodies[min(server.keeper.queues[KEY])]
    unreadable.wire = b'{"due":0}'
    after = restarted(server)
    after.sleep(3600)
    after.advance(0.2)
    assert read(arriving(after, "joe/1")) == [2]
    assert [*after.keeper.queues[KEY]] == [unreadable.id]
    assert "is unreadable and stays" in caplog.text


def test_a_passing_message_waits_in_memory_only() -> None:
    server = server_of()
    joe = reader(server)
    sender = server.client()
    delay(sender, 1, persistent=False)
    assert not server.keeper.queues.get(KEY)
    assert waiting(restarted(server)) == []
    server.advance(1.2)
    assert read(joe) == [1]
    assert server.balances()


def test_without_the_store_durable_messages_are_refused_and_passing_ones_accepted() -> None:
    server = server_of()
    sender = server.client()
    server.keeper.is_available = False
    assert delay(sender, 1)["error"].startswith("503:")
    assert delay(sender, 2, persistent=False)["successful"]
    assert waiting(server) == [2]
    assert server.balances()


def test_a_message_that_is_due_while_the_store_is_away_is_delivered_when_it_is_back() -> None:
    server = server_of()
    joe = reader(server)
    delay(server.client(), 1)
    server.keeper.is_available = False
    server.advance(3)
    assert waiting(server) == [1]
    server.keeper.is_available = True
    server.advance(1.2)
    assert read(joe) == [1]
    assert server.balances()


def test_a_message_that_the_store_confirms_late_is_delivered() -> None:
    server = server_of()
    joe, sender = reader(server), server.client()
    server.keeper.is_silent = True
    asked = sender.publish("/a", 1, ext={"delivery": {"delay": SECOND}})
    server.turn()
    server.keeper.is_silent = False
    answer = server.keeper._silent.pop()
    answer(PersistOutcome.UNKNOWN)
    server.turn()
    assert asked.reply["error"].startswith("503:")
    assert waiting(server) == []
    answer(PersistOutcome.KEPT)
    server.advance(1.2)
    assert read(joe) == [1]
    assert server.balances()


# Options


def test_a_repeat_with_the_same_key_gets_the_first_id_and_is_not_delivered_again() -> None:
    server = server_of()
    joe, sender = reader(server), server.client()
    first, again = (delay(sender, 1, key="k") for _ in range(2))
    assert first["ext"]["delivery"]["id"] == again["ext"]["delivery"]["id"]
    assert waiting(server) == [1]
    server.advance(1.2)
    assert read(joe) == [1]
    assert server.balances()


def test_the_lifetime_of_a_delayed_message_begins_when_it_is_delivered() -> None:
    server = server_of()
    joe = reader(server)
    life = {"lifeTime": SECOND, "forceDestroy": True}
    delay(server.client(), 1, 5 * SECOND, expiration=life)
    server.advance(5.2)
    assert server.bayeux.state.counters.expired == 0
    assert joe.session.queue.count == 1
    server.advance(1.2)
    assert server.bayeux.state.counters.expired == 1
    assert read(joe) == []


def test_receivers_see_the_publisher_and_the_options_although_its_session_has_ended() -> None:
    server = server_of()
    joe, sender = reader(server), named(server, "ann/1")
    delay(sender, 1, priority=8, properties={"kind": "late"})
    sender.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.advance(1.2)
    (event,) = connect(joe).events
    said = event["ext"]["delivery"]
    assert (said["sender"], said["priority"]) == ("client/ann/1", 8)
    assert said["properties"] == {"kind": "late"}


def test_a_filter_selects_delayed_messages_by_what_they_are() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    subscribe = {"channel": "/meta/subscribe", "subscription": "/a"}
    joe.send({**subscribe, "ext": {"delivery": {"filter": "priority >= 6"}}})
    server.turn()
    sender = server.client()
    delay(sender, 1, priority=8)
    delay(sender, 2, priority=2)
    server.advance(1.2)
    assert read(joe) == [1]


def test_a_publisher_that_gets_no_echo_gets_none_of_its_delayed_messages() -> None:
    server = server_of(channels={"/a": ChannelSettings(broadcast_to_publisher=False)})
    ann, joe = reader(server, "ann/1"), reader(server)
    delay(ann, 1)
    server.advance(1.2)
    assert (read(ann), read(joe)) == ([], [1])


def test_a_delayed_message_enters_the_history_when_it_is_delivered() -> None:
    rule = ChannelSettings(history=10, history_bytes=10_000)
    server = server_of(channels={"/a": rule})
    sender = server.client()
    delay(sender, "late")
    sender.publish("/a", "early")
    server.turn()
    server.advance(1.2)
    kept = server.bayeux.state.hub.histories.get("/a")
    assert kept is not None
    found = [json.loads(each.wire)["data"] for each in kept.newest(10, 0)]
    assert sorted(found) == ["early", "late"]
    assert found == ["late", "early"] or found == ["early", "late"]
    ids = {json.loads(each.wire)["data"]: each.id for each in kept.newest(10, 0)}
    assert ids["early"] < ids["late"]


def test_a_delayed_message_to_a_work_queue_becomes_work_when_it_is_due() -> None:
    server = server_of(channels={"/jobs/*": ChannelSettings(work_queue=True)})
    delay(server.client(), 1, channel="/jobs/a")
    assert server.bayeux.state.work.of("/jobs/a") is None
    server.advance(1.2)
    assert read(reader(server, channel="/jobs/a")) == [1]
    assert server.balances()


def test_a_delayed_message_is_addressed_when_it_is_due() -> None:
    server = server_of()
    destination = {"name": "joe", "forceQueuing": True}
    delay(server.client(), 1, destinations=[destination], subscribable=False)
    joe = named(server, "joe/1")
    server.advance(1.2)
    assert read(joe) == [1]


def test_a_message_that_cannot_be_delivered_when_it_is_due_becomes_a_dead_letter() -> None:
    server = server_of()
    delay(server.client(), 1, destinations=["joe"], subscribable=False)
    server.advance(1.2)
    (letter,) = server.keeper.letters
    assert (letter.code, letter.receiver) == ("user.publish", f"client/{KEY}")
    assert letter.text == "404:user.ptp.unknownDestination,client/joe:destination_unknown"
    assert letter.event()["data"]["content"] == 1
    assert not server.keeper.queues[KEY]
    assert server.balances()


# Limits


@pytest.mark.parametrize(
    ("limits", "code"), [({"max_delayed": 2}, "entries"), ({"max_delayed_bytes": 180}, "bytes")]
)
def test_more_delayed_messages_than_there_may_be_are_refused(
    limits: dict[str, int], code: str
) -> None:
    server = server_of(**limits)
    sender = server.client()
    assert all(delay(sender, each)["successful"] for each in (1, 2))
    error = delay(sender, 3)["error"]
    assert error == f"507:resource.overflow.queue.{code},/a:destination_full"
    server.advance(1.2)
    assert delay(sender, 4)["successful"]
    assert server.balances()


def test_the_quota_of_an_address_counts_its_delayed_messages_until_they_are_due() -> None:
    server = server_of(quota_addressed=1)
    sender = server.client(caller=Caller(address="1.2.3.4", network="1.2.3.4"))
    assert delay(sender, 1)["successful"]
    assert delay(sender, 2)["error"] == "429:addressed:budget_exceeded"
    server.advance(1.2)
    assert delay(sender, 3)["successful"]


def test_one_tick_publishes_a_bounded_number_of_messages() -> None:
    server = server_of()
    sender = server.client()
    for number in range(MOST + 10):
        delay(sender, number, persistent=False)
    server.sleep(2)
    server.advance(0.1)
    assert len(waiting(server)) == 10
    server.advance(0.1)
    assert waiting(server) == []
    assert server.balances()


# Cancelling


def test_a_cancelled_message_is_not_delivered_and_counts_as_discarded() -> None:
    server = server_of()
    joe, sender = reader(server), server.client()
    first, _ = delay(sender, 1), delay(sender, 2)
    assert cancel(server, first)
    assert not cancel(server, first)
    server.advance(1.2)
    assert read(joe) == [2]
    assert server.bayeux.state.counters.discarded[Reason.CANCELLED] == 1
    assert not server.keeper.queues[KEY]
    assert server.balances()


def test_a_message_that_was_delivered_cannot_be_cancelled() -> None:
    server = server_of()
    reply = delay(server.client(), 1)
    server.advance(1.2)
    assert not cancel(server, reply)


# A naive model under random order and restarts


STEPS = st.one_of(
    st.tuples(st.just("delay"), st.integers(1, 30), st.booleans()),
    st.tuples(st.just("cancel"), st.integers(0, 10), st.just(False)),
    st.tuples(st.just("wait"), st.integers(1, 10), st.just(False)),
    st.tuples(st.just("restart"), st.just(0), st.just(False)),
)


@pytest.mark.slow
@settings(max_examples=20 * TIMES, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_each_message_is_delivered_once_in_order_or_cancelled_whatever_happens(
    steps: list[tuple[str, int, bool]],
) -> None:
    server = server_of()
    reader(server)
    sender = server.client()
    # What waits, by number: when it is due, whether it is stored, and its reply.
    model: dict[int, tuple[int, bool, Json]] = {}
    expected: list[int] = []
    stored: set[int] = set()
    tenths = 0

    def pass_time(until: int) -> None:
        due = sorted((when, number) for number, (when, _, _) in model.items() if when <= until)
        for _, number in due:
            expected.append(number)
            del model[number]

    for number, (step, amount, is_passing) in enumerate(steps):
        if step == "delay":
            reply = delay(sender, number, amount * 100, persistent=not is_passing)
            stored |= set() if is_passing else {number}
            model[number] = (tenths + amount, not is_passing, reply)
        elif step == "cancel" and model:
            chosen = sorted(model)[amount % len(model)]
            assert cancel(server, model.pop(chosen)[2])
        elif step == "wait":
            server.advance(amount / 10)
            tenths += amount
            pass_time(tenths)
        elif step == "restart":
            server.turn()
            server = restarted(server)
            sender = server.client()
            # What only the memory had is gone, delivered or not.
            model = {n: each for n, each in model.items() if each[1]}
            expected = [n for n in expected if n in stored]
        assert server.balances()
    server.advance(4)
    pass_time(tenths + 40)
    assert read(arriving(server, "joe/1")) == expected
    assert waiting(server) == []
