"""Each shard says the same about where a subject, a guest or a channel is at home."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.cluster.shards import Homes, Shards, first_map
from holdfast.sharding.homes import ShardHomes

SEGMENTS = {"/news/**": 1}


def homes(number: int, segments: dict[str, int]) -> ShardHomes:
    own = SimpleNamespace(log=SimpleNamespace(pass_on=None))
    shards = Shards(first_map(2), Homes(segments), lambda name: 1000 * len(name) // 100 % 1000)
    return ShardHomes(
        number,
        shards,
        cast("Any", own),
        cast("Any", None),
        stamp=int,
        clock=float,
        core_clock=float,
        wake=lambda: None,
    )


@pytest.mark.parametrize("channel", ["/news/a", "/news/" + 50 * "a", "/news", "/other"])
def test_a_channel_has_one_home_or_none(channel: str) -> None:
    first, second = homes(0, SEGMENTS), homes(1, SEGMENTS)
    # Asked again, they remember it.
    for _ in range(2):
        said = [first.home_of(channel), second.home_of(channel)]
        has_home = channel.startswith("/news/")
        assert said in ([None, 0], [1, None]) if has_home else said == [None, None]


def test_without_rules_no_channel_has_a_home() -> None:
    assert homes(0, {}).home_of("/news/a") is None


def test_a_subject_has_one_home() -> None:
    for subject in ("joe", 60 * "a"):
        said = [homes(number, {}).home_of_subject(subject) for number in range(2)]
        assert said in ([None, 0], [1, None])


def test_a_guest_is_where_its_name_says_if_there_is_such_a_shard() -> None:
    assert [homes(0, {}).home_of_guest(shard) for shard in range(3)] == [None, 1, None]
