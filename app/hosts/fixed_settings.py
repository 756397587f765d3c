"""What a host must have like all hosts with shards before it gets its first one.

Each is a word, `name=value`. What another release does not tell is not compared.
"""

from collections.abc import Collection, Mapping
from typing import Final

from holdfast.hosts.rows import HostRow

# The forms of frames on links: a range, `lowest-highest`. Two hosts need one in common.
LINKS: Final = "links"


def differing(own: str, rows: Mapping[str, HostRow], holders: Collection[str]) -> list[str]:
    """Return the names of settings that the others, who have shards, agree on otherwise.

    While hosts are updated, others may tell more or fewer settings.

    Args:
        own: What this host tells.
        holders: Hosts that may have a shard.
    """
    told = [_read(rows[host].fixed) for host in holders if host in rows]
    found = []
    for name, ours in _read(own).items():
        theirs = {each[name] for each in told if name in each}
        if name == LINKS:
            is_other = not all(_have_common(ours, each) for each in theirs)
        else:
            is_other = len(theirs) == 1 and ours not in theirs
        if is_other:
            found.append(name)
    return sorted(found)


def _have_common(one: str, other: str) -> bool:
    """Return whether two ranges of forms overlap. What is no range cannot be compared."""
    try:
        lowest, highest = (int(each) for each in one.split("-"))
        other_lowest, other_highest = (int(each) for each in other.split("-"))
    except ValueError:
        return True
    return max(lowest, other_lowest) <= min(highest, other_highest)


def _read(words: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in words.split())
    return {name: value for name, _, value in pairs}
