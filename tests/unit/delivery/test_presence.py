"""Who is on a channel."""

from itertools import count

from holdfast.delivery.channels import Channels
from holdfast.delivery.presence import Presence


def presence() -> Presence[str]:
    return Presence(is_used=True, by_rule=lambda _: False, stamp=count(1).__next__)


def test_members_are_listed_in_the_order_of_joining() -> None:
    here = presence()
    for name in ("joe", "ann", "bob"):
        here.join("/a", name)
    here.leave("/a", "joe")
    here.join("/a", "joe")
    assert here.page("/a", 0, 10) == [("ann", 2), ("bob", 3), ("joe", 4)]
    assert here.page("/a", 2, 1) == [("bob", 3)]
    assert here.count("/a") == 3
    assert here.since("/a", "ann") == 2


def test_only_joins_and_leaves_that_change_the_members_are_reported() -> None:
    here = presence()
    told: list[tuple[str, str, bool]] = []
    here.changed = lambda *change: told.append(change)
    here.restore("/a", "ann")
    here.join("/a", "ann")
    here.leave("/a", "joe")
    here.leave("/b", "ann")
    assert told == []
    here.join("/a", "joe")
    here.leave("/a", "joe")
    assert told == [("/a", "joe", True), ("/a", "joe", True)]


def test_a_member_state_is_reported_only_on_channels_of_the_member() -> None:
    here = presence()
    here.join("/a", "joe")
    told: list[tuple[str, str, bool]] = []
    here.changed = lambda *change: told.append(change)
    here.show("joe", ["/a", "/b"])
    here.show("ann", ["/a"])
    assert told == [("/a", "joe", False)]


def test_presence_is_used_once_it_is_offered() -> None:
    here: Presence[str] = Presence(is_used=False, by_rule=lambda _: False, stamp=count(1).__next__)
    channels = Channels()
    assert not here.is_visible(channels.named("/a/b"))
    here.offer("/a/*")
    assert here.is_used
    assert here.is_visible(channels.named("/a/b"))
    assert not here.is_visible(channels.named("/b/a"))


def test_a_channel_without_members_is_forgotten() -> None:
    here = presence()
    here.join("/a", "ann")
    here.leave("/a", "ann")
    assert here.since("/a", "ann") is None
    assert here.page("/a", 0, 10) == []
    assert here.count("/a") == 0
    assert here._members == {}
