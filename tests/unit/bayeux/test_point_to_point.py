"""Messages to subjects and sessions: the table of point-to-point, row by row, and its limits."""

from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.caller import Caller
from holdfast.bayeux.interventions import remove_first
from holdfast.bayeux.operation import Operation
from holdfast.bayeux.options import ChannelRule, QuotaLimits
from holdfast.bayeux.restoring import restore, restore_without_session
from holdfast.delivery.counters import Reason
from holdfast.delivery.messages import Message
from holdfast.delivery.persist_outcome import PersistOutcome
from holdfast.delivery.shared_queues import SharedQueueLimits
from tests.unit.bayeux.harness import Asked, Client, House, Json, Socket
from tests.unit.extensions.delivering import codes, connect, data_of, house_of, no, redelivered

KEY = {"delivery": {"key": "k"}}
UNKNOWN = "user.ptp.unknownDestination"


def arriving(house: House, name: str, **options: Any) -> Client:
    """A client that has not connected yet."""
    client = house.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": name, **options}})
    house.turn()
    return client


def named(house: House, name: str, **options: Any) -> Client:
    client = arriving(house, name, **options)
    connect(client)
    house.turn()
    return client


def leave(client: Client) -> None:
    client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    client.house.turn()


def address(client: Client, data: object, *destinations: Any) -> Json:
    """Send data to these destinations; the reply."""
    content = {"destinations": list(destinations), "content": data}
    asked = client.publish("/service/ptp", content)
    client.house.turn()
    return asked.reply


def test_a_message_published_with_an_empty_channel_gets_a_channel_of_its_own() -> None:
    house = house_of()
    joe, sender = named(house, "joe/1"), house.guest()
    sender.handshake()
    content = {"destinations": ["joe"], "content": 1, "channel": ""}
    asked = [sender.publish("/service/ptp", content) for _ in range(2)]
    house.turn()
    channels = [each.reply["ext"]["delivery"]["channel"] for each in asked]
    assert len(set(channels)) == 2
    assert all(each.startswith("/service/ptp/test-") for each in channels)
    events = connect(joe).events
    assert [each["channel"] for each in events] == channels


def test_a_repeated_publish_is_answered_with_the_channel_of_the_first() -> None:
    house = house_of()
    joe, sender = named(house, "joe/1"), house.guest()
    sender.handshake()
    content = {"destinations": ["joe"], "content": 1, "channel": ""}
    asked = [sender.publish("/service/ptp", content, ext=KEY) for _ in range(2)]
    house.turn()
    first, again = [each.reply["ext"]["delivery"]["channel"] for each in asked]
    assert first == again
    assert [each["channel"] for each in connect(joe).events] == [first]


@pytest.mark.parametrize("channel", ["/a", None, 5])
def test_a_publish_to_the_ptp_service_with_any_channel_but_an_empty_one_is_refused(
    channel: object,
) -> None:
    house = house_of()
    sender = house.guest()
    sender.handshake()
    content = {"destinations": ["joe"], "content": 1, "channel": channel}
    reply = sender.publish("/service/ptp", content).reply
    assert reply["error"].startswith("400:user.publish,channel")


def test_a_message_with_a_channel_of_its_own_matches_no_pattern_and_waits_for_its_subject() -> None:
    house = house_of()
    watcher, sender = house.client(), house.guest()
    watcher.subscribe("/**")
    sender.handshake()
    content = {"destinations": [forced("joe")], "content": 1, "channel": ""}
    assert sender.publish("/service/ptp", content).is_held
    house.turn()
    assert connect(watcher).data == []
    joe = arriving(house, "joe/1")
    (event,) = connect(joe).events
    assert event["channel"].startswith("/service/ptp/")
    leave(joe)
    assert waiting(house, "joe") == 1


def forced(name: str) -> Json:
    return {"name": name, "forceQueuing": True}


def states(reply: Json) -> list[str]:
    return [each["state"] for each in reply["ext"]["delivery"]["destinations"]]


def waiting(house: House, subject: str) -> int:
    queue = house.bayeux.state.ptp.subjects.queue(subject)
    return 0 if queue is None else queue.queue.count


def restarted(house: House, **options: Any) -> House:
    """A server that takes the place of one that was killed."""
    after = house_of(keeper=house.keeper, after=house, **options)
    for record, entries in house.keeper.load(partial(restore_without_session, after.bayeux.life)):
        restore(after.bayeux.life, record, entries, after.now)
    after.bayeux.life.topics.restore()
    after.turn()
    return after


