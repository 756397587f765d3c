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


def letter(client: Client, data: object, *destinations: Any) -> Json:
    """Write to these; the reply."""
    content = {"destinations": list(destinations), "content": data}
    asked = client.publish("/service/ptp", content)
    client.house.turn()
    return asked.reply


def test_a_message_may_have_a_channel_of_its_own() -> None:
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


def test_a_repeat_has_the_channel_of_the_first() -> None:
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
def test_nobody_chooses_the_channel_of_a_message_that_is_only_addressed(channel: object) -> None:
    house = house_of()
    sender = house.guest()
    sender.handshake()
    content = {"destinations": ["joe"], "content": 1, "channel": channel}
    reply = sender.publish("/service/ptp", content).reply
    assert reply["error"].startswith("400:user.publish,channel")


def test_a_message_with_a_channel_of_its_own_waits_like_others_and_is_for_no_pattern() -> None:
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


def test_a_subject_is_reached_in_all_its_sessions() -> None:
    house = house_of()
    phone, desk, other = (named(house, name) for name in ("joe/1", "joe/2", "ann/1"))
    bob = house.client()
    reply = letter(bob, "hello", "client/joe")
    assert reply["successful"]
    assert reply["ext"]["delivery"]["destinations"] == [{"name": "client/joe", "state": "OK"}]
    assert connect(phone).data == connect(desk).data == ["hello"]
    assert connect(other).data == []
    assert house.balances()


def test_a_session_is_reached_alone() -> None:
    house = house_of()
    phone, desk = named(house, "joe/1"), named(house, "joe/2")
    assert states(letter(house.client(), "hello", "joe/2")) == ["OK"]
    assert connect(phone).data == []
    assert connect(desk).data == ["hello"]


def test_a_session_that_is_away_finds_the_message_when_it_comes_back() -> None:
    house = house_of()
    named(house, "joe/1").disconnect()
    house.turn()
    assert states(letter(house.client(), "hello", "joe/1")) == ["OK"]
    back = arriving(house, "joe/1")
    assert connect(back).data == ["hello"]


@pytest.mark.parametrize("destination", ["joe", "joe/1", forced("joe/1")])
def test_nobody_there_is_an_error(destination: Any) -> None:
    house = house_of()
    reply = letter(house.client(), "hello", destination)
    assert not reply["successful"]
    name = destination if isinstance(destination, str) else destination["name"]
    assert reply["error"] == f"404:{UNKNOWN},client/{name}:destination_unknown"
    (said,) = reply["ext"]["delivery"]["destinations"]
    assert said == {"name": f"client/{name}", "state": "ERROR", "errorCode": UNKNOWN}
    joe = named(house, "joe/1")
    assert connect(joe).data == []
    assert house.balances()


def test_a_subject_that_is_not_there_finds_what_was_forced_to_wait() -> None:
    house = house_of()
    bob = house.client()
    for number in range(3):
        assert states(letter(bob, number, forced("joe"))) == ["QUEUED"]
    assert waiting(house, "joe") == 3
    joe = arriving(house, "joe/1")
    assert waiting(house, "joe") == 0
    assert connect(joe).data == [0, 1, 2]
    assert connect(joe).data == []
    house.turn()
    assert house.keeper.queues["joe/1"] == {}
    assert house.balances()


def test_what_waits_for_a_subject_is_no_reason_to_queue_what_is_not_forced() -> None:
    house = house_of()
    bob = house.client()
    letter(bob, 1, forced("joe"))
    assert not letter(bob, 2, "joe")["successful"]


def test_the_more_urgent_goes_first_and_then_the_older() -> None:
    house = house_of()
    bob = house.client()
    for number, priority in enumerate((5, 9, 5, 9)):
        ext = {"delivery": {"destinations": [forced("joe")], "priority": priority}}
        bob.publish("/a", number, ext=ext)
        house.turn()
    joe = arriving(house, "joe/1")
    assert connect(joe).data == [1, 3, 0, 2]


def test_what_a_session_leaves_goes_to_the_other_sessions_of_its_subject() -> None:
    house = house_of()
    phone = named(house, "joe/1")
    bob = house.client()
    letter(bob, "first", "joe")
    assert connect(phone).data == ["first"]
    letter(bob, "second", "joe")
    leave(phone)
    assert (waiting(house, "joe"), codes(house)) == (2, [])
    desk = arriving(house, "joe/2")
    asked = connect(desk)
    house.turn()
    assert asked.data == ["first", "second"]
    # The second was never handed over.
    assert redelivered(asked) == [1, 0]
    assert house.balances()


