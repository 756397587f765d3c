"""What cometd.js sees of failures: with a name and acks, nothing but a pause."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
import pytest

from tests.abuse.attacker import Wire, request
from tests.chaos.proxy import Address, Proxy
from tests.clients.node_client import LONG_POLLING, WEBSOCKET, Scenario, cases, play, written
from tests.serving import Server
from tests.store.servers import ValkeyServer

T = TypeVar("T")

SUITE = "cometd_failures"
# Longer than a server speaks without a lease.
AWAY_S = 3.2
RECOVERS_S = 30.0


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


class Failures:
    """A server on an external store, its standby, and what fails of them."""

    def __init__(self, stack: ExitStack, channel: str) -> None:
        self._stack = stack
        self._channel = channel
        self._numbers = count()
        self.store = stack.enter_context(ValkeyServer(appendonly="yes", appendfsync="always"))
        self._data = str(self.store.directory / "data")
        self.server = self._start(node="first", data=self._data)
        self.proxy = ProxyThread(self.server)
        stack.callback(self.proxy.close)

    def services(self) -> dict[str, Callable[[], None]]:
        """The failures. A message is published before each, and another one after its end."""
        failures = (
            self.freeze_store,
            self.restart_store,
            self.freeze_server,
            self.kill_server,
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
        self._kill()
        self.server = self._start(node="first", data=self._data)
        self.proxy.lead_to(self.server)

    def take_over(self) -> None:
        """A standby with another data directory, so it must wait for the lease."""
        self._kill()
        self.server = self._start(node="second", standby=True)
        self.proxy.lead_to(self.server)

    def _start(self, **settings: object) -> Server:
        server = Server({"redis": self.store.url, **settings})
        self._stack.callback(server.stop)
        return server

    def _kill(self) -> None:
        self.server.process.kill()
        self.server.process.wait()

    def _between_publishes(self, failure: Callable[[], None]) -> Callable[[], None]:
        def fail() -> None:
            self._publish()
            failure()
            self._publish()

        return fail

    def _publish(self) -> None:
        """Publish a durable message, as often as necessary; the key makes it one message."""
        number = next(self._numbers)
        delivery = {"persistent": True, "key": str(number)}
        message = {"channel": self._channel, "data": number, "ext": {"delivery": delivery}}
        ends_at = time.monotonic() + RECOVERS_S
        while True:
            with Wire(self.proxy.url) as wire:
                wire.send(request(orjson.dumps(message), method="POST /publish"))
                answer = wire.answer().messages()[0]
            if answer["successful"]:
                return
            assert time.monotonic() < ends_at, answer
            time.sleep(0.1)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


FAILURES = ["freeze_store", "restart_store", "freeze_server", "kill_server", "take_over"]
SCENARIOS = [
    Scenario("comesThrough", (WEBSOCKET, LONG_POLLING), facts={"failures": FAILURES}),
    Scenario("publishesLate", (WEBSOCKET, LONG_POLLING)),
]


@pytest.mark.slow
@cases(SCENARIOS)
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


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(SUITE)
