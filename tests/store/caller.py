"""A caller of a store link: its calls, their answers, and the states of the link."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from holdfast.store.links.link import LinkLimits, StoreLink
from holdfast.store.links.script import Script
from tests.store.servers import TAG, primary_at

# Adds a word to a list once, however often it is called.
NOTE = Script(
    "note",
    "if redis.call('sadd', KEYS[2], ARGV[1]) == 1 then redis.call('rpush', KEYS[1], ARGV[1]) end "
    "return ARGV[1]",
)
FAIL = Script("fail", "return redis.error_reply('EPOCH 7 is newer')")
_WAIT_LIMIT_S = 60.0
_LIST, _SET = f"{TAG}list", f"{TAG}set"


class Caller:
    """Notes words in the store and remembers the answers."""

    def __init__(self, url: str, **limits: float) -> None:
        self.states: list[tuple[bool, str]] = []
        self.answers: list[object] = []
        self.primary = primary_at(url)
        self.link = StoreLink(
            self.primary,
            on_state=lambda is_up, why: self.states.append((is_up, why)),
            random=lambda: 0.0,
            scripts=[NOTE, FAIL],
            limits=LinkLimits(**{"timeout_s": 5.0, **limits}),  # type: ignore[arg-type]
        )
        self.noted = 0

    def note(self, count: int, *, may_be_refused: bool = False) -> None:
        """Call the script with the next numbers."""
        for number in range(self.noted, self.noted + count):
            self.link.script(
                NOTE, [_LIST, _SET], [number], self.answers.append, may_be_refused=may_be_refused
            )
        self.noted += count
        # As happens at the end of a turn.
        asyncio.get_running_loop().call_soon(self.link.flush)

    async def answered(self) -> list[object]:
        """All answers, when all have come."""
        await until(lambda: self.link.unanswered == 0)
        return self.answers

    async def kept(self) -> list[int]:
        """The words in the store, in its order."""
        found = await self.link.ask("LRANGE", _LIST, 0, -1)
        assert isinstance(found, list)
        return [int(word) for word in found]

    async def is_up(self) -> None:
        await until(lambda: self.link.is_up)

    async def is_away(self) -> None:
        await until(lambda: not self.link.is_up)


@asynccontextmanager
async def calling(url: str, **limits: float) -> AsyncIterator[Caller]:
    """A caller with an open link."""
    caller = Caller(url, **limits)
    await caller.link.open()
    try:
        yield caller
    finally:
        await caller.link.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(_WAIT_LIMIT_S):
        while not condition():  # noqa: ASYNC110 - a condition of any kind
            await asyncio.sleep(0.005)
