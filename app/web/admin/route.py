"""One row of the table that the administration's routes and their description are made from."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.web.admin.operations import Operations
from app.web.admin.requests import Asked
from app.web.admin.tokens import Role

Params = TypeVar("Params")
Body = TypeVar("Body")


class Lines:
    """Stands for JSON lines, where a row names what comes or goes."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Params, Body]):
    """A request that has passed the door: allowed, complete and within all bounds."""

    operations: Operations
    params: Params
    body: Body
    who: str


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, who may use them, what comes and what goes."""

    method: str
    # Names in braces are parameters, as are the others of `params` behind the question mark.
    path: str
    role: Role
    summary: str
    # Gives the answer, an iterator of lines for `Lines`, or None for no content.
    handle: Callable[[Call[Any, Any]], Awaitable[object]]
    # A type that pydantic knows, `Lines`, or None.
    answer: Any
    params: type[Asked] = Asked
    body: type[Asked] | type[Lines] | None = None

    @property
    def name(self) -> str:
        """Of the operation, for generated clients."""
        return str(getattr(self.handle, "__name__", "")).strip("_")
