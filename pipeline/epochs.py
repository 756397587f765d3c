"""Epochs of frames: a seed, which stays until the store is emptied, and a number of the start.

Behind the number and a dot, random text of the process keeps epochs apart, even if the store forgot
one and counts its number again. Older servers wrote none.
"""


def parts(epoch: str) -> tuple[str, int]:
    """Return the seed of an epoch, and its number."""
    seed, _, start = epoch.rpartition("-")
    number = start.partition(".")[0]
    return (seed, int(number)) if number.isdecimal() else (epoch, 0)


def seed_of(epoch: str) -> str:
    """Return the part of an epoch that survives restarts, until the store is emptied."""
    return epoch.rpartition("-")[0]
