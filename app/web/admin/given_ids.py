"""The id of what a request begins in all shards, if another worker has chosen it."""

from contextvars import ContextVar
from typing import Final

GIVEN: Final = ContextVar("given", default="")
