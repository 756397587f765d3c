"""Work queues: each message of such a channel goes to one receiver."""

from typing import Any

import pytest

from holdfast.bayeux.wire.caller import Caller
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from holdfast.store.format.letter_records import message_of
from tests.unit.bayeux.harness import Asked, Client, Json, Server, server_of
from tests.unit.bayeux.operated_server import letters, replaying_of
from tests.unit.bayeux.publish.test_point_to_point import leave, restarted
from tests.unit.extensions.delivering import codes, connect, no, redelivered

JOBS = "/jobs/a"
RULES: dict[str, Any] = {"channels": {"/jobs/**": ChannelSettings(work_queue=True)}}
REFUSED = "user.update.illegalArgument"


def working(**options: Any) -> Server:
    return server_of(**RULES, **options)


def worker(server: Server, *, channel: str = JOBS, **options: Any) -> Client:
    """A receiver of the work queue with acks and verdicts."""
    client = server.guest()
    client.handshake(ext={"ack": True, "delivery": options or True})
    server.turn()
    connect(client)
    client.subscribe(channel)
    server.turn()
    return client


def put(server: Server, *numbers: object, channel: str = JOBS, **qos: Any) -> list[Json]:
    """Publish jobs; the replies."""
    boss = server.client()
    replies = []
    for number in numbers:
        ext = {"ext": {"delivery": qos}} if qos else {}
        asked = boss.publish(channel, number, **ext)
        server.turn()
        replies.append(asked.reply)
    boss.disconnect()
    server.turn()
    return replies


def fetch(client: Client, *verdicts: Any, **fields: Any) -> Asked:
    asked = connect(client, *verdicts, **fields)
    client.server.turn()
    return asked


def waiting(server: Server, channel: str = JOBS) -> list[int]:
    queue = server.bayeux.state.work.of(channel)
    messages = () if queue is None else queue.queue.new
    return [int(message.wire.rpartition(b":")[2][:-1]) for message in messages]


def test_each_message_goes_to_one_receiver_in_turn() -> None:
    server = working()
    workers = [worker(server) for _ in range(3)]
    assert all(reply["successful"] for reply in put(server, *range(6)))
    shares = [fetch(each).data for each in workers]
    assert shares == [[0, 3], [1, 4], [2, 5]]
    assert server.balances()


def test_the_receiver_with_the_fewest_unsettled_messages_is_next() -> None:
    server = working()
    slow, fast = worker(server), worker(server)
    put(server, 1, 2)
    assert (fetch(slow).data, fetch(fast).data) == ([1], [2])
    fetch(fast)
    # One receiver has acked; the other still works.
    put(server, 3)
    assert fetch(fast).data == [3]


def test_an_acked_message_leaves_the_store_and_ends_its_empty_work_queue() -> None:
    server = working()
    ann = worker(server)
    put(server, 1)
    (key,) = [key for key, queue in server.keeper.queues.items() if queue]
    assert key == ann.session.key
    fetch(ann)
    fetch(ann)
    assert not any(server.keeper.queues.values())
    assert not server.bayeux.state.work.queues()


def test_a_message_without_a_receiver_waits_for_the_first_that_subscribes() -> None:
    server = working()
    assert all(reply["successful"] for reply in put(server, 1, 2))
    assert waiting(server) == [1, 2]
    assert fetch(worker(server)).data == [1, 2]
    assert server.balances()


def test_waiting_messages_are_delivered_by_priority_and_age() -> None:
    server = working()
    put(server, 1, 2)
    put(server, 3, priority=9)
    assert fetch(worker(server)).data == [3, 1, 2]


@pytest.mark.parametrize(
    ("limits", "limit"),
    [({"max_work_queue": 2}, "entries"), ({"max_work_queue_bytes": 70}, "bytes")],
)
def test_a_message_to_a_full_work_queue_is_refused(limits: dict[str, int], limit: str) -> None:
    server = working(**limits)
    *_, refused = put(server, 1, 2, 3)
    code = f"resource.overflow.queue.{limit}"
    assert refused["error"] == f"507:{code},{JOBS}:destination_full"
    assert server.balances()


def test_the_number_of_work_queues_is_limited() -> None:
    server = working(max_work_queues=1)
    (first,) = put(server, 1)
    (second,) = put(server, 1, channel="/jobs/b")
    assert first["successful"]
    assert second["error"] == "507:resource.exhaust,/jobs/b:destination_full"
    fetch(worker(server))
    assert put(server, 1, channel="/jobs/b")[0]["successful"]


