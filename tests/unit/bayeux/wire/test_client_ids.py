"""Ids of clients are recognised by the deployment that made them, and by no other."""

import secrets
from collections import Counter
from functools import partial
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.client_ids import BUCKETS, ClientIds
from tests.unit.bayeux.numbered_bytes import numbered_bytes

KEY = bytes(range(32))


def ids_of(key: bytes = KEY) -> ClientIds:
    return ClientIds(key, secrets.token_bytes)


buckets = st.integers(0, BUCKETS - 1)


@given(buckets)
def test_an_id_fits_wherever_the_key_is_the_same(bucket: int) -> None:
    id = ids_of().new(bucket)
    assert ids_of().fits(id)
    assert ids_of().bucket_in(id) == bucket
    assert id.startswith(f"{bucket:03d}")
    assert len(id) == 29


def test_ids_consist_of_letters_and_digits() -> None:
    ids = ids_of()
    made = [ids.new() for _ in range(200)] + [each for _ in range(100) for each in ids.new_pair()]
    assert all(id.isascii() and id.isalnum() for id in made)


@pytest.mark.parametrize("id", ["007AbC-eFgHiJkLmNoPqRs_uVfAPE"])
def test_an_id_with_other_characters_of_an_earlier_release_fits(id: str) -> None:
    assert ids_of().fits(id)


@given(buckets, st.integers(0, 28), st.characters())
def test_an_id_with_another_character_does_not_fit(bucket: int, place: int, other: str) -> None:
    id = ids_of().new(bucket)
    changed = id[:place] + other + id[place + 1 :]
    assert ids_of().fits(changed) is (changed == id)


@given(st.none() | st.integers() | st.text() | st.lists(st.text()))
def test_any_json_value_can_be_checked(value: object) -> None:
    assert not ids_of().fits(value)


def test_an_id_of_another_deployment_does_not_fit() -> None:
    made = [ids_of(b"another").new() for _ in range(100)]
    assert not any(map(ids_of().fits, made))


@pytest.mark.parametrize("made", ["0123456789abcdef0123456789abcdef", "4kQx1nXyQ0uQmT7p2v3hZA"])
def test_an_id_of_an_earlier_release_has_a_bucket_but_does_not_fit(made: str) -> None:
    ids = ids_of()
    assert not ids.fits(made)
    assert ids.bucket_in(made) == ids_of().bucket_in(made) < BUCKETS


def test_the_bucket_of_a_subject_depends_on_the_key_alone() -> None:
    ours, others = ids_of(), ids_of(b"another")
    subjects = [f"user-{number}" for number in range(50)]
    assert [*map(ours.bucket_of, subjects)] == [*map(ids_of().bucket_of, subjects)]
    assert [*map(ours.bucket_of, subjects)] != [*map(others.bucket_of, subjects)]


@pytest.mark.slow
def test_subjects_and_new_ids_are_spread_over_all_buckets() -> None:
    ids = ClientIds(KEY, partial(numbered_bytes, count()))
    for found in (
        Counter(ids.bucket_of(f"user-{number}") for number in range(50_000)),
        Counter(ids.bucket_in(ids.new()) for _ in range(50_000)),
    ):
        assert len(found) == BUCKETS
        assert max(found.values()) < 100


def test_a_browser_of_a_restored_session_is_known_whatever_its_form() -> None:
    ids = ids_of()
    assert not ids.is_browser("former")
    ids.keep("former")
    ids.keep(ids.new())
    assert ids.is_browser("former")
    assert not ids.fits("former")
    assert ids.is_browser(ids.new())
    assert len(ids._former) == 1


def test_the_ids_of_a_session_and_its_new_browser_share_a_bucket_and_are_given_once() -> None:
    ids = ids_of()
    pairs = [ids.new_pair() for _ in range(100)]
    assert all(ids.fits(id) for pair in pairs for id in pair)
    assert all(ids.bucket_in(client) == ids.bucket_in(browser) for client, browser in pairs)
    assert len({id for pair in pairs for id in pair}) == 200


def test_new_ids_are_in_the_buckets_of_their_shard() -> None:
    ids = ClientIds(KEY, secrets.token_bytes, buckets=range(500, 510))
    made = [ids.new() for _ in range(200)] + [each for _ in range(100) for each in ids.new_pair()]
    assert {ids.bucket_in(id) for id in made} == {*range(500, 510)}
    assert all(map(ids_of().fits, made))
    assert [bucket for bucket in range(BUCKETS) if ids.owns(bucket)] == [*range(500, 510)]
    assert ids.bucket_of("joe") == ids_of().bucket_of("joe")
