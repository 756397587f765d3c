"""`python -m tests.chaos.jumping serve ...`: a server whose wall clock jumps on signals."""

import os
import signal
import time

from holdfast.cli.main import main as serve

DAY_NS = 25 * 3600 * 1_000_000_000
AHEAD, BACK = signal.SIGUSR1, signal.SIGUSR2


# What a server writes to its log when it has read a clock that was ahead.
READ_AHEAD = "the clock was read a day ahead\n"


class Clock:
    """The wall clock of this process."""

    offset_ns = 0
    reads = 0
    whole_ns = staticmethod(time.time_ns)

    @classmethod
    def now_ns(cls) -> int:
        cls.reads += 1
        return cls.whole_ns() + cls.offset_ns

    @classmethod
    def jump(cls, number: int, _: object) -> None:
        if cls.offset_ns > 0 and cls.reads:
            os.write(2, READ_AHEAD.encode())
        cls.offset_ns += DAY_NS if number == AHEAD else -DAY_NS
        cls.reads = 0


def main() -> None:
    """Replace the clock before anything of the server was made."""
    time.time_ns = Clock.now_ns
    time.time = lambda: Clock.now_ns() / 1e9
    signal.signal(AHEAD, Clock.jump)
    signal.signal(BACK, Clock.jump)
    serve()


if __name__ == "__main__":
    main()