def test_a_refused_message_goes_to_the_next_receiver() -> None:
    server = working()
    ann, joe = worker(server), worker(server)
    put(server, 1)
    (job,) = fetch(ann).events
    fetch(ann, no(job, REFUSED))
    (again,) = fetch(joe).events
    assert again["data"] == 1
    assert again["ext"]["delivery"]["id"] == job["ext"]["delivery"]["id"]
    assert again["ext"]["delivery"]["redelivered"] == 1
    fetch(joe)
    assert fetch(ann).data == codes(server) == []
    assert server.balances()


def test_a_message_that_all_receivers_refuse_becomes_a_dead_letter_with_all_attempts() -> None:
    server = working()
    ann, joe = worker(server, session="ann/1"), worker(server, session="joe/1")
    put(server, 1)
    (job,) = fetch(ann).events
    fetch(ann, no(job, REFUSED, "not mine"))
    (job,) = fetch(joe).events
    fetch(joe, no(job, "user.update.error", "broken"))
    (letter,) = server.keeper.letters
    assert (letter.code, letter.channel) == ("user.update.error", JOBS)
    assert "broken" in letter.reason
    assert [(each.receiver, each.code) for each in letter.attempts] == [
        ("ann/1", REFUSED),
        ("joe/1", "user.update.error"),
    ]
    assert letter.attempt_count == 2
    assert not any(server.keeper.queues.values())
    assert server.balances()


def test_a_message_that_its_only_receiver_refuses_is_dead_lettered_at_once() -> None:
    server = working()
    ann = worker(server)
    put(server, 1)
    (job,) = fetch(ann).events
    fetch(ann, no(job, REFUSED))
    assert letters(server) == [1]
    assert waiting(server) == []


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_receiver_can_refuse_a_message_for_all_receivers(is_durable: bool) -> None:
    server = working()
    ann, joe = worker(server, session="ann/1"), worker(server, session="joe/1")
    put(server, 1, 2, persistent=is_durable)
    (job,) = fetch(ann).events
    fetch(ann, no(job, "user.update.deadMessage", "the picture is broken"))
    assert fetch(joe).data == [2]
    fetch(joe)
    (letter,) = server.keeper.letters
    assert letter.receiver == f"client/work:{JOBS}/0"
    assert "broken" in letter.reason
    assert [(each.receiver, each.code) for each in letter.attempts] == [
        ("ann/1", "user.update.deadMessage")
    ]
    assert not server.bayeux.state.work.queues()
    assert not any(server.keeper.queues.values())
    assert server.balances()


@pytest.mark.parametrize("is_durable", [True, False])
def test_the_letter_of_work_without_attempts_left_belongs_to_its_queue(is_durable: bool) -> None:
    rule = ChannelSettings(work_queue=True, max_attempts=2)
    server = server_of(channels={"/jobs/**": rule})
    put(server, 1, persistent=is_durable)
    for name in ("ann/1", "joe/1"):
        dying = worker(server, session=name)
        assert fetch(dying).data == [1]
        dying.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
        server.turn()
    fetch(worker(server, session="eve/1"))
    (letter,) = server.keeper.letters
    assert (letter.receiver, letter.attempt_count) == (f"client/work:{JOBS}/0", 2)
    assert sorted(each.receiver for each in letter.attempts) == ["ann/1", "joe/1"]
    assert server.balances()


def test_a_message_is_dead_lettered_after_ten_refusals() -> None:
    server = working()
    workers = [worker(server) for _ in range(11)]
    put(server, 1)
    for each in workers[:10]:
        (job,) = fetch(each).events
        fetch(each, no(job, REFUSED))
    assert codes(server) == [REFUSED]
    assert fetch(workers[-1]).data == []


def test_a_receiver_whose_delivery_failed_leaves_its_work_to_others() -> None:
    server = working()
    ann = worker(server, session="ann/1", retries=-1, delay=5000)
    joe = worker(server, session="joe/1")
    put(server, 1, 2, 3, 4)
    job, _ = fetch(ann).events
    fetch(ann, no(job, "communication.noConnection"))
    assert sorted(fetch(joe).data) == [1, 2, 3, 4]
    assert server.balances()


