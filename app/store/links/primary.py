"""Finds the server that has the store, and finds it again after a failover or a move."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from holdfast.delivery.basics.ignoring import ignore
from holdfast.store.links.address import Address
from holdfast.store.links.reply_errors import StoreElsewhere
from holdfast.store.links.resp import (
    Redirected,
    RespConnection,
    Silent,
    Unreachable,
    Unusable,
    WrongRole,
)
from holdfast.store.links.url import Kind, StoreUrl

T = TypeVar("T")

log = logging.getLogger(__name__)

_NAME = "holdfast"
# How many nodes of a cluster to remember, how many to try in a row, and how often one may send us
# to the next.
_MOST_NODES = 32
_MOST_TRIED = 8
_MOST_HOPS = 5
# Where there are others to ask, the wait for a server is this short at first: it may be the frozen
# one. It grows with the time in which none was found, because all may be slow.
_SHORT_S = 0.5
_GROWTH = 0.25
# How long a call waits before it is sent again to servers between which its keys move.
MOVING_S = 0.05


class SentinelsView(NamedTuple):
    """What Sentinels know of the store, and how many there are."""

    # How long they let it be silent.
    down_after_ms: int
    all: int
    # How many of them the URL names.
    named: int


class Primary:
    """The server that has the store now. Connections of a process share what they learn about it.

    Args:
        key: A key of the store. In a cluster, the store is where its slot is.
    """

    def __init__(self, url: StoreUrl, key: str) -> None:
        self._url = url
        self._key = key
        # Whom to ask, in this order: the server itself, nodes of its cluster, or Sentinels.
        self._doors = list(url.doors)
        # Where the store was last.
        self.address = url.server if url.kind is not Kind.SENTINEL else url.doors[0]
        # Where it is according to a reply that has not been followed yet.
        self._named: Address | None = None
        # Since when no server was found; None if one was.
        self._lost_at: float | None = None
        # The server that was replaced last although it answers, and how often that has happened.
        self.former: Address | None = None
        self.replacements = 0
        # Called then.
        self.on_replaced: Callable[[], None] = ignore

    def __str__(self) -> str:
        return str(self.address)

    async def connect(self, sources: Sequence[str], timeout_s: float) -> RespConnection:
        """Connect to it and load the scripts. Raises `Unusable`.

        Args:
            timeout_s: The limit for each server that is asked.
        """
        errors: dict[Address, Unusable] = {}
        self._arrange()
        for door in self._doors[:_MOST_TRIED]:
            try:
                wire = await self._through(door, sources, timeout_s, errors)
            except Unusable as error:
                log.debug("%s does not lead to the store: %s", door, error)
                errors.setdefault(door, error)
                self._put_last(door)
            else:
                self._lost_at = None
                return wire
        if self._lost_at is None:
            self._lost_at = asyncio.get_running_loop().time()
        raise _most_telling([*errors.values()])

    @property
    def has_others(self) -> bool:
        """Whether others than the server itself know where the store is."""
        return len(self._doors) > 1 or self._url.kind is Kind.SENTINEL

    async def is_replaced(self, server: Address, timeout_s: float) -> bool:
        """Ask others whether the store is at another server than this one."""
        for door in [door for door in self._doors if door != server][:_MOST_TRIED]:
            try:
                patience_s = min(timeout_s, self._patience_s())
                return await _in_time(self._shown_by(door), patience_s) != server
            except Unusable as error:
                log.debug("%s does not say where the store is: %s", door, error)
                # Its machine may be gone together with the server: from now on, ask others first.
                self._put_last(door)
        return False

    @property
    def has_sentinels(self) -> bool:
        """Whether Sentinels say where the store is."""
        return self._url.kind is Kind.SENTINEL

    async def is_named_by_most(self, server: Address, timeout_s: float) -> bool:
        """Ask all Sentinels at once. Returns whether most of them name this server, and no other.

        The one that lets a replica take its place knows that before the others. After a planned
        failover, the former primary answers for ten seconds more: if most name another server,
        connections to this one are given up.
        """
        doors = self._url.doors
        asked = (_in_time(self._named_by(door), timeout_s) for door in doors)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for door, each in zip(doors, answers, strict=True):
            if isinstance(each, Unusable):
                log.debug("the Sentinel at %s does not answer: %s", door, each)
            elif isinstance(each, BaseException):
                raise each
        named = Counter(each for each in answers if isinstance(each, Address))
        place, votes = next(iter(named.most_common(1)), (server, 0))
        is_most = 2 * votes > len(doors)
        if is_most and place != server:
            self._be_replaced(server)
        return is_most and {*named} == {server}

    def _be_replaced(self, server: Address) -> None:
        self.former = server
        self.replacements += 1
        self.on_replaced()

    async def sentinels_view(self, timeout_s: float) -> SentinelsView | None:
        """Return what Sentinels know of the store; None if there are none."""
        if self._url.kind is not Kind.SENTINEL:
            return None
        for door in self._doors:
            try:
                found = await _in_time(self._ask_sentinel(door, "MASTER"), timeout_s)
            except Unusable as error:
                log.debug("the Sentinel at %s does not answer: %s", door, error)
                continue
            known = cast("dict[bytes, bytes]", found)
            return SentinelsView(
                down_after_ms=int(known[b"down-after-milliseconds"]),
                all=1 + int(known.get(b"num-other-sentinels", 0)),
                named=len(self._url.doors),
            )
        return None

    def moved(self, error: StoreElsewhere) -> None:
        """Remember where the keys are from now on."""
        is_named = error.code == "MOVED" and self._url.kind is not Kind.SENTINEL
        if is_named and error.place is not None:
            self._named = self._place(self.address, error.place)

    async def connect_aside(
        self, error: StoreElsewhere, sources: Sequence[str], timeout_s: float
    ) -> RespConnection:
        """Connect to the server that answers some calls already. Raises `Unusable`."""
        if error.place is None:
            raise Unusable(f"the store names no server: {error}")
        there = self._place(self.address, error.place)
        # Not by the key: its slot is not there yet.
        return await _in_time(RespConnection.connect(there, _NAME, sources), timeout_s)

    def _arrange(self) -> None:
        """Bring the servers into the order in which to ask them."""
        named, self._named = self._named, None
        if named is not None:
            self._doors = [named, *(door for door in self._doors if door != named)]
        elif self._url.kind is not Kind.SENTINEL:
            # If it is gone, others know. If not, they name it.
            self._put_last(self.address)

    def _put_last(self, door: Address) -> None:
        if door in self._doors:
            self._doors.remove(door)
            self._doors.append(door)

    def _patience_s(self) -> float:
        now = asyncio.get_running_loop().time()
        return _SHORT_S if self._lost_at is None else max(_SHORT_S, _GROWTH * (now - self._lost_at))

    async def _through(
        self,
        door: Address,
        sources: Sequence[str],
        timeout_s: float,
        errors: dict[Address, Unusable],
    ) -> RespConnection:
        if self.has_others:
            timeout_s = min(timeout_s, self._patience_s())
        there = door
        if self._url.kind is Kind.SENTINEL:
            there = await _in_time(self._named_by(door), timeout_s)
        for _ in range(_MOST_HOPS):
            if there in errors:
                raise errors[there]
            try:
                return await _in_time(self._join(there, sources), timeout_s)
            except Redirected as error:
                if error.error.place is None:
                    raise
                there = self._place(there, error.error.place)
            except Unusable as error:
                if there != door and isinstance(error, (Unreachable, Silent, WrongRole)):
                    # Others name the primary of before until they agree on the next one.
                    error.is_passing = True
                errors[there] = error
                raise
        raise Unusable("nodes of the cluster send each other's clients around", is_passing=True)

    async def _shown_by(self, door: Address) -> Address:
        """Return where a node or a Sentinel says that the store is."""
        if self._url.kind is Kind.SENTINEL:
            return await self._named_by(door)
        try:
            wire = await RespConnection.connect(door, _NAME, [], key=self._key)
        except Redirected as error:
            if error.error.place is None:
                raise
            return self._place(door, error.error.place)
        wire.abort("asked")
        return door

    async def _named_by(self, sentinel: Address) -> Address:
        """Ask a Sentinel where the store is."""
        found = await self._ask_sentinel(sentinel, "GET-MASTER-ADDR-BY-NAME")
        if not isinstance(found, list):
            raise Unusable(f"does not know the service {self._url.service}")
        host, port = found
        return self._url.server.at(host.decode(), int(port))

    async def _ask_sentinel(self, sentinel: Address, question: str) -> object:
        wire = await RespConnection.connect(sentinel, _NAME, [], role="sentinel")
        try:
            [answer] = await wire.ask([("SENTINEL", question, self._url.service)])
        finally:
            wire.abort("asked")
        return answer

    async def _join(self, there: Address, sources: Sequence[str]) -> RespConnection:
        wire = await RespConnection.connect(there, _NAME, sources, key=self._key)
        try:
            if wire.is_in_cluster:
                await self._learn(wire, there)
        except BaseException:
            wire.abort("never used")
            raise
        if there != self.address:
            log.info("the store is at %s", there)
        self.address = there
        return wire

    async def _learn(self, wire: RespConnection, there: Address) -> None:
        """Remember the nodes of a cluster, any of which knows where the store is."""
        try:
            [slots] = await wire.ask([("CLUSTER", "SLOTS")])
        except Unusable as error:
            if wire.lost.done():
                raise
            # A user may not call this.
            log.debug("%s does not name the nodes of its cluster: %s", there, error)
            return
        nodes = [node for _, _, *served in cast("list[Any]", slots) for node in served]
        found = [
            self._place(there, ((host or b"").decode(), port))
            for host, port, *_ in nodes
            if host != b"?"
        ]
        self._doors = [*dict.fromkeys([*self._url.doors, there, *found])][:_MOST_NODES]

    def _place(self, said_by: Address, place: tuple[str, int]) -> Address:
        host, port = place
        return self._url.server.at(host or said_by.host, port)


async def _in_time(work: Awaitable[T], timeout_s: float) -> T:
    """Do it in this time. Raises `Unusable`."""
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError as error:
        raise Silent("does not answer") from error


def _most_telling(errors: Sequence[Unusable]) -> Unusable:
    """Return the error that says most about the store."""
    return max(errors, key=lambda error: (error.is_passing, not isinstance(error, Unreachable)))