def test_a_session_that_has_a_message_does_not_get_the_copy_of_another() -> None:
    house = house_of()
    phone, desk = named(house, "joe/1"), named(house, "joe/2")
    letter(house.client(), "hello", "joe")
    leave(phone)
    assert waiting(house, "joe") == 0
    assert connect(desk).data == ["hello"]
    assert connect(desk).data == []
    assert house.balances()


def test_what_was_for_a_session_alone_dies_with_it() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    letter(house.client(), "hello", "joe/1")
    leave(joe)
    assert (waiting(house, "joe"), data_of(house)) == (0, ["hello"])


def test_what_a_subscription_brought_dies_with_its_session() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    joe.subscribe("/a")
    house.client().publish("/a", "news")
    house.turn()
    leave(joe)
    assert data_of(house) == ["news"]


def test_a_session_that_expires_gives_back_what_it_has() -> None:
    house = house_of()
    joe = house.client(ext={"ack": True, "delivery": {"session": "joe"}})
    connect(joe)
    letter(house.client(), "hello", "joe")
    house.advance(15.0)
    assert joe.session.is_gone
    assert (waiting(house, "joe"), codes(house)) == (1, [])
    assert house.balances()


def test_a_refused_message_is_dead_and_does_not_come_back() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    letter(house.client(), "hello", "joe")
    (event,) = connect(joe).events
    connect(joe, no(event, "user.update.error"))
    house.turn()
    leave(joe)
    assert (waiting(house, "joe"), data_of(house)) == (0, ["hello"])
    assert house.balances()


def test_a_session_that_takes_no_point_to_point_is_passed_over() -> None:
    house = house_of()
    shy, open_ = named(house, "joe/1", ptp=False), named(house, "joe/2")
    bob = house.client()
    assert states(letter(bob, "hello", "joe")) == ["OK"]
    assert connect(shy).data == []
    assert connect(open_).data == ["hello"]
    error = letter(bob, "hello", forced("joe/1"))["error"]
    assert error == "403:user.ptp.denied,client/joe/1:destination_denied"


def test_a_subject_none_of_whose_sessions_takes_it_waits_only_if_forced() -> None:
    house = house_of()
    shy = named(house, "joe/1", ptp=False)
    bob = house.client()
    assert letter(bob, 1, "joe")["error"].startswith("403:user.ptp.denied")
    assert states(letter(bob, 2, forced("joe"))) == ["QUEUED"]
    assert connect(shy).data == []
    assert waiting(house, "joe") == 1


def test_several_destinations_have_an_outcome_each() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    unknown = {"name": "eve", "ignoreSilently": True}
    reply = letter(house.client(), "hello", "ann", "joe", forced("carl"), unknown)
    assert reply["successful"]
    assert states(reply) == ["ERROR", "OK", "QUEUED", "IGNORED"]
    assert connect(joe).data == ["hello"]
    assert waiting(house, "carl") == 1


def test_a_receiver_that_is_named_twice_gets_the_message_once() -> None:
    house = house_of()
    joe = named(house, "joe/1")
    letter(house.client(), "hello", "joe", "joe/1", "client/joe")
    assert connect(joe).data == ["hello"]


def test_an_unknown_destination_that_does_not_matter_is_no_error() -> None:
    house = house_of()
    reply = letter(house.client(), "hello", {"name": "joe", "ignoreSilently": True})
    assert (reply["successful"], states(reply)) == (True, ["IGNORED"])


def publish(client: Client, data: object, *names: Any, **options: Any) -> Json:
    ext = {"delivery": {"destinations": list(names), **options}}
    asked: Asked = client.publish("/a", data, ext=ext)
    client.house.turn()
    return asked.reply


def test_subscribers_of_the_channel_get_it_too_unless_it_says_not() -> None:
    house = house_of()
    joe, ann = named(house, "joe/1"), named(house, "ann/1")
    ann.subscribe("/a")
    bob = house.client()
    publish(bob, "open", "joe")
    publish(bob, "closed", "joe", subscribable=False)
    assert connect(joe).data == ["open", "closed"]
    assert connect(ann).data == ["open"]


