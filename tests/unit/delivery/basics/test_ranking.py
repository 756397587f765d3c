"""Rankings of names: never too high, and at most so much too low as they say."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics import ranking
from holdfast.delivery.basics.ranking import MOST, Ranking, Rankings, RecentNames

# A few names come often, and many once.
NAMES = st.lists(
    st.one_of(st.sampled_from("abcde"), st.integers(0, 300).map(str)), min_size=1, max_size=400
)


def check(found: Ranking, exact: Counter[str]) -> None:
    assert len(found.counts) <= MOST
    for name, count in exact.items():
        known = found.counts.get(name, 0)
        assert known <= count <= known + found.missing
    assert found.counts.keys() <= exact.keys()
    assert found.missing * (MOST + 1) <= exact.total()


@given(parts=st.lists(NAMES, min_size=1, max_size=6))
def test_a_ranking_of_several_times_has_the_error_that_it_says(parts: list[list[str]]) -> None:
    total, exact = Ranking(), Counter[str]()
    for part in parts:
        recent = RecentNames()
        for name in part:
            recent.add(name)
        taken = recent.take()
        check(taken, Counter(part))
        total.add(taken.counts, taken.missing)
        exact.update(part)
    check(total, exact)


def test_names_beyond_the_exact_ones_are_ranked_meanwhile() -> None:
    recent, exact = RecentNames(), Counter[str]()
    for number in range(3 * ranking._RECENT):
        for name in ("often", str(number)):
            recent.add(name)
            exact[name] += 1
    found = recent.take()
    check(found, exact)
    assert found.first()[0][0] == "often"
    assert recent.take().counts == {}


def test_runs_of_one_name_count_as_often_as_it_came() -> None:
    rankings = Rankings()
    sender, channel = "client/joe/1", "/news"
    for _ in range(5):
        rankings.published(sender, channel)
    rankings.published("client/ann/1", channel)
    assert rankings.senders.take().first() == [(sender, 5), ("client/ann/1", 1)]
    assert rankings.channels.take().first() == [(channel, 6)]


def test_channels_for_replies_count_as_one_however_many_there_are() -> None:
    rankings = Rankings()
    for number in range(5 * ranking._RECENT):
        rankings.published("client/joe/1", f"/ret/{number}/1")
    rankings.published("client/joe/1", "/news")
    found = rankings.channels.take()
    assert found.first() == [("/ret/*", 5 * ranking._RECENT), ("/news", 1)]
    assert found.missing == 0


def test_names_with_equal_counts_are_in_order() -> None:
    assert Ranking({"b": 2, "a": 2, "c": 3}).first() == [("c", 3), ("a", 2), ("b", 2)]
