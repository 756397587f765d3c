"""The stores of shards, as they are read and written while no server runs."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.scripts import AS_OWNER
from holdfast.store.links.reader import evaluation
from holdfast.store.links.resp import Word

# How many commands, or bytes of long words in them, are sent at once.
_MOST_COMMANDS = 500
_MOST_BYTES = 1024 * 1024
# How many elements of a hash are read at once. Some may be large.
_PAGE = 200

Command = Sequence[Word]


class Commands(Protocol):
    """Runs commands in a store. Raises `StoreUnavailable`."""

    async def ask(self, *command: Word) -> Any: ...  # noqa: ANN401 - whatever it answers

    async def ask_all(self, *commands: Command) -> list[Any]: ...


def _unfenced(_: int) -> str:
    """Return no epoch: a lock keeps all others away, or nothing is written."""
    return ""


class Side(NamedTuple):
    """A shard in one generation."""

    shard: int
    store: Commands
    keys: RedisKeys
    # Returns the epoch of this process in the store of a shard.
    epoch_of: Callable[[int], str] = _unfenced

    async def change(self, *commands: Command) -> list[Any]:
        """Run commands that write, and return their answers.

        None is carried out if another process has opened the store: this one may have been frozen.
        Raises `StoreUnavailable`.
        """
        epoch = self.epoch_of(self.shard)
        if not epoch:
            return await self.store.ask_all(*commands)
        words: list[Word] = [epoch]
        for command in commands:
            words += (len(command), *command)
        found: list[Any] = await self.store.ask(*evaluation(AS_OWNER, [self.keys.meta], words))
        return found

    async def pages(self, key: str) -> AsyncIterator[Mapping[bytes, bytes]]:
        """Yield the elements of a hash page by page."""
        cursor, seen = 0, set[bytes]()
        while True:
            found, pairs = await self.store.ask("HSCAN", key, cursor, "COUNT", _PAGE)
            page = dict(zip(pairs[::2], pairs[1::2], strict=True))
            # A scan may return an element twice.
            for name in seen & page.keys():
                del page[name]
            seen |= page.keys()
            if page:
                yield page
            cursor = int(found)
            if not cursor:
                return

    async def whole(self, key: str) -> Mapping[bytes, bytes]:
        """Return a hash."""
        return {name: value async for page in self.pages(key) for name, value in page.items()}


class Writer:
    """Writes to a shard, many commands at a time.

    Args:
        is_dry: Write nothing.
    """

    def __init__(self, side: Side, *, is_dry: bool = False) -> None:
        self.side = side
        self._is_dry = is_dry
        self._commands: list[Command] = []
        self._bytes = 0

    @property
    def keys(self) -> RedisKeys:
        return self.side.keys

    async def write(self, *command: Word) -> None:
        """Write soon. Every command may be repeated."""
        self._commands.append(command)
        self._bytes += sum(len(word) for word in command if isinstance(word, bytes))
        if len(self._commands) >= _MOST_COMMANDS or self._bytes >= _MOST_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write everything now."""
        commands, self._commands, self._bytes = self._commands, [], 0
        if commands and not self._is_dry:
            await self.side.change(*commands)
