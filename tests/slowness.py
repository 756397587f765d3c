"""How much longer everything takes here and now than on a machine that does nothing else."""

import math
import os


def times_slower(most: float = math.inf) -> float:
    """Return how many processes share each processor, as the load of the last minute says."""
    return min(most, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))
