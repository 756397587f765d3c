"""Settings that a host must have like all hosts with shards before it gets its first one.

Each is a word, `name=value`. A setting that another release does not tell is not compared.
"""

from collections.abc import Collection, Mapping

from holdfast.hosts.rows import HostRow


def differing(own: str, rows: Mapping[str, HostRow], holders: Collection[str]) -> list[str]:
    """Return the names of settings that the others, who have shards, agree on otherwise.

    Args:
        own: What this host tells.
        holders: Hosts that may have a shard.
    """
    told = {rows[host].fixed for host in holders if host in rows and rows[host].fixed}
    if len(told) != 1:
        return []
    ours, theirs = _read(own), _read(told.pop())
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def _read(words: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in words.split())
    return {name: value for name, _, value in pairs}
