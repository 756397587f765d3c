"""A link remembers the latest speakers, as far as there is room."""

from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from holdfast.bayeux.wire.caller import Caller, Speaker
from holdfast.web.forwarding.frames import FrameReader
from holdfast.web.forwarding.speakers import KnownSpeakers, ToldSpeakers, write

PLACES = 4
ROOM = 3000


def speaker(size: int) -> Speaker:
    headers = CIMultiDictProxy(CIMultiDict({"X": "x" * size}))
    return Speaker(Caller("192.0.2.1", "192.0.2.1", headers))


def known_bytes(known: KnownSpeakers) -> int:
    return sum(len(each.caller.headers.get("X", "")) for each in known._known)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 400, 2000])), max_size=30))
def test_both_ends_agree_on_every_speaker_and_neither_keeps_too_much(
    spoken: list[tuple[int, int]],
) -> None:
    told, known = ToldSpeakers(PLACES, ROOM), KnownSpeakers(PLACES)
    speakers: dict[tuple[int, int], Speaker] = {}
    for each in spoken:
        said = speakers.setdefault(each, speaker(each[1]))
        place, telling = told.place_of(said)
        for _, number, data in FrameReader().read(telling):
            known.learn(number, data)
        assert write(known.at(place)) == write(said)
        assert sum(size for _, _, size in told._told.values()) <= ROOM
        # What only the home remembers takes no more room than that.
        assert known_bytes(known) <= 2 * ROOM


def test_a_speaker_that_is_remembered_is_not_told_again() -> None:
    told = ToldSpeakers(PLACES, ROOM)
    few = [speaker(10) for _ in range(PLACES)]
    places = [told.place_of(each)[0] for each in few]
    assert sorted(places) == [*range(PLACES)]
    assert [told.place_of(each) for each in few] == [(place, b"") for place in places]


def test_large_speakers_leave_room_for_no_more_than_the_limit() -> None:
    told = ToldSpeakers(most_bytes=100_000)
    for _ in range(50):
        told.place_of(speaker(30_000))
    assert len(told._told) == 3
