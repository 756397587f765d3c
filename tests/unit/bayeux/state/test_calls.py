"""Calls of operations at their owners, here and at other shards."""

from collections.abc import Callable, Sequence
from logging import getLogger
from typing import Any, cast

import pytest

from holdfast.bayeux.state.calls import Asker, Asking, Calls
from holdfast.delivery.messages.shard_call import ShardCall

DOUBLE = "double"
LOG = getLogger(__name__)


class Homes:
    """Two other shards; each call waits until it is answered."""

    others: Sequence[int] = (1, 2)

    def __init__(self) -> None:
        self.unreachable: set[int] = set()
        self.sent: dict[int, tuple[bytes, Callable[[bytes | None], None]]] = {}
        self.answered: list[bytes] = []

    def may_send(self, shard: int) -> bool:
        return shard not in self.unreachable

    def send(
        self, shard: int, what: str, data: bytes, done: Callable[[bytes | None], None]
    ) -> None:
        assert what == DOUBLE
        self.sent[shard] = data, done

    def answer(self, _: ShardCall, answer: bytes) -> None:
        self.answered.append(answer)


class Shard:
    """A shard that doubles numbers, and what it hears."""

    def __init__(self) -> None:
        self.homes = Homes()
        self.calls = Calls(cast("Any", self.homes), LOG)
        self.calls.handle(DOUBLE, self._double)
        self.heard: list[Any] = []

    def _double(self, asked: Asking, asker: Asker, _: float) -> None:
        asker.answer({"doubled": 2 * asked["number"]})

    def call(self, owner: int | None) -> None:
        self.calls.call(owner, DOUBLE, {"number": 4}, self.heard.append, now=0.0)

    def gather(self, *owners: int | None) -> None:
        asked = {owner: {"number": 10 * (owner or 0)} for owner in owners}
        self.calls.gather(DOUBLE, asked, self.heard.append, now=0.0)


@pytest.fixture
def shard() -> Shard:
    return Shard()


def test_an_owner_that_is_here_answers_at_once_and_needs_no_call(shard: Shard) -> None:
    shard.call(None)
    assert (shard.heard, shard.homes.sent) == ([{"doubled": 8}], {})


def test_a_server_alone_owns_everything() -> None:
    calls, heard = Calls(None, LOG), list[Any]()
    calls.handle(DOUBLE, lambda asked, asker, _: asker.answer({"doubled": 2 * asked["number"]}))
    calls.gather(
        DOUBLE, {owner: {"number": 1} for owner in calls.owners_of("/**")}, heard.append, now=0.0
    )
    assert heard == [[{"doubled": 2}]]
    assert (calls.owner_of("/a"), [*calls.others]) == (None, [])


def test_another_owner_gets_a_call_and_answers_it(shard: Shard) -> None:
    shard.call(1)
    data, done = shard.homes.sent[1]
    other = Shard()
    other.calls.do(ShardCall(0, 5, "0 5", DOUBLE, data), 0.0)
    [answer] = other.homes.answered
    done(answer)
    assert shard.heard == [{"doubled": 8}]


@pytest.mark.parametrize("answer", [b"{}", b"?", b"[1]", b'{"doubled":8}\n?\n'])
def test_an_answer_that_cannot_be_read_is_empty(shard: Shard, answer: bytes) -> None:
    shard.call(1)
    shard.homes.sent[1][1](answer)
    assert shard.heard == [{}]


def test_without_an_answer_in_time_there_is_none(shard: Shard) -> None:
    shard.call(1)
    shard.homes.sent[1][1](None)
    assert shard.heard == [None]


def test_an_owner_that_cannot_be_sent_anything_has_no_answer(shard: Shard) -> None:
    shard.homes.unreachable.add(1)
    shard.call(1)
    assert (shard.heard, shard.homes.sent) == ([None], {})


def test_what_several_owners_answer_is_heard_once_together(shard: Shard) -> None:
    shard.gather(None, 1, 2)
    shard.homes.sent[2][1](b'{"doubled":40}')
    assert shard.heard == []
    shard.homes.sent[1][1](b'{"doubled":20}')
    [answers] = shard.heard
    assert sorted(each["doubled"] for each in answers) == [0, 20, 40]


def test_if_one_of_several_owners_has_no_answer_there_is_none(shard: Shard) -> None:
    shard.homes.unreachable.add(2)
    shard.gather(None, 1, 2)
    assert shard.heard == []
    shard.homes.sent[1][1](b'{"doubled":20}')
    assert shard.heard == [None]


def test_nothing_that_is_asked_is_answered_by_nothing(shard: Shard) -> None:
    shard.gather()
    assert shard.heard == [()]


@pytest.mark.parametrize(("what", "asked"), [("other", b"{}"), (DOUBLE, b"{}"), (DOUBLE, b"?")])
def test_what_cannot_be_carried_out_is_answered_so_and_logged(
    shard: Shard, caplog: pytest.LogCaptureFixture, what: str, asked: bytes
) -> None:
    shard.calls.do(ShardCall(1, 5, "1 5", what, asked), 0.0)
    assert shard.homes.answered == [b"{}"]
    assert "a letter of shard 1 could not be done" in caplog.text
