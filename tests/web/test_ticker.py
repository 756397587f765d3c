"""The ticker ends turns when there is something to send, and calls the core ten times a second."""

import asyncio
import time
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from holdfast.web.scheduling.speaking import OwnStoreRight
from holdfast.web.ticker import Ticker

STALL_S = 0.2


def a_server() -> Mock:
    server = Mock()
    server.state.counters.accepted = 0
    return server


async def test_messages_from_before_the_start_are_flushed_at_the_start() -> None:
    server = a_server()
    ticker = Ticker(Mock(), OwnStoreRight())
    ticker.end_turn_soon()
    await asyncio.sleep(0)
    ticker.start(server)
    await asyncio.sleep(0)
    assert server.flush.call_count == 1
    ticker.stop()


async def test_answers_leave_before_long_work_continues() -> None:
    server, transport = a_server(), Mock()
    transport.get_write_buffer_size.return_value = 0
    transport.is_closing.return_value = False
    ticker = Ticker(Mock(), OwnStoreRight())
    written: list[int] = []

    def flush(now: float, before_long_work: Callable[[], None]) -> bool:
        written.append(transport.write.call_count)
        before_long_work()
        written.append(transport.write.call_count)
        return False

    server.flush = flush
    ticker.start(server)
    ticker.coalescer.write(transport, b"an answer")
    await asyncio.sleep(0)
    ticker.stop()
    assert written == [0, 1]


async def test_after_a_stall_clients_are_read_before_sessions_expire() -> None:
    server = a_server()
    ticker = Ticker(Mock(), OwnStoreRight())
    ticker.start(server)
    before, began = ticker.clock(), time.monotonic()
    time.sleep(0.8)  # noqa: ASYNC251 - the process does not run
    # Bytes that came meanwhile are read now, perhaps in several rounds.
    for _ in range(5):
        await asyncio.sleep(0)
    assert server.tick.call_count == 0
    async with asyncio.timeout(60):
        while not server.tick.call_count:  # noqa: ASYNC110 - a mock
            await asyncio.sleep(0.01)
    ticker.stop()
    ran_s = server.tick.call_args.args[0] - before
    assert ran_s < time.monotonic() - began - 0.8, "the time is nobody's silence"


async def lags_after(stall: Callable[[], None]) -> bool:
    """Whether the server counts as lagging after the event loop was kept from its beats."""
    server = a_server()
    ticker = Ticker(Mock(), OwnStoreRight())
    ticker.start(server)
    stall()
    async with asyncio.timeout(60):
        while not isinstance(server.state.admission.is_lagging, bool):  # noqa: ASYNC110 - a mock
            await asyncio.sleep(0)
    ticker.stop()
    return bool(server.state.admission.is_lagging)


def work() -> None:
    began = time.thread_time()
    while time.thread_time() - began < STALL_S:
        pass


@pytest.fixture
def lags_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.web.ticker._LAGGING_S", STALL_S / 4)


@pytest.mark.usefixtures("lags_early")
async def test_a_loop_that_other_programs_keep_from_running_does_not_count_as_lagging() -> None:
    assert not await lags_after(lambda: time.sleep(STALL_S))


@pytest.mark.usefixtures("lags_early")
async def test_a_loop_that_is_late_because_of_its_own_work_counts_as_lagging() -> None:
    assert await lags_after(work)
