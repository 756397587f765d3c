"""A session that loses a right loses what came by it: subscriptions and waiting messages."""

import json
import logging
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy, Vote
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import covers
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.effort import TIMES
from tests.unit.bayeux.harness import Client, Json, Server, Socket
from tests.unit.bayeux.second_lives import RestartableServer, named, take

SECRET = "/secret/**"


class Policy(SecurityPolicy):
    """Denies what is forbidden at the moment, and patterns that cover some of it."""

    def __init__(self) -> None:
        self.forbidden: set[str] = set()
        self.asked: list[str] = []
        self.is_broken = False

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        self.asked.append(channel)
        assert message == {"channel": "/meta/subscribe", "subscription": channel} or "id" in message
        if self.is_broken:
            raise RuntimeError("the database is away")
        return Denial() if denies(self.forbidden, channel) else None

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        self.asked.append(f"create {channel}")
        return None


def denies(forbidden: set[str], wish: str) -> bool:
    return any(covers(each, wish) or covers(wish, each) for each in forbidden)


def guarded(server: Server) -> Policy:
    server.bayeux.state.rights.policy = policy = Policy()
    return policy


def server_of(**options: Any) -> tuple[Server, Policy]:
    server = Server(DeliveryWire, partial(Ack, announces_batch=False), **options)
    return server, guarded(server)


def publish(server: Server, channel: str, *data: object) -> None:
    for each in data:
        server.for_extensions.publish(channel, each)


def heard(client: Client, **fields: Any) -> list[Any]:
    asked = client.connect(advice={"timeout": 0}, **fields)
    client.server.turn()
    return asked.data


def reauthorize_now(server: Server, session: Session) -> None:
    server.for_extensions.reauthorize(session)
    server.turn()


def discarded(server: Server) -> int:
    assert server.balances()
    return server.bayeux.state.hub.counters.discarded[Reason.NOT_ALLOWED]


# Subscriptions


def test_a_subscription_that_would_be_denied_now_is_removed_and_others_stay() -> None:
    server, policy = server_of()
    client = server.connected()
    client.subscribe("/a", "/secret/x", SECRET, "/**")
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    assert client.session.subscriptions == {"/a"}
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    assert heard(client) == [2]


@pytest.mark.slow
def test_a_takeover_with_fewer_rights_removes_what_they_do_not_cover() -> None:
    server = RestartableServer()
    policy = guarded(server)
    old = named(server)
    old.subscribe("/secret/x")
    server.turn()
    old.disconnect()
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    server.turn()
    policy.forbidden.add(SECRET)
    new = server.guest()
    take(new)
    assert heard(new, ext={"ack": 0}) == [2]
    assert new.session.subscriptions == {"/a"}
    assert discarded(server) == 1


def test_reauthorization_asks_about_one_session_and_not_about_the_right_to_create() -> None:
    server, policy = server_of()
    client = server.connected()
    server.connected().subscribe("/b")
    client.subscribe("/a")
    policy.asked.clear()
    reauthorize_now(server, client.session)
    assert policy.asked == ["/a"]


def test_authorizers_are_asked_too() -> None:
    server = Server()
    votes = [Vote.GRANT]

    def authorizer(
        operation: Operation, channel: str, session: Session, message: Json
    ) -> Vote | Denial:
        return votes[-1]

    server.bayeux.state.rights.add(SECRET, authorizer)
    client = server.connected()
    client.subscribe("/a", SECRET)
    reauthorize_now(server, client.session)
    assert client.session.subscriptions == {"/a", SECRET}
    votes.append(Vote.IGNORE)
    reauthorize_now(server, client.session)
    assert client.session.subscriptions == {"/a"}


def test_a_session_that_loses_the_role_of_operator_loses_system_channels() -> None:
    server = Server()
    client = server.connected()
    client.session.identity.role = "operator"
    client.subscribe("/sys/alert", "/a")
    server.bayeux.life.owner.alert("/a", "trouble")
    client.session.identity.role = ""
    reauthorize_now(server, client.session)
    assert client.session.subscriptions == {"/a"}
    assert heard(client) == []
    assert discarded(server) == 1