def test_a_full_session_is_an_error_to_the_publisher() -> None:
    house = house_of()
    named(house, "joe/1", queue={"maxEntries": 1})
    bob = house.client()
    assert letter(bob, 1, "joe/1")["successful"]
    error = letter(bob, 2, "joe/1")["error"]
    assert error == "507:resource.overflow.queue.entries,client/joe/1:destination_full"
    assert codes(house) == []


def test_what_a_full_session_has_no_room_for_waits_for_its_subject() -> None:
    house = house_of()
    joe = named(house, "joe/1", queue={"maxEntries": 1})
    bob = house.client()
    assert states(letter(bob, 1, "joe")) == ["OK"]
    assert states(letter(bob, 2, "joe")) == ["QUEUED"]
    assert connect(joe).data == [1]
    house.turn()
    assert connect(joe).data == []
    house.turn()
    assert connect(joe).data == [2]
    assert house.balances()


def test_what_is_too_large_for_every_session_keeps_nothing_else_waiting() -> None:
    house = house_of()
    joe = named(house, "joe/1", queue={"maxBytes": 1000})
    bob = house.client()
    large = "x" * 2000
    assert states(letter(bob, large, "joe")) == ["QUEUED"]
    assert states(letter(bob, 1, "joe")) == ["OK"]
    assert connect(joe).data == [1]
    assert waiting(house, "joe") == 1
    roomy = arriving(house, "joe/2")
    assert connect(roomy).data == [large]
    assert (waiting(house, "joe"), house.keeper.queues["joe/0"]) == (0, {})
    assert house.balances()


def test_what_waits_passes_what_is_too_large_for_every_session() -> None:
    house = house_of()
    bob = house.client()
    for content in ("x" * 2000, 1, "y" * 2000, 2):
        letter(bob, content, forced("joe"))
    joe = arriving(house, "joe/1", queue={"maxBytes": 1000})
    assert connect(joe).data == [1, 2]
    assert waiting(house, "joe") == 2
    assert house.balances()


def test_what_waited_for_the_room_of_an_ended_session_keeps_nothing_else_waiting() -> None:
    house = house_of()
    roomy = named(house, "joe/1", queue={"maxEntries": 1})
    small = named(house, "joe/2", queue={"maxBytes": 1000})
    bob = house.client()
    letter(bob, 0, "joe/1")
    assert states(letter(bob, "x" * 2000, "joe")) == ["QUEUED"]
    assert states(letter(bob, 1, "joe")) == ["QUEUED"]
    leave(roomy)
    assert waiting(house, "joe") == 1
    assert connect(small).data == [1]
    assert house.balances()


def test_a_full_queue_of_a_subject_is_an_error_to_the_publisher() -> None:
    house = house_of(subject_limits=SharedQueueLimits(entries=2, queues=1))
    bob = house.client()
    for number in range(2):
        assert letter(bob, number, forced("joe"))["successful"]
    error = letter(bob, 2, forced("joe"))["error"]
    assert error == "507:resource.overflow.queue.entries,client/joe:destination_full"
    assert letter(bob, 3, forced("ann"))["error"].startswith("507:resource.exhaust")


def test_publishes_that_wait_for_the_store_count_against_the_limit() -> None:
    house = house_of(subject_limits=SharedQueueLimits(entries=2))
    bob = house.client()
    content = {"destinations": [forced("joe")], "content": 1}
    asked = [bob.publish("/service/ptp", content) for _ in range(3)]
    house.turn()
    assert [each.reply["successful"] for each in asked] == [True, True, False]


def test_they_count_against_the_limit_of_a_session_as_well() -> None:
    house = house_of()
    joe = named(house, "joe/1", queue={"maxEntries": 2})
    bob = house.client()
    content = {"destinations": ["joe/1", "joe"], "content": 1}
    asked = [bob.publish("/service/ptp", content) for _ in range(3)]
    assert states(letter(bob, 2, "joe")) == ["QUEUED"]
    outcomes = [each.reply["ext"]["delivery"]["destinations"] for each in asked]
    assert [[each["state"] for each in told] for told in outcomes] == [
        ["OK", "OK"],
        ["OK", "OK"],
        ["ERROR", "QUEUED"],
    ]
    assert connect(joe).data == [1, 1]
    assert codes(house) == []
    assert house.balances()


