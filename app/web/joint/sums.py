"""Makes one thing of what several shards know of it: a channel, a replay, a group of letters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.web.joint.asking import Json

# The most receivers and channels that a replay names.
_MOST = 20
_UNDER_WAY = ("canary", "running", "failed", "stopped", "cancelled")


def added(values: Iterable[Any]) -> Any:  # noqa: ANN401 - numbers, perhaps unknown
    """Return the sum; unknown if a part is."""
    found = list(values)
    return None if any(each is None for each in found) else sum(found)


def known(values: Iterable[Any]) -> list[Any]:
    return [each for each in values if each is not None]


def earliest(values: Iterable[Any]) -> Any:  # noqa: ANN401 - times, perhaps unknown
    return min(known(values), default=None)


def latest(values: Iterable[Any]) -> Any:  # noqa: ANN401 - times, perhaps unknown
    return max(known(values), default=None)


def with_sums(found: Sequence[Json], *names: str, **others: object) -> Json:
    """Return the first with the sums of these fields, and with other fields."""
    return {**found[0], **{name: added(each[name] for each in found) for name in names}, **others}


def channel(found: list[Json]) -> Json:
    """Return a channel of the list of channels."""
    rates = known(each["rate"] for each in found)
    return with_sums(
        *(found, "subscribers", "letters"),
        rate=sum(rates) if rates else None,
        held=any(each["held"] for each in found),
    )


def held_channel(found: list[Json]) -> Json:
    """Return a held channel, as the shard shows it that has held it for longest."""
    return min(found, key=lambda each: int(each["since"]))


def group(found: list[Json]) -> Json:
    """Return a group of dead letters with one cause."""
    newest = max(found, key=lambda each: str(each["sample"]))
    remarks = known(each["remark"] for each in found)
    return {
        **with_sums([newest, *(each for each in found if each is not newest)], "count"),
        "receivers": added(each["receivers"] for each in found),
        "first": earliest(each["first"] for each in found),
        "last": latest(each["last"] for each in found),
        "hours": [sum(each) for each in zip(*(each["hours"] for each in found), strict=True)],
        "days": [sum(each) for each in zip(*(each["days"] for each in found), strict=True)],
        "remark": max(remarks, key=lambda each: int(each["at"]), default=None),
    }


def replay(found: list[Json]) -> Json:
    """Return a replay, of which each shard carries out its part."""
    states = [each["state"] for each in found]
    return with_sums(
        *(found, "total", "sent", "acked", "died_again", "skipped"),
        state=next((each for each in _UNDER_WAY if each in states), states[0]),
        over=all(each["over"] for each in found),
        started=earliest(each["started"] for each in found),
        finished=None
        if any(each["finished"] is None for each in found)
        else latest(each["finished"] for each in found),
        skips=_counts(each["skips"] for each in found),
        channels=_largest(found, "channels"),
        receivers=_largest(found, "receivers"),
        away=_largest(found, "away"),
        reason=next((each["reason"] for each in found if each["reason"]), None),
    )


def _counts(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in found:
        for name, count in each.items():
            counts[name] = counts.get(name, 0) + count
    return counts


def _largest(found: Sequence[Json], name: str) -> dict[str, int]:
    counts = _counts(each[name] for each in found)
    return dict(sorted(counts.items(), key=lambda each: -each[1])[:_MOST])


def trace(found: list[Json]) -> Json:
    """Return where a message is, and its history, of all shards."""
    steps = [step for each in found for step in each["steps"]]
    return {
        **found[0],
        "published": earliest(each["published"] for each in found),
        "journal": any(each["journal"] for each in found),
        "lakes": sorted({lake for each in found for lake in each["lakes"]}),
        "queues": [queue for each in found for queue in each["queues"]],
        "letters": [letter for each in found for letter in each["letters"]],
        "is_cut": any(each["is_cut"] for each in found),
        "steps": sorted(_published_once(steps), key=lambda step: int(step["at_us"])),
    }


def _published_once(steps: Iterable[Json]) -> list[Json]:
    """Join the steps in which shards, each for its own receivers, say that a message was published.

    The joint one has the copies of all.
    """
    joint: dict[int, Json] = {}
    others: list[Json] = []
    for step in steps:
        if step["kind"] != "published":
            others.append(step)
        elif (first := joint.get(step["at_us"])) is not None:
            first["copies"] += step["copies"]
        else:
            joint[step["at_us"]] = {**step}
    return [*joint.values(), *others]


def upgrade(found: list[Json]) -> Json:
    """Return the layout of the store that is furthest behind."""
    return min(found, key=lambda each: int(each["layout"]))
