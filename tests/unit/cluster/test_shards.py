"""Which shard has what."""

from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire import client_ids
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.cluster.shards import (
    BUCKETS,
    Homes,
    MapUnreadable,
    Shards,
    first_map,
    homes_of,
    map_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

IDS = ClientIds(bytes(32), bytes)
counts = st.integers(1, 60)


def sizes(of_bucket: "Sequence[int]") -> Counter[int]:
    return Counter(of_bucket)


def test_there_are_as_many_buckets_as_ids_of_clients_name() -> None:
    assert BUCKETS == client_ids.BUCKETS


@given(counts)
def test_shards_have_equally_many_buckets(count: int) -> None:
    found = first_map(count)
    assert found.count == count
    assert len(found.of_bucket) == BUCKETS
    assert max(sizes(found.of_bucket).values()) - min(sizes(found.of_bucket).values()) <= 1


@given(st.lists(counts, min_size=1, max_size=4))
def test_a_change_of_the_number_of_shards_moves_no_more_buckets_than_it_must(
    history: list[int],
) -> None:
    now = first_map(history[0])
    for count in history[1:]:
        after = now.for_shards(count)
        assert after.count == count
        room, had = sizes(after.of_bucket), sizes(now.of_bucket)
        assert max(room.values()) - min(room.values()) <= 1
        moved = sum(a != b for a, b in zip(now.of_bucket, after.of_bucket, strict=True))
        # Each shard that stays keeps all that it has room for.
        assert moved == BUCKETS - sum(min(room[shard], had[shard]) for shard in room)
        assert map_of(after.to_json()) == after
        now = after


def test_a_map_is_stored_as_ranges() -> None:
    assert first_map(2).to_json() == b'{"v":1,"ranges":[[0,499,0],[500,999,1]]}'


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"[]",
        b'{"v":2,"ranges":[[0,999,0]]}',
        b'{"v":1,"ranges":[[0,998,0]]}',
        b'{"v":1,"ranges":[[0,999,1]]}',
        b'{"v":1,"ranges":[[0,5000000000,0]]}',
        b'{"v":1,"ranges":[[0,499,0],[501,999,1]]}',
        b'{"v":1,"ranges":[[0,499,0],[500,999,"1"]]}',
        b'{"v":1,"ranges":7}',
    ],
)
def test_an_unreadable_map_is_refused(record: bytes) -> None:
    with pytest.raises(MapUnreadable):
        map_of(record)


HOMES = Homes({"/**": 1, "/orders/*": 2, "/chat/rooms/**": 3})


@pytest.mark.parametrize(
    ("channel", "key"),
    [
        ("/news", "/news"),
        ("/news/today/noon", "/news"),
        ("/orders/new", "/orders/new"),
        ("/orders/new/europe", "/orders"),
        ("/chat/rooms/7", "/chat/rooms/7"),
        ("/chat/rooms/7/typing", "/chat/rooms/7"),
        ("/sys/anything", None),
    ],
)
def test_the_nearest_rule_says_which_segments_of_a_channel_decide(
    channel: str, key: str | None
) -> None:
    assert HOMES.key_of(channel) == key


def test_channels_without_a_rule_have_no_home() -> None:
    assert Homes({"/orders/*": 1}).key_of("/news") is None


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("/news", "/news"),
        ("/news/**", "/news"),
        ("/news/a/*", "/news"),
        ("/**", None),
        ("/orders/*", None),
        ("/chat/rooms/7/**", "/chat/rooms/7"),
        ("/chat/rooms/**", None),
        ("/chat/**", None),
    ],
)
def test_a_pattern_has_a_home_if_all_of_its_channels_have_the_same(
    pattern: str, key: str | None
) -> None:
    assert HOMES.key_of_pattern(pattern) == key


def test_a_table_of_homes_is_read_as_it_was_written() -> None:
    assert homes_of(HOMES.to_json()) == HOMES
    turned = Homes(dict(reversed([*HOMES.segments.items()])))
    assert turned.to_json() == HOMES.to_json()
    for record in (b"", b"[]", b'{"v":1,"segments":{"/a":"1"}}', b'{"v":2,"segments":{}}'):
        with pytest.raises(MapUnreadable):
            homes_of(record)


def test_sessions_subjects_and_channels_have_the_shard_of_their_bucket() -> None:
    shards = Shards(first_map(7), HOMES, IDS.bucket_of)
    assert shards.of_bucket(999) == 6
    assert shards.of_subject("ann") == shards.of_bucket(IDS.bucket_of("ann"))
    assert shards.of_channel("/sys/x") is None
    assert shards.of_channel("/news/a") == shards.of_channel("/news/b")
    found = {shards.of_channel(f"/{blake2b(bytes([n])).hexdigest()[:8]}") for n in range(99)}
    assert found == {*range(7)}
