"""What cometd.js sees of failures: with a name and acks, nothing but a pause."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
import pytest

from holdfast.store.format.keys import RedisKeys
from tests.abuse.attacker import Wire, request
from tests.chaos.jumping import AHEAD, BACK
from tests.chaos.proxy import Address, Proxy
from tests.clients.node_client import LONG_POLLING, WEBSOCKET, Scenario, cases, play, written
from tests.serving import Server, Settings
from tests.store.cluster import Cluster, Node, cluster, until
from tests.store.servers import ValkeyServer

T = TypeVar("T")

SUITE = "cometd_failures"
# Longer than a server speaks without a lease.
AWAY_S = 3.2
RECOVERS_S = 60.0
# How long the keys of the store are on the move.
MOVES_S = 0.5


class ProxyThread:
    """A proxy in a thread, because scenarios block."""

    def __init__(self, server: Server) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._proxy = Proxy(_address_of(server))
        self._run(self._proxy.__aenter__())
        self.url = self._proxy.url

    def lead_to(self, server: Server) -> None:
        self._proxy.upstream = _address_of(server)

    def close(self) -> None:
        self._run(self._proxy.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _address_of(server: Server) -> Address:
    url = urlsplit(server.url)
    assert url.hostname is not None
    assert url.port is not None
    return Address(url.hostname, url.port)


class Stage:
    """A server behind a proxy, and an application that publishes."""

    def __init__(self, stack: ExitStack, channel: str, settings: Settings) -> None:
        self._stack = stack
        self._channel = channel
        self._numbers = count()
        self.server = self._start(**settings)
        self.proxy = ProxyThread(self.server)
        stack.callback(self.proxy.close)

    def _start(self, program: str = "holdfast", **settings: object) -> Server:
        server = Server(settings, program=program)
        self._stack.callback(server.stop)
        return server

    def publish(self, when_refused: Callable[[], object] = lambda: None) -> int:
        """Publish a durable message, as often as necessary; the key makes it one message.

        Returns how often it was refused before.
        """
        number = next(self._numbers)
        ends_at = time.monotonic() + RECOVERS_S
        for refusals in count():
            answer = self.try_to_publish(number)
            if answer["successful"]:
                return refusals
            assert time.monotonic() < ends_at, answer
            when_refused()
            time.sleep(0.1)
        raise AssertionError("unreachable")

    def try_to_publish(self, number: int) -> dict[str, Any]:
        """The reply to one attempt."""
        delivery = {"persistent": True, "key": str(number)}
        message = {"channel": self._channel, "data": number, "ext": {"delivery": delivery}}
        with Wire(self.proxy.url) as wire:
            wire.send(request(orjson.dumps(message), method="POST /publish"))
            return wire.answer().messages()[0]


class Failures(Stage):
    """A server on an external store, its standby, and what fails of them."""

    def __init__(self, stack: ExitStack, channel: str) -> None:
        self.store = stack.enter_context(ValkeyServer(appendonly="yes", appendfsync="always"))
        self._own = {
            "redis": self.store.url,
            "node": "first",
            "data": str(self.store.directory / "data"),
        }
        super().__init__(stack, channel, self._own)

    def services(self) -> dict[str, Callable[[], None]]:
        """The failures. A message is published before each, and another one after its end."""
        failures = (
            self.freeze_store,
            self.restart_store,
            self.freeze_server,
            self.fill_store,
            self.kill_server,
            self.jump_clock,
            self.take_over,
        )
        return {each.__name__: self._between_publishes(each) for each in failures}

    def freeze_store(self) -> None:
        self.store.freeze()
        self.thaw_store()

    def thaw_store(self) -> None:
        time.sleep(AWAY_S)
        self.store.thaw()

    def restart_store(self) -> None:
        self.store.kill()
        time.sleep(AWAY_S)
        self.store.start()

    def freeze_server(self) -> None:
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(AWAY_S)
        self.server.process.send_signal(signal.SIGCONT)

    def kill_server(self) -> None:
        self._replace(self._own)

    def fill_store(self) -> None:
        """While it has no memory, durable publishes are refused, and nothing else."""
        self.store.set(maxmemory="1")
        refused = self.try_to_publish(-1)
        assert refused["error"] == "503:communication.noConnection:store_unavailable", refused
        self.store.set(maxmemory="0")

    def jump_clock(self) -> None:
        """A server whose wall clock is a day ahead for a moment."""
        self._replace(self._own, "tests.chaos.jumping")
        self.server.process.send_signal(AHEAD)
        time.sleep(0.5)
        self.server.process.send_signal(BACK)
        time.sleep(0.5)

    def take_over(self) -> None:
        """A standby with another data directory, so it must wait for the lease."""
        self._replace({"redis": self.store.url, "node": "second", "standby": True})

    def _replace(self, settings: Settings, program: str = "holdfast") -> None:
        self._await_acks()
        self._kill()
        self.server = self._start(program, **settings)
        self.proxy.lead_to(self.server)

    def _await_acks(self) -> None:
        """Wait until the store has the acks: messages without them come again after a kill."""
        ends_at = time.monotonic() + RECOVERS_S
        while self.store.ask("HLEN", RedisKeys("holdfast").bodies):
            assert time.monotonic() < ends_at
            time.sleep(0.02)

    def _kill(self) -> None:
        self.server.process.kill()
        self.server.process.wait()

    def _between_publishes(self, failure: Callable[[], None]) -> Callable[[], None]:
        def fail() -> None:
            self.publish()
            failure()
            self.publish()

        return fail


class Moves(Stage):
    """A server on a cluster, whose servers change. In each case two messages are published."""

    def __init__(self, stack: ExitStack, channel: str) -> None:
        self._nodes: Cluster = stack.enter_context(cluster())
        settings = {"redis": self._nodes.url, "namespace": "test"}
        super().__init__(stack, channel, settings)

    def services(self) -> dict[str, Callable[[], None]]:
        moves = (self.move_at_once, self.move_key_by_key, self.fail_over)
        return {each.__name__: each for each in moves}

    def move_at_once(self) -> None:
        self._nodes.migrate(self._nodes.other_primary())
        assert [self.publish(), self.publish()] == [0, 0]

    def move_key_by_key(self) -> None:
        """A publish has new keys, so it waits until all keys have moved."""
        there = self._nodes.other_primary()
        owner = self._nodes.begin_moving(there)
        with ThreadPoolExecutor() as pool:
            publishing = pool.submit(self.publish)
            time.sleep(MOVES_S)
            assert not publishing.done()
            self._nodes.end_moving(owner, there)
            assert publishing.result() == 0
        assert self.publish() == 0

    def fail_over(self) -> None:
        self.publish()
        replica = self._nodes.replica
        until(lambda: has_all_of(replica, self._nodes.owner))
        # However slow a publish is, it is refused before there is another primary.
        replica.set(cluster_replica_no_failover="yes")
        self._nodes.owner.kill()
        assert self.publish(lambda: replica.set(cluster_replica_no_failover="no")) > 0


def has_all_of(replica: Node, owner: Node) -> bool:
    return bool(replica.info["slave_repl_offset"] == owner.info["master_repl_offset"])


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


FAILURES = [
    "freeze_store",
    "restart_store",
    "freeze_server",
    "fill_store",
    "kill_server",
    "jump_clock",
    "take_over",
]
MOVES = ["move_at_once", "move_key_by_key", "fail_over"]
BOTH = (WEBSOCKET, LONG_POLLING)
FAILING = [
    Scenario("comesThrough", BOTH, facts={"failures": FAILURES}),
    Scenario("publishesLate", BOTH),
]
MOVING = [Scenario("followsItsStore", BOTH, facts={"failures": MOVES})]


@pytest.mark.slow
@cases(FAILING)
def test_a_failure_of_the_server_or_its_store_is_a_pause(
    scenario: Scenario, transport: str, stack: ExitStack
) -> None:
    failures = Failures(stack, f"/{SUITE}/{scenario.name}/{transport}/failures")
    services = {
        **failures.services(),
        "freeze the store": failures.store.freeze,
        "thaw the store": failures.thaw_store,
    }
    play(SUITE, scenario, transport, failures.proxy, services)


@pytest.mark.slow
@cases(MOVING)
def test_a_store_that_moves_to_other_servers_ends_no_session(
    scenario: Scenario, transport: str, stack: ExitStack
) -> None:
    moves = Moves(stack, f"/{SUITE}/{scenario.name}/{transport}/failures")
    play(SUITE, scenario, transport, moves.proxy, moves.services())


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in [*FAILING, *MOVING]} == written(SUITE)
