"""Types of operators' input, with their limits.

Patterns are regular expressions of JavaScript as well: browsers check what operators fill in.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, ValidationError, WithJsonSchema

# Names may have any characters except control characters.
VISIBLE = r"^[^\x00-\x1f\x7f]+$"
# The end of the year 9999: neither dates nor the store go much further.
_LATEST_MS = 253_402_300_799_999

Channel = Annotated[str, Field(max_length=1024, pattern=VISIBLE)]
Code = Annotated[str, Field(pattern=r"^[A-Za-z.]{1,128}$")]
Fingerprint = Annotated[str, Field(pattern=r"^[A-Za-z0-9_\-]{1,64}$")]
LetterId = Annotated[str, Field(pattern=r"^[0-9]{19}$")]
LetterStateName = Literal["new", "replayed"]
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
# Subject and number: joe/1.
SessionKey = Annotated[str, Field(max_length=256, pattern=VISIBLE)]
Subject = Annotated[str, Field(max_length=128, pattern=r"^[^\/\x00-\x1f\x7f]+$")]


def one_of(words: Iterable[str]) -> WithJsonSchema:
    """Say in the schema which words there are."""
    return WithJsonSchema({"type": "string", "enum": [*words]})


def first_fault(error: ValidationError) -> str:
    """Return where the input is wrong, and why."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(step)[:64] for step in fault["loc"])
    return f"{place}: {fault['msg']}" if place else fault["msg"]
