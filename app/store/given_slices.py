"""Writes what a process that leaves gives to the next one, and reads it."""

import logging
from collections.abc import Callable, Iterable, Sequence

from holdfast.delivery.messages.given import Given
from holdfast.store.format import scripts
from holdfast.store.format.given_records import Unpacking, slices
from holdfast.store.store import Store
from holdfast.units import counted

log = logging.getLogger(__name__)

_VERSION = 1
_COUNT = "count"
_TIMEOUT_S = 5.0


class GivenUnreadable(Exception):
    """A process cannot read what the one before it has given."""


class GivenSlices:
    """What one process gives to the next one, in the store of both.

    Only what is complete counts: the number of slices is written last. It also names the epoch of
    the writer, so that only the process that opens the store next reads it: after that, sessions
    may have changed. A process that reads it puts its own epoch there, and removes everything
    before it serves. If it ends before that, nothing has changed, so the one after it reads the
    same.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, given: Iterable[Given]) -> None:
        """Write everything. Nothing may change meanwhile. Raises `StoreUnavailable`."""
        await self.drop()
        count = 0
        for each in slices(given):
            await self._save({str(count): each})
            count += 1
        await self._save({_COUNT: self._complete(count)})

    def _complete(self, count: int) -> bytes:
        return f"{_VERSION} {count} {self._store.epoch}".encode()

    async def take(self, unreadable: Callable[[str, Exception], None]) -> Sequence[Given]:
        """Return what the process before this one has given. Then call `drop`.

        What cannot be read is passed to `unreadable`. Raises `GivenUnreadable` if that is
        everything.
        """
        found = await self._store.link.ask("HGET", self._store.keys.given, _COUNT)
        if not isinstance(found, bytes):
            return ()
        version, count, epoch = found.decode().split(" ")
        if version != str(_VERSION):
            raise GivenUnreadable(f"the server before this one gave its sessions in form {version}")
        epochs = await self._store.link.ask("HGET", self._store.keys.meta, "epochs")
        if not isinstance(epochs, bytes) or epochs.decode().split()[-1:] != [epoch]:
            log.info("another server has had the store since sessions were given away")
            return ()
        await self._save({_COUNT: self._complete(int(count))})
        reading = Unpacking(unreadable)
        for number in range(int(count)):
            each = await self._store.link.ask("HGET", self._store.keys.given, number)
            if not isinstance(each, bytes):
                raise GivenUnreadable(f"slice {number} of {count} is missing")
            reading.read(each)
        return reading.given()

    async def drop(self) -> None:
        """Remove everything, if there is anything. Raises `StoreUnavailable`."""
        found = await self._store.link.ask("HKEYS", self._store.keys.given)
        names = [name.decode() for name in found] if isinstance(found, list) else []
        if names:
            # The count first: the rest alone counts for nothing.
            await self._save({_COUNT: b"", **dict.fromkeys(names, b"")})
            log.debug("removed %s that had been given", counted(len(names), "part"))

    def revoke(self) -> None:
        """Make it unreadable, even if the store is away now: this call goes before later ones."""
        keys = self._store.keys
        self._store.post(scripts.save_fields(keys, keys.given, {_COUNT: b""}))

    async def _save(self, fields: dict[str, bytes]) -> None:
        keys = self._store.keys
        call = scripts.save_fields(keys, keys.given, fields)
        await self._store.run(call, timeout_s=_TIMEOUT_S)
