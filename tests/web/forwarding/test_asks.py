"""Questions of one shard to another, and their answers, travel over a link in parts."""

import asyncio
from contextlib import aclosing

import pytest

from holdfast.web.forwarding.asks import MOST_OF_PART, Parts, Unreachable
from tests.web.forwarding.stage import Pair, pair


async def parts_of(*parts: bytes) -> Parts:
    for part in parts:
        yield part


async def told(both: Pair, head: bytes, *body: bytes) -> bytes:
    async with aclosing(both.far.asks.ask(head, parts_of(*body))) as parts:
        return b"".join([part async for part in parts])


async def back(head: bytes, body: Parts) -> Parts:
    """Answer with what was asked, backwards."""
    yield head
    for part in reversed([part async for part in body]):
        yield part


@pytest.mark.parametrize("piece", [7, 1 << 16])
async def test_the_parts_of_a_question_and_of_its_answer_arrive_in_order(piece: int) -> None:
    async with pair(piece) as both:
        both.asked.answering = back
        found = await asyncio.gather(told(both, b"1:", b"a", b"b", b"c"), told(both, b"2:"))
        assert [*found] == [b"1:cba", b"2:"]


async def test_a_large_answer_comes_in_parts_each_of_which_is_asked_for() -> None:
    begun = []

    async def large(_: bytes, __: Parts) -> Parts:
        for n in range(9):
            begun.append(n)
            yield bytes([n]) * (2 * MOST_OF_PART)

    async with pair(1 << 30) as both:
        both.asked.answering = large
        sizes = []
        async with aclosing(both.far.asks.ask(b"", parts_of())) as parts:
            async for part in parts:
                sizes.append(len(part))
                # The home makes no more than the other side has taken.
                assert len(begun) <= len(sizes) // 2 + 1
        assert sizes == [MOST_OF_PART] * 18


async def test_a_home_reads_no_more_of_a_question_than_it_wants() -> None:
    given = []

    async def endless() -> Parts:
        while True:
            given.append(b"part")
            yield b"part"

    async def hasty(_: bytes, body: Parts) -> Parts:
        yield await anext(body)

    async with pair() as both:
        both.asked.answering = hasty
        async with aclosing(both.far.asks.ask(b"", endless())) as parts:
            assert [part async for part in parts] == [b"part"]
        assert len(given) == 1


async def test_a_shard_that_ends_in_the_midst_of_an_answer_cannot_be_reached() -> None:
    async def halting(_: bytes, __: Parts) -> Parts:
        yield b"first"
        await asyncio.Event().wait()

    async with pair() as both:
        both.asked.answering = halting
        async with aclosing(both.far.asks.ask(b"", parts_of())) as parts:
            assert await anext(parts) == b"first"
            both.wire.lose()
            with pytest.raises(Unreachable):
                await anext(parts)
        with pytest.raises(Unreachable):
            await told(both, b"without a link")


async def test_an_answer_that_fails_midway_is_none(caplog: pytest.LogCaptureFixture) -> None:
    async def failing(_: bytes, __: Parts) -> Parts:
        yield b"first"
        raise ValueError("made up")

    async with pair() as both:
        with pytest.raises(Unreachable):
            await told(both, b"before anything answers")
        both.asked.answering = failing
        with pytest.raises(Unreachable):
            await told(both, b"")
        assert "failed midway" in caplog.text


@pytest.mark.parametrize("end", ["nobody waits", "the link is lost", "the home ends"])
async def test_what_nobody_waits_for_is_answered_no_further(end: str) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waiting(_: bytes, __: Parts) -> Parts:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        yield b""

    async with pair() as both:
        both.asked.answering = waiting
        asking = asyncio.create_task(told(both, b""))
        await begun.wait()
        if end == "nobody waits":
            asking.cancel()
        elif end == "the link is lost":
            both.wire.lose()
        else:
            await both.asked.close()
        await ended.wait()
        with pytest.raises(asyncio.CancelledError if asking.cancelling() else Unreachable):
            await asking
