"""What a shard reads in the store of another one: its facts, its log, and who has it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from holdfast.store.format.keys import RedisKeys
from holdfast.store.framing.frame_reads import FrameReads, Heard, NextRead
from holdfast.store.framing.spacing import Spacing
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader


class OtherShard(NamedTuple):
    """What a shard has told all others."""

    # The random text of its newest incarnation.
    nonce: str
    # The place at the end of its log, and the one behind the last frame that changed a fact.
    end: str
    facts_at: str
    # By name, the facts that hold.
    facts: Mapping[str, str]


class OtherStore:
    """The store of another shard. All methods raise `StoreUnavailable`.

    Args:
        primary: Returns how to connect, which may be another way after a restart.
    """

    def __init__(self, primary: Callable[[], Primary], keys: RedisKeys) -> None:
        self._primary = primary
        self._keys = keys
        self._latest: Reader | None = None
        # Reads of the log must not delay looks at the holder.
        self._looking: Reader | None = None
        self._spacing = Spacing()

    @property
    def _reader(self) -> Reader:
        latest = self._latest
        # One that is connecting serves its next caller, too.
        if latest is None or not (latest.is_connected or latest.is_in_use):
            self._latest = latest = Reader(self._primary())
        return latest

    async def told(self) -> OtherShard:
        """Return what the shard has told all others."""
        keys = self._keys
        # The incarnation first: if another one follows meanwhile, the facts are read once more.
        [[epoch, end], found] = await self._reader.ask_all(
            ("HMGET", keys.meta, "epoch", "log"), ("HGETALL", keys.facts)
        )
        pairs = cast("dict[bytes, bytes]", found)
        facts = {name.decode(): value.decode() for name, value in pairs.items()}
        nonce = (epoch or b"").decode().rpartition(".")[2]
        return OtherShard(nonce, (end or b"").decode(), facts.pop("", ""), facts)

    async def follow(self, next_read: NextRead, heard: Heard) -> None:
        """Read the log until `next_read` returns None, some times at once and then with pauses."""
        await self._reader.lend(FrameReads(self._keys.log, next_read, heard, self._spacing).run)

    async def incarnations(self, id: str) -> tuple[str, str]:
        """Return the incarnations with frames in the log, and the link of the frame with the id."""
        keys = self._keys
        incarnations, link = await self._reader.ask_all(
            ("HGET", keys.meta, "openings"), ("HGET", keys.links, id)
        )
        return (incarnations or b"").decode(), (link or b"").decode()

    async def holder(self) -> str:
        """Return the epoch and the lease of the process that has the shard; '' if none has had it.

        In an embedded store, the lease is a counter, which is missing until the process serves. It
        is raised before the facts of others are read.
        """
        if self._looking is None or not self._looking.is_connected:
            self._looking = Reader(self._primary())
        epoch, lease = await self._looking.ask("HMGET", self._keys.meta, "epoch", "lease")
        if epoch is None:
            return ""
        return f"{epoch.decode()} {(lease or b'').decode()}"

    def close(self) -> None:
        """Close the connections."""
        for each in (self._latest, self._looking):
            if each is not None:
                each.close()
