"""What the sections of the settings have in common."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

Milliseconds = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=1)]
# A token of HTTP, such as the name of a cookie or sub-protocol.
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


class Section(BaseModel):
    """Settings that belong together, under one heading."""

    heading: ClassVar[str]
