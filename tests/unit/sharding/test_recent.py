"""Messages that are in a log twice are recognized."""

from holdfast.sharding.recent import RecentIds


def test_ids_are_known_until_there_are_many_newer_ones() -> None:
    recent = RecentIds(generation=10)
    for id in range(25):
        recent.add(id)
    assert [id for id in range(30) if id in recent] == [*range(10, 25)]
