"""Data directories of embedded stores, and what tests look at in them."""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.store.local.embedded import Durability, EmbeddedValkey, server_binary
from tests.serving import ROOT, kill_orphans_in
from tests.store.caller import Caller, calling

__all__ = ["kill_orphans_in"]


@asynccontextmanager
async def keeping(
    data: Path, durability: Durability = Durability.EVERYSEC
) -> AsyncIterator[Caller]:
    """An embedded store and a caller."""
    async with EmbeddedValkey(data, durability) as url, calling(url) as caller:
        yield caller


def killed_keeper(data: Path, durability: str = "everysec") -> str:
    """Run and kill a server with a store there; the URL of the orphan that it left."""
    command = [sys.executable, "-m", "tests.store.mortal_keeper", str(data), durability]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        url = keeper.stdout.readline().decode().strip()
        keeper.kill()
    return url


def stranger(data: Path) -> subprocess.Popen[bytes]:
    """A foreign Valkey that listens where ours would."""
    socket = str(data / "store.sock")
    command = [str(server_binary()), "--port", "0", "--save", "", "--unixsocket", socket]
    return subprocess.Popen(command, cwd=data, stdout=subprocess.DEVNULL)


def pid_in(data: Path) -> int:
    return int((data / "store" / "valkey.pid").read_text())


def is_alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def copied(data: Path, place: Path) -> None:
    """Copy the directory while its store runs."""
    (place / "store").mkdir(parents=True)
    (place / "store.sock").symlink_to((data / "store.sock").readlink())
    shutil.copy(data / "store" / "valkey.pid", place / "store")


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def files_of(pid: int) -> set[str]:
    """The names of the files that a process has open."""
    return {Path(os.readlink(entry)).name for entry in Path(f"/proc/{pid}/fd").iterdir()}


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def settings(caller: Caller, *names: str) -> list[str]:
    found = await caller.link.ask("CONFIG", "GET", *names)
    assert isinstance(found, dict)
    return [found[name.encode()].decode() for name in names]
