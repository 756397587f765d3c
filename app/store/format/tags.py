"""The hash tags of shards, which spread them over the slots of a cluster.

A cluster gives each primary a range of the 16,384 slots, and a key's slot is the CRC16 of its tag.
Plain names such as `holdfast/1`, `holdfast/2` fall anywhere: three shards often share a primary.
Here, the slot of each shard is chosen first: a fixed step after the slot of the shard before it.
The step divides the slots by the golden section, so that the slots of shards 0 to n-1 are about
equally far apart for every n. A suffix then brings the tag into that slot.
"""

from binascii import crc_hqx
from functools import cache
from itertools import product
from string import ascii_lowercase

SLOTS = 16_384
# Odd, so that no two of the first 16,384 shards share a slot.
_STEP = 10_127
_SUFFIX_LENGTH = 4


def slot_of(tag: str) -> int:
    """Return the slot of all keys with this hash tag."""
    return crc_hqx(tag.encode(), 0) % SLOTS


def tag_of(namespace: str, shard: int) -> str:
    """Return the hash tag of a shard's keys. Shard 0 has the namespace itself."""
    if shard == 0:
        return namespace
    begin = f"{namespace}/{shard}-"
    slot = (slot_of(namespace) + shard * _STEP) % SLOTS
    # CRC16 is linear: whatever the beginning, it changes the checksums of all suffixes by the same
    # bits. They are those that it gives to zeros.
    bits = crc_hqx(bytes(_SUFFIX_LENGTH), crc_hqx(begin.encode(), 0)) % SLOTS
    return begin + _suffixes()[slot ^ bits]


@cache
def _suffixes() -> dict[int, str]:
    """Return the first suffix, in alphabetical order, for each slot."""
    found: dict[int, str] = {}
    letters = product(ascii_lowercase, repeat=_SUFFIX_LENGTH)
    while len(found) < SLOTS:
        suffix = "".join(next(letters))
        found.setdefault(slot_of(suffix), suffix)
    return found
