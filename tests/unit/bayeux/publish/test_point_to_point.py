"""Messages to subjects and sessions: the table of point-to-point, row by row, and its limits."""

from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Socket, server_of
from tests.unit.bayeux.operated_server import letters
from tests.unit.extensions.delivering import codes, connect, no, redelivered

KEY = {"delivery": {"key": "k"}}
UNKNOWN = "user.ptp.unknownDestination"


def arriving(server: Server, name: str, **options: Any) -> Client:
    """A client that has not connected yet."""
    client = server.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": name, **options}})
    server.turn()
    return client


def named(server: Server, name: str, **options: Any) -> Client:
    client = arriving(server, name, **options)
    connect(client)
    server.turn()
    return client


def leave(client: Client) -> None:
    client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    client.server.turn()


def address(client: Client, data: object, *destinations: Any) -> Json:
    """Send data to these destinations; the reply."""
    content = {"destinations": list(destinations), "content": data}
    asked = client.publish("/service/ptp", content)
    client.server.turn()
    return asked.reply


def test_a_message_published_with_an_empty_channel_gets_a_channel_of_its_own() -> None:
    server = server_of()
    joe, sender = named(server, "joe/1"), server.guest()
    sender.handshake()
    content = {"destinations": ["joe"], "content": 1, "channel": ""}
    asked = [sender.publish("/service/ptp", content) for _ in range(2)]
    server.turn()
    channels = [each.reply["ext"]["delivery"]["channel"] for each in asked]
    assert len(set(channels)) == 2
    assert all(each.startswith("/service/ptp/test-") for each in channels)
    events = connect(joe).events
    assert [each["channel"] for each in events] == channels


def test_a_repeated_publish_is_answered_with_the_channel_of_the_first() -> None:
    server = server_of()
    joe, sender = named(server, "joe/1"), server.guest()
    sender.handshake()
    content = {"destinations": ["joe"], "content": 1, "channel": ""}
    asked = [sender.publish("/service/ptp", content, ext=KEY) for _ in range(2)]
    server.turn()
    first, again = [each.reply["ext"]["delivery"]["channel"] for each in asked]
    assert first == again
    assert [each["channel"] for each in connect(joe).events] == [first]


@pytest.mark.parametrize("channel", ["/a", None, 5])
def test_a_publish_to_the_ptp_service_with_any_channel_but_an_empty_one_is_refused(
    channel: object,
) -> None:
    server = server_of()
    sender = server.guest()
    sender.handshake()
    content = {"destinations": ["joe"], "content": 1, "channel": channel}
    reply = sender.publish("/service/ptp", content).reply
    assert reply["error"].startswith("400:user.publish,channel")


def test_a_message_with_a_channel_of_its_own_matches_no_pattern_and_waits_for_its_subject() -> None:
    server = server_of()
    watcher, sender = server.client(), server.guest()
    watcher.subscribe("/**")
    sender.handshake()
    content = {"destinations": [forced("joe")], "content": 1, "channel": ""}
    assert sender.publish("/service/ptp", content).is_held
    server.turn()
    assert connect(watcher).data == []
    joe = arriving(server, "joe/1")
    (event,) = connect(joe).events
    assert event["channel"].startswith("/service/ptp/")
    leave(joe)
    assert waiting(server, "joe") == 1


def forced(name: str) -> Json:
    return {"name": name, "forceQueuing": True}


def states(reply: Json) -> list[str]:
    return [each["state"] for each in reply["ext"]["delivery"]["destinations"]]


def waiting(server: Server, subject: str) -> int:
    queue = server.bayeux.state.subjects.queue(subject)
    return 0 if queue is None else queue.queue.count


def restarted(server: Server, **options: Any) -> Server:
    """A server that takes the place of one that was killed."""
    after = server_of(keeper=server.keeper, after=server, **options)
    for record, entries in server.keeper.load(partial(restore_without_session, after.bayeux.life)):
        restore(after.bayeux.life, record, entries, after.now)
    after.bayeux.life.topics.restore()
    after.turn()
    return after


def test_a_message_to_a_subject_reaches_all_its_sessions_and_no_others() -> None:
    server = server_of()
    phone, desk, other = (named(server, name) for name in ("joe/1", "joe/2", "ann/1"))
    bob = server.client()
    reply = address(bob, "hello", "client/joe")
    assert reply["successful"]
    assert reply["ext"]["delivery"]["destinations"] == [{"name": "client/joe", "state": "OK"}]
    assert connect(phone).data == connect(desk).data == ["hello"]
    assert connect(other).data == []
    assert server.balances()


