"""`holdfast bench`: puts a load on a running server, and checks that nothing is lost."""

import asyncio
import secrets
import time
from contextlib import AsyncExitStack, suppress
from enum import Enum
from itertools import count as count_from
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.clients import AsClient, ClientLogin, refusal
from holdfast.cli.failures import Exit
from holdfast.cli.measured import LatencyCounts, SubscriberCounts
from holdfast.cli.output import Json, complain, print_facts, progress
from holdfast.cli.program import Program
from holdfast.cli.remote import metric
from holdfast.client import Client, ClientError, ReplyError
from holdfast.client.transport_choice import LONG_POLLING, WEBSOCKET

if TYPE_CHECKING:
    from rich.progress import Progress

program = Program()

# Clients that connect at the same time.
_CONNECTING = 20
# Publishes that may wait for their replies; beyond that, the rate is not reached.
_WINDOW = 1000
# How long the last messages may take.
_TIMEOUT_S = 10.0
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
_CPU = "process_cpu_seconds_total"


class Transport(Enum):
    """By which transport clients connect."""

    WEBSOCKET = WEBSOCKET
    LONG_POLLING = LONG_POLLING


@program.command()
def bench(
    *,
    clients: Annotated[int, typer.Option(min=1, help="Subscribers.")] = 10,
    channels: Annotated[
        int, typer.Option(min=1, help="Channels; each client subscribes to one of them.")
    ] = 1,
    rate: Annotated[
        float, typer.Option(min=1, help="Messages per second, over all channels.")
    ] = 100,
    size: Annotated[
        int, typer.Option(min=0, metavar="CHARACTERS", help="Approximate size of the data.")
    ] = 100,
    seconds: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long to publish.")
    ] = 10,
    transport: Annotated[
        Transport,
        typer.Option(metavar="websocket|long-polling", help="The transport of all clients."),
    ] = Transport.WEBSOCKET,
    login: AsClient,
) -> None:
    """Put a load on a running server; report rates, latencies and losses.

    One client publishes to all subscribers, in this process. Latencies are from the publish to the
    subscriber's callback; at a rate that this machine cannot sustain, they say how long messages
    wait in queues. It shows the processor time of this process, and of the server if its metrics
    are shown. The exit code is 1 if a message was refused, lost or repeated.

    Example: holdfast bench --clients 100 --rate 500 --transport long-polling
    """
    load = Load(login, transport.value, channels, size)
    if not login.run(lambda: load.run(clients, rate, seconds)):
        raise typer.Exit(Exit.FAILED)
    print_facts(load.results, as_json=login.as_json)
    if any(load.results[fault] for fault in ("refused", "lost", "repeated")):
        raise typer.Exit(Exit.FAILED)


class Load:
    """Publishes to its subscribers, and measures."""

    def __init__(self, login: ClientLogin, transport: str, channels: int, size: int) -> None:
        self._login = login
        self._transport = transport
        # No other client listens to these.
        name = secrets.token_hex(8)
        self._channels = [f"/bench/{name}/{number}" for number in range(channels)]
        self._padding = "x" * size
        # Messages that the server accepted, for each channel.
        self._accepted = [0] * channels
        self._refused = 0
        self._latencies = LatencyCounts()
        self._arrived = asyncio.Event()
        self._subscribers: list[SubscriberCounts] = []
        self.results: Json = {}

    async def run(self, clients: int, rate: float, seconds: float) -> None:
        """Connect, publish, wait for what is on its way, and note the result."""
        # Says once what is wrong with the options, before many others would.
        publisher = self._client()
        async with AsyncExitStack() as stack:
            with progress() as bar:
                await self._connect(stack, clients, bar)
                await stack.enter_async_context(publisher)
                server_cpu = await asyncio.to_thread(metric, self._login.url, _CPU)
                cpu, began = time.process_time(), time.monotonic()
                await self._publish(publisher, rate, seconds, bar)
                published_s = time.monotonic() - began
                await self._wait_for_the_last()
                received_s = time.monotonic() - began
            self._note_results(published_s, received_s)
            self.results["bench_cpu_s"] = round(time.process_time() - cpu, 2)
            after = await asyncio.to_thread(metric, self._login.url, _CPU)
            if server_cpu is not None and after is not None:
                self.results["server_cpu_s"] = round(after - server_cpu, 2)

    def _client(self) -> Client:
        return self._login.client(transports=[self._transport])

    async def _connect(self, stack: AsyncExitStack, clients: int, bar: "Progress") -> None:
        task = bar.add_task("Connecting", total=clients)
        room = asyncio.Semaphore(_CONNECTING)

        async def connect(number: int) -> None:
            subscriber = SubscriberCounts(self._latencies, self._arrived)
            self._subscribers.append(subscriber)
            channel = self._channels[number % len(self._channels)]
            async with room:
                client = await stack.enter_async_context(self._client())
                await asyncio.gather(client.subscribe(channel, subscriber))
            bar.advance(task)

        await asyncio.gather(*map(connect, range(clients)))

    async def _publish(self, client: Client, rate: float, seconds: float, bar: "Progress") -> None:
        task = bar.add_task("Publishing", total=seconds)
        waiting: set[asyncio.Task[None]] = set()
        began = time.monotonic()
        for number in count_from():
            due_s = number / rate
            passed_s = time.monotonic() - began
            if max(due_s, passed_s) > seconds:
                break
            if due_s > passed_s:
                bar.update(task, completed=passed_s)
                await asyncio.sleep(due_s - passed_s)
            publish = asyncio.create_task(self._publish_one(client, number))
            waiting.add(publish)
            publish.add_done_callback(waiting.discard)
            if len(waiting) >= _WINDOW:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*waiting)

    async def _publish_one(self, client: Client, number: int) -> None:
        turn, place = divmod(number, len(self._channels))
        data = {"n": turn, "at": time.monotonic_ns(), "padding": self._padding}
        try:
            await client.publish(self._channels[place], data)
        except ClientError as error:
            if not self._refused:
                complain(refusal(error) if isinstance(error, ReplyError) else str(error))
            self._refused += 1
        else:
            self._accepted[place] += 1

    @property
    def _missing(self) -> int:
        expected = sum(
            self._accepted[number % len(self._channels)] for number in range(len(self._subscribers))
        )
        return expected - sum(each.received for each in self._subscribers)

    async def _wait_for_the_last(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                while self._missing > 0:
                    self._arrived.clear()
                    await self._arrived.wait()

    def _note_results(self, published_s: float, received_s: float) -> None:
        accepted = sum(self._accepted)
        received = sum(each.received for each in self._subscribers)
        self.results = {
            "published": accepted,
            "refused": self._refused,
            "delivered": received,
            "lost": self._missing,
            "repeated": sum(each.repeated for each in self._subscribers),
            "publishes_per_s": round(accepted / published_s, 1),
            "deliveries_per_s": round(received / received_s, 1),
            **{
                f"latency_{name}_ms": self._latencies.quantile_ms(share)
                for name, share in _QUANTILES.items()
            },
        }
