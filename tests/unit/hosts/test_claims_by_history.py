"""What is claimed, compared with a naive reading of everything that was ever seen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.hosts.claims import Claim
from holdfast.hosts.watching import ShardSeen
from tests.unit.hosts.desk import SHARDS, Desk, place_of

# What happens to one shard before a look.
EVENTS = st.sampled_from(["raise", "stand", "stand", "stand", "end", "fail", "offer", "open"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.5, 0.5, 0.5, 0.75, 0.875, 3.0]),
        st.fixed_dictionaries(dict.fromkeys(range(3), EVENTS)),
        st.sampled_from([0.0, 0.25, 0.375, 0.625]),
    ),
    min_size=1,
    max_size=16,
)


def changed(seen: ShardSeen, event: str) -> ShardSeen | None:
    match event:
        case "raise" if seen.lease:
            return ShardSeen(seen.epoch, str(int(seen.lease) + 1), seen.host, seen.offer)
        case "end":
            return ShardSeen(seen.epoch, "", seen.host, seen.offer)
        case "offer":
            return ShardSeen(seen.epoch, seen.lease, seen.host, "b" if seen.offer else "a")
        case "open":
            return ShardSeen(seen.epoch + "'", "0", "c", "")
        case "fail":
            return None
        case _:
            pass
    return seen


def expected(
    shard: int, history: list[tuple[float, ShardSeen | None]], begun: float, now: float
) -> Claim | None:
    """What the rule says, read backwards from the last look."""
    at, seen = history[-1]
    if seen is None or now - at > 0.75:
        return None
    if seen.offer == "a":
        return Claim(shard, offered_epoch=seen.epoch)
    since = at
    for earlier, other in reversed(history[:-1]):
        is_same = other is not None and (other.epoch, other.lease) == (seen.epoch, seen.lease)
        if not is_same or since - earlier > 0.75:
            break
        since = earlier
    stood_s = now - since - (3.0 if seen.lease else 0.0)
    place = place_of(shard, "a")
    if place:
        stood_s = min(stood_s, now - begun - 3.0)
    unraised = f"{seen.epoch} {seen.lease}" if seen.lease else ""
    return Claim(shard, unraised) if stood_s >= 5.0 * place else None


@pytest.mark.slow
@given(STEPS)
def test_claims_are_what_the_whole_history_says(steps: list[tuple[float, Any, float]]) -> None:
    desk = Desk()
    # A float has these times exactly.
    desk.now = begun = 0.0
    desk.look(0.0)
    looks = {shard: [(desk.now, desk.shards[shard])] for shard in range(SHARDS)}
    stored = {shard: desk.shards[shard] for shard in range(SHARDS)}
    for after_s, events, wait_s in steps:
        for shard, event in events.items():
            seen = stored[shard]
            assert seen is not None
            found = changed(seen, event)
            desk.shards[shard] = found
            stored[shard] = found or seen
        desk.raised = {*range(3, SHARDS)}
        desk.look(after_s)
        # No shard of the three has a worker here.
        desk.claims.see(desk.shards, desk.rows, range(3, SHARDS))
        for shard in range(SHARDS):
            looks[shard].append((desk.now, desk.shards[shard]))
        desk.wait(wait_s)
        model = [expected(shard, looks[shard], begun, desk.now) for shard in range(3)]
        claims = {claim.shard: claim for claim in desk.claims.to_claim()}
        assert [claims.get(shard) for shard in range(3)] == model
        desk.now -= wait_s
