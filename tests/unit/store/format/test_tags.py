"""The hash tags of shards: distinct, unchanging, and spread over the slots of a cluster."""

from bisect import bisect_right
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.format.tags import SLOTS, slot_of, tag_of

pytestmark = pytest.mark.untraced

NAMESPACES = st.text("abcxyz019-", min_size=1, max_size=32)


def shards_by_primary(namespace: str, shards: int, primaries: int) -> list[int]:
    """How many shards each primary has, if the cluster is divided as its tool divides it."""
    begins = [round(SLOTS / primaries * number) for number in range(primaries)]
    slots = (slot_of(tag_of(namespace, shard)) for shard in range(shards))
    found = Counter(bisect_right(begins, slot) for slot in slots)
    return [found[number + 1] for number in range(primaries)]


@given(NAMESPACES, st.integers(1, 64), st.integers(1, 24))
def test_any_number_of_shards_is_balanced_over_any_number_of_equal_primaries(
    namespace: str, shards: int, primaries: int
) -> None:
    counts = shards_by_primary(namespace, shards, primaries)
    fair = shards / primaries
    assert fair - 2 <= min(counts) <= max(counts) <= fair + 2


@given(NAMESPACES, st.integers(1, 16))
def test_every_primary_has_a_shard_if_there_are_twice_as_many_shards(
    namespace: str, primaries: int
) -> None:
    assert min(shards_by_primary(namespace, 2 * primaries, primaries)) >= 1


@given(NAMESPACES)
def test_shards_0_to_999_have_slots_and_tags_of_their_own(namespace: str) -> None:
    tags = [tag_of(namespace, shard) for shard in range(1000)]
    assert len({*tags}) == len({*map(slot_of, tags)}) == 1000


def test_shard_0_has_the_keys_of_a_store_without_shards() -> None:
    assert tag_of("holdfast", 0) == "holdfast"


def test_the_tags_never_change_because_stored_keys_have_them() -> None:
    assert [tag_of("holdfast", shard) for shard in (1, 2, 3, 999)] == [
        "holdfast/1-bhiy",
        "holdfast/2-alxx",
        "holdfast/3-ahww",
        "holdfast/999-bfoh",
    ]


def test_the_slot_is_the_one_that_the_servers_compute() -> None:
    # The example of the specification of Redis Cluster: CRC16 of 123456789 is 31C3.
    assert slot_of("123456789") == 0x31C3