def test_a_message_to_a_session_reaches_no_other_session_of_its_subject() -> None:
    server = server_of()
    phone, desk = named(server, "joe/1"), named(server, "joe/2")
    assert states(address(server.client(), "hello", "joe/2")) == ["OK"]
    assert connect(phone).data == []
    assert connect(desk).data == ["hello"]


def test_a_session_that_is_away_gets_a_message_addressed_to_it_when_it_returns() -> None:
    server = server_of()
    named(server, "joe/1").disconnect()
    server.turn()
    assert states(address(server.client(), "hello", "joe/1")) == ["OK"]
    back = arriving(server, "joe/1")
    assert connect(back).data == ["hello"]


@pytest.mark.parametrize("destination", ["joe", "joe/1", forced("joe/1")])
def test_a_message_to_an_unknown_destination_is_refused(destination: Any) -> None:
    server = server_of()
    reply = address(server.client(), "hello", destination)
    assert not reply["successful"]
    name = destination if isinstance(destination, str) else destination["name"]
    assert reply["error"] == f"404:{UNKNOWN},client/{name}:destination_unknown"
    (said,) = reply["ext"]["delivery"]["destinations"]
    assert said == {"name": f"client/{name}", "state": "ERROR", "errorCode": UNKNOWN}
    joe = named(server, "joe/1")
    assert connect(joe).data == []
    assert server.balances()


def test_messages_that_are_forced_to_wait_for_a_subject_go_to_its_first_session_in_order() -> None:
    server = server_of()
    bob = server.client()
    for number in range(3):
        assert states(address(bob, number, forced("joe"))) == ["QUEUED"]
    assert waiting(server, "joe") == 3
    joe = arriving(server, "joe/1")
    assert waiting(server, "joe") == 0
    assert connect(joe).data == [0, 1, 2]
    assert connect(joe).data == []
    server.turn()
    assert server.keeper.queues["joe/1"] == {}
    assert server.balances()


def test_a_message_without_force_queuing_is_refused_though_others_wait_for_its_subject() -> None:
    server = server_of()
    bob = server.client()
    address(bob, 1, forced("joe"))
    assert not address(bob, 2, "joe")["successful"]


def test_messages_that_wait_for_a_subject_are_delivered_by_priority_and_then_by_age() -> None:
    server = server_of()
    bob = server.client()
    for number, priority in enumerate((5, 9, 5, 9)):
        ext = {"delivery": {"destinations": [forced("joe")], "priority": priority}}
        bob.publish("/a", number, ext=ext)
        server.turn()
    joe = arriving(server, "joe/1")
    assert connect(joe).data == [1, 3, 0, 2]


def test_addressed_messages_of_an_ended_session_go_to_the_next_session_of_its_subject() -> None:
    server = server_of()
    phone = named(server, "joe/1")
    bob = server.client()
    address(bob, "first", "joe")
    assert connect(phone).data == ["first"]
    address(bob, "second", "joe")
    leave(phone)
    assert (waiting(server, "joe"), codes(server)) == (2, [])
    desk = arriving(server, "joe/2")
    asked = connect(desk)
    server.turn()
    assert asked.data == ["first", "second"]
    # The second was never handed over.
    assert redelivered(asked) == [1, 0]
    assert server.balances()


def test_a_session_with_a_message_does_not_get_the_copy_of_an_ended_session() -> None:
    server = server_of()
    phone, desk = named(server, "joe/1"), named(server, "joe/2")
    address(server.client(), "hello", "joe")
    leave(phone)
    assert waiting(server, "joe") == 0
    assert connect(desk).data == ["hello"]
    assert connect(desk).data == []
    assert server.balances()


def test_a_message_to_one_session_becomes_a_dead_letter_when_the_session_ends() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    address(server.client(), "hello", "joe/1")
    leave(joe)
    assert (waiting(server, "joe"), letters(server)) == (0, ["hello"])


def test_a_message_from_a_subscription_becomes_a_dead_letter_when_its_session_ends() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    joe.subscribe("/a")
    server.client().publish("/a", "news")
    server.turn()
    leave(joe)
    assert letters(server) == ["news"]


def test_a_session_that_expires_returns_addressed_messages_to_its_subject() -> None:
    server = server_of()
    joe = server.client(ext={"ack": True, "delivery": {"session": "joe"}})
    connect(joe)
    address(server.client(), "hello", "joe")
    server.advance(15.0)
    assert joe.session.is_gone
    assert (waiting(server, "joe"), codes(server)) == (1, [])
    assert server.balances()