def test_a_message_to_a_subject_reaches_all_its_sessions_and_no_others() -> None:
    house = house_of()
    phone, desk, other = (named(house, name) for name in ("joe/1", "joe/2", "ann/1"))
    bob = house.client()
    reply = address(bob, "hello", "client/joe")
    assert reply["successful"]
    assert reply["ext"]["delivery"]["destinations"] == [{"name": "client/joe", "state": "OK"}]
    assert connect(phone).data == connect(desk).data == ["hello"]
    assert connect(other).data == []
    assert house.balances()


def test_a_message_to_a_session_reaches_no_other_session_of_its_subject() -> None:
    house = house_of()
    phone, desk = named(house, "joe/1"), named(house, "joe/2")
    assert states(address(house.client(), "hello", "joe/2")) == ["OK"]
    assert connect(phone).data == []
    assert connect(desk).data == ["hello"]


def test_a_session_that_is_away_gets_a_message_addressed_to_it_when_it_returns() -> None:
    house = house_of()
    named(house, "joe/1").disconnect()
    house.turn()
    assert states(address(house.client(), "hello", "joe/1")) == ["OK"]
    back = arriving(house, "joe/1")
    assert connect(back).data == ["hello"]


@pytest.mark.parametrize("destination", ["joe", "joe/1", forced("joe/1")])
def test_a_message_to_an_unknown_destination_is_refused(destination: Any) -> None:
    house = house_of()
    reply = address(house.client(), "hello", destination)
    assert not reply["successful"]
    name = destination if isinstance(destination, str) else destination["name"]
    assert reply["error"] == f"404:{UNKNOWN},client/{name}:destination_unknown"
    (said,) = reply["ext"]["delivery"]["destinations"]
    assert said == {"name": f"client/{name}", "state": "ERROR", "errorCode": UNKNOWN}
    joe = named(house, "joe/1")
    assert connect(joe).data == []
    assert house.balances()


def test_messages_that_are_forced_to_wait_for_a_subject_go_to_its_first_session_in_order() -> None:
    house = house_of()
    bob = house.client()
    for number in range(3):
        assert states(address(bob, number, forced("joe"))) == ["QUEUED"]
    assert waiting(house, "joe") == 3
    joe = arriving(house, "joe/1")
    assert waiting(house, "joe") == 0
    assert connect(joe).data == [0, 1, 2]
    assert connect(joe).data == []
    house.turn()
    assert house.keeper.queues["joe/1"] == {}
    assert house.balances()


def test_a_message_without_force_queuing_is_refused_though_others_wait_for_its_subject() -> None:
    house = house_of()
    bob = house.client()
    address(bob, 1, forced("joe"))
    assert not address(bob, 2, "joe")["successful"]


def test_messages_that_wait_for_a_subject_are_delivered_by_priority_and_then_by_age() -> None:
    house = house_of()
    bob = house.client()
    for number, priority in enumerate((5, 9, 5, 9)):
        ext = {"delivery": {"destinations": [forced("joe")], "priority": priority}}
        bob.publish("/a", number, ext=ext)
        house.turn()
    joe = arriving(house, "joe/1")
    assert connect(joe).data == [1, 3, 0, 2]


def test_addressed_messages_of_an_ended_session_go_to_the_next_session_of_its_subject() -> None:
    house = house_of()
    phone = named(house, "joe/1")
    bob = house.client()
    address(bob, "first", "joe")
    assert connect(phone).data == ["first"]
    address(bob, "second", "joe")
    leave(phone)
    assert (waiting(house, "joe"), codes(house)) == (2, [])
    desk = arriving(house, "joe/2")
    asked = connect(desk)
    house.turn()
    assert asked.data == ["first", "second"]
    # The second was never handed over.
    assert redelivered(asked) == [1, 0]
    assert house.balances()


def test_a_session_with_a_message_does_not_get_the_copy_of_an_ended_session() -> None:
    house = house_of()
    phone, desk = named(house, "joe/1"), named(house, "joe/2")
    address(house.client(), "hello", "joe")
    leave(phone)
    assert waiting(house, "joe") == 0
    assert connect(desk).data == ["hello"]
    assert connect(desk).data == []
    assert house.balances()


def test_a_message_to_one_session_becomes_a_dead_letter_when_the_session_ends() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    address(house.client(), "hello", "joe/1")
    leave(joe)
    assert (waiting(house, "joe"), data_of(house)) == (0, ["hello"])