def test_work_waits_while_the_only_receiver_has_failed_and_then_returns_to_it() -> None:
    server = working()
    ann = worker(server, session="ann/1", retries=-1, delay=5000)
    put(server, 1, 2)
    job, _ = fetch(ann).events
    held = connect(ann, no(job, "communication.noConnection"), advice={"timeout": 20_000})
    server.turn()
    assert waiting(server) == [1, 2]
    server.advance(1.0)
    server.turn()
    assert held.data == [1, 2]
    assert codes(server) == []
    assert server.balances()


def test_a_receiver_whose_session_ended_because_it_was_busy_gets_the_work_again() -> None:
    server = working()
    # It wants no further attempt.
    ann = worker(server, session="ann/1", retries=0)
    put(server, 1)
    [job] = fetch(ann).events
    fetch(ann, no(job, "communication.busy"))
    assert codes(server) == []
    assert waiting(server) == [1]
    again = fetch(worker(server, session="ann/1"))
    assert (again.data, redelivered(again), codes(server)) == ([1], [1], [])
    assert server.balances()


@pytest.mark.parametrize("code", ["user.update.holdback"])
def test_a_receiver_that_holds_itself_back_leaves_its_work_to_others(code: str) -> None:
    server = working()
    ann, joe = worker(server, session="ann/1"), worker(server, session="joe/1")
    put(server, 1, 2, 3, 4)
    job, _ = fetch(ann).events
    fetch(ann, no(job, code))
    assert sorted(fetch(joe).data) == [1, 2, 3, 4]
    server.bayeux.life.resume(ann.session, server.now)
    fetch(joe)
    put(server, 5)
    assert fetch(ann).data == [5]


def test_a_receiver_that_an_operator_holds_back_gets_no_work_until_it_is_resumed() -> None:
    server = working()
    ann = worker(server, session="ann/1")
    server.bayeux.life.hold_back(ann.session, "repairs", who="root", now=server.now)
    put(server, 1)
    assert waiting(server) == [1]
    server.bayeux.life.resume(ann.session, server.now)
    server.turn()
    assert fetch(ann).data == [1]
    put(server, 2)
    server.bayeux.life.hold_back(ann.session, "repairs", who="root", now=server.now)
    server.turn()
    assert waiting(server) == [2]


def test_messages_in_flight_to_an_expired_session_go_to_another_in_order() -> None:
    server = working()
    ann = worker(server)
    put(server, 1, 2, 3)
    assert fetch(ann).data == [1, 2, 3]
    server.advance(15.0)
    server.turn()
    joe = worker(server)
    again = fetch(joe)
    assert again.data == [1, 2, 3]
    assert [event["ext"]["delivery"].get("redelivered") for event in again.events] == [1, 1, 1]
    assert codes(server) == []
    assert server.balances()


def test_a_session_that_disconnects_leaves_its_work_to_others() -> None:
    server = working()
    ann, joe = worker(server), worker(server)
    put(server, 1, 2, 3)
    fetch(ann)
    ann.disconnect()
    server.turn()
    assert sorted(fetch(joe).data) == [1, 2, 3]
    assert server.balances()


def test_a_named_session_whose_client_leaves_keeps_no_work() -> None:
    server = working()
    ann = worker(server, session="ann/1")
    put(server, 1, 2)
    fetch(ann)
    ann.disconnect()
    server.turn()
    assert waiting(server) == [1, 2]
    leave(worker(server, session="ann/1"))
    assert waiting(server) == [1, 2]
    assert server.balances()


def test_an_unsubscribe_returns_work_that_was_not_handed_over() -> None:
    server = working()
    ann = worker(server, queue={"maxEntries": 2})
    put(server, 1, 2, 3)
    ann.subscribe("/a")
    server.turn()
    ann.unsubscribe(JOBS)
    server.turn()
    assert waiting(server) == [1, 2, 3]
    server.for_extensions.publish("/a", "other")
    server.turn()
    assert fetch(ann).data == ["other"]


def test_a_full_receiver_gets_more_work_when_it_has_acked() -> None:
    server = working()
    ann = worker(server, queue={"maxEntries": 1})
    put(server, 1, 2)
    assert fetch(ann).data == [1]
    assert waiting(server) == [2]
    fetch(ann)
    assert fetch(ann).data == [2]