def test_a_refused_message_is_dead_lettered_and_does_not_return_to_its_subject() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    address(server.client(), "hello", "joe")
    (event,) = connect(joe).events
    connect(joe, no(event, "user.update.error"))
    server.turn()
    leave(joe)
    assert (waiting(server, "joe"), letters(server)) == (0, ["hello"])
    assert server.balances()


@pytest.mark.parametrize("is_waiting", [False, True])
@pytest.mark.parametrize("how", ["verdict", "silence", "loss"])
def test_a_message_that_its_session_did_not_decide_about_returns_to_its_subject(
    how: str, is_waiting: bool
) -> None:
    server = server_of(max_interval=10_000)
    desk = named(server, "joe/1", retries=0, responseTimeout=5000)
    other = named(server, "joe/2") if is_waiting else None
    address(server.client(), "hello", "joe")
    asked = connect(desk)
    assert asked.data == ["hello"]
    if other is not None:
        connect(other, ack=None)
        leave(other)
    if how == "verdict":
        connect(desk, no(asked.events[0], "communication.printer", "no paper"))
        server.turn()
    else:
        server.advance(6.0 if how == "silence" else 11.0)
    assert desk.session.is_gone
    assert (waiting(server, "joe"), codes(server)) == (1, [])
    assert server.balances()
    phone = arriving(server, "joe/3")
    again = connect(phone)
    server.turn()
    assert (again.data, redelivered(again)) == (["hello"], [1])
    connect(phone)
    assert waiting(server, "joe") == phone.session.queue.count == 0
    assert server.balances()


def test_a_message_to_one_session_dies_with_it_as_before() -> None:
    server = server_of()
    joe, _ = named(server, "joe/1", retries=0), named(server, "joe/2")
    address(server.client(), "hello", "joe/1")
    connect(joe, no(connect(joe).events[0], "communication.printer"))
    server.turn()
    assert (waiting(server, "joe"), codes(server)) == (0, ["communication.printer"])
    assert server.balances()


def test_a_message_that_no_session_decides_about_dies_after_the_attempts_of_its_channel() -> None:
    server = server_of(**DEADLY)
    address(server.client(), "poison", forced("joe"))
    handed: list[int] = []
    while waiting(server, "joe") and len(handed) < 9:
        joe = arriving(server, f"joe/{len(handed) + 1}", retries=0)
        asked = connect(joe)
        server.turn()
        for event in asked.events:
            connect(joe, no(event, "communication.printer", "no paper"))
        server.turn()
        handed.append(len(asked.events))
    assert handed == [1, 1, 1, 0]
    (letter,) = server.keeper.letters
    assert (letter.code, letter.attempt_count) == ("user.update.error", 3)
    assert [(each.n, each.code) for each in letter.attempts] == [
        (n, "communication.printer") for n in (1, 2, 3)
    ]
    assert server.balances()


def test_the_sender_of_an_event_can_be_addressed_while_it_lives() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    plain, acked = server.client(), server.client(ext={"ack": True})
    sender = ""
    for bob in (plain, acked):
        address(bob, "hello", "joe/1")
        (event,) = connect(joe).events
        sender = event["ext"]["delivery"]["sender"]
        assert sender.startswith("client/anonymous/-")
        assert states(address(joe, "hi", sender)) == ["OK"]
    assert plain.connect(advice={"timeout": 0}).data == ["hi"]
    assert connect(acked).data == ["hi"]
    acked.disconnect()
    assert address(joe, "hi", sender)["error"] == f"404:{UNKNOWN},{sender}:destination_unknown"
    assert server.balances()


def test_a_session_that_takes_no_ptp_messages_is_passed_over_and_cannot_be_addressed() -> None:
    server = server_of()
    shy, open_ = named(server, "joe/1", ptp=False), named(server, "joe/2")
    bob = server.client()
    assert states(address(bob, "hello", "joe")) == ["OK"]
    assert connect(shy).data == []
    assert connect(open_).data == ["hello"]
    error = address(bob, "hello", forced("joe/1"))["error"]
    assert error == "403:user.ptp.denied,client/joe/1:destination_denied"


def test_a_message_that_no_session_of_its_subject_takes_waits_only_if_forced() -> None:
    server = server_of()
    shy = named(server, "joe/1", ptp=False)
    bob = server.client()
    assert address(bob, 1, "joe")["error"].startswith("403:user.ptp.denied")
    assert states(address(bob, 2, forced("joe"))) == ["QUEUED"]
    assert connect(shy).data == []
    assert waiting(server, "joe") == 1


