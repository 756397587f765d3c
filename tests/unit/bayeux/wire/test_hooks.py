"""Hooks of an application are called and never awaited; asynchronous ones are refused."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import SecurityPolicy, Vote
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.messages.batch import Batch
from tests.unit.bayeux.harness import Json, Server

FAULT = "500::server_fault"


async def answers_later(call: ServiceCall) -> None:
    call.answer(1)


async def answers_bit_by_bit(call: ServiceCall) -> AsyncIterator[int]:
    yield 1


def pauses(call: ServiceCall) -> Iterator[int]:
    yield 1


async def answers_twice(number: int, call: ServiceCall) -> None:
    call.answer(number)


class AwaitedService:
    async def __call__(self, call: ServiceCall) -> None:
        call.answer(1)

    async def serve(self, call: ServiceCall) -> None:
        call.answer(1)


SERVICES = [
    answers_later,
    answers_bit_by_bit,
    pauses,
    partial(answers_twice, 2),
    AwaitedService(),
    AwaitedService().serve,
]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_that_is_not_a_plain_function_is_refused(service: Any) -> None:
    bayeux = Server().bayeux
    with pytest.raises(TypeError, match="the service of /service/a must be a plain function"):
        bayeux.state.services.add("/service/a", service)
    assert bayeux.state.services.find(bayeux.state.channels.named("/service/a")) is None


def test_an_asynchronous_authorizer_is_refused() -> None:
    async def grants(*_: object) -> Vote:
        return Vote.GRANT

    rights = Server().bayeux.state.rights
    with pytest.raises(TypeError, match=r"the authorizer of /a/\*\* must be a plain function"):
        rights.add("/a/**", grants)  # type: ignore[arg-type]
    assert rights.are_open


@pytest.mark.parametrize(
    "hook", ["can_handshake", "can_claim", "can_create", "can_subscribe", "can_publish"]
)
def test_a_policy_with_an_asynchronous_hook_is_refused(hook: str) -> None:
    async def allows(*_: object) -> None:
        return None

    rights = Server().bayeux.state.rights
    policy = type("Policy", (SecurityPolicy,), {hook: allows})()
    with pytest.raises(TypeError, match=rf"Policy\.{hook} must be a plain function"):
        rights.policy = policy
    assert rights.are_open


def test_an_asynchronous_error_handler_is_refused() -> None:
    class Sleepy:
        async def react(self, *_: object) -> None:
            return None

    with pytest.raises(TypeError, match=r"Sleepy\.react must be a plain function"):
        Server().bayeux.state.error_handlers.add("/a", Sleepy())  # type: ignore[arg-type]


@pytest.mark.parametrize("hook", ["resume", "event"])
def test_an_extension_with_an_asynchronous_hook_is_refused(hook: str) -> None:
    async def waits(*_: object) -> None:
        return None

    bayeux = Server().bayeux
    extension = type("Slow", (ServerExtension,), {hook: waits})()
    with pytest.raises(TypeError, match=rf"Slow\.{hook} must be a plain function"):
        bayeux.state.installed.extend(extension)
    assert bayeux.state.installed.all == ()


# Wrong results of calls


def coroutine() -> Awaitable[None]:
    async def work() -> None: ...

    return work()


class Later:
    """Can be awaited, as a task or a future can."""

    def __await__(self) -> Iterator[None]:
        yield


@pytest.mark.parametrize(
    ("later", "name"), [(coroutine, "coroutine"), (Later, "Later")], ids=["coroutine", "other"]
)
def test_a_service_that_returns_an_awaitable_fails(
    later: Callable[[], Any], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    server.bayeux.state.services.add("/service/a", lambda _: later())
    assert server.client().publish("/service/a", 1).reply["error"] == FAULT
    assert f"the service of /service/a returned a {name}, which nobody awaits" in caplog.text


@pytest.mark.parametrize("told", ["Vote.GRANT", True, None], ids=repr)
@pytest.mark.parametrize("wish", ["/secret/a", "/**"])
def test_an_invalid_vote_of_an_authorizer_grants_nothing(told: Any, wish: str) -> None:
    server = Server()
    server.bayeux.state.rights.add("/secret/*", lambda *_: told)
    client = server.client()
    assert client.subscribe(wish).reply["error"] == FAULT
    assert client.session.subscriptions == set()


def test_an_authorizer_that_returns_an_awaitable_grants_nothing() -> None:
    server = Server()
    server.bayeux.state.rights.add("/secret/*", lambda *_: coroutine())  # type: ignore[arg-type]
    assert server.client().subscribe("/**").reply["error"] == FAULT


class Tells(SessionExtension):
    """Returns something other than whether a message passes."""

    def __init__(self, told: Any) -> None:
        self._told = told

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        told: bool = self._told() if callable(self._told) else self._told
        return told


@pytest.mark.parametrize(
    "told", [None, 1, "yes", coroutine, Later], ids=["None", "1", "yes", "coroutine", "awaitable"]
)
def test_an_incoming_hook_that_does_not_return_a_boolean_refuses_the_message(
    told: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(giving(Tells(told)))
    client = server.client()
    assert client.publish("/a", 1).reply["error"] == FAULT
    assert "incoming hook of Tells failed" in caplog.text
    assert server.bayeux.state.hub.counters.published == 0


def test_an_asynchronous_hook_for_replies_is_logged_as_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Waits(SessionExtension):
        async def outgoing(  # type: ignore[override]
            self,
            session: Session,
            reply: Json,
            asked: Mapping[str, Any],
            now: float,
            *,
            batch: Batch | None,
        ) -> None: ...

    client = Server(giving(Waits())).client()
    assert client.publish("/a", 1).reply["successful"]
    assert "outgoing hook of Waits failed" in caplog.text


@pytest.mark.parametrize("later", [coroutine, Later], ids=["coroutine", "other"])
def test_an_awaitable_result_of_a_hook_for_replies_is_logged(
    later: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Returns(SessionExtension):
        def outgoing(
            self,
            session: Session,
            reply: Json,
            asked: Mapping[str, Any],
            now: float,
            *,
            batch: Batch | None,
        ) -> None:
            return later()  # type: ignore[no-any-return]

    client = Server(giving(Returns())).client()
    assert client.publish("/a", 1).reply["successful"]
    assert "which nobody awaits" in caplog.text


# Faults have a separate code


def breaks(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a secret")


def with_authorizer(bayeux: Bayeux) -> None:
    bayeux.state.rights.add("/a", breaks)


def with_policy(bayeux: Bayeux) -> None:
    bayeux.state.rights.policy = type("Policy", (SecurityPolicy,), {"can_publish": breaks})()


def with_service(bayeux: Bayeux) -> None:
    bayeux.state.services.add("/service/a", breaks)


@pytest.mark.parametrize(
    ("install", "channel"),
    [(with_authorizer, "/a"), (with_policy, "/a"), (with_service, "/service/a")],
)
def test_a_publish_gets_a_server_fault_if_its_authorizer_policy_or_service_fails(
    install: Any, channel: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    install(server.bayeux)
    reply = server.client().publish(channel, 1).reply
    assert reply["error"] == FAULT
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in str(reply)


def test_a_policy_that_fails_at_a_handshake_refuses_it_with_the_advice_to_try_later() -> None:
    server = Server()
    server.bayeux.state.rights.policy = type(
        "Policy", (SecurityPolicy,), {"can_handshake": breaks}
    )()
    reply = server.guest().handshake().reply
    assert reply["error"] == FAULT
    assert reply["advice"]["reconnect"] == "handshake"
    assert reply["advice"]["interval"] > 0


def test_a_subscribe_has_no_effect_if_an_authorizer_fails_for_one_of_its_channels() -> None:
    server = Server()

    def fails_over_b(operation: Operation, channel: str, session: Session, message: Json) -> Vote:
        if channel == "/x/b":
            raise ZeroDivisionError
        return Vote.GRANT

    server.bayeux.state.rights.add("/x/*", fails_over_b)
    client = server.client()
    assert client.subscribe("/x/a", "/x/b").reply["error"] == FAULT
    assert client.session.subscriptions == set()


def giving(extension: SessionExtension) -> ServerExtension:
    """Installs the extension for every session."""

    class Gives(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            return extension

    return Gives()