def test_a_message_from_a_subscription_becomes_a_dead_letter_when_its_session_ends() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    joe.subscribe("/a")
    house.client().publish("/a", "news")
    house.turn()
    leave(joe)
    assert data_of(house) == ["news"]


def test_a_session_that_expires_returns_addressed_messages_to_its_subject() -> None:
    house = house_of()
    joe = house.client(ext={"ack": True, "delivery": {"session": "joe"}})
    connect(joe)
    address(house.client(), "hello", "joe")
    house.advance(15.0)
    assert joe.session.is_gone
    assert (waiting(house, "joe"), codes(house)) == (1, [])
    assert house.balances()


def test_a_refused_message_is_dead_lettered_and_does_not_return_to_its_subject() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    address(house.client(), "hello", "joe")
    (event,) = connect(joe).events
    connect(joe, no(event, "user.update.error"))
    house.turn()
    leave(joe)
    assert (waiting(house, "joe"), data_of(house)) == (0, ["hello"])
    assert house.balances()


def test_a_session_that_takes_no_ptp_messages_is_passed_over_and_cannot_be_addressed() -> None:
    house = house_of()
    shy, open_ = named(house, "joe/1", ptp=False), named(house, "joe/2")
    bob = house.client()
    assert states(address(bob, "hello", "joe")) == ["OK"]
    assert connect(shy).data == []
    assert connect(open_).data == ["hello"]
    error = address(bob, "hello", forced("joe/1"))["error"]
    assert error == "403:user.ptp.denied,client/joe/1:destination_denied"


def test_a_message_that_no_session_of_its_subject_takes_waits_only_if_forced() -> None:
    house = house_of()
    shy = named(house, "joe/1", ptp=False)
    bob = house.client()
    assert address(bob, 1, "joe")["error"].startswith("403:user.ptp.denied")
    assert states(address(bob, 2, forced("joe"))) == ["QUEUED"]
    assert connect(shy).data == []
    assert waiting(house, "joe") == 1


def test_each_of_several_destinations_has_an_outcome() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    unknown = {"name": "eve", "ignoreSilently": True}
    reply = address(house.client(), "hello", "ann", "joe", forced("carl"), unknown)
    assert reply["successful"]
    assert states(reply) == ["ERROR", "OK", "QUEUED", "IGNORED"]
    assert connect(joe).data == ["hello"]
    assert waiting(house, "carl") == 1


def test_a_receiver_that_is_named_twice_gets_the_message_once() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    address(house.client(), "hello", "joe", "joe/1", "client/joe")
    assert connect(joe).data == ["hello"]


def test_an_unknown_destination_with_ignore_silently_is_no_error() -> None:
    house = house_of()
    reply = address(house.client(), "hello", {"name": "joe", "ignoreSilently": True})
    assert (reply["successful"], states(reply)) == (True, ["IGNORED"])


def publish(client: Client, data: object, *names: Any, **options: Any) -> Json:
    ext = {"delivery": {"destinations": list(names), **options}}
    asked: Asked = client.publish("/a", data, ext=ext)
    client.house.turn()
    return asked.reply


def test_subscribers_get_an_addressed_message_too_unless_it_is_not_subscribable() -> None:
    house = house_of()
    joe, ann = named(house, "joe/1"), named(house, "ann/1")
    ann.subscribe("/a")
    bob = house.client()
    publish(bob, "open", "joe")
    publish(bob, "closed", "joe", subscribable=False)
    assert connect(joe).data == ["open", "closed"]
    assert connect(ann).data == ["open"]


def test_a_message_to_a_full_session_is_refused_and_not_dead_lettered() -> None:
    house = house_of()
    named(house, "joe/1", queue={"maxEntries": 1})
    bob = house.client()
    assert address(bob, 1, "joe/1")["successful"]
    error = address(bob, 2, "joe/1")["error"]
    assert error == "507:resource.overflow.queue.entries,client/joe/1:destination_full"
    assert codes(house) == []


def test_a_message_to_a_subject_whose_session_is_full_waits_in_the_subject_queue() -> None:
    house = house_of()
    joe = named(house, "joe/1", queue={"maxEntries": 1})
    bob = house.client()
    assert states(address(bob, 1, "joe")) == ["OK"]
    assert states(address(bob, 2, "joe")) == ["QUEUED"]
    assert connect(joe).data == [1]
    house.turn()
    assert connect(joe).data == []
    house.turn()
    assert connect(joe).data == [2]
    assert house.balances()