def test_each_of_several_destinations_has_an_outcome() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    unknown = {"name": "eve", "ignoreSilently": True}
    reply = address(server.client(), "hello", "ann", "joe", forced("carl"), unknown)
    assert reply["successful"]
    assert states(reply) == ["ERROR", "OK", "QUEUED", "IGNORED"]
    assert connect(joe).data == ["hello"]
    assert waiting(server, "carl") == 1


def test_a_receiver_that_is_named_twice_gets_the_message_once() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    address(server.client(), "hello", "joe", "joe/1", "client/joe")
    assert connect(joe).data == ["hello"]


def test_an_unknown_destination_with_ignore_silently_is_no_error() -> None:
    server = server_of()
    reply = address(server.client(), "hello", {"name": "joe", "ignoreSilently": True})
    assert (reply["successful"], states(reply)) == (True, ["IGNORED"])


def publish(client: Client, data: object, *names: Any, **options: Any) -> Json:
    ext = {"delivery": {"destinations": list(names), **options}}
    asked: Asked = client.publish("/a", data, ext=ext)
    client.server.turn()
    return asked.reply


def test_subscribers_get_an_addressed_message_too_unless_it_is_not_subscribable() -> None:
    server = server_of()
    joe, ann = named(server, "joe/1"), named(server, "ann/1")
    ann.subscribe("/a")
    bob = server.client()
    publish(bob, "open", "joe")
    publish(bob, "closed", "joe", subscribable=False)
    assert connect(joe).data == ["open", "closed"]
    assert connect(ann).data == ["open"]


def test_a_message_to_a_full_session_is_refused_and_not_dead_lettered() -> None:
    server = server_of()
    named(server, "joe/1", queue={"maxEntries": 1})
    bob = server.client()
    assert address(bob, 1, "joe/1")["successful"]
    error = address(bob, 2, "joe/1")["error"]
    assert error == "507:resource.overflow.queue.entries,client/joe/1:destination_full"
    assert codes(server) == []


def test_a_message_to_a_subject_whose_session_is_full_waits_in_the_subject_queue() -> None:
    server = server_of()
    joe = named(server, "joe/1", queue={"maxEntries": 1})
    bob = server.client()
    assert states(address(bob, 1, "joe")) == ["OK"]
    assert states(address(bob, 2, "joe")) == ["QUEUED"]
    assert connect(joe).data == [1]
    server.turn()
    assert connect(joe).data == []
    server.turn()
    assert connect(joe).data == [2]
    assert server.balances()


def test_a_message_that_is_too_large_for_every_session_does_not_delay_others() -> None:
    server = server_of()
    joe = named(server, "joe/1", queue={"maxBytes": 1000})
    bob = server.client()
    large = "x" * 2000
    assert states(address(bob, large, "joe")) == ["QUEUED"]
    assert states(address(bob, 1, "joe")) == ["OK"]
    assert connect(joe).data == [1]
    assert waiting(server, "joe") == 1
    roomy = arriving(server, "joe/2")
    assert connect(roomy).data == [large]
    assert (waiting(server, "joe"), server.keeper.queues["joe/0"]) == (0, {})
    assert server.balances()


def test_waiting_messages_pass_others_that_are_too_large_for_every_session() -> None:
    server = server_of()
    bob = server.client()
    for content in ("x" * 2000, 1, "y" * 2000, 2):
        address(bob, content, forced("joe"))
    joe = arriving(server, "joe/1", queue={"maxBytes": 1000})
    assert connect(joe).data == [1, 2]
    assert waiting(server, "joe") == 2
    assert server.balances()


def test_a_message_that_fits_only_an_ended_session_does_not_delay_others() -> None:
    server = server_of()
    roomy = named(server, "joe/1", queue={"maxEntries": 1})
    small = named(server, "joe/2", queue={"maxBytes": 1000})
    bob = server.client()
    address(bob, 0, "joe/1")
    assert states(address(bob, "x" * 2000, "joe")) == ["QUEUED"]
    assert states(address(bob, 1, "joe")) == ["QUEUED"]
    leave(roomy)
    assert waiting(server, "joe") == 1
    assert connect(small).data == [1]
    assert server.balances()


def test_messages_beyond_the_limits_of_subject_queues_are_refused() -> None:
    server = server_of(max_subject_queue=2, max_subject_queues=1)
    bob = server.client()
    for number in range(2):
        assert address(bob, number, forced("joe"))["successful"]
    error = address(bob, 2, forced("joe"))["error"]
    assert error == "507:resource.overflow.queue.entries,client/joe:destination_full"
    assert address(bob, 3, forced("ann"))["error"].startswith("507:resource.exhaust")


