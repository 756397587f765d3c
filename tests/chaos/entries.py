"""Writes the operations of a history into a ledger."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.chaos.history import Operation, What
from tests.chaos.ledger import Ledger
from tests.chaos.records import (
    ACCEPTED,
    FOR_EVER,
    Copy,
    Dead,
    Delivery,
    Fault,
    Gap,
    Hold,
    Pending,
    Publish,
    Scan,
    Settlement,
    Stall,
    Window,
)


def open_ledger(operations: Sequence[Operation]) -> Ledger:
    """The ledger of a history."""
    ledger = Ledger()
    for operation in operations:
        _ENTRIES[operation.what](ledger, operation)
        ledger.end_ns = max(ledger.end_ns, operation.last_ns)
    # Several deliveries at one moment have the order of their lines, which is that of the response.
    ledger.deliveries.sort(key=lambda delivery: delivery.at_ns)
    return ledger


def _publish(ledger: Ledger, operation: Operation) -> None:
    fields = operation.fields
    ledger.publishes[fields["tag"]] = Publish(
        tag=fields["tag"],
        publisher=operation.process,
        serial=fields["serial"],
        channel=fields["channel"],
        sha=fields["sha"],
        priority=fields.get("priority", 5),
        life_ms=fields.get("life_ms"),
        begun_ns=operation.begun_ns,
        ended_ns=FOR_EVER if operation.ended_ns is None else operation.ended_ns,
        outcome=operation.outcome,
        received=fields.get("received", ""),
        destinations=frozenset(fields.get("taken", fields.get("destinations", ()))),
        is_work=fields.get("is_work", False),
    )


def _subscribe(ledger: Ledger, operation: Operation) -> None:
    fields = operation.fields
    certain_ns = operation.last_ns if operation.is_ok else FOR_EVER
    ledger.windows.append(
        Window(
            subscriber=fields["subscriber"],
            pattern=fields["channel"],
            begun_ns=operation.begun_ns,
            ended_ns=certain_ns,
            is_durable=fields.get("is_durable", True),
            has_cursor=fields.get("cursor") is not None,
        )
    )


def _go_on(ledger: Ledger, operation: Operation) -> None:
    """A subscriber that catches up is owed everything but the gaps that it is told of."""
    fields = operation.fields
    for pattern, lost in fields.get("lost", {}).items():
        ledger.gaps.append(Gap(fields["subscriber"], pattern, lost["from"], lost["to"]))


def _end(ledger: Ledger, operation: Operation) -> None:
    ledger.endings.setdefault(operation.fields["subscriber"], []).append(operation.begun_ns)


def _unsubscribe(ledger: Ledger, operation: Operation) -> None:
    for window in _open_windows(ledger, operation.fields["subscriber"]):
        if window.pattern == operation.fields["channel"]:
            window.until_ns = operation.begun_ns


def _session_lost(ledger: Ledger, operation: Operation) -> None:
    for window in _open_windows(ledger, operation.fields["subscriber"]):
        if not window.is_durable:
            window.until_ns, window.is_lost = operation.begun_ns, True


def _open_windows(ledger: Ledger, subscriber: str) -> Iterator[Window]:
    return (
        window
        for window in ledger.windows
        if window.subscriber == subscriber and window.until_ns == FOR_EVER
    )


def _deliver(ledger: Ledger, operation: Operation) -> None:
    fields = operation.fields
    ledger.deliveries.append(
        Delivery(
            copy=_copy(fields, fields["subscriber"]),
            channel=fields["channel"],
            sha=fields["sha"],
            seq=fields.get("seq", 0),
            redelivered=fields.get("redelivered"),
            at_ns=operation.begun_ns,
            asked_ns=fields["asked"],
            timeout_ns=_ns(fields.get("timeout_ms")),
            received=fields.get("received", ""),
            life=len(ledger.endings.get(fields["subscriber"], ())),
        )
    )


def _ns(ms: int | None) -> int | None:
    return None if ms is None else ms * 1_000_000


def _settle(ledger: Ledger, operation: Operation) -> None:
    """One request may settle many entries, each with a verdict of its own."""
    for said in operation.fields["entries"]:
        ledger.settlements.append(
            Settlement(
                copy=_copy(said, operation.fields["subscriber"]),
                seq=said.get("seq", 0),
                code=said.get("code", ACCEPTED),
                begun_ns=operation.begun_ns,
                ended_ns=operation.last_ns,
                outcome=operation.outcome,
            )
        )


def _hold(ledger: Ledger, operation: Operation) -> None:
    if not operation.is_ok:
        return
    # A hold by a verdict applies to its answer already, one by a command after its answer.
    is_verdict = operation.fields.get("by") == "verdict"
    ledger.holds.append(
        Hold(
            subscriber=operation.fields["subscriber"],
            asked_ns=operation.begun_ns if is_verdict else operation.last_ns,
            certain_ns=operation.last_ns,
            is_verdict=is_verdict,
        )
    )


def _resume(ledger: Ledger, operation: Operation) -> None:
    for hold in ledger.holds:
        if hold.subscriber == operation.fields["subscriber"] and hold.until_ns == FOR_EVER:
            hold.until_ns = operation.begun_ns


def _fault(ledger: Ledger, operation: Operation) -> None:
    ended_ns = FOR_EVER if operation.ended_ns is None else operation.ended_ns
    fields = operation.fields
    may_lose = fields.get("may_lose", False)
    ledger.faults.append(Fault(fields["kind"], operation.begun_ns, ended_ns, may_lose))


def _scan(ledger: Ledger, operation: Operation) -> None:
    if not operation.is_ok:
        return
    fields = operation.fields
    ledger.scans.append(
        Scan(
            at_ns=operation.begun_ns,
            pending=[
                Pending(_copy(entry, subscriber), entry.get("attempts", 0))
                for subscriber, entries in fields["pending"].items()
                for entry in entries
            ],
            dead=[_dead(letter) for letter in fields["dead"]],
            limits=fields.get("limits", {}),
        )
    )


def _late(ledger: Ledger, operation: Operation) -> None:
    ended_ns = operation.begun_ns
    ledger.stalls.append(Stall(ended_ns - operation.fields["ns"], ended_ns))


def _dead(letter: dict[str, Any]) -> Dead:
    return Dead(
        copy=_copy(letter, letter["subscriber"]),
        letter=letter["letter"],
        code=letter["code"],
        attempts=letter.get("attempts", 0),
        state=letter.get("state", "new"),
    )


def _copy(fields: dict[str, Any], subscriber: str) -> Copy:
    return Copy(subscriber, fields["tag"], fields.get("generation", 0))


_ENTRIES: dict[What, Callable[[Ledger, Operation], None]] = {
    What.PUBLISH: _publish,
    What.REPEAT: lambda ledger, operation: ledger.repeats.append(operation),
    What.SUBSCRIBE: _subscribe,
    What.GO_ON: _go_on,
    What.END: _end,
    What.UNSUBSCRIBE: _unsubscribe,
    What.SESSION_LOST: _session_lost,
    What.CONNECT: lambda ledger, operation: ledger.connects.append(operation),
    What.DELIVER: _deliver,
    What.SETTLE: _settle,
    What.HOLD: _hold,
    What.RESUME: _resume,
    What.REPLAY: lambda ledger, operation: ledger.replays.append(operation),
    What.REQUEST: lambda ledger, operation: ledger.requests.append(operation),
    What.OUTCOME: lambda ledger, operation: ledger.outcomes.append(operation),
    What.FAULT: _fault,
    What.SCAN: _scan,
    What.COUNTERS: lambda ledger, operation: ledger.counters.append(operation),
    What.LATE: _late,
}