def test_a_message_that_is_too_large_for_every_session_does_not_delay_others() -> None:
    house = house_of()
    joe = named(house, "joe/1", queue={"maxBytes": 1000})
    bob = house.client()
    large = "x" * 2000
    assert states(address(bob, large, "joe")) == ["QUEUED"]
    assert states(address(bob, 1, "joe")) == ["OK"]
    assert connect(joe).data == [1]
    assert waiting(house, "joe") == 1
    roomy = arriving(house, "joe/2")
    assert connect(roomy).data == [large]
    assert (waiting(house, "joe"), house.keeper.queues["joe/0"]) == (0, {})
    assert house.balances()


def test_waiting_messages_pass_others_that_are_too_large_for_every_session() -> None:
    house = house_of()
    bob = house.client()
    for content in ("x" * 2000, 1, "y" * 2000, 2):
        address(bob, content, forced("joe"))
    joe = arriving(house, "joe/1", queue={"maxBytes": 1000})
    assert connect(joe).data == [1, 2]
    assert waiting(house, "joe") == 2
    assert house.balances()


def test_a_message_that_fits_only_an_ended_session_does_not_delay_others() -> None:
    house = house_of()
    roomy = named(house, "joe/1", queue={"maxEntries": 1})
    small = named(house, "joe/2", queue={"maxBytes": 1000})
    bob = house.client()
    address(bob, 0, "joe/1")
    assert states(address(bob, "x" * 2000, "joe")) == ["QUEUED"]
    assert states(address(bob, 1, "joe")) == ["QUEUED"]
    leave(roomy)
    assert waiting(house, "joe") == 1
    assert connect(small).data == [1]
    assert house.balances()


def test_messages_beyond_the_limits_of_subject_queues_are_refused() -> None:
    house = house_of(subject_limits=SharedQueueLimits(entries=2, queues=1))
    bob = house.client()
    for number in range(2):
        assert address(bob, number, forced("joe"))["successful"]
    error = address(bob, 2, forced("joe"))["error"]
    assert error == "507:resource.overflow.queue.entries,client/joe:destination_full"
    assert address(bob, 3, forced("ann"))["error"].startswith("507:resource.exhaust")


def test_pending_publishes_count_against_the_limit_of_a_subject_queue() -> None:
    house = house_of(subject_limits=SharedQueueLimits(entries=2))
    bob = house.client()
    content = {"destinations": [forced("joe")], "content": 1}
    asked = [bob.publish("/service/ptp", content) for _ in range(3)]
    house.turn()
    assert [each.reply["successful"] for each in asked] == [True, True, False]


def test_pending_publishes_count_against_the_limit_of_a_session_queue() -> None:
    house = house_of()
    joe = named(house, "joe/1", queue={"maxEntries": 2})
    bob = house.client()
    content = {"destinations": ["joe/1", "joe"], "content": 1}
    asked = [bob.publish("/service/ptp", content) for _ in range(3)]
    assert states(address(bob, 2, "joe")) == ["QUEUED"]
    outcomes = [each.reply["ext"]["delivery"]["destinations"] for each in asked]
    assert [[each["state"] for each in told] for told in outcomes] == [
        ["OK", "OK"],
        ["OK", "OK"],
        ["ERROR", "QUEUED"],
    ]
    assert connect(joe).data == [1, 1]
    assert codes(house) == []
    assert house.balances()


def test_a_waiting_message_gets_the_room_that_was_reserved_for_a_repeated_publish() -> None:
    house = house_of()
    joe = named(house, "joe/1", queue={"maxEntries": 1})
    named(house, "ann/1")
    bob = house.client()
    publish(bob, "once", "ann/1", key="k")
    bob.publish("/a", "once", ext={"delivery": {"destinations": ["joe/1"], "key": "k"}})
    qos = {"destinations": ["joe"], "persistent": False}
    bob.publish("/b", "for joe", ext={"delivery": qos})
    house.flush()
    assert waiting(house, "joe") == 1
    house.turn()
    assert waiting(house, "joe") == 0
    assert connect(joe).data == ["for joe"]
    assert house.balances()


