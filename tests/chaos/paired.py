"""A server whose store has a replica, which can take the place of its primary."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.processes import reserved_port
from tests.chaos.processes import SERVER, Processes
from tests.store.servers import ValkeyServer

# How long a former primary goes on answering after it thaws, as if Sentinels had not found it yet.
_UNTOLD_S = 0.1
_STORE = {"appendonly": "yes", "appendfsync": "always", "repl-diskless-sync-delay": "0"}


class Paired(Processes):
    """A server, and the failovers of its store, which it finds by one address."""

    def __init__(
        self, home: Path, settings: Mapping[str, Any], program: Sequence[str] = SERVER
    ) -> None:
        self._address = home / "store"
        super().__init__(home, {**settings, "redis": f"unix://{self._address}"}, program)
        # Whether a replica may lack what the primary has confirmed.
        self.may_lack = not str(settings["durability"]).startswith("replicas")
        self._stack = ExitStack()
        self._primary, self._replica = self._store(), self._store()
        self._replica.follow(self._primary)
        self._lead_to_primary()

    def _store(self) -> ValkeyServer:
        port = self._stack.enter_context(reserved_port())
        return self._stack.enter_context(ValkeyServer(port=str(port), **_STORE))

    @property
    def store_socket(self) -> Path:
        """Where the primary listens."""
        return self._primary.directory / "s"

    def cut_replica_off(self) -> None:
        """The replica gets nothing from here on."""
        self._replica.ask("REPLICAOF", "NO", "ONE")

    async def promote(self) -> None:
        """The primary dies, and the replica takes its place as it is."""
        former = self._primary
        former.kill()
        self._change_places()
        former.start()
        await self._make_replica(former)

    def promote_beside_frozen(self) -> None:
        """The primary freezes, and the replica takes its place."""
        self._primary.freeze()
        self.cut_replica_off()
        self._change_places()

    async def thaw_former(self) -> None:
        """The former primary answers whatever waits, and forgets it once it is the replica."""
        self._replica.thaw()
        await asyncio.sleep(_UNTOLD_S)

    async def rejoin(self) -> None:
        """The former primary learns that it is the replica now."""
        await self._make_replica(self._replica)

    async def _make_replica(self, former: ValkeyServer) -> None:
        await asyncio.to_thread(former.follow, self._primary)

    def _change_places(self) -> None:
        self._primary, self._replica = self._replica, self._primary
        self._lead_to_primary()

    def _lead_to_primary(self) -> None:
        self._address.unlink(missing_ok=True)
        self._address.symlink_to(self.store_socket)

    async def close(self) -> None:
        """Kill all processes."""
        await super().close()
        self._stack.close()
