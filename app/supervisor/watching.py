"""Which servers are killed because they say nothing: frozen ones soon, others later."""

import signal
from collections.abc import Iterable

from holdfast.supervisor.log import log
from holdfast.supervisor.processes import Process
from holdfast.supervisor.system import System

# A server that says nothing for so long is logged, and systemd's watchdog is fed no more.
SILENT_S = 10.0
# If clients wait for what it does in a hand-over, it is then killed.
AWAITED_S = 5.0
# How many signs in a row must show that it is frozen.
_FEWEST_SIGNS = 4


class Watch:
    """Notes how long servers have been silent, and whether they ran meanwhile.

    A server that computes for long is silent, too, but uses the processor, or waits for it. One
    that does neither is stopped, waits for a disk, or hangs. Only time in which the supervisor
    itself ran counts: a machine that was suspended, or has too much to do, has delayed it as well.

    Args:
        tick_s: How often the supervisor looks.
    """

    # A server that does not run is killed after the first time, any other after the second one,
    # which a long collection of garbage does not take.
    frozen_s = 5.0
    killed_after_s = 60.0

    def __init__(self, system: System, tick_s: float) -> None:
        self._system = system
        self._tick_s = tick_s
        self._ticked = self._late_at = system.now()

    def look(self, processes: Iterable[Process]) -> None:
        """Kill those that are silent for too long."""
        now, longest_s = self._system.now(), 2 * self._tick_s
        # While the machine, or this process, was suspended, no server could say anything.
        passed_s = min(now - self._ticked, longest_s)
        if now - self._ticked > longest_s:
            self._late_at = now
        self._ticked = now
        for each in processes:
            if each.silent_s is not None:
                each.silent_s += passed_s
                self._feel(each, now)
                self._bear(each, each.silent_s - passed_s, each.silent_s)

    def hears(self, servers: Iterable[Process | None]) -> bool:
        """Whether all of these have said lately that they live."""
        return all(each is None or (each.silent_s or 0.0) <= SILENT_S for each in servers)

    def _feel(self, process: Process, now: float) -> None:
        """Note whether a silent server runs."""
        if (process.silent_s or 0.0) < self._tick_s or now - process.felt_at < self._tick_s * 0.9:
            return
        before, since = process.signs, process.felt_at
        process.signs, process.felt_at = self._system.signs(process.pid), now
        is_still = process.signs == before and before is not None and not before.is_runnable
        if is_still and self._late_at < since:
            process.still_s += now - since
            process.still_signs += 1
        else:
            process.note_running()

    def _bear(self, process: Process, before_s: float, silent_s: float) -> None:
        is_still = process.still_signs >= _FEWEST_SIGNS and process.still_s >= self.frozen_s
        limit_s = AWAITED_S if process.is_awaited else self.killed_after_s
        said_nothing = f"{process.name} has said nothing for"
        if silent_s > limit_s:
            self._kill(process, f"{said_nothing} {limit_s:g} s")
        elif is_still and silent_s > self.frozen_s:
            self._kill(process, f"{process.name} has not run for {self.frozen_s:g} s")
        elif before_s <= SILENT_S < silent_s:
            log("error", f"{said_nothing} {SILENT_S:g} s")

    def _kill(self, process: Process, why: str) -> None:
        log("error", f"{why}: it is killed")
        process.signal(signal.SIGKILL)
        process.silent_s = None
