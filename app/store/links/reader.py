"""The second connection to the store, for operators' reads, which must not delay writes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.primary import MOVING_S, Primary
from holdfast.store.links.resp import Redirected, RespConnection, Unusable, Word
from holdfast.store.links.script import Script

_Run = Callable[[RespConnection, Sequence[Sequence[Word]]], Awaitable[list[object]]]
_TIMEOUT_S = 5.0
_SILENT = "it does not answer"


class Reader:
    """Runs one query after the other. All methods raise `StoreUnavailable`.

    It connects for its first query, and for the next one after a failure. If the store moves to
    another server of its cluster, the query follows, within the same time limit.
    """

    def __init__(self, primary: Primary) -> None:
        self._primary = primary
        self._wire: RespConnection | None = None
        self._turn = asyncio.Lock()
        # How often the store had been replaced when this connection began.
        self._replacements = 0

    @property
    def is_connected(self) -> bool:
        """Whether the next query goes out at once."""
        return self._wire is not None and not self._wire.lost.done()

    @property
    def is_in_use(self) -> bool:
        """Whether a query is under way, for which it may still connect."""
        return self._turn.locked()

    @property
    def connection(self) -> object:
        """What tells the connection from an earlier one."""
        return self._wire

    async def ask(self, *command: Word) -> Any:  # noqa: ANN401 - whatever the command answers
        """Run a command and return the answer."""
        [answer] = await self.ask_all(command)
        return answer

    async def run(self, script: Script, keys: Sequence[Word], args: Sequence[Word]) -> Any:  # noqa: ANN401 - see above
        """Run a script and return the answer."""
        return await self.ask(*evaluation(script, keys, args))

    async def ask_all(self, *commands: Sequence[Word]) -> list[Any]:
        """Run commands, sent together, and return their answers."""
        return await self._in_turn(commands, RespConnection.ask)

    async def _in_turn(self, commands: Sequence[Sequence[Word]], run: _Run) -> list[Any]:
        try:
            async with asyncio.timeout(_TIMEOUT_S), self._turn:
                return await self._answers(commands, run)
        except Unusable as error:
            raise _unavailable(error) from error
        except TimeoutError as error:
            raise _unavailable(_SILENT) from error

    async def attempt(self, *commands: Sequence[Word]) -> list[Any]:
        """Run commands, sent together. Those that the store refuses are answered by exceptions."""
        return await self._in_turn(commands, RespConnection.attempt)

    async def is_named_by_sentinels(self, timeout_s: float) -> bool:
        """Return whether most Sentinels name the server that has answered."""
        wire = self._wire
        return wire is not None and await self._primary.is_named_by_most(wire.address, timeout_s)

    @property
    def has_sentinels(self) -> bool:
        """Whether Sentinels say where the store is."""
        return self._primary.has_sentinels

    @property
    def is_in_cluster(self) -> bool:
        """Whether the server that has answered is a node of a cluster."""
        return self._wire is not None and self._wire.is_in_cluster

    async def lend(self, use: Callable[[RespConnection], Awaitable[None]]) -> None:
        """Let `use` have the connection, and return when it does. It sees to its time limits.

        If the store moves meanwhile, it returns, too.
        """
        try:
            async with self._turn:
                async with asyncio.timeout(_TIMEOUT_S):
                    wire = await self._connected()
                with self._closing():
                    await use(wire)
        except Redirected:
            await asyncio.sleep(MOVING_S)
        except Unusable as error:
            raise _unavailable(error) from error
        except TimeoutError as error:
            raise _unavailable(_SILENT) from error

    async def _answers(self, commands: Sequence[Sequence[Word]], run: _Run) -> list[object]:
        while True:
            wire = await self._connected()
            try:
                with self._closing():
                    return await run(wire, commands)
            except Redirected:
                await asyncio.sleep(MOVING_S)

    async def _connected(self) -> RespConnection:
        primary, wire = self._primary, self._wire
        is_former = wire is not None and wire.address == primary.former
        is_left = is_former and self._replacements != primary.replacements
        self._replacements = primary.replacements
        if wire is not None and (is_left or wire.address != primary.address):
            # The store is elsewhere, also if another connection has found that out: this one may
            # lead nowhere.
            self.close()
        if self._wire is None or self._wire.lost.done():
            self._wire = await self._primary.connect([], _TIMEOUT_S)
        return self._wire

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Close the connection after a failure: the next query would take answers still due."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, Redirected):
                self._primary.moved(error.error)
            raise

    def close(self) -> None:
        """Close the connection. Answers that are still due are lost."""
        if self._wire is not None:
            self._wire.abort("closed")


def _unavailable(why: object) -> StoreUnavailable:
    return StoreUnavailable(f"the store cannot be read: {why}")


def evaluation(script: Script, keys: Sequence[Word], args: Sequence[Word]) -> Sequence[Word]:
    """Return the command that runs a script even if the store has not loaded it."""
    return ("EVAL", script.source, len(keys), *keys, *args)


def fields_of(found: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the fields of a stream entry, which arrive as names and values in turn."""
    return dict(zip(found[::2], found[1::2], strict=True))