def test_what_waits_gets_the_room_of_a_repeat_that_does_not_come() -> None:
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


def test_a_queue_that_was_emptied_makes_room_for_others() -> None:
    house = house_of(subject_limits=SharedQueueLimits(queues=1))
    bob = house.client()
    letter(bob, 1, forced("joe"))
    named(house, "joe/1")
    assert letter(bob, 2, forced("ann"))["successful"]


def open_queues(house: House) -> int:
    return len(house.bayeux.state.ptp.subjects.queues())


def test_a_queue_ends_with_the_lifetime_of_its_last_message() -> None:
    house = house_of()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    publish(house.client(), 1, forced("joe"), expiration=expiration)
    assert open_queues(house) == 1
    house.advance(1.5)
    assert open_queues(house) == 0


def test_a_queue_that_is_cleared_ends() -> None:
    house = house_of()
    letter(house.client(), 1, forced("joe"))
    queue = house.bayeux.state.ptp.subjects.queue("joe")
    assert queue is not None
    assert house.bayeux.life.clear(queue) == 1
    assert open_queues(house) == 0
    assert letter(house.client(), 2, forced("joe"))["successful"]
    assert connect(arriving(house, "joe/1")).data == [2]
    assert house.balances()


def of(house: House, address: str, name: str = "") -> Client:
    """A client at an address, with or without a subject."""
    ext = {"delivery": {"session": name}} if name else {}
    return house.client(caller=Caller(address=address, network=address), ext=ext)


OVER_QUOTA = "429:addressed:budget_exceeded"


def test_an_address_makes_so_many_messages_wait_and_no_more() -> None:
    house = house_of(quotas=QuotaLimits(addressed=2))
    many, other = of(house, "203.0.113.7"), of(house, "198.51.100.9")
    assert all(letter(many, 1, forced(name))["successful"] for name in ("ann", "joe"))
    refused = letter(many, 2, forced("ann"))
    assert refused["error"] == OVER_QUOTA
    assert refused["advice"] == {"reconnect": "retry", "interval": 5000, "timeout": 30000}
    (said,) = refused["ext"]["delivery"]["destinations"]
    assert said == {"name": "client/ann", "state": "ERROR", "errorCode": "resource.exhaust"}
    assert house.bayeux.state.sessions.usages.exceeded["addressed"] == 1
    assert letter(other, 3, forced("ann"))["successful"]
    assert letter(house.client(), 4, forced("ann"))["successful"]
    ann = arriving(house, "ann/1")
    assert connect(ann).data == [1, 3, 4]
    # Sessions get what is not forced to wait.
    assert letter(many, 5, forced("eve"))["successful"]
    assert states(letter(many, 6, forced("bob"), "ann")) == ["ERROR", "OK"]
    assert house.balances()


def test_a_subject_makes_so_many_bytes_wait_from_wherever_it_comes() -> None:
    house = house_of(quotas=QuotaLimits(addressed=0, addressed_bytes=1000))
    here, there = of(house, "203.0.113.7", "bob/1"), of(house, "198.51.100.9", "bob/2")
    assert letter(here, "x" * 600, forced("joe"))["successful"]
    assert letter(there, "x" * 600, forced("joe"))["error"] == OVER_QUOTA
    assert letter(there, "x", forced("joe"))["successful"]
    assert letter(of(house, "198.51.100.9", "eve/1"), "x" * 600, forced("joe"))["successful"]


@pytest.mark.parametrize("end", ["taken", "cleared", "expired", "refused"])
def test_what_no_longer_waits_is_nobodys_account(end: str) -> None:
    house = house_of(quotas=QuotaLimits(addressed=2))
    bob = of(house, "203.0.113.7")
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
    assert [letter(bob, number, forced("ann"))["successful"] for number in (3, 4, 5)] == [
        True,
        True,
        False,
    ]
    assert house.balances()


def test_a_socket_gets_the_rest_as_soon_as_there_is_room() -> None:
    house = house_of()
    bob = house.client()
    for number in range(3):
        letter(bob, number, forced("joe"))
    joe = house.connected(socket=Socket())
    joe.session.queue.limit(entries=1, bytes=None)
    joe.session.go_by("joe/-7")
    house.bayeux.state.ptp.subjects.join(joe.session)
    house.turn()
    assert [each["data"] for each in joe.hear() if "data" in each] == [0, 1, 2]
    assert house.balances()


