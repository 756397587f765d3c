"""The clocks of a simulated process, none of which is right."""

from random import Random

# How far the rates of clocks are from one second per second.
_WRONG = 0.1
# Where monotonic clocks begin, and wall clocks, in seconds.
_UP_S, EPOCH_S = 1_000.0, 1_800_000_000.0
_SKEW_S = 3_600.0
# What reading a clock costs.
_READ_S = 1e-6


class Clocks:
    """The clocks that one process can read, by true time.

    All clocks of a machine run at the same rate. The wall clock may jump, and the monotonic clock
    stands still while the machine is suspended.
    """

    def __init__(self, random: Random, *, wrong: float = _WRONG) -> None:
        self.rate = 1.0 + random.uniform(-wrong, wrong)
        self._boot_offset = random.uniform(0.0, _UP_S)
        self._suspended_s = 0.0
        # Since when it is suspended, and how often.
        self._stopped_at = 0.0
        self._stops = 0
        self._wall_offset = EPOCH_S + random.uniform(-_SKEW_S, _SKEW_S)
        self._wall_rate = self.rate
        # The processor time that this process has used.
        self.worked_s = 0.0

    def boot(self, now: float) -> float:
        """Return what a clock shows that also runs while the machine is suspended."""
        return self._boot_offset + now * self.rate

    def monotonic(self, now: float) -> float:
        """Return what the monotonic clock shows."""
        until = self._stopped_at if self._stops else now
        return self._boot_offset + until * self.rate - self._suspended_s

    def wall(self, now: float) -> float:
        """Return what the wall clock shows."""
        return self._wall_offset + now * self._wall_rate

    def when(self, monotonic: float) -> float:
        """Return the true time at which the monotonic clock will show this."""
        return (monotonic + self._suspended_s - self._boot_offset) / self.rate

    def set_right(self) -> None:
        """Let the wall clock show the true time, as where machines ask each other for it."""
        self._wall_offset, self._wall_rate = EPOCH_S, 1.0

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self._wall_offset += seconds

    @property
    def are_suspended(self) -> bool:
        """Whether the machine is suspended: nothing runs on it, whenever it was started."""
        return self._stops > 0

    def suspend(self, now: float) -> None:
        """Suspend the machine, as a lid does: its monotonic clock stands still from now on."""
        if not self._stops:
            self._stopped_at = now
        self._stops += 1

    def resume(self, now: float) -> None:
        """Let the machine go on, unless it was suspended twice."""
        self._stops -= 1
        if not self._stops:
            self._suspended_s += (now - self._stopped_at) * self.rate

    def work(self) -> float:
        """Return the processor time, which reading it adds to."""
        self.worked_s += _READ_S
        return self.worked_s
