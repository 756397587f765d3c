"""The first sentence of what is stuck: a cause before its effect, and how much else there is."""

from typing import Any

from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.web.admin.now_sentence import sentence
from holdfast.web.admin.now_views import (
    ChannelNow,
    FirstItems,
    Now,
    ReceiverNow,
    WorkerNow,
    WorkNow,
)
from holdfast.web.admin.session_views import HeldChannel, Hold
from tests.web.fake_operations import NOW_MS, a_lost_shard, nothing_waits

HOLD = Hold("the till is shut", "operator/ann", NOW_MS, None)


def said(**lists: Any) -> str:
    now: Now = nothing_waits(**lists)
    return sentence(now, lambda ms, now_ms: "10:02")


def receiver(name: str, waiting: int, *, in_flight: int = 0, is_held: bool = False) -> ReceiverNow:
    return ReceiverNow(
        receiver=name,
        state=DispatcherState.ALIVE if is_held else DispatcherState.POLLING,
        since=None if is_held else NOW_MS,
        hold=HOLD if is_held else None,
        waiting=waiting,
        in_flight=in_flight,
        bytes=9,
        oldest=None,
        oldest_id=None,
    )


def first(*items: Any, more: int = 0) -> FirstItems[Any]:
    return FirstItems([*items], more)


def work(channel: str, unassigned: int, receivers: int) -> WorkNow:
    return WorkNow(channel, unassigned, unassigned, 0, NOW_MS, None, receivers)


def worker(channel: str, name: str) -> WorkerNow:
    return WorkerNow(channel, name, 0, 1, None, NOW_MS)


def test_other_things_that_are_stuck_are_counted() -> None:
    held = first(receiver("shop/1", 1204, is_held=True), receiver("till/1", 3, is_held=True))
    lost = first(receiver("joe/1", 5), more=4)
    jobs = first(work("/jobs", 7, 0))
    assert said(held_back=held, unreachable=lost, work_queues=jobs) == (
        "shop/1 has been held back since 10:02 and 1,204 messages wait for it; "
        "7 other things are stuck as well"
    )
    assert said(held_back=first(*held.items), shards=first(a_lost_shard(1))).endswith(
        "; 2 other things are stuck as well"
    )


def test_a_shard_that_is_away_is_named_with_its_last_host() -> None:
    lost = a_lost_shard(1, host="a.example", since=None)
    assert said(shards=first(lost)).startswith("shard 1, last on a.example, cannot be reached: ")


def test_one_thing_that_is_stuck_is_said_alone() -> None:
    held = first(receiver("shop/1", 2, is_held=True))
    alone = "shop/1 has been held back since 10:02 and 2 messages wait for it"
    assert said(held_back=held) == alone
    # It is out of reach as well, which does not count again; and for one nothing waits.
    assert said(held_back=held, unreachable=first(receiver("shop/1", 2))) == alone
    assert said(held_back=held, unreachable=first(receiver("joe/1", 0), more=3)) == alone
    assert said(held_back=held, unreachable=first(receiver("joe/1", 1))) == (
        f"{alone}; 1 other thing is stuck as well"
    )


def test_a_channel_that_is_held_back_comes_before_the_session_whose_messages_it_holds() -> None:
    channels = first(ChannelNow("/orders", 2, 1, 1, held=True))
    held = first(HeldChannel("/orders", "it breaks", "guard", NOW_MS, None, 1, None))
    # All that waits for joe is what the channel holds back.
    lost = first(receiver("joe/1", 2, in_flight=1))
    assert said(channels=channels, held_channels=held, unreachable=lost).startswith(
        "/orders has been held back since 10:02 and 3 messages wait on it"
    )
    more = first(receiver("joe/1", 3, in_flight=1))
    assert said(channels=channels, held_channels=held, unreachable=more).startswith("joe/1 ")


def test_work_waits_for_the_workers_that_are_all_stuck() -> None:
    jobs = first(work("/jobs", 300, 2))
    workers = first(worker("/jobs", "max/1"), worker("/jobs", "eva/1"))
    held = first(receiver("max/1", 1, is_held=True))
    lost = first(receiver("eva/1", 2), receiver("joe/1", 9))
    assert said(work_queues=jobs, workers=workers, held_back=held, unreachable=lost).startswith(
        "eva/1 has been POLLING since 10:02 and 302 messages wait for it"
    )
    # One of the workers works on.
    assert said(work_queues=jobs, workers=workers, unreachable=lost).startswith("joe/1 ")