def test_a_lifetime_ends_in_the_queue_of_a_subject_as_well() -> None:
    house = house_of()
    bob = house.client()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    publish(bob, "soon over", forced("joe"), expiration=expiration)
    house.advance(1.5)
    assert waiting(house, "joe") == 0
    assert house.bayeux.state.hub.counters.expired == 1
    assert connect(named(house, "joe/1")).data == []
    assert house.balances()


def test_a_repeat_is_not_queued_twice() -> None:
    house = house_of()
    bob = house.client()
    for _ in range(2):
        assert publish(bob, "once", forced("joe"), key="k")["successful"]
    assert waiting(house, "joe") == 1
    assert house.balances()


def test_while_the_store_is_away_nothing_is_promised() -> None:
    house = house_of()
    bob = house.client()
    house.keeper.is_available = False
    assert letter(bob, 1, forced("joe"))["error"].startswith("503")
    assert waiting(house, "joe") == 0
    assert publish(bob, 2, forced("joe"), persistent=False)["successful"]
    assert waiting(house, "joe") == 1


def test_a_restart_finds_what_waits_for_subjects() -> None:
    house = house_of()
    bob = house.client()
    for number in range(3):
        letter(bob, number, forced("joe"))
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
    taken = [letter(bob, number, "joe")["successful"] for number in range(8)]
    assert taken == [True] * 6 + [False] * 2
    after = restarted(house, **limits)
    joe = arriving(after, "joe/1", queue={"maxEntries": 3})
    assert connect(joe).data == [0, 1, 2]
    after.turn()
    assert connect(joe).data == []
    after.turn()
    assert connect(joe).data == [3, 4, 5]
    assert after.balances()


def test_what_an_unnamed_session_had_survives_a_kill() -> None:
    house = house_of()
    joe = house.client(ext={"ack": True, "delivery": {"session": "joe"}})
    connect(joe)
    letter(house.client(), "hello", "joe")
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
def test_destinations_that_make_no_sense_are_refused(destinations: Any) -> None:
    house = house_of()
    bob = house.client()
    content = {"destinations": destinations, "content": 1}
    assert bob.publish("/service/ptp", content).reply["error"].startswith("400:user.publish")
    if destinations is not None:
        ext = {"delivery": {"destinations": destinations}}
        assert bob.publish("/a", 1, ext=ext).reply["error"].startswith("400:user.publish")


@pytest.mark.parametrize("data", [None, 1, {"content": 1}, {"destinations": ["joe"]}], ids=repr)
def test_a_message_to_nobody_is_refused(data: Any) -> None:
    house = house_of()
    assert house.client().publish("/service/ptp", data).reply["error"].startswith("400")


class Granted:
    """What a login may do."""

    def __init__(self, *operations: Operation) -> None:
        self._operations = operations

    def allows(self, operation: Operation, channel: str) -> bool:
        return operation in self._operations


def test_who_may_publish_may_not_address_anybody() -> None:
    house = house_of()
    joe, bob = named(house, "joe/1"), house.client()
    house.bayeux.state.rights.require_login()
    bob.session.identity.grants = Granted(Operation.PUBLISH, Operation.CREATE)
    assert letter(bob, 1, "joe")["error"].startswith("403:denied_by_rights:")
    assert publish(bob, 2, "joe")["error"].startswith("403:denied_by_rights:")
    bob.session.identity.grants = Granted(Operation.PUBLISH, Operation.CREATE, Operation.PTP)
    assert letter(bob, 3, "joe")["successful"]
    assert connect(joe).data == [3]


def test_what_a_client_without_acks_left_waits_for_the_next_session() -> None:
    house = house_of()
    joe = house.client()
    joe.session.go_by("joe/-7")
    house.bayeux.state.ptp.subjects.join(joe.session)
    assert states(letter(house.client(), "hello", "joe")) == ["OK"]
    house.advance(15.0)
    assert joe.session.is_gone
    assert (waiting(house, "joe"), codes(house)) == (1, [])
    assert house.balances()


