"""Which shard publishes what: channels are dealt out evenly, whoever publishes."""

import secrets
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.transports import SpeakerKind
from holdfast.cluster.shards import first_map
from holdfast.web.forwarding.spread_publishes import AllShards

CALLER = Caller("192.0.2.7", "192.0.2.7")


def shards_of(
    messages: list[Json], count: int, key: bytes = b"key", subject: str | None = None
) -> list[int]:
    """The shard of each message; a subject's home is -1."""
    ids, shards = ClientIds(key, secrets.token_bytes), first_map(count)
    divider = AllShards(ids, shards.of_bucket.__getitem__, lambda _, __: subject)
    found = [-2] * len(messages)
    for speaker, places in divider.divide({}, CALLER, SpeakerKind.PROGRAM, messages):
        [browser] = speaker.browsers
        assert ids.fits(browser)
        for place in places:
            assert found[place] == -2
            is_spread = speaker.is_spread
            found[place] = shards.of_bucket[ids.bucket_in(browser)] if is_spread else -1
    assert -2 not in found
    return found


def on(*channels: object) -> list[Json]:
    return [{"channel": channel, "data": n} for n, channel in enumerate(channels)]


@given(
    st.integers(2, 8),
    st.binary(min_size=16, max_size=16),
    st.sampled_from(["/rooms/{}", "/rooms/{:04d}", "/a/{}/b", "/room-{}/news"]),
    st.integers(0, 10_000),
)
def test_a_hundred_numbered_channels_are_spread_within_a_fifth(
    count: int, key: bytes, form: str, first: int
) -> None:
    channels = [form.format(number) for number in range(first, first + 100)]
    shares = Counter(shards_of(on(*channels), count, key))
    # Less than one channel is no share of it.
    slack = max(0.2 * 100 / count, 3)
    assert all(abs(shares[shard] - 100 / count) <= slack for shard in range(count)), shares


@given(st.integers(2, 8), st.sampled_from([500, 1000, 2000]))
def test_channels_with_round_numbers_are_spread_too(count: int, step: int) -> None:
    channels = [f"/orders/{number * step}" for number in range(100)]
    shares = Counter(shards_of(on(*channels), count))
    assert all(shares[shard] >= 50 / count for shard in range(count)), shares


@given(st.lists(st.text(max_size=50) | st.none() | st.integers(), max_size=30))
def test_a_channel_has_one_shard_whatever_its_name_and_its_request(channels: list[object]) -> None:
    together = shards_of(on(*channels), 3)
    assert together == [shards_of(on(each), 3)[0] for each in channels]


@pytest.mark.parametrize("name", ["9" * 1_000_000, "1a" * 500_000, "/x" * 500_000 + "7"])
def test_a_very_long_name_takes_no_long_search(name: str) -> None:
    assert shards_of(on(name), 3)[0] in range(3)


def test_publishers_do_not_all_begin_at_the_same_shard() -> None:
    found = {shards_of(on("/news"), 3, subject=f"user{n}")[0] for n in range(50)}
    assert found == {0, 1, 2}


def test_only_a_subject_has_keys() -> None:
    keyed = {"channel": "/rooms/1", "data": 1, "ext": {"delivery": {"key": "k"}}}
    odd = {"channel": "/rooms/2", "data": 1, "ext": {"delivery": "key"}}
    messages = [*on("/rooms/1", "/rooms/2"), keyed, odd]
    assert (
        shards_of(messages, 2, subject="ada")[0] == shards_of(messages, 2, subject="ada")[2] == -1
    )
    assert -1 not in shards_of(messages, 2, subject="ada")[1::2]
    assert -1 not in shards_of(messages, 2)
