"""What cannot go on, and who decides that."""

from typing import Any

import pytest

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.leaving.settling import settle, unsettled
from holdfast.bayeux.session import Session
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.leaving.successors import CannotGoOn, LeavingServer, at
from tests.unit.bayeux.second_lives import connect, publish


def sessions(server: LeavingServer) -> list[Session]:
    return list(server.bayeux.state.sessions)


def subscribed(server: LeavingServer) -> Client:
    client = server.connected()
    client.subscribe("/a")
    return client


def test_an_unusable_session_is_left_out_or_stops_a_successor() -> None:
    server = LeavingServer()
    good, bad = subscribed(server), subscribed(server)
    publish(server, 1)
    key = bad.session.key.encode()
    left = [
        each.replace(b'"key":"%b","client_id"' % key, b'"client_id"') for each in server.leave()
    ]
    with pytest.raises(CannotGoOn, match=key.decode()):
        server.follower(left)
    server = server.follower(left, is_strict=False)
    assert [each.client_id for each in sessions(server)] == [good.client_id]
    assert connect(at(good, server), None).data == [1]
    assert connect(at(bad, server), None).reply["error"].startswith("402")
    assert server.balances()


def test_an_unreadable_message_takes_only_its_receivers_along() -> None:
    server = LeavingServer()
    good, bad = server.connected(), subscribed(server)
    publish(server, 1)
    left = [each.replace(b'"c":"/a"', b'"x":"/a"') for each in server.leave()]
    with pytest.raises(CannotGoOn, match="message"):
        server.follower(left)
    server = server.follower(left, is_strict=False)
    assert [each.client_id for each in sessions(server)] == [good.client_id]
    assert bad.client_id is not None


def test_a_stored_session_that_has_changed_since_goes_on_as_it_is_stored() -> None:
    server = LeavingServer()
    client = server.guest()
    client.handshake(ext={"delivery": {"session": "joe/1"}, "ack": True})
    server.turn()
    connect(client, 0)
    client.subscribe("/a")
    publish(server, 1)
    left = server.leave()
    record = server.keeper.sessions["joe/1"]
    record.client_id = "another"
    with pytest.raises(CannotGoOn, match="another state"):
        server.follower(left)
    server = server.follower(left, is_strict=False)
    (session,) = sessions(server)
    assert (session.client_id, session.queue.count) == ("another", 1)


class Checking(SessionExtension):
    def __init__(self) -> None:
        self.seen = 0

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        self.seen += 1
        return True


class Forgetful(ServerExtension):
    """Does not resume its sessions."""

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        session.attributes = {"colour": "red", "object": object()}
        return Checking()


class Resuming(Forgetful):
    def resume(self, session: Session, now: float) -> SessionExtension | None:
        return Checking()


def test_a_session_without_the_extension_that_checked_its_messages_does_not_go_on() -> None:
    def extension(_: ServerApi) -> ServerExtension:
        return Forgetful()

    server = LeavingServer(extension)
    client = subscribed(server)
    left = server.leave()
    with pytest.raises(CannotGoOn, match="does not resume"):
        server.follower(left)
    server = server.follower(left, is_strict=False)
    assert connect(at(client, server), None).reply["error"].startswith("402")
    assert server.balances()


class Raising(Forgetful):
    def resume(self, session: Session, now: float) -> SessionExtension | None:
        raise RuntimeError("not today")


def test_an_extension_that_cannot_resume_a_session_is_named() -> None:
    def extension(_: ServerApi) -> ServerExtension:
        return Raising()

    server = LeavingServer(extension)
    key = subscribed(server).session.key
    with pytest.raises(RuntimeError, match="not today") as caught:
        server.succeeded()
    assert caught.value.__notes__ == [f"{__name__} cannot resume session {key}"]


def test_attributes_that_json_has_are_there_before_an_extension_resumes() -> None:
    def extension(_: ServerApi) -> ServerExtension:
        return Resuming()

    server = LeavingServer(extension)
    client = subscribed(server)
    server = server.succeeded()
    connect(at(client, server), None)
    assert client.session.attributes == {"colour": "red"}
    (checking,) = [each for each in client.session.extensions if isinstance(each, Checking)]
    assert checking.seen == 1


class Slow(ServerExtension):
    """Takes its time at a handshake."""

    async def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        raise NotImplementedError


def test_a_login_is_waited_for() -> None:
    server = LeavingServer(lambda _: Slow())
    client = server.guest()
    asked = client.begin_handshake()
    settle(server.bayeux, server.now)
    server.turn()
    assert unsettled(server.bayeux) == "a login"
    server.resolve(None)
    client.learn(asked)
    server = server.succeeded()
    assert connect(at(client, server), None).reply["successful"]


def test_a_login_that_ends_after_the_leave_begins_no_session() -> None:
    server = LeavingServer(lambda _: Slow())
    client = server.guest()
    asked = client.begin_handshake()
    settle(server.bayeux, server.now)
    server.turn()
    server.give()
    server.resolve(None)
    assert asked.reply["error"].startswith("503")
    assert sessions(server) == []


@pytest.mark.parametrize("seconds", [0.3, 60.0])
def test_a_present_client_has_the_whole_time_to_come_back(seconds: float) -> None:
    server = LeavingServer(max_interval=10_000)
    client = subscribed(server)
    server.advance(8.0)
    server = server.follower(server.leave(), after_s=seconds)
    server.advance(8.0)
    assert connect(at(client, server), None).reply["successful"]
    server.advance(11.0)
    assert sessions(server) == []


def test_a_client_that_was_told_other_times_is_advised_again() -> None:
    server = LeavingServer(timeout=30_000)
    client = subscribed(server)
    server = server.succeeded(timeout=20_000)
    assert client_advice(at(client, server))["timeout"] == 20_000


def test_a_connect_is_held_no_longer_than_its_client_was_told() -> None:
    server = LeavingServer(timeout=10_000)
    client = subscribed(server)
    server = server.succeeded(timeout=20_000).succeeded(timeout=20_000)
    client = at(client, server)
    held = client.connect()
    server.advance(10.1)
    assert held.reply["advice"]["timeout"] == 20_000
    held = client.connect()
    server.advance(19.0)
    assert held.is_held


def client_advice(client: Client) -> Any:
    held = client.connect()
    publish(client.server, 1)
    return held.elements[-1]["advice"]


def test_a_session_that_is_stored_only_since_the_settings_changed_loses_nothing() -> None:
    # The store has messages of this channel, but for no receiver.
    kept = {"/a": ChannelSettings(history=1, durable=True)}
    server = LeavingServer(durable="none", channels=kept)
    client = server.guest()
    client.handshake(ext={"delivery": {"session": "joe/1"}, "ack": True})
    connect(client, 0)
    client.subscribe("/a")
    publish(server, 1)
    server = server.succeeded(durable="named")
    publish(server, 2)
    again = Client(server, browser=client.browser)
    again.handshake(ext={"delivery": {"session": "joe/1"}, "ack": True})
    server.turn()
    publish(server, 3)
    for _ in range(2):
        server = server.succeeded()
        at(again, server)
    assert connect(again, 0).data == [1, 2, 3]
    assert server.balances()
