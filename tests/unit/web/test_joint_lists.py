"""Lists of several shards are joined page by page, and nothing is told twice or left out."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.joint.lists import Order, by_name, joined
from holdfast.web.joint.sums import channel, once, trace

Names = st.lists(st.text("abc", min_size=1, max_size=3), unique=True, max_size=8)
EARLIEST = by_name("name")
LATEST = Order(place=lambda item: item["name"], is_latest_first=True)


def page(names: list[str], after: str | None, limit: int, *, is_latest: bool) -> dict[str, Any]:
    """One page of one shard."""
    left = sorted(names, reverse=is_latest)
    if after is not None:
        left = [each for each in left if (each < after if is_latest else each > after)]
    cursor = left[limit - 1] if len(left) > limit else None
    return {"items": [{"name": each} for each in left[:limit]], "cursor": cursor}


@given(st.lists(Names, min_size=1, max_size=3), st.integers(1, 4), st.booleans())
def test_all_pages_together_have_each_item_once_in_order(
    shards: list[list[str]], limit: int, is_latest: bool
) -> None:
    order, cursor, found = LATEST if is_latest else EARLIEST, None, []
    for _ in range(50):
        pages = [page(each, cursor, limit, is_latest=is_latest) for each in shards]
        part = joined(pages, limit, order)
        found += [each["name"] for each in part["items"]]
        cursor = part["cursor"]
        if cursor is None:
            break
    everything = sorted((name for each in shards for name in each), reverse=is_latest)
    assert found == everything


def test_a_channel_of_several_shards_is_one_item() -> None:
    names = ("name", "subscribers", "rate", "held", "letters")
    first, second, third = (
        {"items": [dict(zip(names, ("/a", *each), strict=True))], "cursor": None}
        for each in ((1, None, False, 4), (2, 0.5, True, 0), (0, None, False, None))
    )
    [found] = joined([first, second], 10, by_name("name", channel))["items"]
    assert [found[name] for name in names] == ["/a", 3, 0.5, True, 4]
    [found] = joined([first, third], 10, by_name("name", channel))["items"]
    assert found["letters"] is None, "one shard does not know"


def change(time: int, target: str, **detail: Any) -> dict[str, Any]:
    about = {"who": "operator/ann", "action": "channel.hold", "outcome": "ok"}
    return {"time": time, "target": target, "detail": detail, **about}


def test_an_audit_has_what_all_shards_did_for_one_request_once() -> None:
    first = [change(9000, "/a"), change(5000, "/a"), change(4990, "/a"), change(100, "/b")]
    second = [change(9002, "/a"), change(4995, "/a", count=1), change(4980, "/a")]
    entries = [{**each, "shard": n} for n, its in enumerate((first, second)) for each in its]
    kept = once(sorted(entries, key=lambda each: -int(each["time"])))
    # What one shard did twice is twice, and so is what differs.
    told = [(9002, "/a"), (5000, "/a"), (4995, "/a"), (4990, "/a"), (100, "/b")]
    assert [(each["time"], each["target"]) for each in kept] == told
    assert all("shard" not in each for each in kept)


def test_an_audit_has_the_part_of_each_shard_in_a_replay_even_if_they_are_equal() -> None:
    entries = [{**change(9, "7", sent=6), "shard": n} for n in range(2)]
    details = [each["detail"] for each in once(entries)]
    assert details == [{"shard": 0, "sent": 6}, {"shard": 1, "sent": 6}]


def test_a_message_is_published_once_with_the_copies_of_all_shards() -> None:
    def found(*steps: tuple[int, str, int | None]) -> dict[str, Any]:
        names = ("at_us", "kind", "copies")
        lists: dict[str, Any] = {name: [] for name in ("lakes", "queues", "letters")}
        told = [dict(zip(names, step, strict=True)) for step in steps]
        return {"published": 1, "journal": True, "is_cut": False, **lists, "steps": told}

    first = found((5, "published", 0), (9, "published", 2))
    second = found((5, "published", 3), (6, "handed", None))
    steps = [
        (each["at_us"], each["kind"], each["copies"]) for each in trace([first, second])["steps"]
    ]
    assert steps == [(5, "published", 3), (6, "handed", None), (9, "published", 2)]
