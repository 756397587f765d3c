"""Readers that wait for the same get each message once and in order, whatever happens when."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.streams.feeds import Feeds
from holdfast.web.streams.open_response import BEAT, OpenStream, Written
from holdfast.web.streams.sent_events import farewell

HOMES = (0, 1)
# How many messages one answer has.
IN_PART = 2
MOST_READERS = 12
MOST_ASKED = 10_000
# How often what waits goes on before nothing is left to do.
ROUNDS = 100


@dataclass
class News:
    messages: Sequence[int] = ()
    end: str = ""
    is_last: bool = True
    error: str = ""


def place_of(number: int) -> str:
    return f"e_{number:06d}"


class Homes:
    """The histories of the homes, and the questions about them that wait to be answered."""

    def __init__(self) -> None:
        self.newest = dict.fromkeys(HOMES, 0)
        self.error = ""
        self.asked = 0
        self.gates: list[asyncio.Future[None]] = []
        self._woken = asyncio.Event()
        # Whether answers, and what is sent, wait until the test lets them go on.
        self.is_slow = True

    async def pass_gate(self) -> None:
        if self.is_slow:
            gate = asyncio.get_running_loop().create_future()
            self.gates.append(gate)
            await gate

    def publish(self, home: int) -> None:
        self.newest[home] += 1
        self.wake()

    def wake(self) -> None:
        self._woken.set()
        self._woken = asyncio.Event()

    async def read(self, home: int, place: str, *, waits: bool) -> News:
        self.asked += 1
        if self.asked > MOST_ASKED:
            # Otherwise it would go on for ever, and nothing else would run.
            raise asyncio.CancelledError
        await self.pass_gate()
        after = int(place.removeprefix("e_"))
        while waits and not self.error and self.newest[home] <= after:
            await self._woken.wait()
        if self.error:
            return News(error=self.error)
        found = [*range(after + 1, self.newest[home] + 1)]
        part = found[:IN_PART]
        news = News(part, place_of(part[-1] if part else after), is_last=part == found)
        # It may be long on its way.
        await self.pass_gate()
        return news


class Source:
    """What all readers read."""

    key = "key"

    def __init__(self, homes: Homes) -> None:
        self._homes = homes

    async def ask(self, home: int, offset: str, wait_s: float) -> News:
        return await self._homes.read(home, offset, waits=wait_s > 0)

    def beat(self, places: Mapping[int, str]) -> bytes:
        return BEAT

    def written(self, news: News, places: Mapping[int, str], home: int) -> bytes:
        lines = []
        for number in news.messages:
            now = {**places, home: place_of(number)}
            ends = ",".join(f"{each}={int(place[2:])}" for each, place in now.items())
            lines.append(f"{home}:{number}|{ends}\n")
        return "".join(lines).encode()


class Stream:
    """The response to one reader."""

    response = None

    def __init__(self, homes: Homes, places: Mapping[int, str]) -> None:
        self._homes = homes
        self.start = dict(places)
        self.places = dict(places)
        self.has_all = False
        self.is_over = self.is_ended = False
        self.refused: RequestRefused | None = None
        self.text = ""
        self._waiting: asyncio.Event | None = None

    async def begin(self) -> None:
        pass

    async def send(self, text: bytes) -> None:
        self.text += text.decode()
        await self._homes.pass_gate()

    def give(self, written: Written) -> None:
        if not self.is_over:
            assert not self.is_ended
            self.text += written.text.decode()

    def stop(self, refused: RequestRefused | None = None) -> None:
        self.is_over, self.refused = True, refused
        self.fall_behind()

    def fall_behind(self) -> None:
        if self._waiting is not None:
            self._waiting.set()

    async def wait(self, _: float) -> None:
        self._waiting = asyncio.Event()
        if not self.is_over:
            await self._waiting.wait()
        self._waiting = None

    async def end(self, _: bytes) -> None:
        self.is_ended = True

    def abort(self) -> None:
        raise AssertionError

    def check(self, newest: Mapping[int, int] | None = None) -> None:
        """Check that it has everything once and in order, and that each id says what it has."""
        at = {home: int(place[2:]) for home, place in self.start.items()}
        for line in self.text.replace(":\n\n", "").replace("first\n", "").splitlines():
            message, _, id = line.partition("|")
            home, number = map(int, message.split(":"))
            assert number == at[home] + 1, (self.start, self.text)
            at[home] = number
            said = {int(each[0]): int(each[2:]) for each in id.split(",")}
            assert said == at, (self.start, self.text)
        if newest is not None:
            assert at == newest, (self.start, self.text)


class Room:
    """Feeds and their readers."""

    def __init__(self) -> None:
        self.homes = Homes()
        self.streams = SimpleNamespace(may_wait=True)
        self.feeds = Feeds(cast("Any", self.streams), self.homes.pass_gate)
        self.readers: list[tuple[Stream, asyncio.Task[Any]]] = []

    def join(self, *behind: int) -> Stream:
        newest = self.homes.newest
        places = {home: place_of(max(0, newest[home] - behind[home])) for home in HOMES}
        stream = Stream(self.homes, places)
        responding = self.feeds.respond(
            cast("Any", Source(self.homes)), cast("Any", stream), b"first\n", 1000.0
        )
        self.readers.append((stream, asyncio.create_task(responding)))
        return stream

    async def settle(self) -> None:
        """Let everything go on until nothing is left to do."""
        self.homes.is_slow = False
        for _ in range(ROUNDS):
            for gate in self.homes.gates:
                if not gate.done():
                    gate.set_result(None)
            self.homes.gates.clear()
            await turns()

    async def end(self) -> None:
        self.streams.may_wait = False
        self.homes.wake()
        for stream, _ in self.readers:
            stream.stop()
        await self.settle()
        for _, task in self.readers:
            assert task.done()
        assert self.feeds._feeds == {}
        # No feed goes on without readers.
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def _take_a_step(room: Room, dice: Random) -> None:
    homes, readers = room.homes, room.readers
    chosen = dice.random()
    if chosen < 0.15:
        homes.publish(dice.choice(HOMES))
    elif chosen < 0.25 and len(readers) < MOST_READERS:
        room.join(dice.randrange(4), dice.randrange(4))
    elif chosen < 0.30 and readers:
        stream, task = dice.choice(readers)
        if dice.random() < 0.5:
            stream.stop()
        else:
            # The client is gone.
            stream.is_over = True
            task.cancel()
    elif homes.gates:
        gate = homes.gates.pop(dice.randrange(len(homes.gates)))
        if not gate.done():
            gate.set_result(None)


@pytest.mark.parametrize("seed", range(60))
async def test_every_reader_gets_every_message_once_and_in_order(seed: int) -> None:
    dice, room = Random(seed), Room()
    for _ in range(300):
        _take_a_step(room, dice)
        await turns(dice.randrange(5))
        for stream, _ in room.readers:
            stream.check()
    await room.settle()
    for stream, _ in room.readers:
        stream.check(None if stream.is_over else room.homes.newest)
    await room.end()


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    room = Room()
    room.homes.is_slow = False
    yield room
    await room.end()


async def test_a_feed_whose_histories_cannot_be_read_ends(room: Room) -> None:
    stream = room.join(0, 0)
    await turns(10)
    room.homes.error = "SUBSCRIPTIONS_EXCEEDED"
    room.homes.wake()
    await turns(10)
    assert room.homes.asked < MOST_ASKED
    assert stream.is_ended


@pytest.mark.parametrize("late", range(1, 6))
async def test_a_feed_that_was_replaced_does_not_end_the_next_one(room: Room, late: int) -> None:
    for _ in range(150):
        room.join(0, 0)
    await turns(10)
    # The server leaves, but stays after all.
    room.streams.may_wait = False
    room.homes.publish(0)
    await turns(late)
    room.streams.may_wait = True
    room.join(0, 0)
    await turns(40)
    room.join(0, 0)
    await turns(40)
    asked = room.homes.asked
    room.homes.publish(1)
    await turns(40)
    for stream, _ in room.readers[-2:]:
        stream.check(room.homes.newest)
    # One feed has asked for both readers.
    assert room.homes.asked - asked <= 1


async def test_a_reader_of_a_deep_history_is_sent_only_what_it_reads(room: Room) -> None:
    room.homes.newest[0] = 100
    room.homes.is_slow = True
    stream = room.join(100, 0)
    for _ in range(40):
        await turns()
        assert len(room.homes.gates) <= 1
        for gate in room.homes.gates:
            gate.set_result(None)
        room.homes.gates.clear()
    assert 0 < stream.text.count("|") < 100
    stream.check()


def open_stream(check: Callable[[object], None]) -> OpenStream:
    admission = SimpleNamespace(headers=lambda _: {}, check=check)
    reader = SimpleNamespace(end=None)
    return OpenStream(
        cast("Any", None), cast("Any", admission), cast("Any", reader), {}, has_all=True
    )


async def test_a_reader_that_loses_its_rights_while_it_reads_does_not_wait() -> None:
    def check(_: object) -> None:
        raise RequestRefused(ErrorReply.TICKET_EXPIRED)

    stream = open_stream(check)
    stream.recheck()
    # The feed ends at the same time, which is no reason for the page.
    stream.stop()
    async with asyncio.timeout(5.0):
        await stream.wait(60.0)
    assert stream.refused is not None
    assert stream.refused.error is ErrorReply.TICKET_EXPIRED


def test_a_page_whose_budget_is_spent_comes_again() -> None:
    said = farewell(RequestRefused(ErrorReply.BUDGET_EXCEEDED, wait_s=7.0)).decode()
    assert said.startswith("retry: 7000\nevent: unavailable\n")
    assert farewell(RequestRefused(ErrorReply.HANDSHAKE_DENIED)).startswith(b"event: end\n")