def test_a_policy_that_fails_removes_everything_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, policy = server_of()
    client = server.connected()
    client.subscribe("/a", "/b", "/c")
    publish(server, "/a", 1)
    policy.is_broken = True
    with caplog.at_level(logging.ERROR):
        reauthorize_now(server, client.session)
    assert client.session.subscriptions == set()
    assert heard(client) == []
    assert len(caplog.records) == 1


# Waiting messages


@pytest.mark.parametrize("ext", [None, {"ack": True}, {"ack": True, "delivery": True}], ids=str)
def test_waiting_messages_of_a_removed_subscription_are_discarded_and_counted(
    ext: Json | None,
) -> None:
    server, policy = server_of()
    client = server.connected(ext=ext)
    client.subscribe("/a", SECRET)
    publish(server, "/secret/x", 1, 2)
    publish(server, "/a", 3)
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    assert heard(client, ext={"ack": 0}) == [3]
    assert discarded(server) == 2


def test_a_waiting_message_that_a_remaining_subscription_covers_stays() -> None:
    server, policy = server_of()
    client = server.connected()
    client.subscribe("/a/b", "/a/*", "/**")
    publish(server, "/a/b", 1)
    publish(server, "/x", 2)
    policy.forbidden.add("/x")
    reauthorize_now(server, client.session)
    assert client.session.subscriptions == {"/a/b", "/a/*"}
    assert heard(client) == [1]
    assert discarded(server) == 1


def test_a_waiting_message_of_a_removed_pattern_stays_if_its_channel_is_allowed() -> None:
    server, policy = server_of()
    client = server.connected()
    client.subscribe("/**")
    publish(server, "/open", 1)
    publish(server, "/secret/x", 2)
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    assert client.session.subscriptions == set()
    assert heard(client) == [1]


def test_a_waiting_message_of_an_ended_subscription_is_discarded_if_its_channel_is_denied() -> None:
    server, policy = server_of()
    client = server.connected(ext={"ack": True})
    client.subscribe("/secret/x")
    publish(server, "/secret/x", 1)
    client.unsubscribe("/secret/x")
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    assert heard(client, ext={"ack": 0}) == []
    assert discarded(server) == 1


def test_messages_that_the_server_delivered_or_replayed_to_the_session_stay() -> None:
    server, policy = server_of()
    client = server.connected()
    policy.forbidden.add("/**")
    server.for_extensions.deliver_event(client.session, {"channel": "/secret/x", "data": 1})
    server.for_extensions.deliver_event(client.session, {"channel": "/service/echo", "data": 2})
    again = Message(b'{"channel":"/secret/x","data":3}', id=7, channel="/secret/x")
    again.generation = 1
    server.bayeux.state.hub.replay(client.session, again, 1)
    reauthorize_now(server, client.session)
    # The replayed one is the oldest.
    assert heard(client) == [3, 1, 2]
    assert discarded(server) == 0


def test_denied_messages_are_removed_whether_in_flight_returned_or_waiting() -> None:
    server, policy = server_of()
    client = server.connected(ext={"ack": True, "delivery": {"maxEntries": 4}})
    client.subscribe("/a", SECRET)
    for number in range(3):
        publish(server, "/secret/x", 10 + number)
        publish(server, "/a", number)
    assert len(heard(client, ext={"ack": 0})) == 4
    queue = client.session.queue
    queue.return_from(since=3)
    assert (len(queue.in_flight()), len(queue.returned), len(queue.new)) == (2, 2, 2)
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    assert (len(queue.in_flight()), len(queue.returned), len(queue.new)) == (1, 1, 1)
    assert queue.count == 3
    assert queue.size == sum(len(message.wire) for message in queue.messages())
    queue.return_from()
    assert [number for _ in range(3) for number in heard(client, ext={"ack": queue.batch})] == [
        0,
        1,
        2,
    ]
    assert discarded(server) == 3


def test_a_verdict_about_a_removed_message_is_unknown() -> None:
    server, policy = server_of()
    client = server.connected(ext={"ack": True, "delivery": True})
    client.subscribe("/a", SECRET)
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    events = client.connect(advice={"timeout": 0}, ext={"ack": 0}).events
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    verdicts = [
        {"seq": e["ext"]["delivery"]["seq"], "errorCode": "user.update.error"} for e in events
    ]
    client.connect(advice={"timeout": 0}, ext={"ack": 1, "delivery": {"verdicts": verdicts}})
    assert server.bayeux.state.hub.counters.verdicts_unknown == 1
    assert [letter.channel for letter in server.keeper.letters] == ["/a"]
    assert discarded(server) == 1


