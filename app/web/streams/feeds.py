"""Readers that wait for the same: what is new is read and written once for all of them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import partial
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
    def first(self) -> str:
        """The place of the first message; without messages, the end."""
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
        over: Callable[[], None],
    ) -> None:
        self.places = dict(places)
        self._source = source
        self._streams = streams
        self._speaking, self._over = speaking, over
        self._readers: dict[OpenStream, None] = {}
        # Readers get the news of one home after news of another.
        self._giving = asyncio.Lock()
        self._given_at = asyncio.get_running_loop().time()
        self._tasks = [asyncio.create_task(self._follow(home)) for home in self.places]

    def add(self, reader: OpenStream) -> None:
        """Give a reader what is new. It has everything up to the places of this feed."""
        for home, place in self.places.items():
            reader.places[home] = max(place, reader.places[home])
        self._readers[reader] = None

    def remove(self, reader: OpenStream) -> None:
        """Give a reader nothing any more."""
        self._readers.pop(reader, None)
        if not self._readers:
            self.close()

    def close(self) -> None:
        """End the feed. Its readers end, too."""
        self._over()
        for task in self._tasks:
            task.cancel()
        for reader in self._readers:
            reader.stop()

    async def _follow(self, home: int) -> None:
        try:
            while self._streams.may_wait:
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
            await self._give(b"")
            return
        async with self._giving:
            if news.error:
                await self._end()
                return
            text = self._source.written(news, self.places, home)
            self.places[home] = news.end
            for reader in [*self._readers] if text else ():
                # It has read by itself what this begins with.
                if news.first <= reader.places[home]:
                    self._readers.pop(reader)
                    reader.fall_behind()
            await self._give_all(text)

    async def _give(self, text: bytes) -> None:
        async with self._giving:
            await self._give_all(text)

    async def _give_all(self, text: bytes) -> None:
        now = asyncio.get_running_loop().time()
        if not text and now < self._given_at + BEAT_S / 2:
            return
        self._given_at = now
        written = Written(text or BEAT)
        await self._speaking()
        for place, reader in enumerate([*self._readers]):
            reader.give(written)
            if place % _IN_TURN == _IN_TURN - 1:
                await asyncio.sleep(0)
                await self._speaking()

    async def _end(self) -> None:
        """Let the readers end, not all at once."""
        self._over()
        for place, reader in enumerate([*self._readers]):
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
        except RequestRefused as refused:
            return refused
        return stream.refused

    async def _joined(self, source: Source[N], stream: OpenStream) -> Feed[N] | None:
        """Return the feed to which the reader belongs now. None if it has to read on."""
        feed = self._feeds.get(source.key)
        if feed is None:
            over = partial(self._forget, source.key)
            feed = Feed(source, stream.places, self._streams, self._speaking, over)
            self._feeds[source.key] = feed
        before = dict(feed.places)
        if stream.places != before:
            is_last = await self._read_on(source, stream)
            is_there = self._feeds.get(source.key) is feed and feed.places == before
            if not (is_last and is_there and _comparable(before, stream.places)):
                return None
        feed.add(stream)
        return feed

    def _forget(self, key: Hashable) -> None:
        self._feeds.pop(key, None)

    async def _read_on(self, source: Source[N], stream: OpenStream) -> bool:
        """Send what there is. Returns whether that was all."""
        is_last = True
        for home, place in stream.places.items():
            try:
                news = await source.ask(home, place, 0.0)
            except RequestRefused:
                await asyncio.sleep(_RETRY_S)
                return False
            if news.error:
                stream.stop()
                return False
            is_last &= news.is_last
            await self._send(stream, source.written(news, stream.places, home))
            stream.places[home] = news.end
        return is_last

    async def _send(self, stream: OpenStream, text: bytes) -> None:
        """Send something to one reader. Raises `RequestRefused` if it may no longer read."""
        if text:
            await self._speaking()
            await stream.send(text)


def _comparable(one: Mapping[int, str], other: Mapping[int, str]) -> bool:
    """Return whether places are of the same stores: only then the later one is greater."""
    return all(
        each.rpartition("_")[0] == other[home].rpartition("_")[0] for home, each in one.items()
    )