def test_a_message_that_is_too_large_for_one_receiver_waits_for_another() -> None:
    server = working()
    small = worker(server, queue={"maxBytes": 200})
    put(server, "x" * 300, 2)
    assert fetch(small).data == [2]
    assert fetch(worker(server)).data == ["x" * 300]


def test_a_message_waits_for_a_receiver_that_has_not_refused_it() -> None:
    server = working()
    ann, joe = worker(server), worker(server, queue={"maxEntries": 1})
    put(server, 1, 2)
    fetch(joe)
    (job,) = fetch(ann).events
    fetch(ann, no(job, REFUSED))
    assert waiting(server) == [1]
    fetch(joe)
    assert fetch(joe).data == [1]
    assert codes(server) == []


def refused_by_all_but_a_busy_one(server: Server, count: int) -> tuple[Client, Client]:
    """Two receivers: one has refused this many messages, and the other has room for none."""
    ann, joe = worker(server), worker(server, queue={"maxEntries": 1})
    put(server, -1, -2)
    fetch(joe)
    fetch(ann)
    fetch(ann)
    for n in range(count):
        server.for_extensions.publish(JOBS, n)
    server.turn()
    events = fetch(ann).events
    while events:
        events = fetch(ann, *[no(each, REFUSED) for each in events]).events
    assert len(waiting(server)) == count
    return ann, joe


@pytest.mark.slow
@pytest.mark.parametrize("count", [250, pytest.param(650, marks=pytest.mark.slow)])
def test_messages_that_only_a_busy_receiver_may_take_do_not_delay_later_work(count: int) -> None:
    server = working()
    ann, joe = refused_by_all_but_a_busy_one(server, count)
    put(server, count, count + 1)
    assert fetch(ann).data == [count, count + 1]
    # A message that is queued between messages without a receiver is delivered, too.
    put(server, count + 2, priority=5)
    put(server, count + 3)
    assert fetch(ann).data == [count + 2, count + 3]
    assert waiting(server) == list(range(count))
    fetch(joe)
    assert fetch(joe).data == [0]
    assert server.balances()


@pytest.mark.slow
def test_work_and_room_that_arrive_during_a_search_of_several_turns_are_found() -> None:
    server = working()
    ann, joe = refused_by_all_but_a_busy_one(server, 650)
    for n in range(650, 653):
        server.for_extensions.publish(JOBS, n)
        server.keeper.turn()
        # Each turn searches one part of the queue.
        server.flush()
    server.for_extensions.publish(JOBS, 653)
    server.keeper.turn()
    server.flush()
    fetch(joe)
    assert fetch(ann).data == [650, 651, 652, 653]
    assert fetch(joe).data == [0]
    assert server.balances()


@pytest.mark.parametrize("how", ["unsubscribes", "is held back"])
def test_a_refused_message_is_dead_lettered_when_its_last_receiver_takes_no_more(
    how: str,
) -> None:
    server = working()
    ann, joe = worker(server), worker(server, session="joe/1", queue={"maxEntries": 1})
    put(server, 1, 2)
    fetch(joe)
    (event,) = fetch(ann).events
    fetch(ann, no(event, REFUSED))
    assert waiting(server) == [event["data"]]
    if how == "unsubscribes":
        joe.unsubscribe(JOBS)
    else:
        server.bayeux.life.hold_back(joe.session, "", who="operator", now=server.now)
    server.turn()
    assert letters(server) == [event["data"]]
    assert server.balances()


def test_a_refused_message_is_dead_lettered_when_its_last_receiver_without_room_ends() -> None:
    server = working()
    ann, joe = worker(server), worker(server, session="joe/1", queue={"maxBytes": 10})
    put(server, 1)
    (event,) = fetch(ann).events
    fetch(ann, no(event, REFUSED))
    assert waiting(server) == [1]
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.turn()
    assert letters(server) == [1]


def test_plain_sessions_share_work() -> None:
    server = working()
    plain, ann = server.connected(), worker(server)
    plain.subscribe(JOBS)
    server.turn()
    put(server, 1, 2)
    assert plain.connect().data + fetch(ann).data in ([1, 2], [2, 1])
    fetch(ann)
    assert not any(server.keeper.queues.values())
    assert server.balances()