def test_a_removed_message_with_a_lifetime_does_not_expire_later() -> None:
    server, policy = server_of()
    client = server.connected(ext={"ack": True})
    client.subscribe("/a", SECRET)
    life = {"delivery": {"expiration": {"lifeTime": 1000, "forceDestroy": True}}}
    sender = server.connected()
    for channel in ("/secret/x", "/a", "/secret/x"):
        sender.publish(channel, 1, ext=life)
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    assert [message.channel for message in client.session.queue.expiring or ()] == ["/a"]
    server.advance(2.0)
    assert server.bayeux.state.hub.counters.expired == 1
    assert discarded(server) == 2


def test_a_message_behind_a_removed_one_flows() -> None:
    server, policy = server_of()
    socket = Socket()
    client = server.connected(socket=socket)
    client.subscribe("/a", SECRET)
    client.connect()
    client.hear()
    socket.is_full = True
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    server.turn()
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    socket.is_full = False
    server.bayeux.life.drained(socket)
    server.turn()
    assert [element["data"] for element in socket.take()] == [2]


def test_reauthorization_of_a_session_that_is_gone_asks_nothing() -> None:
    server, policy = server_of()
    client = server.connected()
    session = client.session
    client.disconnect()
    reauthorize_now(server, session)
    assert policy.asked == []


# Named sessions


def test_a_session_that_is_away_loses_subscriptions_and_messages_in_the_store_too() -> None:
    server = RestartableServer()
    policy = guarded(server)
    client = named(server)
    client.subscribe(SECRET)
    server.turn()
    session = client.session
    client.disconnect()
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    server.turn()
    policy.forbidden.add(SECRET)
    reauthorize_now(server, session)
    server.turn()
    assert server.store.sessions["joe/1"].subscriptions == ["/a"]
    assert len(server.store.queues["joe/1"]) == 1
    assert discarded(server) == 1
    assert server.store.letters == []
    reborn = server.reborn()
    guarded(reborn)
    client = reborn.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    assert heard(client, ext={"ack": 0}) == [2]


class Reviewer(ServerExtension, SessionExtension):
    """Reauthorizes sessions that are restored or that handshake."""

    def __init__(self, server: ServerApi) -> None:
        self._server = server

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return self

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        server = self._server
        server.rights.policy = policy = Policy()
        policy.forbidden.add(SECRET)
        server.reauthorize(session)
        return self

    def outgoing(
        self, session: Session, reply: Json, asked: Any, now: float, *, batch: Batch | None
    ) -> None:
        if reply["channel"] == "/meta/handshake":
            self._server.reauthorize(session)


def test_an_extension_can_reauthorize_a_restored_session() -> None:
    server = RestartableServer()
    client = named(server)
    client.subscribe(SECRET)
    server.turn()
    client.disconnect()
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    server.turn()
    after = Server(
        DeliveryWire,
        partial(Ack, announces_batch=False),
        Reviewer,
        keeper=server.store,
        after=server,
    )
    restore_all(server, after)
    after.turn()
    assert server.store.sessions["joe/1"].subscriptions == ["/a"]
    client = after.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    assert heard(client, ext={"ack": 0}) == [2]
    assert discarded(after) == 1


def restore_all(server: RestartableServer, after: Server) -> None:
    server.store.reopen()
    for record, entries in server.store.load(partial(restore_without_session, after.bayeux.life)):
        restore(after.bayeux.life, record, entries, after.now)


def test_the_reply_to_a_handshake_that_reauthorizes_announces_no_messages() -> None:
    server = Server(
        DeliveryWire,
        partial(Ack, announces_batch=False),
        Reviewer,
        allow_message_delivery_during_handshake=True,
    )
    policy = guarded(server)
    ext = {"ack": True, "delivery": {"session": "joe/1"}}
    client = server.client(ext=ext)
    client.subscribe(SECRET, "/a")
    server.turn()
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    server.turn()
    policy.forbidden.add(SECRET)
    client = server.guest(browser=client.browser)
    asked = client.handshake(ext=ext)
    assert "x-messages" not in asked.reply
    assert heard(client, ext={"ack": 0}) == [2]


