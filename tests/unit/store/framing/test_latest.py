"""Changes are remembered for a time in which their store answers, in case that it loses them."""

from holdfast.store.framing.latest import Latest


def test_changes_get_older_only_while_the_store_answers() -> None:
    latest = Latest[str](100)
    latest.add("first", 5, 100.0)
    latest.add("second", 6, 109.0)
    latest.forget(answered_at=110.0)
    assert latest.all() == ["first", "second"]
    latest.add("third", 5, 140.0)
    assert latest.all() == ["first", "second", "third"]
    latest.forget(answered_at=115.0)
    assert latest.all() == ["second", "third"]


def test_only_the_last_changes_are_remembered_if_they_are_large() -> None:
    latest = Latest[str](10)
    for change in ("123456", "1234", "12345"):
        latest.add(change, len(change), 100.0)
    assert latest.all() == ["1234", "12345"]