def plain(house: House) -> Client:
    """A session of joe with a login, as the server names it, that negotiated nothing."""
    joe = house.client()
    joe.session.go_by("joe/-7")
    house.bayeux.state.ptp.subjects.join(joe.session)
    joe.connect()
    return joe


def test_what_a_client_without_acks_received_is_no_longer_in_the_store() -> None:
    house = house_of()
    joe = plain(house)
    letter(house.client(), "hello", "joe")
    assert joe.connect(advice={"timeout": 0}).data == ["hello"]
    house.turn()
    assert house.keeper.queues["joe/-7"] == {}
    assert house.balances()


def test_a_message_that_the_store_cannot_have_leaves_sessions_as_they_are() -> None:
    house = house_of()
    joe = plain(house)
    bob = house.client()
    house.keeper.is_available = False
    assert letter(bob, 1, "joe")["error"].startswith("503")
    assert not joe.session.is_durable
    assert publish(bob, 2, "joe", persistent=False)["successful"]
    assert joe.connect(advice={"timeout": 0}).data == [2]
    assert house.balances()


@pytest.mark.parametrize("name", ["anonymous", "anonymous/1"])
def test_no_session_may_have_the_name_of_those_without_one(name: str) -> None:
    house = house_of()
    asked = house.guest().handshake(ext={"delivery": {"session": name}})
    assert asked.reply["error"].startswith("400:")


def test_what_nobody_left_waits_for_nobody() -> None:
    house = house_of()
    message = Message(b"{}", id=1, channel="/a")
    message.addressed = ("anonymous",)
    assert not house.bayeux.state.ptp.subjects.take_back_late(house.client().session, message)
    assert waiting(house, "anonymous") == 0


def test_what_the_store_has_for_an_ended_session_returns_to_its_subject() -> None:
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
def test_refusals_of_what_is_addressed_hold_no_channel_back(is_addressed: bool) -> None:
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
            # At first everything is as usual.
            connect(each, *[no(event, "user.update.error") for event in events if number])
            house.turn()
        house.advance(0.5)
    assert house.bayeux.state.guard.is_held("/a") is not is_addressed


@pytest.mark.slow
def test_what_a_session_leaves_returns_in_as_many_turns_as_that_takes() -> None:
    house = house_of()
    bob, joe = house.client(), named(house, "joe/1")
    for number in range(1200):
        letter(bob, number, "joe")
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
def test_what_a_killed_server_had_no_time_to_return_says_that_it_may_have_come_before() -> None:
    house = house_of()
    bob, joe = house.client(), named(house, "joe/1")
    for number in range(250):
        letter(bob, number, "joe")
    assert len(connect(joe).data) == 250
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert waiting(house, "joe") == 200
    house = restarted(house)
    asked = connect(arriving(house, "joe/2"))
    house.turn()
    assert sorted(asked.data) == [*range(250)]
    assert redelivered(asked) == [1] * 250


DEADLY: dict[str, Any] = {"channels": {"/service/ptp": ChannelRule(max_attempts=3)}}


def taken_by_another(house: House) -> list[object]:
    """What a session of joe without a number is handed; it ends unless that is harmless."""
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
def test_a_message_that_stops_every_session_of_its_subject_dies(is_killed: bool) -> None:
    house = house_of(**DEADLY)
    for text in ("poison", "news"):
        letter(house.client(), text, forced("joe"))
    handed: list[list[object]] = []
    while waiting(house, "joe") and len(handed) < 12:
        handed.append(taken_by_another(house))
        if is_killed:
            house = restarted(house, **DEADLY)
    # What arrived together is told apart at the last attempt.
    assert handed == [["poison", "news"], ["poison", "news"], ["poison"], ["news"]]
    (dead,) = house.keeper.letters
    assert dead.envelope()["content"] == "poison"
    assert [each.n for each in dead.attempts] == [1, 2, 3]
    assert house.keeper.queues["joe/0"] == {}
    assert house.balances()


def test_copies_that_return_to_their_subject_become_one_with_the_attempts_of_both() -> None:
    house = house_of()
    letter_to = {"ack": True, "delivery": {"session": "joe"}}
    phone, desk = house.client(ext=letter_to), house.client(ext=letter_to)
    letter(house.client(), "hello", "joe")
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
def test_room_that_entries_leave_otherwise_is_used_at_once(how: str) -> None:
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
