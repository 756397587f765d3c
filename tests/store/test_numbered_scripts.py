"""The beginning of every script, which checks the number of its call, on a real server."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from holdfast.store.format.scripts import SAVE
from holdfast.store.links.reply_errors import ScriptFailed
from tests.effort import TIMES
from tests.store.model import NONCE, Room
from tests.store.store_process import KEYS
from tests.unit.store.numbered import Connection, check_back, check_once, connections


class RealStore:
    """Saves a session for each call, and can go back to any call."""

    def __init__(self, redis: Redis) -> None:
        self._room = Room(redis)
        self._room.open()
        self._script = redis.register_script(SAVE.source)
        # The hash of the write right after each call.
        self._states = [self._room.hash(KEYS.meta)]

    @property
    def done(self) -> list[int]:
        return sorted(map(int, self._room.hash(KEYS.sessions)))

    def call(self, word: str) -> object:
        number = int(word.split()[1].partition("-")[2])
        before = len(self.done)
        try:
            reply: Any = self._script(keys=[KEYS.meta, KEYS.sessions], args=[word, number, number])
        except ResponseError as error:
            return ScriptFailed(str(error).split()[0], str(error))
        if len(self.done) > before:
            self._states.append(self._room.hash(KEYS.meta))
        return reply

    @property
    def skipped(self) -> list[str]:
        return self._room.hash(KEYS.meta)["skipped"].split()

    def go_back(self, calls: int) -> None:
        for number in self.done[-calls:]:
            self._room.redis.hdel(KEYS.sessions, str(number))
        del self._states[len(self.done) + 1 :]
        self._room.redis.delete(KEYS.meta)
        self._room.redis.hset(KEYS.meta, mapping=self._states[-1])  # type: ignore[arg-type]


on_one_server = settings(
    max_examples=30 * TIMES, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@on_one_server
@given(connections)
def test_every_script_runs_once_in_order_or_is_refused_whatever_answers_are_lost(
    redis: Redis, given_connections: list[Connection]
) -> None:
    check_once(RealStore(redis), given_connections)


@pytest.mark.slow
@on_one_server
@given(connections, st.integers(1, 5), connections)
@example([([True, True, True], [], 2)], 2, [([], [], 8)])
@example([([False, True, False], [False, False, True], 2)], 1, [([], [], 0), ([], [], 1)])
# The same, and the call behind one that is refused was made later.
@example([([True] * 6, [], 3)], 5, [([True], [False, False, True], 0), ([], [], 8)])
def test_a_store_that_went_back_is_noticed_at_the_first_answer_after_that(
    redis: Redis, before: list[Connection], lost: int, after: list[Connection]
) -> None:
    check_back(RealStore(redis), before, lost, after)


def test_the_store_remembers_refused_calls_only_while_they_may_be_repeated(redis: Redis) -> None:
    store = RealStore(redis)

    def call(number: int, oldest: int) -> None:
        names = [f"{NONCE}-{each:012d}" for each in (number - 1, number)]
        store.call(f"{names[0]} {names[1]} 0 {oldest}")

    for number in range(1, 40, 2):
        call(number, 1)
    assert len(store.skipped) == 19
    call(41, 37)
    assert store.skipped == ["40-40", "38-38"]
