"""Releases and their stores: newer ones are refused, the last one's are read."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from redis import Redis
from redis.exceptions import ResponseError

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.topics.configured import TopicConfig, TopicRecord
from holdfast.store.format.keys import NO_GENERATION, RedisKeys
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from holdfast.store.format.opening_scripts import finish_upgrade
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.opening.generations import keys_of
from tests.store.model import Room
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, message, store_process
from tests.store.stored_scene import RELEASES, furnish, put, stored
from tests.unit.bayeux.harness import Server

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
RELEASED = re.findall(r"^## (\d+\.\d+\.\d+) - ", CHANGELOG.read_text(), re.MULTILINE)


# Those of another layout than this release.
OLDER = [
    path.stem
    for path in sorted(RELEASES.glob("*.json"))
    if orjson.loads(path.read_bytes())["open"]["args"][0] < LAYOUT
]


def described(release: str) -> dict[str, Any]:
    """What a release writes, and how it opens a store, as it said itself."""
    found: dict[str, Any] = orjson.loads((RELEASES / f"{release}.json").read_bytes())
    return found


def open_as(redis: Redis, release: str) -> Any:
    """Open the store as the release does."""
    opening = described(release)["open"]
    script = redis.register_script("\n".join(opening["script"]))
    return script(keys=opening["keys"], args=opening["args"])


def test_the_last_release_refuses_a_store_with_anything_that_it_would_not_keep(
    redis: Redis,
) -> None:
    last = RELEASED[0]
    furnish(Room(redis))
    if stored(redis) == described(last)["stored"]:
        assert open_as(redis, last)
        return
    before = stored(redis)
    with pytest.raises(ResponseError, match=f"VERSION {LAYOUT}"):
        open_as(redis, last)
    assert stored(redis) == before


def test_a_release_opens_the_store_that_it_wrote(redis: Redis) -> None:
    """So what refuses the stores of today is the release, not the test."""
    for release in sorted(path.stem for path in RELEASES.glob("*.json")):
        redis.flushall()
        put(redis, described(release)["stored"])
        assert open_as(redis, release)[1] == str(BASE + 6).encode()


@pytest.mark.parametrize("release", OLDER)
async def test_what_a_release_stored_is_read_and_stays_in_its_layout_until_the_finish(
    shared_valkey: ValkeyServer, redis: Redis, release: str
) -> None:
    put(redis, described(release)["stored"])
    keys = RedisKeys("test", generation=NO_GENERATION)
    async with store_process(shared_valkey, is_open=False, keys=keys) as at:
        assert (await keys_of(at.link, "test")).prefix == keys.prefix
        assert await at.store.open() == BASE + 6
        # So the ids of its messages stay the same.
        assert at.store.deployment.name == "test"
        server = Server(keeper=at.store)
        topics = server.bayeux.life.topics
        found = await at.store.loading().topics()
        topics.expect(found)
        entries = {}
        without_session = partial(restore_without_session, server.bayeux.life)
        async for loaded in at.store.load(without_session):
            entries[loaded.record.key] = loaded.entries
            restore(server.bayeux.life, loaded.record, loaded.entries, server.now)
        assert found == {
            "/own": TopicRecord(TopicConfig(-1, True, HistoryDepth(3, 5000))),
            "/erased": TopicRecord(is_erased=True),
        }
        numbers = {key: [mark.id - BASE for mark, _ in each] for key, each in entries.items()}
        assert numbers == {"joe/1": [1, 2, 5], "ann/1": [3, 1, 4]}
        returned, _, moved = (mark for mark, _ in entries["ann/1"])
        assert (returned.seq, returned.attempts, len(returned.trail)) == (-4, 3, 1)
        assert (moved.attempts, moved.was_alone) == (2, True)
        assert entries["joe/1"][1][1].properties == {"shop": "north"}
        assert (await at.store.loading().held_channels())["/orders/new"].who == "operator/ann"
        dead = await at.letters.search.oldest(LetterFilter(), 9)
        assert [each.reason for each in dead] == ["no such order"]
        at.keep(message(7, key="key"), "joe/1")
        await at.answered()
        assert at.kept[7] == [PersistOutcome.REPEATED]
        former = described(release)["open"]["args"][0]
        assert at.store.layout.number == former
        assert redis.hget(keys.meta, "version") == b"%d" % former
        await at.store.run(finish_upgrade(keys))
    with pytest.raises(ResponseError, match=f"VERSION {LAYOUT}"):
        open_as(redis, release)
    # Its keys stay as they are.
    assert not any(re.match(r"\{test\}:g[0-9]", name) for name in stored(redis))


def test_the_last_release_has_described_itself() -> None:
    assert (RELEASES / f"{RELEASED[0]}.json").exists()
    assert OLDEST_LAYOUT <= described(RELEASED[0])["open"]["args"][0] <= LAYOUT