def test_a_connect_that_reauthorization_keeps_empty_announces_no_batch() -> None:
    server, _ = server_of()
    client = server.connected(ext={"ack": True})
    client.subscribe("/a")
    server.for_extensions.reauthorize(client.session)
    asked = client.connect(ext={"ack": 1}, advice={"timeout": 0})
    assert "ext" not in asked.reply
    publish(server, "/a", 1)
    server.turn()
    assert heard(client, ext={"ack": 1}) == [1], "lost on its way"
    assert heard(client, ext={"ack": 1}) == [1]


def test_a_handshake_whose_messages_reauthorization_keeps_back_announces_no_batch() -> None:
    server = Server(
        DeliveryWire,
        partial(Ack, announces_batch=True),
        allow_message_delivery_during_handshake=True,
        durable="none",
    )
    guarded(server)
    ext = {"ack": True, "delivery": {"session": "joe/1"}}
    client = server.client(ext=ext)
    client.subscribe("/a")
    publish(server, "/a", 1)
    client.disconnect()
    reply = server.guest(browser=client.browser).handshake(ext=ext).reply
    assert reply["ext"]["ack"]["batch"] == 0


# Messages on their way


def test_a_denied_message_that_the_store_confirms_afterwards_is_not_handed_over() -> None:
    server = RestartableServer()
    policy = guarded(server)
    client = named(server)
    client.subscribe(SECRET)
    server.turn()
    server.connected().publish("/secret/x", 1)
    server.connected().publish("/a", 2)
    policy.forbidden.add(SECRET)
    server.for_extensions.reauthorize(client.session)
    assert server.flush()
    assert not client.session.pauses
    held = client.connect(ext={"ack": 1})
    server.turn()
    assert held.data == [2]
    assert discarded(server) == 1
    assert len(server.store.queues["joe/1"]) == 1


def test_a_denied_message_of_unknown_outcome_is_not_handed_over_when_confirmed_late() -> None:
    server, policy = server_of()
    client = named(server)
    client.subscribe(SECRET)
    server.turn()
    server.keeper.is_silent = True
    server.connected().publish("/secret/x", 1)
    server.keeper.answer_late(PersistOutcome.UNKNOWN)
    policy.forbidden.add(SECRET)
    reauthorize_now(server, client.session)
    server.keeper.answer_late(PersistOutcome.KEPT)
    server.turn()
    assert heard(client, ext={"ack": 1}) == []
    assert discarded(server) == 1


def test_a_reply_that_waits_for_the_store_leaves_without_removed_messages() -> None:
    server = RestartableServer()
    policy = guarded(server)
    client = named(server)
    client.subscribe(SECRET)
    server.turn()
    publish(server, "/secret/x", 1)
    publish(server, "/a", 2)
    server.turn()
    assert heard(client, ext={"ack": 1}) == [1, 2]
    again = client.connect(advice={"timeout": 0}, ext={"ack": 1})
    assert again.is_held
    policy.forbidden.add(SECRET)
    server.for_extensions.reauthorize(client.session)
    server.turn()
    assert again.data == []
    assert heard(client, ext={"ack": 1}) == [2]
    assert discarded(server) == 1


# Large numbers


def many(server: Server, ext: Json | None = None, socket: Socket | None = None) -> Client:
    client = server.connected(ext=ext, socket=socket)
    client.subscribe(*(f"/many/{number}" for number in range(200)), SECRET)
    server.turn()
    return client


@pytest.mark.parametrize("ext", [None, {"ack": True}], ids=str)
def test_nothing_is_handed_over_while_reauthorization_takes_many_turns(ext: Json | None) -> None:
    is_over = [False]
    server, policy = server_of(is_turn_over=lambda: is_over[0])
    client = many(server, ext)
    held = client.connect() if ext is None else client.connect(ext={"ack": 0})
    policy.forbidden |= {SECRET, "/many/0"}
    is_over[0] = True
    server.for_extensions.reauthorize(client.session)
    publish(server, "/secret/x", 1)
    publish(server, "/many/0", 2)
    publish(server, "/many/1", 3)
    turns = 0
    while client.session.pauses:
        assert held.is_held
        assert server.flush()
        turns += 1
    server.turn()
    assert turns > 10
    assert held.data == [3]
    assert discarded(server) == 2


