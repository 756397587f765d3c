"""A whole server in the process of a test, on a free port of this machine."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from holdfast.client import Client, Message, PublishReply
from holdfast.client.publish_options import PublishOptions
from holdfast.compose import running
from holdfast.compose.running_server import RunningServer
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.testing.local_store import LocalStore
from holdfast.web.admin.tokens import OPERATOR_FILE
from holdfast.web.tasks import reached

_LETTERS = "/sys/deadMessage"
_LIMIT_S = 30.0
# Clients that poll without waiting never hold a connect.
_HELD_WITHIN_S = 3.0


@asynccontextmanager
async def local_server(**settings: Any) -> AsyncIterator["LocalServer"]:  # noqa: ANN401
    """Run a server in this process and event loop.

    It has no journal, and a store in memory that ends with it.

    Args:
        settings: Those that differ from the defaults, by their names in docs/reference/settings.md.
    """
    with TemporaryDirectory(prefix="holdfast-") as home, _collecting_as_before():
        given: dict[str, Any] = {
            "data": Path(home),
            "port": 0,
            "journal": False,
            "durability": "memory",
        }
        async with running(Settings(**given | settings), Succession()) as server:
            token = (server.settings.data / OPERATOR_FILE).read_text("utf-8").strip()
            async with Client(server.url, token=token) as operator:
                local = LocalServer(server, operator)
                await operator.subscribe(_LETTERS, local.take_letter)
                try:
                    yield local
                finally:
                    await local.store.resume()


@contextmanager
def _collecting_as_before() -> Iterator[None]:
    """Let Python collect garbage at its own times again when the server has ended."""
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if not frozen:
            gc.unfreeze()


class LocalServer:
    """A server that a test has for itself. `local_server` and the fixture `holdfast` run one."""

    def __init__(self, server: RunningServer, operator: Client) -> None:
        self._server = server
        self._operator = operator
        self._letters: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        # Where any client reaches it, without a path.
        self.url = server.url
        self.store = LocalStore(server.storage)

    def client(self, session: str | Mapping[str, Any] | None = None, **options: Any) -> Client:  # noqa: ANN401
        """Return a client of this server, to be entered. Takes the options of `Client`."""
        return Client(self.url, session=session, **options)

    async def publish(
        self,
        channel: str,
        data: Any,  # noqa: ANN401
        **options: Unpack[PublishOptions],
    ) -> PublishReply:
        """Publish a message as an operator of the server. Takes the options of `Client.publish`."""
        return await self._operator.publish(channel, data, timeout_s=_LIMIT_S, **options)

    # What became of messages

    def take_letter(self, event: Message) -> None:
        """Keep the dead letter in this event for `next_dead_letter`."""
        self._letters.put_nowait(event.data)

    async def next_dead_letter(self, timeout_s: float = _LIMIT_S) -> dict[str, Any]:
        """Wait for the next dead letter; docs/how-to/dead-letters.md shows one."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._letters.get()
        except TimeoutError:
            raise TimeoutError(f"no dead letter within {timeout_s:g} s") from None

    def waiting(self, session: str | None = None) -> int:
        """Return how many messages of a named session, or of all, are not acknowledged yet."""
        sessions = self._server.bayeux.state.sessions
        if session is None:
            return sum(each.queue.count for each in sessions)
        found = sessions.named(session)
        return 0 if found is None else found.queue.count

    async def acknowledged(
        self, session: str | None = None, *, timeout_s: float = _LIMIT_S
    ) -> None:
        """Wait until all messages of a named session, or of all, are acknowledged or refused."""
        if not await reached(timeout_s, lambda: not self.waiting(session)):
            left = self.waiting(session)
            raise TimeoutError(f"{left} messages are not acknowledged within {timeout_s:g} s")

    # Time

    async def move_clock(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Let this time pass at once; return when the server has done all that is due.

        Clients that hold their connects live on, as if they had been there all the time.
        """
        passed = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if passed < timedelta():
            raise ValueError("the clock of a server never goes back")
        await reached(_HELD_WITHIN_S, self._do_clients_wait)
        ticker = self._server.ticker
        ticker.clock.skip(passed.total_seconds())
        self._server.storage.stamps.skip(passed // timedelta(microseconds=1) * 1000)
        self._server.bayeux.tick(ticker.clock())
        ticker.end_turn_soon()
        await self.store.answered()

    def _do_clients_wait(self) -> bool:
        """Return whether each client holds a connect, so that it cannot count as lost."""
        return all(
            each.held_connect is not None or each.is_absent
            for each in self._server.bayeux.state.sessions
        )