def test_an_emptied_subject_queue_makes_room_for_the_queue_of_another_subject() -> None:
    house = house_of(subject_limits=SharedQueueLimits(queues=1))
    bob = house.client()
    address(bob, 1, forced("joe"))
    named(house, "joe/1")
    assert address(bob, 2, forced("ann"))["successful"]


def open_queues(house: House) -> int:
    return len(house.bayeux.state.ptp.subjects.queues())


def test_a_subject_queue_ends_with_the_lifetime_of_its_last_message() -> None:
    house = house_of()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    publish(house.client(), 1, forced("joe"), expiration=expiration)
    assert open_queues(house) == 1
    house.advance(1.5)
    assert open_queues(house) == 0


def test_a_subject_queue_ends_when_it_is_cleared() -> None:
    house = house_of()
    address(house.client(), 1, forced("joe"))
    queue = house.bayeux.state.ptp.subjects.queue("joe")
    assert queue is not None
    assert house.bayeux.life.clear(queue) == 1
    assert open_queues(house) == 0
    assert address(house.client(), 2, forced("joe"))["successful"]
    assert connect(arriving(house, "joe/1")).data == [2]
    assert house.balances()


def client_at(house: House, address: str, name: str = "") -> Client:
    """A client at an address, with or without a subject."""
    ext = {"delivery": {"session": name}} if name else {}
    return house.client(caller=Caller(address=address, network=address), ext=ext)


OVER_QUOTA = "429:addressed:budget_exceeded"


def test_an_address_may_make_a_limited_number_of_messages_wait_for_subjects() -> None:
    house = house_of(quotas=QuotaLimits(addressed=2))
    many, other = client_at(house, "203.0.113.7"), client_at(house, "198.51.100.9")
    assert all(address(many, 1, forced(name))["successful"] for name in ("ann", "joe"))
    refused = address(many, 2, forced("ann"))
    assert refused["error"] == OVER_QUOTA
    assert refused["advice"] == {"reconnect": "retry", "interval": 5000, "timeout": 30000}
    (said,) = refused["ext"]["delivery"]["destinations"]
    assert said == {"name": "client/ann", "state": "ERROR", "errorCode": "resource.exhaust"}
    assert house.bayeux.state.sessions.usages.exceeded["addressed"] == 1
    assert address(other, 3, forced("ann"))["successful"]
    assert address(house.client(), 4, forced("ann"))["successful"]
    ann = arriving(house, "ann/1")
    assert connect(ann).data == [1, 3, 4]
    # Messages for sessions do not count.
    assert address(many, 5, forced("eve"))["successful"]
    assert states(address(many, 6, forced("bob"), "ann")) == ["ERROR", "OK"]
    assert house.balances()


def test_a_subject_may_make_a_limited_number_of_bytes_wait_from_all_its_addresses() -> None:
    house = house_of(quotas=QuotaLimits(addressed=0, addressed_bytes=1000))
    here, there = (
        client_at(house, "203.0.113.7", "bob/1"),
        client_at(house, "198.51.100.9", "bob/2"),
    )
    assert address(here, "x" * 600, forced("joe"))["successful"]
    assert address(there, "x" * 600, forced("joe"))["error"] == OVER_QUOTA
    assert address(there, "x", forced("joe"))["successful"]
    assert address(client_at(house, "198.51.100.9", "eve/1"), "x" * 600, forced("joe"))[
        "successful"
    ]


@pytest.mark.parametrize("end", ["taken", "cleared", "expired", "refused"])
def test_a_message_that_no_longer_waits_does_not_count_against_the_quota(end: str) -> None:
    house = house_of(quotas=QuotaLimits(addressed=2))
    bob = client_at(house, "203.0.113.7")
    if end == "refused":
        house.keeper.outcome = PersistOutcome.REFUSED
    for number in (1, 2):
        publish(bob, number, forced("joe"), expiration={"lifeTime": 1000, "forceDestroy": True})
    house.turn()
    house.keeper.outcome = PersistOutcome.KEPT
    if end == "taken":
        named(house, "joe/1")
    elif end == "cleared":
        queue = house.bayeux.state.ptp.subjects.queue("joe")
        assert queue is not None
        house.bayeux.life.clear(queue)
    elif end == "expired":
        house.advance(1.5)
    assert [address(bob, number, forced("ann"))["successful"] for number in (3, 4, 5)] == [
        True,
        True,
        False,
    ]
    assert house.balances()