def test_pending_publishes_count_against_the_limit_of_a_subject_queue() -> None:
    server = server_of(max_subject_queue=2)
    bob = server.client()
    content = {"destinations": [forced("joe")], "content": 1}
    asked = [bob.publish("/service/ptp", content) for _ in range(3)]
    server.turn()
    assert [each.reply["successful"] for each in asked] == [True, True, False]


def test_pending_publishes_count_against_the_limit_of_a_session_queue() -> None:
    server = server_of()
    joe = named(server, "joe/1", queue={"maxEntries": 2})
    bob = server.client()
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
    assert codes(server) == []
    assert server.balances()


def test_a_waiting_message_gets_the_room_that_was_reserved_for_a_repeated_publish() -> None:
    server = server_of()
    joe = named(server, "joe/1", queue={"maxEntries": 1})
    named(server, "ann/1")
    bob = server.client()
    publish(bob, "once", "ann/1", key="k")
    bob.publish("/a", "once", ext={"delivery": {"destinations": ["joe/1"], "key": "k"}})
    qos = {"destinations": ["joe"], "persistent": False}
    bob.publish("/b", "for joe", ext={"delivery": qos})
    server.flush()
    assert waiting(server, "joe") == 1
    server.turn()
    assert waiting(server, "joe") == 0
    assert connect(joe).data == ["for joe"]
    assert server.balances()


def test_an_emptied_subject_queue_makes_room_for_the_queue_of_another_subject() -> None:
    server = server_of(max_subject_queues=1)
    bob = server.client()
    address(bob, 1, forced("joe"))
    named(server, "joe/1")
    assert address(bob, 2, forced("ann"))["successful"]


def open_queues(server: Server) -> int:
    return len(server.bayeux.state.subjects.queues())


def test_a_subject_queue_ends_with_the_lifetime_of_its_last_message() -> None:
    server = server_of()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    publish(server.client(), 1, forced("joe"), expiration=expiration)
    assert open_queues(server) == 1
    server.advance(1.5)
    assert open_queues(server) == 0


def test_a_subject_queue_ends_when_it_is_cleared() -> None:
    server = server_of()
    address(server.client(), 1, forced("joe"))
    queue = server.bayeux.state.subjects.queue("joe")
    assert queue is not None
    assert server.bayeux.life.clear(queue) == 1
    assert open_queues(server) == 0
    assert address(server.client(), 2, forced("joe"))["successful"]
    assert connect(arriving(server, "joe/1")).data == [2]
    assert server.balances()


def client_at(server: Server, address: str, name: str = "") -> Client:
    """A client at an address, with or without a subject."""
    ext = {"delivery": {"session": name}} if name else {}
    return server.client(caller=Caller(address=address, network=address), ext=ext)


OVER_QUOTA = "429:addressed:budget_exceeded"


def test_an_address_may_make_a_limited_number_of_messages_wait_for_subjects() -> None:
    server = server_of(quota_addressed=2)
    many, other = client_at(server, "203.0.113.7"), client_at(server, "198.51.100.9")
    assert all(address(many, 1, forced(name))["successful"] for name in ("ann", "joe"))
    refused = address(many, 2, forced("ann"))
    assert refused["error"] == OVER_QUOTA
    assert refused["advice"] == {"reconnect": "retry", "interval": 5000, "timeout": 30000}
    (said,) = refused["ext"]["delivery"]["destinations"]
    assert said == {"name": "client/ann", "state": "ERROR", "errorCode": "resource.exhaust"}
    assert server.bayeux.state.sessions.usages.exceeded["addressed"] == 1
    assert address(other, 3, forced("ann"))["successful"]
    assert address(server.client(), 4, forced("ann"))["successful"]
    ann = arriving(server, "ann/1")
    assert connect(ann).data == [1, 3, 4]
    # Messages for sessions do not count.
    assert address(many, 5, forced("eve"))["successful"]
    assert states(address(many, 6, forced("bob"), "ann")) == ["ERROR", "OK"]
    assert server.balances()


def test_a_subject_may_make_a_limited_number_of_bytes_wait_from_all_its_addresses() -> None:
    server = server_of(quota_addressed=0, quota_addressed_bytes=1000)
    here, there = (
        client_at(server, "203.0.113.7", "bob/1"),
        client_at(server, "198.51.100.9", "bob/2"),
    )
    assert address(here, "x" * 600, forced("joe"))["successful"]
    assert address(there, "x" * 600, forced("joe"))["error"] == OVER_QUOTA
    assert address(there, "x", forced("joe"))["successful"]
    assert address(client_at(server, "198.51.100.9", "eve/1"), "x" * 600, forced("joe"))[
        "successful"
    ]


