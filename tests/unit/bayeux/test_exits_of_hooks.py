"""A hook that exits or is cancelled fails like one that raises an error."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy, Vote
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import GivenUp
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.hooks import HookFailed
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.ports.error_handler import Failure, Reaction
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.web.tasks import Tasks
from tests.unit.bayeux.harness import Json, Server, server_of
from tests.unit.extensions.delivering import codes, connect, no, publish, receiver

EXITS = [asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit]
Exit = type[BaseException]
FAULT = "500::server_fault"


@pytest.fixture(params=EXITS)
def exit_(request: pytest.FixtureRequest) -> Exit:
    kind: Exit = request.param
    return kind


class Exiting(ServerExtension, SessionExtension):
    """Exits in one of its hooks, for clients that ask for it."""

    def __init__(self, hook: str, exit_: Exit) -> None:
        self._hook = hook
        self._exit = exit_

    def _reach(self, hook: str) -> None:
        if hook == self._hook:
            raise self._exit

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | Awaitable[SessionExtension | None] | None:
        if "exit" not in (handshake.get("ext") or {}):
            return None
        self._reach("negotiate")
        return self

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if message["channel"] == "/a":
            self._reach("incoming")
        return True

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        self._reach("outgoing")

    def event(self, event: Json) -> None:
        if event["channel"] == "/a":
            self._reach("event")


def test_a_hook_that_exits_at_a_handshake_refuses_it(exit_: Exit) -> None:
    server = Server(Exiting("negotiate", exit_))
    reply = server.guest().handshake(ext={"exit": True}).reply
    assert (reply["error"], len(server.bayeux.state.sessions)) == (FAULT, 0)
    assert server.client().publish("/b", 1).reply["successful"]


@pytest.mark.parametrize("hook", ["incoming", "event"])
def test_a_hook_that_exits_at_a_publish_refuses_it(hook: str, exit_: Exit) -> None:
    server = Server(Exiting(hook, exit_))
    client = server.client(ext={"exit": True})
    assert client.publish("/a", 1).reply["error"] == FAULT
    assert client.publish("/b", 1).reply["successful"]
    assert server.client().publish("/b", 1).reply["successful"]


def test_a_hook_that_exits_at_a_publish_of_the_server_raises_an_error_there(exit_: Exit) -> None:
    server = Server(Exiting("event", exit_))
    with pytest.raises(HookFailed, match="Exiting"):
        server.for_extensions.publish("/a", 1)


def test_a_hook_that_exits_at_a_reply_does_not_prevent_it(exit_: Exit) -> None:
    server = Server(Exiting("outgoing", exit_))
    assert server.client(ext={"exit": True}).publish("/a", 1).reply["successful"]


def test_a_service_that_exits_refuses_the_call(exit_: Exit) -> None:
    server = Server()

    def serve(call: ServiceCall) -> None:
        raise exit_

    server.bayeux.state.services.add("/service/exit", serve)
    client = server.client()
    assert client.publish("/service/exit", 1).reply["error"] == FAULT
    assert client.publish("/a", 1).reply["successful"]


def test_an_authorizer_that_exits_grants_nothing(exit_: Exit) -> None:
    server = Server()

    def judge(operation: Operation, channel: str, session: Session, message: Json) -> Vote | Denial:
        raise exit_

    server.bayeux.state.rights.add("/a", judge)
    client = server.client()
    assert client.publish("/a", 1).reply["error"] == FAULT
    assert client.subscribe("/a").reply["error"] == FAULT


def test_a_policy_that_exits_refuses_the_handshake(exit_: Exit) -> None:
    server = Server()

    class Policy(SecurityPolicy):
        def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
            raise exit_

    server.bayeux.state.rights.policy = Policy()
    assert server.guest().handshake().reply["error"] == FAULT


def test_an_error_handler_that_exits_is_passed_over(exit_: Exit) -> None:
    server = server_of()

    class Handler:
        def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction | None:
            raise exit_

    server.bayeux.state.error_handlers.add("/a", Handler())
    client = receiver(server)
    publish(server, 1)
    connect(client, no(connect(client).events[0], "user.update.error"))
    assert codes(server) == ["user.update.error"]


class Late(ServerExtension):
    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> Awaitable[SessionExtension | None]:
        async def work() -> SessionExtension | None:
            raise AssertionError("the test resolves it")

        return work()


def outcome_of(work: Callable[[], Awaitable[object]], limit_s: float = 10.0) -> object:
    """The outcome that the core gets of this work; the event loop must survive."""

    async def run() -> object:
        tasks, told = Tasks(lambda: 0.0, limit_s), asyncio.get_running_loop().create_future()
        tasks(work(), lambda outcome, now: told.set_result(outcome))
        async with asyncio.timeout(5):
            return await told

    return asyncio.run(run())


def test_work_that_takes_too_long_is_given_up_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As it does if its server stood still."""
    assert isinstance(outcome_of(lambda: asyncio.sleep(60), limit_s=0.0), GivenUp)
    [record] = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)


def test_the_timeout_of_work_itself_is_its_outcome() -> None:
    async def work() -> object:
        raise TimeoutError

    assert isinstance(outcome_of(work), TimeoutError)


def test_a_handshake_whose_work_is_given_up_is_asked_to_come_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(Late())
    asked = server.guest().handshake()
    server.resolve(GivenUp())
    assert asked.reply["error"] == "503::server_busy"
    assert asked.reply["advice"]["reconnect"] == "handshake"
    assert caplog.records == []


def test_work_that_exits_reports_its_exit_as_the_outcome(exit_: Exit) -> None:
    async def work() -> object:
        await asyncio.sleep(0)
        raise exit_

    assert isinstance(outcome_of(work), exit_)


def test_work_that_waits_for_a_cancelled_future_reports_the_cancellation() -> None:
    async def work() -> object:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        return await future

    assert isinstance(outcome_of(work), asyncio.CancelledError)


def test_work_that_cancels_its_own_task_reports_the_cancellation() -> None:
    async def work() -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)
        return None

    assert isinstance(outcome_of(work), asyncio.CancelledError)


def test_a_handshake_whose_work_exits_is_no_longer_counted_as_pending(exit_: Exit) -> None:
    server = Server(Late())
    asked = server.guest().handshake()
    assert server.bayeux.state.handshakes_pending == 1
    server.resolve(exit_())
    assert asked.reply["error"] == FAULT
    assert server.bayeux.state.handshakes_pending == 0


def test_closing_the_tasks_ends_their_work_without_an_outcome() -> None:
    told: list[object] = []

    async def run() -> None:
        tasks = Tasks(lambda: 0.0)
        tasks(asyncio.sleep(60), lambda outcome, now: told.append(outcome))
        await asyncio.sleep(0)
        await tasks.close()

    asyncio.run(run())
    assert told == []
