"""Questions of one shard to another on a link, such as what operators ask any of them.

Questions and answers travel in parts, each of which the other side asks for: so neither keeps more
than one, and messages wait for no more than one of each question.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from holdfast.web.forwarding.frames import Kind, pack
from holdfast.web.forwarding.shard_link import Handlers, Link

log = logging.getLogger(__name__)

MOST_OF_PART: Final = 64 * 1024
# What an answer ends with, instead of a part: it is whole, or nothing more comes.
_WHOLE: Final = b""
_BROKEN: Final = b"\0"
# What each part of an answer begins with.
_PART: Final = b"\1"

Parts = AsyncGenerator[bytes]
# Answers a question, given its head and the parts of its body.
Answering = Callable[[bytes, Parts], Parts]


class Unreachable(Exception):
    """A shard has no link, or has ended before it has answered."""


class AsksOut:
    """The end at the door: it asks the shard of a home."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._last = 0
        # By number of a question, what has come for it.
        self._asked: dict[int, asyncio.Queue[tuple[Kind, bytes]]] = {}
        self.handlers: Handlers = {
            kind: self._taking(kind) for kind in (Kind.PART_WANTED, Kind.TOLD)
        }

    def _taking(self, kind: Kind) -> Callable[[int, bytes], None]:
        def take(number: int, data: bytes) -> None:
            if (came := self._asked.get(number)) is not None:
                came.put_nowait((kind, data))

        return take

    @property
    def is_linked(self) -> bool:
        """Whether a question would reach the shard now."""
        return self._link is not None and self._link.is_open

    def begin(self, link: Link) -> None:
        """Use a new link."""
        self._link = link

    def lost(self) -> None:
        """The link has ended."""
        self._link = None
        for came in self._asked.values():
            came.put_nowait((Kind.TOLD, _BROKEN))

    async def ask(self, head: bytes, body: AsyncIterator[bytes]) -> Parts:
        """Yield the parts of the answer. Raises `Unreachable`."""
        link = self._link
        if link is None or not link.is_open:
            raise Unreachable
        number = self._last = self._last + 1
        came = self._asked[number] = asyncio.Queue()
        link.send(pack(Kind.ASKED, number, head))
        is_over = False
        try:
            while True:
                kind, data = await came.get()
                if kind is Kind.PART_WANTED:
                    link.send(pack(Kind.ASKED_PART, number, await anext(body, b"")))
                elif data.startswith(_PART):
                    yield data[len(_PART) :]
                    link.send(pack(Kind.TOLD_WANTED, number))
                else:
                    is_over = True
                    break
            if data != _WHOLE:
                raise Unreachable
        finally:
            del self._asked[number]
            if not is_over:
                link.send(pack(Kind.FORGOTTEN, number))


class Asked:
    """Answers the questions of all links.

    Args:
        answering: Answers each. Before it can, others cannot reach this shard.
    """

    def __init__(self) -> None:
        self.answering: Answering | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, answer: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Answer a question in a task that ends with this process."""
        task = asyncio.create_task(answer)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Answer no more."""
        self.answering = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Answer(NamedTuple):
    """What answers a question, and what has come for that."""

    task: asyncio.Task[None]
    # The parts of the body.
    came: asyncio.Queue[bytes]
    # Whether the next part of the answer is wanted.
    may_go_on: asyncio.Event


class AsksIn:
    """The end at the home."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._link: Link | None = None
        # By number of a question.
        self._answers: dict[int, _Answer] = {}
        self.handlers: Handlers = {
            Kind.ASKED: self._begin,
            Kind.ASKED_PART: self._take,
            Kind.TOLD_WANTED: self._go_on,
            Kind.FORGOTTEN: self._forget,
        }

    def begin(self, link: Link) -> None:
        """Answer on a new link."""
        self._link = link

    def lost(self) -> None:
        """The link has ended, and with it what its other end waits for."""
        for each in self._answers.values():
            each.task.cancel()

    def _begin(self, number: int, head: bytes) -> None:
        if self._link is not None:
            came, may_go_on = asyncio.Queue[bytes](), asyncio.Event()
            answer = self._answer(self._link, number, head, came, may_go_on)
            task = self._asked.begin(answer)
            self._answers[number] = _Answer(task, came, may_go_on)
            task.add_done_callback(lambda _: self._answers.pop(number))

    def _take(self, number: int, part: bytes) -> None:
        if number in self._answers:
            self._answers[number].came.put_nowait(part)

    def _go_on(self, number: int, _: bytes) -> None:
        if number in self._answers:
            self._answers[number].may_go_on.set()

    def _forget(self, number: int, _: bytes) -> None:
        if number in self._answers:
            self._answers[number].task.cancel()

    async def _answer(
        self,
        link: Link,
        number: int,
        head: bytes,
        came: asyncio.Queue[bytes],
        may_go_on: asyncio.Event,
    ) -> None:
        end = _BROKEN
        try:
            if self._asked.answering is not None:
                answer = self._asked.answering(head, _body(link, number, came))
                async with aclosing(_in_frames(answer)) as parts:
                    may_go_on.set()
                    async for part in parts:
                        await may_go_on.wait()
                        may_go_on.clear()
                        link.send(pack(Kind.TOLD, number, _PART + part))
                end = _WHOLE
        except Exception:
            log.exception("an answer to another shard failed midway")
        finally:
            link.send(pack(Kind.TOLD, number, end))


async def _body(link: Link, number: int, came: asyncio.Queue[bytes]) -> Parts:
    """Yield the parts of the body of a question."""
    while True:
        link.send(pack(Kind.PART_WANTED, number))
        part = await came.get()
        if not part:
            return
        yield part


async def _in_frames(parts: Parts) -> Parts:
    """Yield the same in parts that one frame may have."""
    async with aclosing(parts):
        async for part in parts:
            for at in range(0, len(part), MOST_OF_PART):
                yield part[at : at + MOST_OF_PART]