@pytest.mark.parametrize("end", ["taken", "cleared", "expired", "refused"])
def test_a_message_that_no_longer_waits_does_not_count_against_the_quota(end: str) -> None:
    server = server_of(quota_addressed=2)
    bob = client_at(server, "203.0.113.7")
    if end == "refused":
        server.keeper.outcome = PersistOutcome.REFUSED
    for number in (1, 2):
        publish(bob, number, forced("joe"), expiration={"lifeTime": 1000, "forceDestroy": True})
    server.turn()
    server.keeper.outcome = PersistOutcome.KEPT
    if end == "taken":
        named(server, "joe/1")
    elif end == "cleared":
        queue = server.bayeux.state.subjects.queue("joe")
        assert queue is not None
        server.bayeux.life.clear(queue)
    elif end == "expired":
        server.advance(1.5)
    assert [address(bob, number, forced("ann"))["successful"] for number in (3, 4, 5)] == [
        True,
        True,
        False,
    ]
    assert server.balances()


def test_a_session_over_a_socket_gets_more_from_its_subject_than_its_queue_has_room_for() -> None:
    server = server_of()
    bob = server.client()
    for number in range(3):
        address(bob, number, forced("joe"))
    joe = server.connected(socket=Socket())
    joe.session.queue.limit(entries=1, bytes=None)
    joe.session.go_by("joe/-7")
    server.bayeux.state.subjects.join(joe.session)
    server.turn()
    assert [each["data"] for each in joe.hear() if "data" in each] == [0, 1, 2]
    assert server.balances()


def test_a_message_in_a_subject_queue_expires_when_its_lifetime_ends() -> None:
    server = server_of()
    bob = server.client()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    publish(bob, "soon over", forced("joe"), expiration=expiration)
    server.advance(1.5)
    assert waiting(server, "joe") == 0
    assert server.bayeux.state.hub.counters.expired == 1
    assert connect(named(server, "joe/1")).data == []
    assert server.balances()


def test_a_repeated_publish_is_queued_once_for_its_subject() -> None:
    server = server_of()
    bob = server.client()
    for _ in range(2):
        assert publish(bob, "once", forced("joe"), key="k")["successful"]
    assert waiting(server, "joe") == 1
    assert server.balances()


def test_only_passing_messages_wait_for_a_subject_while_the_store_is_away() -> None:
    server = server_of()
    bob = server.client()
    server.keeper.is_available = False
    assert address(bob, 1, forced("joe"))["error"].startswith("503")
    assert waiting(server, "joe") == 0
    assert publish(bob, 2, forced("joe"), persistent=False)["successful"]
    assert waiting(server, "joe") == 1


def test_messages_that_wait_for_a_subject_survive_a_restart() -> None:
    server = server_of()
    bob = server.client()
    for number in range(3):
        address(bob, number, forced("joe"))
    after = restarted(server)
    assert waiting(after, "joe") == 3
    joe = arriving(after, "joe/1")
    assert connect(joe).data == [0, 1, 2]
    assert after.balances()


def test_messages_of_a_full_session_and_its_subject_arrive_in_order_after_a_restart() -> None:
    limits = {"max_subject_queue": 3}
    server = server_of(**limits)
    named(server, "joe/1", queue={"maxEntries": 3}).disconnect()
    server.turn()
    bob = server.client()
    taken = [address(bob, number, "joe")["successful"] for number in range(8)]
    assert taken == [True] * 6 + [False] * 2
    after = restarted(server, **limits)
    joe = arriving(after, "joe/1", queue={"maxEntries": 3})
    assert connect(joe).data == [0, 1, 2]
    after.turn()
    assert connect(joe).data == []
    after.turn()
    assert connect(joe).data == [3, 4, 5]
    assert after.balances()


def test_a_message_that_an_unnamed_session_had_waits_for_its_subject_after_a_kill() -> None:
    server = server_of()
    joe = server.client(ext={"ack": True, "delivery": {"session": "joe"}})
    connect(joe)
    address(server.client(), "hello", "joe")
    assert connect(joe).data == ["hello"]
    after = restarted(server)
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
    server = server_of()
    bob = server.client()
    content = {"destinations": destinations, "content": 1}
    assert bob.publish("/service/ptp", content).reply["error"].startswith("400:user.publish")
    if destinations is not None:
        ext = {"delivery": {"destinations": destinations}}
        assert bob.publish("/a", 1, ext=ext).reply["error"].startswith("400:user.publish")


