"""The sentence that says what an operator should know first."""

from collections.abc import Callable, Iterator

from holdfast.units import clock_time, counted
from holdfast.web.admin.alert_limits import Alert
from holdfast.web.admin.now_views import Now, ReceiverNow

# From this age on, an entry in flight is worth a sentence.
_LATE_MS = 60_000
_REFUSED = "requests for its sessions are refused"
_STORES = {
    "unavailable": "the store is unavailable: durable messages are refused",
    "full": "the store is unavailable, and too many changes wait for it: nothing is settled",
}


def sentence(now: Now, write_time: Callable[[int, int], str] = clock_time) -> str:
    """Say what is stuck; of several problems, the one that makes most messages wait."""

    def since(ms: int | None) -> str:
        return "" if ms is None else f" since {write_time(ms, now.time)}"

    for shard in now.shards.items:
        if shard.state == "away":
            return f"shard {shard.shard} cannot be reached{since(shard.since)}: {_REFUSED}"
        if shard.state == "silent":
            return f"shard {shard.shard} does not answer: {_REFUSED}"
    if fault := _of_store(now):
        return fault

    waiting, text = max(_stuck(now, since), key=lambda each: each[0], default=(0, ""))
    if waiting:
        return text
    if now.waiting:
        wait = counted(now.waiting, "message waits", "messages wait")
        oldest = now.oldest
        if oldest is None or oldest.state != "waiting":
            return wait
        return f"{wait}, the oldest{since(oldest.published)} for {oldest.receiver}"
    return f"nothing waits{_but(now, text, since)}"


def _of_store(now: Now) -> str:
    """Return what is wrong with the store; often nothing."""
    missing = (each.reason for each in now.alerts.items if each.alert is Alert.REPLICAS)
    return _STORES.get(now.store) or next(missing, "")


def _but(now: Now, text: str, since: Callable[[int | None], str]) -> str:
    """Return what is remarkable although nothing waits."""
    if text:
        return f", but {text}"
    oldest = now.oldest
    if oldest is not None and now.time - oldest.published >= _LATE_MS:
        return f", but {oldest.receiver} has not acknowledged a message{since(oldest.published)}"
    alerts = now.alerts.items
    return f", but {alerts[0].reason}" if alerts else ""


def _stuck(now: Now, since: Callable[[int | None], str]) -> Iterator[tuple[int, str]]:
    """Yield what keeps messages waiting, with their number."""
    for each in now.held_back.items[:1]:
        hold = since(None if each.hold is None else each.hold.since)
        yield _of(each, f"has been held back{hold}")
    for each in now.unreachable.items[:1]:
        state = "out of reach" if each.state is None else each.state.value
        yield _of(each, f"has been {state}{since(each.since)}")
    on = {each.channel: each.waiting for each in now.channels.items}
    for held in now.held_channels.items:
        waiting = on.get(held.channel, 0)
        text = f"{held.channel} has been held back{since(held.since)}"
        yield waiting, f"{text}{_and_wait(waiting, 'on')}"
    for work in now.work_queues.items:
        if work.unassigned and not work.receivers:
            text = counted(work.unassigned, "message waits", "messages wait")
            yield (
                work.unassigned,
                f"{work.channel} has no worker and {text} in it{since(work.oldest)}",
            )


def _of(each: ReceiverNow, text: str) -> tuple[int, str]:
    waiting = each.waiting + each.in_flight
    return waiting, f"{each.receiver} {text}{_and_wait(waiting, 'for')}"


def _and_wait(count: int, preposition: str) -> str:
    if not count:
        return ""
    return f" and {counted(count, 'message waits', 'messages wait')} {preposition} it"
