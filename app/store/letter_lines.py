"""Dead letters as lines of JSON, for other systems and back again."""

import re
from typing import Any, TypeVar

import orjson

from app.delivery.attempts import Attempt, Trail, clipped, first_and_last
from app.delivery.dead_letters import (
    MAX_REASON,
    DeadLetter,
    State,
    fingerprint,
    key_of,
    subject_of,
)
from app.delivery.json_text import to_json
from app.store import records

T = TypeVar("T")

_DIGITS = re.compile(r"[0-9]{19}")
_JOB = re.compile(r"[0-9]{0,19}")
_MAX_CHANNEL = 1024
_MAX_NAME = 1024
_MAX_CODE = 200
_PRIORITIES = range(10)
_MAX_COUNT = 2**31


class LineUnfit(Exception):
    """A line that is no dead letter; the text says why."""


def write(letter: DeadLetter) -> bytes:
    """The letter as a line, without its end."""
    return orjson.dumps(records.letter_to_json(letter))


def read(line: bytes, now_ns: int) -> DeadLetter:
    """The letter of a line. What can be derived is derived again."""
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise LineUnfit("no JSON") from error
    if type(given) is not dict:
        raise LineUnfit("no JSON object")
    channel = _text(given, "channel", _MAX_CHANNEL, is_needed=True)
    receiver = _text(given, "receiver", _MAX_NAME, is_needed=True)
    code = _text(given, "code", _MAX_CODE, is_needed=True)
    reason = clipped(_text(given, "reason", 2**20), MAX_REASON)
    wire = _wire(given, channel)
    return DeadLetter(
        id=_id(given, "id", now_ns),
        message=int(_id(given, "message", now_ns)),
        channel=channel,
        wire=wire,
        size=len(wire),
        publisher=_text(given, "publisher", _MAX_NAME),
        receiver=receiver,
        key=key_of(receiver),
        subject=subject_of(receiver),
        code=code,
        reason=reason,
        fingerprint=fingerprint(channel, code, reason),
        priority=_number(given, "priority", 5, _PRIORITIES),
        is_durable=_typed(given, "durable", bool, False),
        properties=_typed(given, "properties", dict, None),
        attempts=_history(given),
        attempt_count=_number(given, "attempts", 0, range(_MAX_COUNT)),
        redelivered=_number(given, "redelivered", 0, range(_MAX_COUNT)),
        policy=_typed(given, "policy", dict, None),
        generation=_number(given, "generation", 0, range(_MAX_COUNT)),
        state=_state(given),
        replays=_number(given, "replays", 0, range(_MAX_COUNT)),
        job=_job(given),
    )


def _typed(given: dict[str, Any], name: str, kind: type[T], default: T | None) -> Any:  # noqa: ANN401
    value = given.get(name)
    if value is None:
        return default
    if type(value) is not kind:
        raise LineUnfit(f"{name} is no {kind.__name__}")
    return value


def _text(given: dict[str, Any], name: str, longest: int, *, is_needed: bool = False) -> str:
    text: str = _typed(given, name, str, "")
    if is_needed and not text:
        raise LineUnfit(f"{name} is missing")
    if len(text) > longest:
        raise LineUnfit(f"{name} is longer than {longest}")
    return text


def _number(given: dict[str, Any], name: str, default: int, allowed: range) -> int:
    number: int = _typed(given, name, int, default)
    if number not in allowed:
        raise LineUnfit(f"{name} is out of range")
    return number


def _id(given: dict[str, Any], name: str, now_ns: int) -> str:
    id = _text(given, name, 19, is_needed=True)
    if not _DIGITS.fullmatch(id):
        raise LineUnfit(f"{name} has not 19 digits")
    if int(id) > now_ns:
        raise LineUnfit(f"{name} is in the future")
    return id


def _wire(given: dict[str, Any], channel: str) -> bytes:
    event: dict[str, Any] | None = _typed(given, "event", dict, None)
    if event is None or "data" not in event:
        raise LineUnfit("event has no data")
    if not channel.startswith("/") or event.get("channel") != channel:
        raise LineUnfit("event is of another channel")
    return to_json(event)


def _history(given: dict[str, Any]) -> Trail:
    attempts: list[object] = _typed(given, "history", list, [])
    return first_and_last([_attempt(attempt) for attempt in attempts])


def _attempt(given: object) -> Attempt:
    if type(given) is not dict:
        raise LineUnfit("an attempt is no object")
    return Attempt(
        n=_typed(given, "n", int, 0),
        time=_typed(given, "time", int, 0),
        node=_text(given, "node", 100),
        transport=_text(given, "transport", 100),
        outcome=_text(given, "outcome", 100),
        latency=_typed(given, "latency", int, None),
        code=_text(given, "code", _MAX_CODE),
        text=_text(given, "text", 2**20),
    )


def _state(given: dict[str, Any]) -> State:
    try:
        return State(_text(given, "state", 100) or State.NEW)
    except ValueError as error:
        raise LineUnfit("state is unknown") from error


def _job(given: dict[str, Any]) -> str:
    job = _text(given, "job", 19)
    if not _JOB.fullmatch(job):
        raise LineUnfit("job has no digits")
    return job
