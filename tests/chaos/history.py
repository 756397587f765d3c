"""A history has one line of JSON for the beginning of each operation and one for its end.

An operation whose end is unknown (a time-out, a connection that broke) may have happened.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import orjson


class Phase(StrEnum):
    """Where in its life an operation is; one that was not ended is unknown."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class What(StrEnum):
    """The kinds of operations."""

    PUBLISH = "publish"
    REPEAT = "repeat"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    GO_ON = "go on"
    SESSION_LOST = "session lost"
    END = "end"
    CONNECT = "connect"
    DELIVER = "deliver"
    SETTLE = "settle"
    HOLD = "hold"
    RESUME = "resume"
    REPLAY = "replay"
    REQUEST = "request"
    OUTCOME = "outcome"
    FAULT = "fault"
    SCAN = "scan"
    COUNTERS = "counters"
    LATE = "late"


class HistoryDamaged(Exception):
    """A line that is not the last one cannot be read."""


@dataclass(slots=True)
class Operation:
    """One operation from its beginning to its end; times are monotonic nanoseconds."""

    process: str
    what: What
    begun_ns: int
    wall_ns: int
    ended_ns: int | None = None
    outcome: Phase = Phase.INFO
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.outcome is Phase.OK

    @property
    def last_ns(self) -> int:
        """The end if it is known."""
        return self.begun_ns if self.ended_ns is None else self.ended_ns


class Clock:
    """The monotonic and the wall clock."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        return time.time_ns()


class Begun:
    """An operation that has begun; one of `ok`, `fail` and `info` ends it."""

    def __init__(self, end: Callable[[Phase, dict[str, Any]], None], at_ns: int) -> None:
        self._end = end
        self.at_ns = at_ns

    def ok(self, **fields: Any) -> None:
        self._end(Phase.OK, fields)

    def fail(self, **fields: Any) -> None:
        """It certainly has no effect."""
        self._end(Phase.FAIL, fields)

    def info(self, **fields: Any) -> None:
        """It may or may not have an effect."""
        self._end(Phase.INFO, fields)


class HistoryWriter:
    """Appends to a history; every line has left the process when the call returns."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self.clock = clock or Clock()
        self._file: IO[bytes] = path.open("ab", buffering=0)
        self._number = 0

    def begin(self, process: str, what: What, **fields: Any) -> Begun:
        self._number += 1
        number = self._number
        at_ns = self._write(number, process, what, Phase.INVOKE, fields)

        def end(phase: Phase, more: dict[str, Any]) -> None:
            self._write(number, process, what, phase, more)

        return Begun(end, at_ns)

    def note(self, process: str, what: What, **fields: Any) -> int:
        """Record an event without duration; return its time."""
        self._number += 1
        return self._write(self._number, process, what, Phase.OK, fields)

    def close(self) -> None:
        self._file.close()

    def _write(
        self, number: int, process: str, what: What, phase: Phase, fields: dict[str, Any]
    ) -> int:
        at_ns = self.clock.monotonic_ns()
        line = {
            "n": number,
            "process": process,
            "what": what,
            "phase": phase,
            "at": at_ns,
            "wall": self.clock.wall_ns(),
            **({"fields": fields} if fields else {}),
        }
        self._file.write(orjson.dumps(line) + b"\n")
        return at_ns


def read(path: Path, *, behind: int = 0) -> list[Operation]:
    """The operations of a history, in the order of their beginnings.

    Those that begin before the position `behind`, and end after it, seem to begin at their end.
    """
    return paired(lines(path, behind=behind))


def lines(path: Path, *, behind: int = 0) -> Iterator[dict[str, Any]]:
    """The lines of a history from a position on, without an incomplete last one."""
    with path.open("rb") as file:
        file.seek(behind)
        *whole, rest = file.read().split(b"\n")
    for number, line in enumerate(whole, 1):
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise HistoryDamaged(f"line {number} of {path.name}: {error}") from error
    if rest:
        try:
            yield orjson.loads(rest)
        except orjson.JSONDecodeError:
            return


def about(path: Path, tag: str) -> Iterator[str]:
    """The lines about a message, and about faults, without scans, which have all messages."""
    numbers: set[int] = set()
    for line in lines(path):
        text = orjson.dumps(line).decode()
        if f'"{tag}"' in text and line["what"] != What.SCAN:
            numbers.add(line["n"])
        if line["n"] in numbers or line["what"] == What.FAULT:
            yield text


def paired(found: Iterable[dict[str, Any]]) -> list[Operation]:
    """Operations from their beginnings and ends; one with a single line is a point in time."""
    operations: dict[int, Operation] = {}
    for line in found:
        phase, at_ns = Phase(line["phase"]), line["at"]
        operation = operations.get(line["n"])
        if operation is None:
            operation = operations[line["n"]] = Operation(
                line["process"], What(line["what"]), at_ns, line["wall"]
            )
        if phase is not Phase.INVOKE:
            operation.ended_ns, operation.outcome = at_ns, phase
        operation.fields.update(line.get("fields", {}))
    return sorted(operations.values(), key=lambda operation: operation.begun_ns)
