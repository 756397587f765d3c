"""Types of operators' input, with their limits.

Patterns must also be valid JavaScript regular expressions, because browsers check input with them.
"""

from collections.abc import Collection, Iterable
from enum import Enum
from typing import Annotated

from pydantic import Field, GetPydanticSchema, ValidationError, WithJsonSchema
from pydantic_core import core_schema

from holdfast.delivery.letters.dead import LetterState

# Names may contain any characters except control characters.
VISIBLE = r"^[^\x00-\x1f\x7f]+$"
# The end of the year 9999. Neither dates nor the store support much more.
_LATEST_MS = 253_402_300_799_999


def one_of(words: Iterable[str]) -> WithJsonSchema:
    """List the allowed words in the schema."""
    return WithJsonSchema({"type": "string", "enum": [*words]})


def values_of(kind: type[Enum], *, without: Collection[Enum] = ()) -> GetPydanticSchema:
    """Read and write members of an enum as their values, which the schema lists."""
    words = core_schema.literal_schema([each.value for each in kind if each not in without])
    written = core_schema.plain_serializer_function_ser_schema(_value, return_schema=words)
    schema = core_schema.no_info_before_validator_function(
        _value,
        core_schema.no_info_after_validator_function(kind, words),
        serialization=written,
    )
    return GetPydanticSchema(lambda _kind, _handler: schema)


def _value(given: object) -> object:
    return given.value if isinstance(given, Enum) else given


class GroupedBy(Enum):
    """What the dead letters of a group have in common."""

    CAUSE = "cause"
    CODE = "code"
    PATTERN = "pattern"


Channel = Annotated[str, Field(max_length=1024, pattern=VISIBLE)]
Code = Annotated[str, Field(pattern=r"^[A-Za-z.]{1,128}$")]
Fingerprint = Annotated[str, Field(pattern=r"^[A-Za-z0-9_\-]{1,64}$")]
LetterId = Annotated[str, Field(pattern=r"^[0-9]{19}$")]
Count = Annotated[int, Field(ge=0)]
Ms = Annotated[
    int,
    Field(
        ge=0,
        le=_LATEST_MS,
        description="Milliseconds since 1970.",
        json_schema_extra={"format": "ms"},
    ),
]
AnyLetterState = Annotated[LetterState, values_of(LetterState)]
# Subject and number: joe/1.
SessionKey = Annotated[str, Field(max_length=256, pattern=VISIBLE)]
# Only the subject of a webhook has a slash.
Subject = Annotated[str, Field(max_length=128, pattern=r"^(?:webhook\/)?[^\/\x00-\x1f\x7f]+$")]


# What pydantic says about programs.
_PLAINLY = {
    "extra_forbidden": "there is no such field or parameter here",
}


def first_fault(error: ValidationError) -> str:
    """Return where the input is wrong, and why."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(step)[:64] for step in fault["loc"])
    said = _PLAINLY.get(fault["type"], fault["msg"])
    return f"{place}: {said}" if place else said
