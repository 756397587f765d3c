"""A token at the handshake gives a session its role, as long as the token stays the same."""

from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.restoring import restore
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.identity import OPERATOR
from holdfast.delivery.basics.steps import Reason
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, Json, Server
from tests.unit.bayeux.second_lives import again
from tests.unit.extensions.operating import MOST_GUESSES, ROLES, command, server_of, signed_in


@pytest.mark.parametrize("token", ["open-sesam", "", "OPEN-SESAME", None, 5, ["open-sesame"], {}])
def test_a_wrong_token_is_refused(token: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = server_of()
    reply = server.guest().handshake(ext={"authentication": {"token": token}}).reply
    assert reply["error"] == "403:no_login:handshake_denied"
    assert reply["advice"]["reconnect"] == "none"
    assert len(server.bayeux.state.sessions) == 0
    assert caplog.messages == ["a wrong token came from this machine to a handshake"]


class OwnTokens(SecurityPolicy):
    """Has tokens of its own."""

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        return None if handshake["ext"]["authentication"]["token"] == "a ticket" else Denial()


class Names(SecurityPolicy):
    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        return None


class Rooms(SecurityPolicy):
    """Decides on channels alone."""

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        return None


class Cloakroom(ServerExtension):
    owns = frozenset({"authentication"})


@pytest.mark.parametrize("other", [OwnTokens, Names, Cloakroom])
def test_an_unknown_token_that_a_policy_or_an_extension_may_know_is_accepted_without_a_role(
    other: type[SecurityPolicy | ServerExtension], caplog: pytest.LogCaptureFixture
) -> None:
    server = server_of()
    if issubclass(other, ServerExtension):
        server.bayeux.state.installed.extend(other())
    else:
        server.bayeux.state.rights.policy = other()
    clients = [signed_in(server, "a ticket") for _ in range(MOST_GUESSES + 1)]
    assert not any(client.session.identity.has_role for client in clients)
    assert clients[-1].subscribe("/sys/deadMessage").reply["error"].startswith("403")
    assert caplog.messages == []


def test_an_unknown_token_is_refused_if_the_policy_decides_on_channels_alone() -> None:
    server = server_of()
    server.bayeux.state.rights.policy = Rooms()
    guessed = server.guest().handshake(ext={"authentication": {"token": "a ticket"}})
    assert guessed.reply["error"] == "403:no_login:handshake_denied"


def test_wrong_tokens_beyond_a_limit_must_wait_while_a_right_one_is_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    replies = [
        server.guest().handshake(ext={"authentication": {"token": f"guess-{n}"}}).reply
        for n in range(30)
    ]
    errors = [reply["error"] for reply in replies]
    assert errors == ["403:no_login:handshake_denied"] * MOST_GUESSES + ["503::server_busy"] * 20
    advice = replies[-1]["advice"]
    assert (advice["reconnect"], advice["interval"]) == ("handshake", 4000)
    assert signed_in(server).session.identity.role == OPERATOR
    # The first at once, the others when the window ends.
    server.bayeux.state.notices.end_window()
    assert caplog.messages == [
        "a wrong token came from this machine to a handshake",
        "a wrong token came from this machine to a handshake, 29 more",
    ]


def test_the_addresses_of_wrong_tokens_are_logged_in_a_limited_number_of_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    for last in range(40):
        guest = server.guest()
        guest.caller = Caller(address=f"203.0.113.{last}")
        guest.handshake(ext={"authentication": {"token": "guess"}})
    assert caplog.messages[0] == "a wrong token came from 203.0.113.0 to a handshake"
    server.bayeux.state.notices.end_window()
    # However many addresses there are, the lines are few.
    assert len(caplog.messages) == 21
    assert caplog.messages[-1] == "a wrong token came from (others) to various, 20 more"


@pytest.mark.parametrize("ext", [None, {}, {"authentication": None}, {"authentication": "basic"}])
def test_a_client_without_a_token_has_no_rights_of_an_operator(ext: Any) -> None:
    client = server_of().connected(ext=ext)
    assert not client.session.identity.has_role
    assert client.subscribe("/sys/deadMessage").reply["error"].startswith("403")
    asked = command(client, "client/joe/?subjectQueueNumMsgs")
    assert asked.reply["error"] == "403:denied_by_security_policy:publish_denied"


def test_a_client_with_credentials_of_another_kind_is_accepted_without_a_role() -> None:
    ext = {"authentication": {"user": "joe", "password": "secret"}}
    assert not server_of().connected(ext=ext).session.identity.has_role


@pytest.mark.parametrize("token", ROLES)
def test_a_token_allows_subscribing_to_system_channels_but_not_publishing_on_them(
    token: str,
) -> None:
    client = signed_in(server_of(), token)
    assert client.subscribe("/sys/deadMessage").reply["successful"]
    assert not client.publish("/sys/deadMessage", {}).reply["successful"]


def test_a_token_in_a_publish_is_not_passed_on_to_receivers() -> None:
    server = server_of()
    curious = server.connected()
    curious.subscribe("/a")
    sender = signed_in(server)
    sender.publish("/a", 1, ext={"authentication": {"token": "open-sesame"}})
    assert curious.connect().events == [{"channel": "/a", "data": 1}]


# After a restart


def watching(server: Server) -> Client:
    """An operator with a durable session, after two alerts and two other messages."""
    client = server.guest()
    ext = {"ack": True, "delivery": {"session": "ops/1"}}
    client.handshake(ext={"authentication": {"token": "open-sesame"}, **ext})
    server.turn()
    client.connect(advice={"timeout": 0}, ext={"ack": 0})
    client.subscribe("/sys/alert", "/a")
    server.turn()
    tell(server, 1)
    server.turn()
    client.connect(advice={"timeout": 0}, ext={"ack": 1})
    server.turn()
    tell(server, 2)
    return client


def tell(server: Server, number: int) -> None:
    server.bayeux.life.owner.alert("/a", f"trouble {number}")
    server.for_extensions.publish("/a", number)
    server.turn()


def heard(client: Client) -> list[str]:
    found: list[str] = []
    ack = 0
    while True:
        asked = client.connect(advice={"timeout": 0}, ext={"ack": ack})
        client.server.turn()
        if not asked.events:
            return found
        found += [event["channel"] for event in asked.events]
        ack = asked.elements[-1]["ext"]["ack"]


def test_an_operator_stays_one_after_a_restart_while_the_token_is_the_same() -> None:
    before = server_of()
    client = watching(before)
    server = server_of(before=before)
    client = again(client, server)
    tell(server, 3)
    assert sorted(heard(client)) == ["/a"] * 3 + ["/sys/alert"] * 3
    assert command(client, "client/joe/?subjectQueueNumMsgs").reply["successful"]
    server = server_of(before=server)
    assert again(client, server).session.identity.role == OPERATOR


def test_an_operator_loses_its_role_and_its_alerts_after_a_restart_with_other_tokens() -> None:
    before = server_of()
    client = watching(before)
    server = server_of(before=before, seal="new")
    client = again(client, server)
    assert client.session.identity.role == ""
    assert client.session.subscriptions == {"/a"}
    tell(server, 3)
    assert heard(client) == ["/a"] * 3, "alerts that it did not have yet are discarded"
    assert client.subscribe("/sys/alert").reply["error"].startswith("403")
    assert command(client, "client/joe/?subjectQueueNumMsgs").reply["error"].startswith("403")
    assert server.bayeux.state.hub.counters.discarded == {Reason.NOT_ALLOWED: 2}
    assert not server.keeper.queues["ops/1"], "the store has nothing left of them"
    assert server.balances()


def test_alerts_that_a_session_lost_with_its_token_are_not_delivered_to_its_next_client() -> None:
    before = server_of()
    watching(before)
    server = server_of(before=before, seal="new")
    stranger = server.guest()
    asked = stranger.handshake(ext={"ack": True, "delivery": {"session": "ops/1"}})
    server.turn()
    stranger.learn(asked)
    assert heard(stranger) == ["/a"] * 2
    server = server_of(before=server)
    assert again(stranger, server).session.identity.role == ""


def test_a_restored_operator_has_no_role_on_a_server_without_operators() -> None:
    before = server_of()
    watching(before)
    server = Server(DeliveryWire, keeper=before.keeper, after=before)
    (record,) = server.keeper.sessions.values()
    session = restore(server.bayeux.life, record, server.keeper.waiting(record.key), server.now)
    assert session.identity.role == ""