@pytest.mark.parametrize("data", [None, 1, {"content": 1}, {"destinations": ["joe"]}], ids=repr)
def test_a_publish_to_the_ptp_service_without_destinations_or_content_is_refused(data: Any) -> None:
    server = server_of()
    assert server.client().publish("/service/ptp", data).reply["error"].startswith("400")


class Granted:
    """What a login may do."""

    def __init__(self, *operations: Operation) -> None:
        self._operations = operations

    def allows(self, operation: Operation, channel: str) -> bool:
        return operation in self._operations


def test_a_right_to_publish_does_not_include_the_right_to_address() -> None:
    server = server_of()
    joe, bob = named(server, "joe/1"), server.client()
    server.bayeux.state.rights.require_login()
    bob.session.identity.grants = Granted(Operation.PUBLISH, Operation.CREATE)
    assert address(bob, 1, "joe")["error"].startswith("403:denied_by_rights:")
    assert publish(bob, 2, "joe")["error"].startswith("403:denied_by_rights:")
    bob.session.identity.grants = Granted(Operation.PUBLISH, Operation.CREATE, Operation.PTP)
    assert address(bob, 3, "joe")["successful"]
    assert connect(joe).data == [3]


def test_a_message_to_a_plain_session_waits_for_its_subject_when_the_session_expires() -> None:
    server = server_of()
    joe = server.client()
    joe.session.go_by("joe/-7")
    server.bayeux.state.subjects.join(joe.session)
    assert states(address(server.client(), "hello", "joe")) == ["OK"]
    server.advance(15.0)
    assert joe.session.is_gone
    assert (waiting(server, "joe"), codes(server)) == (1, [])
    assert server.balances()


def plain(server: Server) -> Client:
    """A plain session of joe with a name that the server chose."""
    joe = server.client()
    joe.session.go_by("joe/-7")
    server.bayeux.state.subjects.join(joe.session)
    joe.connect()
    return joe


def test_a_message_that_a_plain_session_received_leaves_the_store() -> None:
    server = server_of()
    joe = plain(server)
    address(server.client(), "hello", "joe")
    assert joe.connect(advice={"timeout": 0}).data == ["hello"]
    server.turn()
    assert server.keeper.queues["joe/-7"] == {}
    assert server.balances()


def test_a_message_sent_while_the_store_is_away_does_not_make_its_session_durable() -> None:
    server = server_of()
    joe = plain(server)
    bob = server.client()
    server.keeper.is_available = False
    assert address(bob, 1, "joe")["error"].startswith("503")
    assert not joe.session.is_durable
    assert publish(bob, 2, "joe", persistent=False)["successful"]
    assert joe.connect(advice={"timeout": 0}).data == [2]
    assert server.balances()


@pytest.mark.parametrize("name", ["anonymous", "anonymous/1"])
def test_a_session_name_with_the_subject_anonymous_is_refused(name: str) -> None:
    server = server_of()
    asked = server.guest().handshake(ext={"delivery": {"session": name}})
    assert asked.reply["error"].startswith("400:")


def test_a_message_addressed_to_anonymous_does_not_return_to_a_subject_queue() -> None:
    server = server_of()
    message = Message(b"{}", id=1, channel="/a")
    message.addressed = ("anonymous",)
    assert not server.bayeux.state.subjects.requeue_late(server.client().session, message)
    assert waiting(server, "anonymous") == 0


def test_an_addressed_message_stored_for_an_ended_session_returns_to_its_subject() -> None:
    server = server_of()
    messages = [Message(b'{"data":%d}' % number, id=number, channel="/a") for number in (1, 2)]
    messages[0].addressed = ("joe",)
    for message in messages:
        message.is_durable = True
        server.keeper.keep(message, ["joe/1"], lambda outcome: None)
    after = restarted(server)
    assert waiting(after, "joe") == 1
    assert after.bayeux.state.counters.discarded[Reason.SESSION_ENDED] == 1
    assert set(server.keeper.queues["joe/0"]) == {1}
    assert server.keeper.queues["joe/1"] == {}
    assert after.balances()


@pytest.mark.slow
@pytest.mark.parametrize("is_addressed", [False, True])
def test_refusals_hold_a_channel_unless_its_messages_are_addressed(is_addressed: bool) -> None:
    server = server_of(channels={"/a": ChannelSettings(guard=True)})
    bob = server.client()
    receivers = [named(server, name) for name in ("joe/1", "ann/1", "eve/1")]
    for each in receivers:
        each.subscribe("/a")
    destinations = ["joe", "ann", "eve"] if is_addressed else None
    for number in range(20):
        ext = {"delivery": {"destinations": destinations}}
        bob.publish("/a", number, ext=ext)
        server.turn()
        for each in receivers:
            events = connect(each).events
            server.turn()
            # The first message is not refused.
            connect(each, *[no(event, "user.update.error") for event in events if number])
            server.turn()
        server.advance(0.5)
    assert server.bayeux.state.guard.is_held("/a") is not is_addressed


