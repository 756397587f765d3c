"""The base of all sections of the settings."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from holdfast.units import Unit

Milliseconds = Annotated[int, Field(ge=0), Unit.MS]
Limit = Annotated[int, Field(ge=1)]
TimeLimit = Annotated[Limit, Unit.MS]
SizeLimit = Annotated[Limit, Unit.BYTES]
# A token of HTTP, such as the name of a cookie or sub-protocol.
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


class Section(BaseModel):
    """Settings that belong together, under one heading."""

    # Only all sections together are ever checked. Type checkers see a default only by its name.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    heading: ClassVar[str]
