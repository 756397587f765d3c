"""Readers that wait for the same: what is new is read and written once for all of them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from aiohttp import web

from holdfast.bayeux.streams.history_parts import Streams
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.streams.open_response import BEAT, OpenStream, Written

log = logging.getLogger(__name__)

# After how long without a message a stream says that it lives.
BEAT_S = 15.0
# After how long a home that did not answer is asked again.
_RETRY_S: Final = 1.0
# How many readers get something in one turn.
_IN_TURN: Final = 50


class News(Protocol):
    """What a home has answered."""

    @property
    def end(self) -> str:
        """Where it ends."""
        ...

    @property
    def is_last(self) -> bool:
        """Whether there is no more now."""
        ...

    @property
    def error(self) -> str:
        """Why nothing may be read, if so."""
        ...


N = TypeVar("N", bound=News)


class Source(Protocol[N]):
    """What readers of one kind read: the same channels in the same form."""

    @property
    def key(self) -> Hashable:
        """What differs if other readers read something else."""
        ...

    async def ask(self, home: int, offset: str, wait_s: float, /) -> N:
        """Return what is behind a place. Raises `RequestRefused` if the home is away."""
        ...

    def written(self, news: N, places: Mapping[int, str], home: int, /) -> bytes:
        """Return the events, or nothing. Readers are at these places before them."""
        ...

    def beat(self, places: Mapping[int, str], /) -> bytes:
        """Return what shows readers at these places that the stream lives."""
        ...


class Feed(Generic[N]):
    """The readers that wait for the same, all of them at the same places.

    Args:
        speaking: Waits until something may be sent.
    """

    def __init__(
        self,
        source: Source[N],
        places: Mapping[int, str],
        streams: Streams,
        speaking: Callable[[], Awaitable[None]],
        over: "Callable[[Feed[N]], None]",
    ) -> None:
        # Behind everything that its readers have got, or get next.
        self.places = dict(places)
        self._is_over = False
        self._source, self.key = source, source.key
        self._streams = streams
        self._speaking, self._over = speaking, over
        # Readers at the places of this feed, and readers that have read some news by themselves.
        self._readers: dict[OpenStream, None] = {}
        self._ahead: dict[OpenStream, None] = {}
        # Readers get the news of one home after news of another.
        self._giving = asyncio.Lock()
        self._given_at = asyncio.get_running_loop().time()
        self._tasks = [asyncio.create_task(self._follow(home)) for home in self.places]

    def add(self, reader: OpenStream) -> None:
        """Give a reader what is new. It has at least everything up to the places of this feed.

        If it has more, it reads by itself again when there is news.
        """
        among = self._readers if reader.places == self.places else self._ahead
        among[reader] = None

    def remove(self, reader: OpenStream) -> None:
        """Give a reader nothing any more."""
        self._readers.pop(reader, None)
        self._ahead.pop(reader, None)
        if not (self._readers or self._ahead):
            self.close()

    def close(self) -> None:
        """End the feed, which has no readers."""
        self._over(self)
        for task in self._tasks:
            task.cancel()

    async def _follow(self, home: int) -> None:
        try:
            while self._streams.may_wait and not self._is_over:
                await self._next(home)
        except Exception:
            log.exception("a feed has failed")
        await self._end()

    async def _next(self, home: int) -> None:
        """Give the readers what the home has next."""
        try:
            news = await self._source.ask(home, self.places[home], BEAT_S)
        except RequestRefused:
            await asyncio.sleep(_RETRY_S)
            async with self._giving:
                await self._give(b"")
            return
        async with self._giving:
            if news.error:
                self._is_over = True
                return
            text = self._source.written(news, self.places, home)
            # A reader that comes from now on has read this by itself.
            self.places[home] = news.end
            if text:
                ahead, self._ahead = self._ahead, {}
                for reader in ahead:
                    reader.fall_behind()
            await self._give(text)

    async def _give(self, text: bytes) -> None:
        now = asyncio.get_running_loop().time()
        if not text and now < self._given_at + BEAT_S / 2:
            return
        self._given_at = now
        written, beat = Written(text or self._source.beat(self.places)), Written(BEAT)
        readers = [(each, written) for each in self._readers]
        # They are at other places.
        readers += [(each, beat) for each in self._ahead]
        await self._speaking()
        for place, (reader, given) in enumerate(readers):
            reader.give(given)
            if place % _IN_TURN == _IN_TURN - 1:
                await asyncio.sleep(0)
                await self._speaking()

    async def _end(self) -> None:
        """Let the readers end, not all at once."""
        self._is_over = True
        self._over(self)
        for place, reader in enumerate([*self._readers, *self._ahead]):
            reader.stop()
            if place % _IN_TURN == _IN_TURN - 1:
                await asyncio.sleep(0)


class Feeds:
    """The feeds of this process, and how a reader comes to one.

    Args:
        speaking: Waits until something may be sent.
    """

    def __init__(self, streams: Streams, speaking: Callable[[], Awaitable[None]]) -> None:
        self._streams, self._speaking = streams, speaking
        self._feeds: dict[Hashable, Feed[Any]] = {}

    async def respond(
        self,
        source: Source[N],
        stream: OpenStream,
        first: bytes,
        most_s: float,
        farewell: Callable[[RequestRefused], bytes] | None = None,
    ) -> web.StreamResponse:
        """Send a reader the first events and what follows; returns the response.

        Args:
            farewell: Returns the event by which a reader learns that it may no longer read.
        """
        try:
            await self._speaking()
            await stream.begin()
            refused = await self._serve(source, stream, first, most_s)
            await stream.end(farewell(refused) if farewell and refused else b"")
        except (ConnectionError, TimeoutError):
            # The client has gone, or does not read.
            stream.abort()
        return stream.response

    async def _serve(
        self, source: Source[N], stream: OpenStream, first: bytes, most_s: float
    ) -> RequestRefused | None:
        """Send a reader what comes, until it should ask again. Returns why, if it has to know.

        That is after some time, when this process ends or leaves, and when nothing may be read.
        """
        clock = asyncio.get_running_loop().time
        ends_at = clock() + most_s
        try:
            await self._send(stream, first)
            while self._streams.may_wait and not stream.is_over and clock() < ends_at:
                feed = await self._joined(source, stream)
                if feed is not None:
                    try:
                        await stream.wait(ends_at - clock())
                    finally:
                        feed.remove(stream)
                    stream.has_all = False
        except RequestRefused as refused:
            return refused
        finally:
            stream.is_over = True
        return stream.refused

    async def _joined(self, source: Source[N], stream: OpenStream) -> Feed[N] | None:
        """Return the feed to which the reader belongs now. None if it has to read on."""
        feed = self._feeds.get(source.key)
        if feed is None and stream.has_all:
            feed = Feed(source, stream.places, self._streams, self._speaking, self._forget)
            self._feeds[source.key] = feed
        if feed is None or stream.places != feed.places:
            before = {} if feed is None else dict(feed.places)
            stream.has_all = await self._read_on(source, stream, before)
            is_there = self._feeds.get(source.key) is feed
            if feed is None or not (stream.has_all and is_there and feed.places == before):
                return None
        feed.add(stream)
        return feed

    def _forget(self, feed: Feed[Any]) -> None:
        if self._feeds.get(feed.key) is feed:
            del self._feeds[feed.key]

    async def _read_on(
        self, source: Source[N], stream: OpenStream, common: Mapping[int, str]
    ) -> bool:
        """Send what there is. Returns whether that was all.

        Args:
            common: Where other readers are. This one will be there, unless it has more.
        """
        has_all = True
        for home in stream.places:
            has_all &= await self._read_at(home, source, stream, common.get(home, ""))
        return has_all

    async def _read_at(self, home: int, source: Source[N], stream: OpenStream, common: str) -> bool:
        place = stream.places[home]
        try:
            if _is_before(common, place):
                news = await source.ask(home, common, 0.0)
                between = {**stream.places, home: common}
                if not (news.error or source.written(news, between, home)):
                    stream.places[home] = common
                    return True
            news = await source.ask(home, place, 0.0)
        except RequestRefused:
            await asyncio.sleep(_RETRY_S)
            return False
        if news.error:
            stream.stop()
            return False
        await self._send(stream, source.written(news, stream.places, home))
        skips = news.is_last and _is_before(news.end, common)
        stream.places[home] = common if skips else news.end
        return news.is_last

    async def _send(self, stream: OpenStream, text: bytes) -> None:
        """Send something to one reader. Raises `RequestRefused` if it may no longer read."""
        if text:
            await self._speaking()
            await stream.send(text)


def _is_before(one: str, other: str) -> bool:
    """Return whether a place is before another one of the same store."""
    return one < other and one.rpartition("_")[0] == other.rpartition("_")[0]
