"""Which channels have a home among several shards: those whose rules need one that decides."""

from collections.abc import Iterator, Mapping

from holdfast.cluster.shards import Homes, MapUnreadable, homes_of
from holdfast.compose.cannot_start import CannotStart
from holdfast.delivery.basics.channels import covers
from holdfast.settings import ChannelSettings


class OtherHomes(CannotStart):
    """The store was created for rules after which other channels have homes."""

    def __init__(self, patterns: list[str]) -> None:
        named = ", ".join(f'"{each}"' for each in patterns)
        super().__init__(
            f"channels: this deployment was created with other rules for {named}, and the shards "
            "that keep these channels would change: restore history, work_queue and topic in the"
            " rules. To change them, what is kept has to be divided again: stop the server, and run"
            " holdfast reshard --rules"
        )


def homes_for(rules: Mapping[str, ChannelSettings]) -> Homes:
    """Return the homes that these rules need.

    Channels that agree in the fixed part of a rule's pattern have the same home, so that one shard
    has all that a subscription to the pattern asks for. For that, rules for some of these channels
    count no more segments.
    """
    patterns = [pattern for pattern, rule in rules.items() if _needs_home(rule)]
    return Homes(
        {
            pattern: min(_fixed_segments(each) for each in patterns if covers(each, pattern))
            for pattern in patterns
        }
    )


def check_homes(record: bytes, rules: Mapping[str, ChannelSettings]) -> None:
    """Compare the rules with the table in the store. Raises `CannotStart`."""
    try:
        stored = homes_of(record)
    except MapUnreadable as error:
        raise CannotStart(f"the store of shard 0 cannot be used: {error}") from error
    if changed := sorted(_changed(stored.segments, homes_for(rules).segments)):
        raise OtherHomes(changed)


def _changed(stored: Mapping[str, int], wanted: Mapping[str, int]) -> Iterator[str]:
    for pattern in stored.keys() | wanted.keys():
        if stored.get(pattern) != wanted.get(pattern):
            yield pattern


def _needs_home(rule: ChannelSettings) -> bool:
    # All shards know the members of channels.
    return bool(rule.history or rule.work_queue or rule.topic)


def _fixed_segments(pattern: str) -> int:
    """Return how many segments are the same in all channels of a pattern, but one at least."""
    fixed = pattern.rpartition("/")[0] if pattern.endswith("*") else pattern
    return max(1, fixed.count("/"))
