"""Judges whether processes speak for the same sessions one after the other (S2)."""

from collections.abc import Callable

from tests.simulation.process import Life, Process

_MOST_TOLD = 10


class Speakers:
    """The processes that spoke for some sessions, in the order in which they began.

    Args:
        shard: Whose sessions they are; None for all of the deployment.
        now: Returns the true time.
        is_lost: Whether a store has lost what it was told at a time.
    """

    def __init__(
        self, shard: int | None, now: Callable[[], float], is_lost: Callable[[float], bool]
    ) -> None:
        self._is_for_shard = shard is not None
        self._what = "" if shard is None else f" for shard {shard}"
        self._now, self._is_lost = now, is_lost
        self._order: list[Process] = []
        self._began_at: dict[Process, float] = {}
        self.violations: list[str] = []

    @property
    def last(self) -> Process | None:
        """The process that began last."""
        return self._order[-1] if self._order else None

    @property
    def were_several(self) -> bool:
        """Whether one has taken the place of another."""
        return len(self._order) > 1

    def spoke(self, process: Process, where: str) -> None:
        """Note that a process speaks: none may once another one has begun to."""
        order = self._order
        if process not in self._began_at:
            order.append(process)
            self._began_at[process] = self._now()
        elif order[-1] is not process and self._may_go_on(process, order[-1]):
            order.remove(process)
            order.append(process)
        elif order[-1] is not process and len(self.violations) < _MOST_TOLD:
            self.violations.append(
                f"S2: process {process.pid} speaks{self._what} at {self._now():.3f} on {where}, "
                f"although process {order[-1].pid} has begun to"
            )

    def _may_go_on(self, process: Process, last: Process) -> bool:
        """Return whether the last one has ended, and its opening counts no more.

        The store has lost it, or the process has handed over to the last one, and knows its end.
        """
        has_heir = self._is_for_shard and process.clocks is last.clocks
        return last.life is Life.ENDED and (has_heir or self._is_lost(self._began_at[last]))