def test_subscribers_of_patterns_share_work() -> None:
    server = working()
    ann, joe = worker(server, channel="/jobs/*"), worker(server)
    put(server, 1, 2)
    assert [fetch(ann).data, fetch(joe).data] == [[1], [2]]
    put(server, 3, channel="/jobs/b")
    assert [fetch(ann).data, fetch(joe).data] == [[3], []]


def test_a_publisher_can_receive_its_own_work() -> None:
    server = working(broadcast_to_publisher=False)
    ann = worker(server)
    ann.publish(JOBS, 1)
    server.turn()
    assert fetch(ann).data == [1]


@pytest.mark.parametrize("qos", [{"filter": "data.a = 1"}, {"local": False}, {"newestOnly": True}])
@pytest.mark.parametrize("channel", [JOBS, "/jobs/*", "/**"])
def test_subscriptions_that_select_messages_of_a_work_queue_are_refused(
    channel: str, qos: Json
) -> None:
    server = working()
    ann = worker(server)
    message = {"channel": "/meta/subscribe", "subscription": channel, "ext": {"delivery": qos}}
    asked = ann.send(message)
    server.turn()
    (name,) = qos
    assert asked.reply["error"].startswith(f"400:user.illegalArgument,{name}")
    assert ann.send({**message, "subscription": "/other/*"}).reply["successful"], name


def test_a_channel_that_becomes_a_work_queue_loses_no_work_to_older_subscriptions() -> None:
    server = server_of(durable="named")
    ann = worker(server, session="ann/1")
    subscribing = {"channel": "/meta/subscribe", "subscription": JOBS}
    ann.send({**subscribing, "ext": {"delivery": {"newestOnly": True}}})
    server.turn()
    server = restarted(server, **RULES)
    ann = worker(server, session="ann/1", channel="/other")
    put(server, 1, 2, 3)
    assert fetch(ann).data == [1, 2, 3]
    assert server.balances()


@pytest.mark.parametrize("name", [{}, {"session": "ann/1"}])
def test_each_redelivery_of_a_message_to_another_receiver_counts_once(name: Json) -> None:
    server = working()
    ann = worker(server, **name)
    put(server, 1, 2)
    fetch(ann)
    joe, eve = worker(server, maxEntries=1), worker(server)
    ann.disconnect()
    server.turn()
    assert redelivered(fetch(joe)) == redelivered(fetch(eve)) == [1]
    assert server.bayeux.state.counters.redelivered == 2
    assert server.balances()


def test_a_message_that_only_waited_for_a_receiver_does_not_count_as_redelivered() -> None:
    server = working()
    ann = worker(server)
    put(server, 1)
    fetch(ann)
    joe = worker(server)
    ann.disconnect()
    server.turn()
    eve = worker(server)
    joe.unsubscribe(JOBS)
    server.turn()
    assert redelivered(fetch(eve)) == [1]


def test_work_with_destinations_is_refused() -> None:
    server = working()
    (reply,) = put(server, 1, destinations=["joe"])
    assert reply["error"].startswith("400:user.publish,destinations")


def test_a_message_in_a_work_queue_expires_when_its_lifetime_ends() -> None:
    server = working()
    put(server, 1, expiration={"lifeTime": 1000, "forceDestroy": True})
    server.advance(2.0)
    server.turn()
    assert waiting(server) == []
    assert server.bayeux.state.counters.expired == 1
    assert not server.bayeux.state.work.queues()
    assert server.balances()


def test_a_passing_message_is_not_stored() -> None:
    server = working()
    put(server, 1, persistent=False)
    assert waiting(server) == [1]
    assert not any(server.keeper.queues.values())
    ann = worker(server)
    assert fetch(ann).data == [1]
    assert not ann.session.is_durable
    assert server.balances()


def test_work_is_refused_while_the_store_is_away() -> None:
    server = working()
    boss = server.client()
    server.keeper.is_available = False
    reply = boss.publish(JOBS, 1).reply
    assert reply["error"].startswith("503:")
    assert not server.bayeux.state.work.queues()


def test_work_waiting_and_in_flight_survives_a_restart() -> None:
    server = working()
    ann = worker(server)
    put(server, 1, 2)
    fetch(ann)
    put(server, 3)
    server = restarted(server, **RULES)
    server.for_extensions.end_by_server(next(iter(server.bayeux.state.sessions)))
    server.turn()
    assert sorted(waiting(server)) == [1, 2, 3]
    assert sorted(fetch(worker(server)).data) == [1, 2, 3]
    assert server.balances()


