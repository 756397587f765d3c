"""Who is on a channel."""

from itertools import count

from holdfast.delivery.presence import Presence


def presence() -> Presence[str]:
    return Presence(is_used=True, stamp=count(1).__next__)


def test_members_are_in_the_order_of_joining() -> None:
    here = presence()
    for name in ("joe", "ann", "bob"):
        here.join("/a", name)
    here.leave("/a", "joe")
    here.join("/a", "joe")
    assert here.page("/a", 0, 10) == [("ann", 2), ("bob", 3), ("joe", 4)]
    assert here.page("/a", 2, 1) == [("bob", 3)]
    assert here.count("/a") == 3
    assert here.since("/a", "ann") == 2


def test_only_changes_are_told() -> None:
    here = presence()
    told: list[tuple[str, str]] = []
    here.changed = lambda channel, member: told.append((channel, member))
    here.restore("/a", "ann")
    here.join("/a", "ann")
    here.leave("/a", "joe")
    here.leave("/b", "ann")
    assert told == []
    here.join("/a", "joe")
    here.leave("/a", "joe")
    assert told == [("/a", "joe"), ("/a", "joe")]


def test_a_channel_without_members_is_forgotten() -> None:
    here = presence()
    here.join("/a", "ann")
    here.leave("/a", "ann")
    assert here.since("/a", "ann") is None
    assert here.page("/a", 0, 10) == []
    assert here.count("/a") == 0
    assert here._members == {}
