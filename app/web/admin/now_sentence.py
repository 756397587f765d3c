"""The sentence that says what an operator should know first."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast.units import clock_time, counted
from holdfast.web.admin.alert_limits import Alert
from holdfast.web.admin.now_views import FirstItems, Now, ReceiverNow

# From this age on, an entry in flight is worth a sentence.
_LATE_MS = 60_000
_REFUSED = "requests for its sessions are refused"
_NO_DECISION = "what it decides about is refused"
_STORES = {
    "unavailable": "the store is unavailable: durable messages are refused",
    "full": "the store is unavailable, and too many changes wait for it: nothing is settled",
}


class _Stuck(NamedTuple):
    """What keeps messages waiting, with their number."""

    waiting: int
    text: str


def sentence(now: Now, write_time: Callable[[int, int], str] = clock_time) -> str:
    """Say what is stuck: the cause that makes most messages wait, and how many others there are."""

    def since(ms: int | None) -> str:
        return "" if ms is None else f" since {write_time(ms, now.time)}"

    stuck = [*_stuck(now, since)]
    others = sum(each.waiting > 0 for each in stuck) + _not_shown(now)
    if fault := _of_workers(now, since) or _of_store(now) or _of_backend(now, since):
        return f"{fault}{_and_others(others)}"
    # Of as many messages, the first ones are the cause.
    waiting, text = max(stuck, key=lambda each: each.waiting, default=_Stuck(0, ""))
    if waiting:
        return f"{text}{_and_others(others - 1)}"
    if now.waiting:
        wait = counted(now.waiting, "message waits", "messages wait")
        oldest = now.oldest
        if oldest is None or oldest.state != "waiting":
            return wait
        return f"{wait}, the oldest{since(oldest.published)} for {oldest.receiver}"
    return f"nothing waits{_but(now, text, since)}"


def _of_workers(now: Now, since: Callable[[int | None], str]) -> str:
    """Return which worker of the server is missing; often nothing."""
    for shard in now.shards.items:
        if shard.state == "away":
            last = f", last on {shard.host}," if shard.host else ""
            return f"shard {shard.shard}{last} cannot be reached{since(shard.since)}: {_REFUSED}"
        if shard.state == "silent":
            return f"shard {shard.shard} does not answer: {_REFUSED}"
    return ""


def _of_store(now: Now) -> str:
    """Return what is wrong with the store; often nothing."""
    missing = (each.reason for each in now.alerts.items if each.alert is Alert.REPLICAS)
    return _STORES.get(now.store) or next(missing, "")


def _of_backend(now: Now, since: Callable[[int | None], str]) -> str:
    """Return that the backend does not answer; often nothing."""
    broken = [each.since for each in now.backend.items if each.state == "broken"]
    if not broken:
        return ""
    return f"the backend has not answered{since(broken[0])}: {_NO_DECISION}"


def _and_others(count: int) -> str:
    if count <= 0:
        return ""
    return f"; {counted(count, 'other thing is', 'other things are')} stuck as well"


def _but(now: Now, text: str, since: Callable[[int | None], str]) -> str:
    """Return what is remarkable although nothing waits."""
    if text:
        return f", but {text}"
    oldest = now.oldest
    if oldest is not None and now.time - oldest.published >= _LATE_MS:
        return f", but {oldest.receiver} has not acknowledged a message{since(oldest.published)}"
    alerts = now.alerts.items
    return f", but {alerts[0].reason}" if alerts else ""


def _stuck(now: Now, since: Callable[[int | None], str]) -> Iterator[_Stuck]:
    """Yield everything that is known to be stuck; what causes other things comes before these.

    Where a channel is held back, the messages of its receivers wait. A session that is held back
    may also be out of reach. Work waits because all of its workers do.
    """
    on = {each.channel: each.waiting + each.in_flight for each in now.channels.items}
    for held in now.held_channels.items:
        waiting = on.get(held.channel, 0)
        text = f"{held.channel} has been held back{since(held.since)}"
        yield _Stuck(waiting, f"{text}{_and_wait(waiting, 'on')}")
    behind = _work_behind(now)
    for each in now.held_back.items:
        hold = since(None if each.hold is None else each.hold.since)
        yield _of(each, f"has been held back{hold}", behind)
    for each in _out_of_reach(now):
        state = "out of reach" if each.state is None else each.state.value
        yield _of(each, f"has been {state}{since(each.since)}", behind)
    for work in now.work_queues.items:
        if work.unassigned and not work.receivers:
            text = counted(work.unassigned, "message waits", "messages wait")
            yield _Stuck(
                work.unassigned,
                f"{work.channel} has no worker and {text} in it{since(work.oldest)}",
            )


def _out_of_reach(now: Now) -> list[ReceiverNow]:
    """Return those that are not held back as well."""
    held = {each.receiver for each in now.held_back.items}
    return [each for each in now.unreachable.items if each.receiver not in held]


def _work_behind(now: Now) -> dict[str, int]:
    """Return the work that waits for sessions, because all of its workers are stuck."""
    stuck = {each.receiver for each in (*now.held_back.items, *_out_of_reach(now))}
    behind: dict[str, int] = {}
    for work in now.work_queues.items:
        workers = [each.receiver for each in now.workers.items if each.channel == work.channel]
        if workers and len(workers) == work.receivers and stuck.issuperset(workers):
            for each in workers:
                behind[each] = behind.get(each, 0) + work.unassigned
    return behind


def _not_shown(now: Now) -> int:
    """Return how many others are stuck that are not in the lists, which begin with the fullest."""
    lists: tuple[FirstItems[ReceiverNow], ...] = (now.held_back, now.unreachable)
    return sum(
        each.more for each in lists if all(one.waiting + one.in_flight for one in each.items)
    )


def _of(each: ReceiverNow, text: str, behind: dict[str, int]) -> _Stuck:
    waiting = each.waiting + each.in_flight + behind.get(each.receiver, 0)
    return _Stuck(waiting, f"{each.receiver} {text}{_and_wait(waiting, 'for')}")


def _and_wait(count: int, preposition: str) -> str:
    if not count:
        return ""
    return f" and {counted(count, 'message waits', 'messages wait')} {preposition} it"