def test_work_of_a_session_that_is_gone_returns_to_the_queue_at_a_restart() -> None:
    server = working()
    ann = worker(server)
    put(server, 1)
    server.keeper.sessions.clear()
    server = restarted(server, **RULES)
    assert waiting(server) == [1]
    assert ann.client_id is not None
    assert server.balances()


def test_work_that_the_store_confirms_late_is_delivered() -> None:
    server = working()
    server.keeper.is_silent = True
    boss = server.client()
    asked = boss.publish(JOBS, 1)
    server.turn()
    server.keeper.answer_late(PersistOutcome.UNKNOWN)
    server.turn()
    assert asked.reply["error"].startswith("503:")
    server.keeper.answer_late(PersistOutcome.KEPT)
    server.turn()
    assert fetch(worker(server)).data == [1]


def test_messages_of_a_cleared_work_queue_are_discarded() -> None:
    server = working()
    put(server, 1, 2)
    (queue,) = server.bayeux.state.work.queues()
    assert server.bayeux.life.clear(queue) == 2
    assert server.bayeux.state.counters.discarded[Reason.CLEARED] == 2
    assert not server.bayeux.state.work.queues()
    assert server.balances()


def test_a_dead_letter_of_a_work_queue_returns_to_it_when_replayed() -> None:
    server = working()
    ann = worker(server)
    put(server, 1)
    (job,) = fetch(ann).events
    fetch(ann, no(job, REFUSED))
    (letter,) = server.keeper.letters
    assert letter.key == f"work:{JOBS}/0"
    replaying = replaying_of(server)
    assert replaying.is_durable(letter.key) is True
    server.turn()
    assert not server.bayeux.state.work.queues()
    again = message_of(letter, letter.key)
    server.keeper.queues.setdefault(letter.key, {})[again.id] = Mark(again.id)
    replaying.deliver(letter.key, again, 1)
    server.turn()
    (event,) = fetch(ann).events
    assert (event["data"], event["ext"]["delivery"]["generation"]) == (1, 1)
    assert server.balances()


def test_work_without_receivers_survives_a_restart() -> None:
    server = working()
    put(server, 1, 2)
    message = next(iter(server.keeper.bodies.values()))
    # As after a replay.
    message.records = None
    server = restarted(server, **RULES)
    assert waiting(server) == [1, 2]
    assert fetch(worker(server)).data == [1, 2]
    assert server.balances()


def test_waiting_work_counts_against_the_quota_of_its_publisher() -> None:
    server = working(quota_addressed=1)
    boss = server.client(caller=Caller(address="203.0.113.7", network="203.0.113.7"))
    replies = []
    for number in (1, 2):
        asked = boss.publish(JOBS, number)
        server.turn()
        replies.append(asked.reply)
    assert [each["successful"] for each in replies] == [True, False]
    assert replies[1]["error"] == "429:addressed:budget_exceeded"
    assert "ext" not in replies[1]
    fetch(worker(server))
    third = boss.publish(JOBS, 3)
    server.turn()
    assert third.reply["successful"]


def test_receivers_without_room_and_those_that_refused_are_passed_over() -> None:
    server = working()
    ann = worker(server, queue={"maxEntries": 2})
    joe = worker(server, queue={"maxEntries": 1})
    put(server, 1)
    (job,) = fetch(ann).events
    put(server, 2)
    fetch(joe)
    fetch(ann, no(job, REFUSED))
    put(server, 3, 4, 5)
    assert sorted(waiting(server)) == [1, 5]
    assert fetch(ann).data == [3, 4]
    fetch(joe)
    assert fetch(joe).data == [1]
    assert server.balances()


def test_work_gets_the_room_that_was_reserved_for_an_addressed_repeat() -> None:
    server = working()
    joe = worker(server, session="joe/1", queue={"maxEntries": 1})
    worker(server, session="ann/1", channel="/other")
    boss = server.client()
    for name in ("ann/1", "joe/1"):
        server.turn()
        boss.publish("/a", 1, ext={"delivery": {"destinations": [name], "key": "k"}})
    boss.publish(JOBS, 2, ext={"delivery": {"persistent": False}})
    server.flush()
    assert waiting(server) == [2]
    server.turn()
    assert waiting(server) == []
    assert fetch(joe).data == [2]
    assert server.balances()
