"""Sets up tracing: a thread sends spans to a collector."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from threading import Thread

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.server import Bayeux
from holdfast.compose.cannot_start import CannotStart
from holdfast.distribution import install_command, release

_PATH = "/v1/traces"
# How long the last spans may take to leave when the server ends.
_LAST_S = 2.0


def open_tracing(
    url: str, instance: str, server: ServerApi, bayeux: Bayeux, stack: AsyncExitStack
) -> None:
    """Send the spans of traced messages to the collector at this URL. Raises `CannotStart`.

    Whose spans these are is said by the name of this process, the instance.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from holdfast.extensions.tracing import TracedLedger, Tracing
    except ImportError as error:
        raise CannotStart(f"otlp: {error.name} is missing: {install_command('otel')}") from error
    about = {
        "service.name": "holdfast",
        "service.version": release(),
        "service.instance.id": instance,
    }
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=url.rstrip("/") + _PATH)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    stack.push_async_callback(_within_limit, provider.shutdown)
    tracer = provider.get_tracer("holdfast", release())
    server.extend(Tracing(tracer))
    bayeux.state.ledger.observer = TracedLedger(tracer)


async def _within_limit(shut_down: Callable[[], None]) -> None:
    """Send the last spans, unless the collector takes too long or is away."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        shut_down()
        with suppress(RuntimeError):
            # Unless the loop is closed by now.
            loop.call_soon_threadsafe(done.set)

    # The end of the loop would wait for its own threads.
    Thread(target=run, daemon=True).start()
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), _LAST_S)
