"""Ends of logs that were read here, and that their stores have lost."""

import pytest

from holdfast.cluster.places import Place
from holdfast.sharding.lost_ends import LostEnds

PLACE = Place("aaaaaaaa", 3, 20, 107)


@pytest.mark.parametrize(
    "end",
    [
        PLACE,
        PLACE._replace(n=21, total=109),
        # Another incarnation has opened the store since: its log says where it went on.
        Place("bbbbbbbb", 4, 1, 100),
    ],
)
def test_a_log_that_has_what_was_read_has_lost_nothing(end: Place) -> None:
    ends = LostEnds()
    ends.saw(1, end, PLACE)
    assert ends.entries == {}


def test_what_was_read_beyond_the_end_of_the_same_incarnation_is_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ends, end = LostEnds(), PLACE._replace(n=17, total=100)
    for _ in range(3):
        ends.saw(1, end, PLACE)
    assert ends.entries == {1: 7}
    [said] = caplog.messages
    assert said.startswith("the log of shard 1 has lost its end, which was read here before: 7")
    ends.saw(1, PLACE._replace(n=16, total=99), PLACE)
    ends.saw(2, end, PLACE)
    assert ends.entries == {1: 15, 2: 7}
