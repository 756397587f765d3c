"""What is known of a request before it is answered: who sent it, and the names in its path."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from holdfast.web.admin.tokens import Role


@dataclass(frozen=True, slots=True)
class Person:
    """The operator or reader behind a request."""

    role: Role
    who: str
    # The token in the request; empty if another login identifies the caller.
    token: str = field(default="", repr=False)


PERSON = web.RequestKey("person", Person)
# The parts of the path that the route has names for.
PLACES = web.RequestKey("places", dict[str, str])
# The id of what a request begins in all shards, if another worker has chosen it.
GIVEN: Final = ContextVar("given", default="")