def test_a_session_over_a_socket_gets_more_from_its_subject_than_its_queue_has_room_for() -> None:
    house = house_of()
    bob = house.client()
    for number in range(3):
        address(bob, number, forced("joe"))
    joe = house.connected(socket=Socket())
    joe.session.queue.limit(entries=1, bytes=None)
    joe.session.go_by("joe/-7")
    house.bayeux.state.ptp.subjects.join(joe.session)
    house.turn()
    assert [each["data"] for each in joe.hear() if "data" in each] == [0, 1, 2]
    assert house.balances()


def test_a_message_in_a_subject_queue_expires_when_its_lifetime_ends() -> None:
    house = house_of()
    bob = house.client()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    publish(bob, "soon over", forced("joe"), expiration=expiration)
    house.advance(1.5)
    assert waiting(house, "joe") == 0
    assert house.bayeux.state.hub.counters.expired == 1
    assert connect(named(house, "joe/1")).data == []
    assert house.balances()


def test_a_repeated_publish_is_queued_once_for_its_subject() -> None:
    house = house_of()
    bob = house.client()
    for _ in range(2):
        assert publish(bob, "once", forced("joe"), key="k")["successful"]
    assert waiting(house, "joe") == 1
    assert house.balances()


def test_only_passing_messages_wait_for_a_subject_while_the_store_is_away() -> None:
    house = house_of()
    bob = house.client()
    house.keeper.is_available = False
    assert address(bob, 1, forced("joe"))["error"].startswith("503")
    assert waiting(house, "joe") == 0
    assert publish(bob, 2, forced("joe"), persistent=False)["successful"]
    assert waiting(house, "joe") == 1


def test_messages_that_wait_for_a_subject_survive_a_restart() -> None:
    house = house_of()
    bob = house.client()
    for number in range(3):
        address(bob, number, forced("joe"))
    after = restarted(house)
    assert waiting(after, "joe") == 3
    joe = arriving(after, "joe/1")
    assert connect(joe).data == [0, 1, 2]
    assert after.balances()


def test_messages_of_a_full_session_and_its_subject_arrive_in_order_after_a_restart() -> None:
    limits = {"subject_limits": SharedQueueLimits(entries=3)}
    house = house_of(**limits)
    named(house, "joe/1", queue={"maxEntries": 3}).disconnect()
    house.turn()
    bob = house.client()
    taken = [address(bob, number, "joe")["successful"] for number in range(8)]
    assert taken == [True] * 6 + [False] * 2
    after = restarted(house, **limits)
    joe = arriving(after, "joe/1", queue={"maxEntries": 3})
    assert connect(joe).data == [0, 1, 2]
    after.turn()
    assert connect(joe).data == []
    after.turn()
    assert connect(joe).data == [3, 4, 5]
    assert after.balances()


def test_a_message_that_an_unnamed_session_had_waits_for_its_subject_after_a_kill() -> None:
    house = house_of()
    joe = house.client(ext={"ack": True, "delivery": {"session": "joe"}})
    connect(joe)
    address(house.client(), "hello", "joe")
    assert connect(joe).data == ["hello"]
    after = restarted(house)
    after.advance(15.0)
    assert waiting(after, "joe") == 1
    assert after.balances()


@pytest.mark.parametrize(
    "destinations",
    [
        None,
        [],
        "joe",
        [None],
        [{}],
        [{"name": 1}],
        ["/joe"],
        ["joe/1/2"],
        ["j"],
        [{"name": "joe", "forceQueueing": True}],
        [{"name": "joe", "forceQueuing": 1}],
        ["joe"] * 101,
        [{"name": "anonymous", "forceQueuing": True}],
        ["anonymous/0"],
    ],
    ids=repr,
)
def test_invalid_destinations_are_refused(destinations: Any) -> None:
    house = house_of()
    bob = house.client()
    content = {"destinations": destinations, "content": 1}
    assert bob.publish("/service/ptp", content).reply["error"].startswith("400:user.publish")
    if destinations is not None:
        ext = {"delivery": {"destinations": destinations}}
        assert bob.publish("/a", 1, ext=ext).reply["error"].startswith("400:user.publish")


@pytest.mark.parametrize("data", [None, 1, {"content": 1}, {"destinations": ["joe"]}], ids=repr)
def test_a_publish_to_the_ptp_service_without_destinations_or_content_is_refused(data: Any) -> None:
    house = house_of()
    assert house.client().publish("/service/ptp", data).reply["error"].startswith("400")


