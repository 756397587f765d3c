"""A server that runs, and how it ends: for good, or with a successor that goes on."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.bayeux.leaving.session_state import READING_S
from holdfast.bayeux.leaving.settling import settle, take_back, unsettled
from holdfast.bayeux.server import Bayeux
from holdfast.compose.alerts import ReadAgain
from holdfast.compose.journal import RunBooks
from holdfast.compose.storage import Storage
from holdfast.compose.succession import CannotGoOn, CannotLeave, Succession
from holdfast.settings import Settings
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.replays.control import Replays
from holdfast.web.admin.figure_keeper import FigureKeeper
from holdfast.web.answering.heads import Heads
from holdfast.web.doors.leaving import Leaving
from holdfast.web.front.listener import Listener
from holdfast.web.tasks import Tasks
from holdfast.web.ticker import Ticker
from holdfast.web.websockets.websocket import WebSocketFrontEnd

if TYPE_CHECKING:
    from holdfast.compose.forwarding import Forwarding
    from holdfast.compose.sharding import Sharding
    from holdfast.web.webhooks.senders import Webhooks

log = logging.getLogger(__name__)

# How long requests that have begun to arrive may take to do so before this process leaves, how long
# their answers may take, and how long what the core has begun. Everybody waits meanwhile.
_READING_S = 0.2
_ANSWERING_S = 0.3
_SETTLING_S = 1.0
# How long the whole may take, which depends on the store. The supervisor is more patient.
_LEAVING_S = 8.0
# How long going on may take after that. Then the supervisor would end this process.
_TAKING_BACK_S = 9.0
# How long connections may take to come between two requests or frames, and how long clients may
# take to read what was written. Until then TLS connections are relayed, too.
_HANDING_S = 10.0
_GOING_S = READING_S
# The same, if another host has the shard: what waits for it gets no answer here.
_PARTING_S = 1.0
_LOOK_S = 0.002


@dataclass(slots=True)
class RunningServer:
    """The parts that matter to the end of a server."""

    settings: Settings
    url: str
    bayeux: Bayeux
    storage: Storage
    ticker: Ticker
    books: RunBooks
    replays: Replays
    heads: Heads
    websockets: WebSocketFrontEnd
    listener: Listener
    doors: Leaving
    tasks: Tasks
    succession: Succession
    figures: FigureKeeper
    read_again: ReadAgain
    # None if there is no other shard.
    forwarding: "Forwarding | None" = None
    sharding: "Sharding | None" = None
    # None if the settings have none.
    webhooks: "Webhooks | None" = None
    # Whether the next process may open the store.
    gives_store: bool = False
    # Whether the next process has what this one had, or will get it from the store.
    has_left: bool = False

    # Leaving to a successor

    async def leave(self) -> None:
        """Come to rest, and give everything to the next process. If this fails, go on."""
        if not self.storage.store.is_available:
            # Clients need not wait to learn that.
            raise CannotLeave("the store cannot be reached")
        try:
            async with asyncio.timeout(_LEAVING_S):
                await self._leave()
        except TimeoutError as error:
            await self.take_back()
            raise CannotLeave(f"the store takes longer than {_LEAVING_S:g} s") from error
        except StoreUnavailable as error:
            await self.take_back()
            raise CannotLeave(str(error)) from error
        except BaseException:
            await self.take_back()
            raise

    async def _leave(self) -> None:
        await self._pause_webhooks()
        await self.doors.pause(_READING_S)
        if self.forwarding is not None:
            await self.forwarding.settle_giving()
            await self.doors.begin_all(_READING_S)
            await self.forwarding.pause(is_alone=self.succession.leaves_alone)
        await self.replays.close()
        await self._settle()
        await self._follow_no_longer()
        if self.forwarding is not None:
            self.forwarding.let_go()
        # From here on nothing changes: no input is handled, and no turn ends.
        self.doors.be_still()
        self.storage.right.leave()
        await self.figures.close()
        await self._write_given()
        await self.books.close()
        self.gives_store = True
        await self.storage.give()
        self.has_left = True

    async def _pause_webhooks(self) -> None:
        if self.webhooks is not None:
            await self.webhooks.pause(_ANSWERING_S)

    async def _write_given(self) -> None:
        shown = {} if self.sharding is None else self.sharding.shown
        await self.storage.write_given(self.bayeux, self.ticker.clock(), shown)

    async def _follow_no_longer(self) -> None:
        """Take nothing more from other shards: the next process goes on from the same places."""
        if self.forwarding is not None:
            await self.forwarding.hold_messages()
        if self.sharding is not None:
            await self.sharding.pause()

    async def _settle(self) -> None:
        """Answer held connects, and finish what clients have begun, here and at other shards."""
        settle(self.bayeux, self.ticker.clock())
        if self.forwarding is not None:
            await self.forwarding.settle()
        # An operator may read a long response all the while.
        await self.doors.settle(_ANSWERING_S)
        await self._finish()
        if self.sharding is not None:
            # Others leave at the same time, and what their clients have begun may have to be known
            # here before it is answered.
            await self.succession.settled()
            await self._finish()

    async def _finish(self) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + _SETTLING_S
        while True:
            # Clients whose logins take longer are asked to try again, also if they have begun only
            # now, with requests that were read before.
            self.tasks.give_up()
            if (unfinished := await self._unfinished(ends_at - loop.time())) is None:
                return
            if loop.time() > ends_at:
                raise CannotLeave(f"{unfinished} takes longer than {_SETTLING_S:g} s")
            await asyncio.sleep(_LOOK_S)

    async def _unfinished(self, limit_s: float) -> str | None:
        """Return what is not finished yet, once the store has answered everything so far."""
        try:
            await asyncio.wait_for(self.storage.store.answered(), max(limit_s, _LOOK_S))
        except TimeoutError:
            return "an answer of the store"
        return unsettled(self.bayeux)

    async def take_back(self) -> None:
        """Go on after `leave`: the next process did not start, and has ended.

        If that fails, this process ends, because no client would be served. Raises `CannotGoOn`.
        """
        try:
            async with asyncio.timeout(_TAKING_BACK_S):
                await self._take_back()
        except Exception as error:
            self.storage.end()
            late = f"the store was not had again within {_TAKING_BACK_S:g} s"
            why = late if isinstance(error, TimeoutError) else str(error) or repr(error)
            raise CannotGoOn(f"the server can neither leave nor go on, and ends: {why}") from error

    async def _take_back(self) -> None:
        if self.gives_store:
            await self.storage.take_back()
            self.gives_store = self.has_left = False
        self.storage.revoke_given()
        if self.sharding is not None:
            self.sharding.resume()
        self.books.go_on()
        self.figures.go_on()
        take_back(self.bayeux, self.ticker.clock())
        self.storage.right.stay()
        self.replays.resume_soon()
        if self.forwarding is not None:
            await self.forwarding.take_back()
        await self.doors.take_back()
        if self.webhooks is not None:
            self.webhooks.go_on()

    async def give_to(self, host: str) -> bool:
        """Leave this shard to another host, which has some seconds to open it; else go on.

        Returns whether it has. Raises `CannotLeave` or `CannotGoOn`.
        """
        await self.leave()
        try:
            async with asyncio.timeout(_LEAVING_S):
                is_given = await self.storage.offer_to(host)
        except (StoreUnavailable, TimeoutError) as error:
            # Whether the other host has it, the store does not say.
            self.storage.end()
            raise CannotGoOn(f"the store was lost while a shard was given away: {error}") from error
        if not is_given:
            log.warning(
                "%s has not opened the shard that was offered to it: this host goes on", host
            )
            await self.take_back()
        return is_given

    async def part(self, door: int) -> None:
        """Hand over the connections, although another host has this shard.

        What clients wait for of other shards, they get. Of this one, nothing is said any more, so
        the connections of its clients end.
        """
        await self._pause_webhooks()
        await self.doors.pause(_READING_S)
        await self.doors.begin_all(_READING_S)
        if self.forwarding is not None:
            await self.forwarding.settle_giving()
            await self.forwarding.pause(is_alone=True)
            await self.forwarding.settle()
            self.forwarding.let_go()
        self.doors.drop_own()
        self.doors.be_still()
        self.has_left = True
        link = socket.socket(fileno=door)
        await self.doors.hand_over(link, limit_s=_PARTING_S, last_limit_s=2 * _PARTING_S)

    def adopt(self, link: socket.socket) -> None:
        """Take the connections of another server of this host, which gives its shard away."""
        self.doors.adopting.begin(link)

    async def hand_over(self, door: int) -> None:
        """Hand the connections over to the next process, which serves."""
        await hand_over(self.doors, door)

    def reload(self) -> None:
        """Read the files of TLS again."""
        from holdfast.compose.tls_files import reload_tls

        self.read_again.tls_fault = reload_tls(self.settings, self.doors.listeners.values())

    # Ending

    async def stop(self, timeout_s: float) -> None:
        """Stop in order: clients get what is pending, and are told to return later."""
        await self._pause_webhooks()
        self.listener.stop_accepting()
        self.heads.end_connections()
        # Pending data leaves first; then connections are closed without waiting.
        await within(timeout_s / 2, self._let_go)
        await within(timeout_s / 2, self._close)
        if not self.storage.is_fenced and self.storage.store.is_available:
            await self._give_to_the_next()

    async def _let_go(self) -> None:
        """Answer all held connects, and wait until clients have everything."""
        if self.storage.is_fenced:
            # Another server speaks for its sessions.
            return
        answered = asyncio.Event()
        self.bayeux.stop(self.ticker.clock(), answered.set)
        await answered.wait()
        if self.forwarding is not None:
            await self.forwarding.settle()
        await asyncio.gather(self.websockets.close_drained(), self.listener.drain())

    async def _give_to_the_next(self) -> None:
        """Give everything to the next process that opens the store, whenever that may be."""
        try:
            await self._settle()
        except CannotLeave as error:
            # Only what is not finished is lost.
            log.warning("stopped before everything was finished: %s", error)
        await self._follow_no_longer()
        self.storage.right.leave()
        await self.figures.close()
        try:
            await self._write_given()
        except StoreUnavailable as error:
            log.warning("sessions without a name end with this server: %s", error)

    async def _close(self) -> None:
        await self.websockets.close_all()
        # Operators' requests, too, wait for turns, of which there are none once the right is left.
        await asyncio.gather(*(each.close() for each in self.doors.listeners.values()))


async def hand_over(doors: Leaving, door: int, last_limit_s: float = _GOING_S) -> None:
    """Hand all connections over to another process of this host."""
    link = socket.socket(fileno=door)
    await doors.hand_over(link, limit_s=_HANDING_S, last_limit_s=last_limit_s)


async def within(seconds: float, close: Callable[[], Awaitable[None]]) -> None:
    """Wait this long at most: some clients never answer, others never read."""
    try:
        async with asyncio.timeout(seconds):
            await close()
    except TimeoutError:
        log.info("stopped before some clients had read everything")
