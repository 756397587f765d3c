"""Epochs of frames: a seed, which stays until the store is emptied, and a number of the start."""


def parts(epoch: str) -> tuple[str, int]:
    """Return the seed of an epoch, and its number."""
    seed, _, number = epoch.rpartition("-")
    return (seed, int(number)) if number.isdecimal() else (epoch, 0)


def seed_of(epoch: str) -> str:
    """Return the part of an epoch that survives restarts, until the store is emptied."""
    return epoch.rpartition("-")[0]