class Granted:
    """What a login may do."""

    def __init__(self, *operations: Operation) -> None:
        self._operations = operations

    def allows(self, operation: Operation, channel: str) -> bool:
        return operation in self._operations


def test_a_right_to_publish_does_not_include_the_right_to_address() -> None:
    house = house_of()
    joe, bob = named(house, "joe/1"), house.client()
    house.bayeux.state.rights.require_login()
    bob.session.identity.grants = Granted(Operation.PUBLISH, Operation.CREATE)
    assert address(bob, 1, "joe")["error"].startswith("403:denied_by_rights:")
    assert publish(bob, 2, "joe")["error"].startswith("403:denied_by_rights:")
    bob.session.identity.grants = Granted(Operation.PUBLISH, Operation.CREATE, Operation.PTP)
    assert address(bob, 3, "joe")["successful"]
    assert connect(joe).data == [3]


def test_a_message_to_a_plain_session_waits_for_its_subject_when_the_session_expires() -> None:
    house = house_of()
    joe = house.client()
    joe.session.go_by("joe/-7")
    house.bayeux.state.ptp.subjects.join(joe.session)
    assert states(address(house.client(), "hello", "joe")) == ["OK"]
    house.advance(15.0)
    assert joe.session.is_gone
    assert (waiting(house, "joe"), codes(house)) == (1, [])
    assert house.balances()


def plain(house: House) -> Client:
    """A plain session of joe with a name that the server chose."""
    joe = house.client()
    joe.session.go_by("joe/-7")
    house.bayeux.state.ptp.subjects.join(joe.session)
    joe.connect()
    return joe


def test_a_message_that_a_plain_session_received_leaves_the_store() -> None:
    house = house_of()
    joe = plain(house)
    address(house.client(), "hello", "joe")
    assert joe.connect(advice={"timeout": 0}).data == ["hello"]
    house.turn()
    assert house.keeper.queues["joe/-7"] == {}
    assert house.balances()


def test_a_message_sent_while_the_store_is_away_does_not_make_its_session_durable() -> None:
    house = house_of()
    joe = plain(house)
    bob = house.client()
    house.keeper.is_available = False
    assert address(bob, 1, "joe")["error"].startswith("503")
    assert not joe.session.is_durable
    assert publish(bob, 2, "joe", persistent=False)["successful"]
    assert joe.connect(advice={"timeout": 0}).data == [2]
    assert house.balances()


@pytest.mark.parametrize("name", ["anonymous", "anonymous/1"])
def test_a_session_name_with_the_subject_anonymous_is_refused(name: str) -> None:
    house = house_of()
    asked = house.guest().handshake(ext={"delivery": {"session": name}})
    assert asked.reply["error"].startswith("400:")


def test_a_message_addressed_to_anonymous_does_not_return_to_a_subject_queue() -> None:
    house = house_of()
    message = Message(b"{}", id=1, channel="/a")
    message.addressed = ("anonymous",)
    assert not house.bayeux.state.ptp.subjects.take_back_late(house.client().session, message)
    assert waiting(house, "anonymous") == 0


def test_an_addressed_message_stored_for_an_ended_session_returns_to_its_subject() -> None:
    house = house_of()
    messages = [Message(b'{"data":%d}' % number, id=number, channel="/a") for number in (1, 2)]
    messages[0].addressed = ("joe",)
    for message in messages:
        message.is_durable = True
        house.keeper.keep(message, ["joe/1"], lambda outcome: None)
    after = restarted(house)
    assert waiting(after, "joe") == 1
    assert after.bayeux.state.counters.discarded[Reason.SESSION_ENDED] == 1
    assert set(house.keeper.queues["joe/0"]) == {1}
    assert house.keeper.queues["joe/1"] == {}
    assert after.balances()


@pytest.mark.slow
@pytest.mark.parametrize("is_addressed", [False, True])
def test_refusals_hold_a_channel_unless_its_messages_are_addressed(is_addressed: bool) -> None:
    house = house_of()
    bob = house.client()
    receivers = [named(house, name) for name in ("joe/1", "ann/1", "eve/1")]
    for each in receivers:
        each.subscribe("/a")
    destinations = ["joe", "ann", "eve"] if is_addressed else None
    for number in range(20):
        ext = {"delivery": {"destinations": destinations}}
        bob.publish("/a", number, ext=ext)
        house.turn()
        for each in receivers:
            events = connect(each).events
            house.turn()
            # The first message is not refused.
            connect(each, *[no(event, "user.update.error") for event in events if number])
            house.turn()
        house.advance(0.5)
    assert house.bayeux.state.guard.is_held("/a") is not is_addressed


