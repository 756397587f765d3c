"""How many workers a server has: what its settings say, or what the machine allows."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import NamedTuple

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.placement import NO_SHARD, Placement, alone, data_of, placed
from holdfast.compose.supervised import Supervised
from holdfast.settings import Settings
from holdfast.settings.server import MOST_WORKERS
from holdfast.store.local.home import STORE
from holdfast.store.opening.asking_to_open import Claimed

log = logging.getLogger(__name__)

# In bytes. What a worker and its store take, with room for sessions and messages.
_MEMORY = 512 * 1024**2
_GIB = 1024**3
# In the directory of a shard that the deployment does not have, or not yet.
_UNUSED = "unused"
_ROOT = Path("/sys/fs/cgroup")
# In bytes. A socket path may have 104 to 108, depending on the system.
_LONGEST_LINKS = 90


def count_of(settings: Settings, *, is_supervised: bool, stored: int | None = None) -> int:
    """Return the number of workers. Raises `CannotStart` if there cannot be so many.

    Args:
        stored: How many the deployment was created with, if that is known.
    """
    count = settings.workers
    if count == "auto":
        can_be_several = is_supervised and sys.platform == "linux"
        count = settings.shards or stored or (allowance().workers if can_be_several else 1)
    if count > 1 and not is_supervised:
        raise CannotStart(
            f"workers: {count} workers need a supervisor, which starts them: set supervisor to "
            "true, or workers to 1"
        )
    if count > 1 and sys.platform != "linux":
        raise CannotStart("workers: several workers need Linux: set workers to 1")
    return count


def stored_here(data: Path) -> int | None:
    """Return how many workers a data directory with stores is for; None if it has no store."""
    numbers = [
        int(each.name)
        for each in data.glob("shards/*")
        if each.name.isdecimal() and not (each / _UNUSED).exists()
    ]
    if numbers:
        return 1 + max(numbers)
    return 1 if any(data.glob(f"{STORE}/appendonlydir/*")) else None


def mark_unused(data: Path, shards: Iterable[int]) -> None:
    """Let the directories of these shards, which exist from now on, count for nothing."""
    for shard in shards:
        directory = data_of(data, shard)
        directory.parent.mkdir(mode=0o700, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / _UNUSED).touch(mode=0o600)


def mark_used(data: Path, shards: Iterable[int]) -> None:
    """Let the directories of these shards count again."""
    for shard in shards:
        (data_of(data, shard) / _UNUSED).unlink(missing_ok=True)


async def _stored(settings: Settings) -> int | None:
    """Return how many workers the deployment was created with; None if it is new."""
    if settings.redis is None:
        return stored_here(settings.data)
    from holdfast.compose.shard_origin import count_in_store

    return await count_in_store(settings)


async def place_of(settings: Settings, supervisor: Supervised) -> Placement:
    """Return the place that the supervisor has for this process. Raises `CannotStart`.

    The first server says how many there are, and where their links are.
    """
    if supervisor.shard:
        # On a host of several, the process that claims shards has the first place.
        number = supervisor.shard
        if settings.hosts:
            number, claim = number - 1, supervisor.claim
            supervisor.claimed = Claimed(claim.get("unraised", ""), claim.get("offered", ""))
            if number == supervisor.shards:
                number = NO_SHARD
        return placed(settings, number, supervisor.shards, Path(supervisor.links))
    stored = await _stored(settings) if settings.workers == "auto" else None
    count = count_of(settings, is_supervised=True, stored=stored)
    if settings.workers == "auto" and supervisor.is_first:
        log.info("workers: %d, %s", count, reason_of(settings, stored))
    if count == 1:
        return alone(settings)
    if supervisor.shard is None:
        raise CannotStart(
            "workers: the supervisor that runs is of an earlier release, and knows one worker only:"
            " stop it, and start this one instead of a restart"
        )
    links = supervisor.links or _place_of_links(settings)
    return placed(settings, 0, count, Path(links))


def _place_of_links(settings: Settings) -> Path | str:
    """Return a directory for sockets, whose paths may not be long."""
    usual = placed(settings, 0, 1).links
    is_short = len(os.fsencode(usual)) <= _LONGEST_LINKS
    return usual if is_short else tempfile.mkdtemp(prefix="holdfast-")


class Allowance(NamedTuple):
    """What this process may use, and how many workers that is enough for."""

    processors: float
    # In bytes.
    memory: int

    @property
    def workers(self) -> int:
        """As many as either of them allows, and one at least."""
        return max(1, min(ceil(self.processors), self.memory // _MEMORY, MOST_WORKERS))

    def __str__(self) -> str:
        room = f"{self.memory / _GIB:.1f} GiB of memory"
        return f"{self.processors:g} processors and {room} allow {self.workers}"


def allowance(root: Path = _ROOT, own: str | None = None) -> Allowance:
    """Return what the machine and the control groups allow.

    Args:
        own: The path of the group of this process below the root.
    """
    groups = list(_groups(root, _own_group() if own is None else own))
    processors = [float(len(os.sched_getaffinity(0))), *_quotas(groups)]
    return Allowance(min(processors), min([_memory_of_machine(), *_limits(groups)]))


def reason_of(settings: Settings, stored: int | None) -> str:
    """Return why `workers = auto` is the number that it is."""
    if settings.shards:
        return "as the setting shards has it"
    if stored:
        return "as the deployment was created with; holdfast reshard changes it"
    return f"{allowance()}, which stays the number of this deployment"


def _own_group() -> str:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                return line.removeprefix("0::")
    return "/"


def _groups(root: Path, own: str) -> Iterator[Path]:
    """Yield the groups whose limits count: its own, and all above it."""
    group = root / own.strip("/")
    while group != root:
        yield group
        group = group.parent
    yield root


def _quotas(groups: list[Path]) -> Iterator[float]:
    for group in groups:
        with suppress(OSError, ValueError):
            quota, period = (group / "cpu.max").read_text().split()
            yield int(quota) / int(period)


def _limits(groups: list[Path]) -> Iterator[int]:
    for group in groups:
        with suppress(OSError, ValueError):
            yield int((group / "memory.max").read_text())


def _memory_of_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