@pytest.mark.slow
def test_messages_of_an_ended_session_return_to_their_subject_over_several_turns() -> None:
    server = server_of()
    bob, joe = server.client(), named(server, "joe/1")
    for number in range(1200):
        address(bob, number, "joe")
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    seen = [waiting(server, "joe")]
    while server.flush():
        seen.append(waiting(server, "joe"))
    assert seen[:6] == [200, 400, 600, 800, 1000, 1200]
    server.turn()
    receiver = server.bayeux.state.subjects.queue("joe")
    assert receiver is not None
    ids = receiver.queue.ids()
    assert ids == sorted(ids)
    assert server.balances()


@pytest.mark.slow
def test_messages_that_a_killed_server_had_no_time_to_return_count_as_redelivered() -> None:
    server = server_of()
    bob, joe = server.client(), named(server, "joe/1")
    for number in range(250):
        address(bob, number, "joe")
    assert len(connect(joe).data) == 250
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert waiting(server, "joe") == 200
    server = restarted(server)
    asked = connect(arriving(server, "joe/2"))
    server.turn()
    assert sorted(asked.data) == [*range(250)]
    assert redelivered(asked) == [1] * 250


DEADLY: dict[str, Any] = {"channels": {"/**": ChannelSettings(max_attempts=3)}}


def handed_to_another(server: Server) -> list[object]:
    """What an unnamed session of joe gets; it stops at the poison message, else it acks."""
    joe = server.client(ext={"ack": True, "delivery": {"session": "joe"}})
    server.turn()
    asked = connect(joe)
    server.turn()
    if "poison" not in asked.data:
        connect(joe)
        server.turn()
    server.advance(15.0)
    assert joe.session.is_gone
    server.turn()
    return asked.data


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_poison_message_that_stops_every_session_of_its_subject_is_dead_lettered(
    is_killed: bool,
) -> None:
    server = server_of(**DEADLY)
    for text in ("poison", "news"):
        address(server.client(), text, forced("joe"))
    handed: list[list[object]] = []
    while waiting(server, "joe") and len(handed) < 12:
        handed.append(handed_to_another(server))
        if is_killed:
            server = restarted(server, **DEADLY)
    # The last attempt hands messages over one by one.
    assert handed == [["poison", "news"], ["poison", "news"], ["poison"], ["news"]]
    (dead,) = server.keeper.letters
    assert dead.envelope()["content"] == "poison"
    assert [each.n for each in dead.attempts] == [1, 2, 3]
    assert server.keeper.queues["joe/0"] == {}
    assert server.balances()


def test_copies_that_return_to_their_subject_become_one_with_the_attempts_of_both() -> None:
    server = server_of()
    ext = {"ack": True, "delivery": {"session": "joe"}}
    phone, desk = server.client(ext=ext), server.client(ext=ext)
    address(server.client(), "hello", "joe")
    connect(phone, ack=None)
    connect(desk, ack=None)
    server.advance(0.1)
    connect(desk, ack=None)
    server.turn()
    for gone in (phone, desk):
        server.for_extensions.end_by_server(gone.session)
    server.turn()
    (mark,) = server.keeper.queues["joe/0"].values()
    assert (mark.attempts, [each.n for each in mark.trail]) == (2, [1, 1, 2])
    joe = arriving(restarted(server), "joe/1")
    asked = connect(joe)
    joe.server.turn()
    assert asked.data == ["hello"]
    assert redelivered(asked) == [2]


@pytest.mark.parametrize("how", ["cleared", "expired"])
def test_a_waiting_message_gets_the_room_of_an_entry_that_leaves_without_delivery(how: str) -> None:
    server = server_of()
    joe, bob = named(server, "joe/1", queue={"maxEntries": 1}), server.client()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    for number in (1, 2):
        destinations = {"destinations": ["joe"], "expiration": expiration if number == 1 else None}
        bob.publish("/a", number, ext={"delivery": destinations})
        server.turn()
    assert waiting(server, "joe") == 1
    if how == "cleared":
        server.bayeux.life.clear(joe.session)
    else:
        server.advance(1.5)
    server.turn()
    assert waiting(server, "joe") == 0
    assert connect(joe).data == [2]