@pytest.mark.slow
def test_messages_of_an_ended_session_return_to_their_subject_over_several_turns() -> None:
    house = house_of()
    bob, joe = house.client(), named(house, "joe/1")
    for number in range(1200):
        address(bob, number, "joe")
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    seen = [waiting(house, "joe")]
    while house.flush():
        seen.append(waiting(house, "joe"))
    assert seen[:6] == [200, 400, 600, 800, 1000, 1200]
    house.turn()
    home = house.bayeux.state.ptp.subjects.queue("joe")
    assert home is not None
    ids = home.queue.ids()
    assert ids == sorted(ids)
    assert house.balances()


@pytest.mark.slow
def test_messages_that_a_killed_server_had_no_time_to_return_count_as_redelivered() -> None:
    house = house_of()
    bob, joe = house.client(), named(house, "joe/1")
    for number in range(250):
        address(bob, number, "joe")
    assert len(connect(joe).data) == 250
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert waiting(house, "joe") == 200
    house = restarted(house)
    asked = connect(arriving(house, "joe/2"))
    house.turn()
    assert sorted(asked.data) == [*range(250)]
    assert redelivered(asked) == [1] * 250


DEADLY: dict[str, Any] = {"channels": {"/service/ptp": ChannelRule(max_attempts=3)}}


def handed_to_another(house: House) -> list[object]:
    """What an unnamed session of joe gets; it stops at the poison message, else it acks."""
    joe = house.client(ext={"ack": True, "delivery": {"session": "joe"}})
    house.turn()
    asked = connect(joe)
    house.turn()
    if "poison" not in asked.data:
        connect(joe)
        house.turn()
    house.advance(15.0)
    assert joe.session.is_gone
    house.turn()
    return asked.data


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_poison_message_that_stops_every_session_of_its_subject_is_dead_lettered(
    is_killed: bool,
) -> None:
    house = house_of(**DEADLY)
    for text in ("poison", "news"):
        address(house.client(), text, forced("joe"))
    handed: list[list[object]] = []
    while waiting(house, "joe") and len(handed) < 12:
        handed.append(handed_to_another(house))
        if is_killed:
            house = restarted(house, **DEADLY)
    # The last attempt hands messages over one by one.
    assert handed == [["poison", "news"], ["poison", "news"], ["poison"], ["news"]]
    (dead,) = house.keeper.letters
    assert dead.envelope()["content"] == "poison"
    assert [each.n for each in dead.attempts] == [1, 2, 3]
    assert house.keeper.queues["joe/0"] == {}
    assert house.balances()


def test_copies_that_return_to_their_subject_become_one_with_the_attempts_of_both() -> None:
    house = house_of()
    ext = {"ack": True, "delivery": {"session": "joe"}}
    phone, desk = house.client(ext=ext), house.client(ext=ext)
    address(house.client(), "hello", "joe")
    connect(phone, ack=None)
    connect(desk, ack=None)
    house.advance(0.1)
    connect(desk, ack=None)
    house.turn()
    for gone in (phone, desk):
        house.server.end_by_server(gone.session)
    house.turn()
    (mark,) = house.keeper.queues["joe/0"].values()
    assert (mark.attempts, [each.n for each in mark.trail]) == (2, [1, 1, 2])
    joe = arriving(restarted(house), "joe/1")
    asked = connect(joe)
    joe.house.turn()
    assert asked.data == ["hello"]
    assert redelivered(asked) == [2]


@pytest.mark.parametrize("how", ["cleared", "removed", "expired"])
def test_a_waiting_message_gets_the_room_of_an_entry_that_leaves_without_delivery(how: str) -> None:
    house = house_of()
    joe, bob = named(house, "joe/1", queue={"maxEntries": 1}), house.client()
    session = joe.session
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    for number in (1, 2):
        destinations = {"destinations": ["joe"], "expiration": expiration if number == 1 else None}
        bob.publish("/a", number, ext={"delivery": destinations})
        house.turn()
    assert waiting(house, "joe") == 1
    match how:
        case "cleared":
            house.bayeux.life.clear(session)
        case "removed":
            remove_first(house.bayeux.life, session, 1)
        case _:
            house.advance(1.5)
    house.turn()
    assert waiting(house, "joe") == 0
    assert connect(joe).data == [2]
