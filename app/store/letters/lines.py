"""Dead letters as lines of JSON, for export and import."""

from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from holdfast.delivery.basics.json_text import part, to_json
from holdfast.delivery.letters.dead import (
    MAX_REASON,
    DeadLetter,
    LetterState,
    fingerprint,
    key_of,
    subject_of,
)
from holdfast.delivery.messages.message import ORDINARY_PRIORITY
from holdfast.delivery.messages.trails import Attempt, clipped, first_and_last
from holdfast.store.format import letter_records
from holdfast.store.format.operator_input import AnyLetterState, LetterId, first_fault

_Needed = Annotated[str, Field(min_length=1, max_length=1024)]
_Name = Annotated[str, Field(max_length=1024)]
_Word = Annotated[str, Field(max_length=100)]
_Code = Annotated[str, Field(max_length=200)]
_Text = Annotated[str, Field(max_length=2**20)]
_Count = Annotated[int, Field(ge=0, lt=2**31)]


class LineUnfit(Exception):
    """A line is not a dead letter. The text says why."""


class _Line(BaseModel):
    """The fields of a line that are read. null stands for a missing field."""

    model_config = ConfigDict(strict=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the line has
        if not isinstance(given, dict):
            raise PydanticCustomError("object", "not a JSON object")
        return {name: value for name, value in given.items() if value is not None}


class _Attempt(_Line):
    n: int = 0
    time: int = 0
    node: _Word = ""
    transport: _Word = ""
    outcome: _Word = ""
    latency: int | None = None
    code: _Code = ""
    text: _Text = ""


class _Expiration(_Line):
    lifeTime: Annotated[int, Field(ge=0, lt=2**53)]
    forceDestroy: bool = False


class _Letter(_Line):
    id: LetterId
    message: LetterId
    channel: Annotated[_Needed, Field(pattern="^/")]
    receiver: _Needed
    publisher: _Name = ""
    code: Annotated[_Code, Field(min_length=1)]
    reason: _Text = ""
    priority: Annotated[int, Field(ge=0, le=9)] = ORDINARY_PRIORITY
    durable: bool = False
    properties: dict[str, Any] | None = None
    expiration: _Expiration | None = None
    attempts: _Count = 0
    redelivered: _Count = 0
    history: list[_Attempt] = []
    policy: dict[str, Any] | None = None
    generation: _Count = 0
    state: AnyLetterState = LetterState.NEW
    replays: _Count = 0
    job: Annotated[str, Field(pattern="^[0-9]{0,19}$")] = ""
    event: dict[str, Any]


# All except `text`, which is for the journal only: the reason includes it, the store does not keep
# it.
_FIELDS = [name for name in DeadLetter._fields if name != "text"]
# Fields that have another name in lines.
_NAMES = {
    "wire": "event",
    "is_durable": "durable",
    "attempts": "history",
    "attempt_count": "attempts",
}


def write(letter: DeadLetter) -> bytes:
    """Return the letter as a line without a line break."""
    fields = {_NAMES.get(name, name): getattr(letter, name) for name in _FIELDS}
    made = {
        "message": str(letter.message),
        "event": orjson.Fragment(letter.wire),
        "properties": None if letter.properties is None else part(dict(letter.properties)),
        "policy": None if letter.policy is None else part(dict(letter.policy)),
        "history": [attempt.to_json() for attempt in letter.attempts],
    }
    return orjson.dumps({"v": letter_records.LETTER_VERSION, **fields, **made})


def read(line: bytes, now_ns: int) -> DeadLetter:
    """Parse a letter. Derived fields are computed again."""
    given = _parse(line)
    if "data" not in given.event:
        raise LineUnfit("event has no data")
    if given.event.get("channel") != given.channel:
        raise LineUnfit("event is of another channel")
    if max(int(given.id), int(given.message)) > now_ns:
        raise LineUnfit("id or message is in the future")
    wire, reason = to_json(given.event), clipped(given.reason, MAX_REASON)
    made: dict[str, Any] = {
        "message": int(given.message),
        "wire": wire,
        "size": len(wire),
        "key": key_of(given.receiver),
        "subject": subject_of(given.receiver),
        "reason": reason,
        "expiration": None if given.expiration is None else dict(given.expiration),
        "fingerprint": fingerprint(given.channel, given.code),
        "attempts": first_and_last([Attempt(**dict(each)) for each in given.history]),
    }
    fields = {name: getattr(given, _NAMES.get(name, name)) for name in _FIELDS if name not in made}
    return DeadLetter(**fields, **made)


def _parse(line: bytes) -> _Letter:
    try:
        return _Letter.model_validate(orjson.loads(line))
    except orjson.JSONDecodeError as error:
        raise LineUnfit("not JSON") from error
    except ValidationError as error:
        raise LineUnfit(first_fault(error)) from error
