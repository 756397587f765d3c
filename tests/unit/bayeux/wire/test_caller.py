"""Each hook that decides about a message sees the request that brought it."""

from collections.abc import Awaitable
from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy, Vote
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.caller import UNKNOWN, Caller, credentials_in
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.messages.batch import Batch
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Json, Server, Socket

ADA = Caller(address="203.0.113.7", headers={"Cookie": "login=ada"})
ADA_ELSEWHERE = Caller(address="2001:db8::7", headers={"Cookie": "login=ada"})
GRACE = Caller(address="198.51.100.9", headers={"Cookie": "login=grace"})


class CallersSeen(ServerExtension, SessionExtension, SecurityPolicy):
    """Notes the caller at every hook."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Caller]] = []

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        self.seen.append(("can_handshake", session.caller))
        return None

    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        is_own = session.caller.cookies("login") == [subject]
        return None if is_own else Denial("not_your_name")

    def can_publish(self, session: Session, channel: str, message: Json) -> Denial | None:
        self.seen.append(("can_publish", session.caller))
        return None

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | Awaitable[SessionExtension | None] | None:
        self.seen.append(("negotiate", session.caller))
        return self

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        self.seen.append(("incoming", session.caller))
        return True

    def outgoing(
        self, session: Session, reply: Json, asked: Any, now: float, *, batch: Batch | None
    ) -> None:
        self.seen.append(("outgoing", session.caller))

    def serve(self, call: ServiceCall) -> None:
        self.seen.append(("service", call.session.caller))

    def authorize(
        self, operation: Operation, channel: str, session: Session, message: Json
    ) -> Vote | Denial:
        self.seen.append(("authorizer", session.caller))
        return Vote.GRANT


def server_and_callers(**options: Any) -> tuple[Server, CallersSeen]:
    callers = CallersSeen()
    server = Server(callers, DeliveryWire, **options)
    server.bayeux.state.rights.policy = callers
    server.bayeux.state.rights.add("/a", callers.authorize)
    server.bayeux.state.services.add("/service/who", callers.serve)
    return server, callers


def test_each_hook_of_a_handshake_sees_its_caller() -> None:
    server, callers = server_and_callers()
    server.client(caller=ADA)
    assert callers.seen == [("can_handshake", ADA), ("negotiate", ADA), ("outgoing", ADA)]


def test_each_hook_of_a_message_sees_the_caller_that_sent_it() -> None:
    server, callers = server_and_callers()
    client = server.client(caller=ADA)
    client.caller = ADA_ELSEWHERE
    callers.seen.clear()
    client.publish("/a", 1)
    client.publish("/service/who", 1)
    hooks = ("incoming", "can_publish", "authorizer", "outgoing", "service")
    assert {hook for hook, _ in callers.seen} == set(hooks)
    assert {caller for _, caller in callers.seen} == {ADA_ELSEWHERE}


def test_the_hooks_of_messages_over_a_websocket_see_its_caller() -> None:
    server, callers = server_and_callers()
    client = server.client(socket=Socket(), caller=ADA)
    client.publish("/a", 1)
    assert {caller for _, caller in callers.seen} == {ADA}


def test_a_policy_can_decide_on_a_session_name_by_a_cookie() -> None:
    server, _ = server_and_callers()
    name = {"delivery": {"session": "ada/1"}}
    refused = server.guest(caller=GRACE).handshake(ext=name).reply
    assert refused["error"] == "403:not_your_name:session_name_denied"
    assert server.guest(caller=ADA).handshake(ext=name).reply["successful"]


def test_a_session_forgets_its_caller_when_the_client_disconnects() -> None:
    server, _ = server_and_callers()
    client = server.client(caller=ADA, ext={"delivery": {"session": "ada/1"}})
    (session,) = server.bayeux.state.sessions
    client.disconnect()
    assert session.caller is UNKNOWN
    server.client(caller=ADA_ELSEWHERE, ext={"delivery": {"session": "ada/1"}})
    assert session.caller is ADA_ELSEWHERE


def test_an_unfinished_request_keeps_its_caller() -> None:
    server, callers = server_and_callers(is_turn_over=lambda: True)
    client = server.client(caller=ADA)
    callers.seen.clear()
    client.send(*[{"channel": "/a", "data": each} for each in range(3)])
    client.caller = ADA_ELSEWHERE
    client.publish("/a", 3)
    server.turn()
    published = [caller for hook, caller in callers.seen if hook == "can_publish"]
    assert published == [ADA, ADA, ADA, ADA_ELSEWHERE]


def test_a_cookie_whose_name_only_looks_right_is_ignored() -> None:
    headers = {"Cookie": 'a=1;\tlogin = "ada" ; \N{NO-BREAK SPACE}login=mallory; login=joe'}
    assert Caller(headers=headers).cookies("login") == ["ada", "joe"]


@pytest.mark.parametrize(
    ("authorization", "credentials"),
    [
        ("Bearer s3cret", "s3cret"),
        ("bEARER  s3cret ", "s3cret"),
        ("Bearer a b", "a b"),
        ("Bearer", ""),
        ("Basic s3cret", None),
        ("s3cret", None),
        ("", None),
    ],
)
def test_credentials_are_found_only_under_the_requested_scheme(
    authorization: str, credentials: str | None
) -> None:
    assert credentials_in(authorization, "bearer") == credentials
