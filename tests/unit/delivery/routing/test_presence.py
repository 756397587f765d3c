"""Who is on a channel."""

from itertools import count

from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.routing.presence import Presence

# A channel, a member, and whether it has joined or left.
Change = tuple[str, str, bool]


def presence(told: list[Change] | None = None, *, is_used: bool = True) -> Presence[str]:
    changes: list[Change] = [] if told is None else told
    return Presence(
        is_used=is_used,
        by_rule=lambda _: False,
        stamp=count(1).__next__,
        changed=lambda _, *change: changes.append(change),
    )


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
    told: list[Change] = []
    here = presence(told)
    here.restore("/a", "ann")
    here.join("/a", "ann")
    here.leave("/a", "joe")
    here.leave("/b", "ann")
    assert told == []
    here.join("/a", "joe")
    here.leave("/a", "joe")
    assert told == [("/a", "joe", True), ("/a", "joe", True)]


def test_a_member_state_is_reported_only_on_channels_of_the_member() -> None:
    told: list[Change] = []
    here = presence(told)
    here.join("/a", "joe")
    told.clear()
    here.show("joe", ["/a", "/b"])
    here.show("ann", ["/a"])
    assert told == [("/a", "joe", False)]


def test_presence_is_used_once_it_is_offered() -> None:
    here = presence(is_used=False)
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