def test_nothing_is_pushed_while_reauthorization_takes_many_turns() -> None:
    is_over = [False]
    server, policy = server_of(is_turn_over=lambda: is_over[0])
    socket = Socket()
    client = many(server, socket=socket)
    client.connect()
    client.hear()
    policy.forbidden.add(SECRET)
    is_over[0] = True
    server.for_extensions.reauthorize(client.session)
    publish(server, "/secret/x", 1)
    publish(server, "/many/1", 2)
    assert client.subscribe("/b").data == []
    client.hear()
    assert server.flush()
    assert client.hear() == []
    server.turn()
    assert [each["data"] for each in client.hear()] == [2]


def test_rights_that_change_during_a_reauthorization_are_asked_for_again() -> None:
    server, policy = server_of(is_turn_over=lambda: True)
    client = many(server)
    server.for_extensions.reauthorize(client.session)
    for _ in range(8):
        server.flush()
    assert client.session.pauses
    policy.forbidden.add("/many/*")
    server.for_extensions.reauthorize(client.session)
    server.turn()
    assert client.session.subscriptions == {SECRET}


def test_reauthorization_stops_when_its_session_ends() -> None:
    server, policy = server_of(is_turn_over=lambda: True)
    client = many(server)
    session = client.session
    server.for_extensions.reauthorize(session)
    client.disconnect()
    policy.asked.clear()
    server.turn()
    assert policy.asked == []
    assert not session.pauses


def test_the_reauthorization_of_many_sessions_continues_in_later_turns() -> None:
    is_over = [False]
    server, policy = server_of(is_turn_over=lambda: is_over[0])
    clients = [server.connected() for _ in range(50)]
    for client in clients:
        client.subscribe("/a")
    policy.forbidden.add("/a")
    policy.asked.clear()
    is_over[0] = True
    for client in clients:
        server.for_extensions.reauthorize(client.session)
    assert policy.asked == []
    server.turn()
    assert policy.asked == ["/a"] * 50
    assert not any(client.session.subscriptions for client in clients)


# Against a model

CHANNELS = ["/a", "/a/b", "/a/b/c", "/b", "/b/c"]
PATTERNS = [*CHANNELS, "/*", "/**", "/a/*", "/a/**", "/b/*"]


@pytest.mark.slow
@given(
    subscribed=st.lists(st.sampled_from(PATTERNS), unique=True),
    published=st.lists(st.sampled_from(CHANNELS), max_size=12),
    direct=st.lists(st.sampled_from(CHANNELS), max_size=3),
    forbidden=st.sets(st.sampled_from(PATTERNS)),
    taken=st.integers(0, 12),
    returned_from=st.integers(1, 12),
    is_hasty=st.booleans(),
)
@settings(max_examples=50 * TIMES, deadline=None)
def test_reauthorization_leaves_what_a_simple_model_leaves(
    subscribed: list[str],
    published: list[str],
    direct: list[str],
    forbidden: set[str],
    taken: int,
    returned_from: int,
    is_hasty: bool,
) -> None:
    server, policy = server_of(is_turn_over=lambda: is_hasty)
    ext = {"ack": True, "delivery": {"maxEntries": taken} if taken else True}
    client = server.connected(ext=ext)
    if subscribed:
        client.subscribe(*subscribed)
        server.turn()
    for number, channel in enumerate(published):
        publish(server, channel, number)
    for channel in direct:
        server.for_extensions.deliver_event(client.session, {"channel": channel, "data": "direct"})
    if taken:
        heard(client, ext={"ack": 0})
        client.session.queue.return_from(since=returned_from)
    before = contents(client.session)
    policy.forbidden = forbidden
    server.for_extensions.reauthorize(client.session)
    server.turn()
    left = {each for each in subscribed if not denies(forbidden, each)}
    assert client.session.subscriptions == left
    assert list(contents(client.session)) == [
        (channel, data)
        for channel, data in before
        if data == "direct"
        or any(covers(each, channel) for each in left)
        or not denies(forbidden, channel)
    ]
    assert server.balances()


def contents(session: Session) -> list[tuple[str, Any]]:
    return [(each.channel, json.loads(each.wire)["data"]) for each in session.queue.messages()]
