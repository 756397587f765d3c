"""The stored form of a trail: a few bytes for all attempts of an entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.messages.trails import LONGEST_TRAIL, Attempt, first_and_last
from holdfast.store.format.trail_records import pack_trail, unpack_trail

ROOM = 250
LONGEST_CODE = "user.security.authentication.accessDenied.unknownLoginName"

attempts = st.builds(
    Attempt,
    n=st.integers(0, 2**31),
    time=st.integers(0, 2**42),
    node=st.sampled_from(["here", "there"]),
    transport=st.sampled_from(["", "long-polling", "websocket"]),
    outcome=st.sampled_from(["lost reply", "user.update.error"]),
    latency=st.none() | st.integers(0, 2**31),
    code=st.sampled_from(["", "user.update.error"]),
    text=st.text(max_size=20),
)


def refused(n: int, text: str = "disk full") -> Attempt:
    time = 1_763_000_000_000 + n * 60_000
    code = "user.update.error"
    return Attempt(n, time, "holdfast", "long-polling", code, 250, code, text)


@pytest.mark.slow
@given(st.lists(attempts, max_size=LONGEST_TRAIL))
def test_a_trail_that_fits_is_read_as_it_was_written(some: list[Attempt]) -> None:
    assert unpack_trail(pack_trail(tuple(some), 10_000)) == tuple(some)


@pytest.mark.slow
@given(st.lists(attempts, min_size=1, max_size=LONGEST_TRAIL))
def test_a_trail_that_does_not_fit_keeps_its_first_and_last_attempt(some: list[Attempt]) -> None:
    packed = pack_trail(tuple(some), ROOM)
    assert len(packed) <= ROOM
    told = unpack_trail(packed)
    assert [each.n for each in (told[0], told[-1])] == [some[0].n, some[-1].n]


def test_a_trail_of_like_attempts_fits_whole() -> None:
    trail = tuple(map(refused, range(1, LONGEST_TRAIL + 1)))
    assert unpack_trail(pack_trail(trail, ROOM)) == trail


def test_a_trail_with_the_longest_codes_fits() -> None:
    said = [
        Attempt(n, 2**41, "holdfast", transport, LONGEST_CODE, 10**9, LONGEST_CODE, text)
        for n, transport, text in (
            (10**6, "callback-polling", "\x01" * 100),
            (10**6 + 1, "long-polling", "\x02" * 100),
        )
    ]
    packed = pack_trail(first_and_last(said), ROOM)
    assert len(packed) <= ROOM
    assert [attempt.outcome for attempt in unpack_trail(packed)] == [LONGEST_CODE] * 2
