"""Shows other shards that this process lives, although no lease of its store says so."""

from collections.abc import Callable

from holdfast.cluster.inclusion import Inclusion
from holdfast.store.framing.shard_log import ShardLog
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.web.tasks import Task, cancel, task_of


class Counting:
    """Raises the counter in the store of this shard while it takes part.

    Args:
        primary: Where to connect once more: nothing else may delay a raise.
        clock: Must not stop while the process does.
        on_failed: Is called if it is raised no more: others would leave this shard out.
    """

    def __init__(
        self,
        log: ShardLog,
        primary: Primary,
        inclusion: Inclusion,
        clock: Callable[[], float],
        on_failed: Callable[[Exception], None],
    ) -> None:
        self._reader = Reader(primary)
        self._counter = log.counter(self._reader, clock, inclusion.shown)
        self._on_failed = on_failed
        self._task: Task | None = None

    def begin(self) -> None:
        """Raise it until `end` is called."""
        if self._task is None:
            self._task = task_of(self._counter.run(), self._on_failed)

    def hurry(self) -> None:
        """Raise it as soon as possible: this process did not run for a while."""
        self._counter.hurry()

    async def end(self) -> None:
        """Raise it no more."""
        if self._task is not None:
            await cancel(self._task)
            self._task = None
        self._reader.close()
