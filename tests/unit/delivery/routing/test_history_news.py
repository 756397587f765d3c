"""Readers learn which histories have changed behind their place."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.routing import history_news
from holdfast.delivery.routing.history_news import HistoryNews

CURSORS = st.integers(0, 100)


@given(st.lists(st.tuples(CURSORS, st.sampled_from("abc")), max_size=30), CURSORS)
def test_all_channels_with_later_changes_are_found(
    changes: list[tuple[int, str]], place: int
) -> None:
    news = HistoryNews()
    for cursor, channel in changes:
        news.add(cursor, channel)
    assert {*(news.since(place) or ())} == {each for cursor, each in changes if cursor > place}


def test_what_is_long_ago_is_not_known() -> None:
    news = HistoryNews()
    for cursor in range(10 * history_news._MOST):
        news.add(cursor, f"/a/{cursor}")
    assert news.since(0) is None
    assert news.since(news.floor - 1) is None
    found = news.since(news.floor)
    assert found is not None
    assert len(found) >= history_news._MOST
    assert len(news._changes) <= 2 * history_news._MOST
