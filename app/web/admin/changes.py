"""What all changes have in common: they are audited, and answered once the store has them."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.wire.command_refused import OUR_FAULT, CommandRefused
from holdfast.store.audit import Audit
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin.faults import STORE_UNAVAILABLE, RequestFailed, illegal

_INTERRUPTED = "internal.interrupted"
# How long the answer to a change waits for the store.
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """The server that an operator looks at and changes, and the audit."""

    life: SessionLife
    # Monotonic seconds, as the server counts them.
    clock: Callable[[], float]
    audit: Audit
    version: str
    # How long dead letters are kept.
    letter_age_ms: int
    keeps_journal: bool

    @asynccontextmanager
    async def change(
        self, who: str, action: str, target: str, **detail: object
    ) -> AsyncIterator[dict[str, Any]]:
        """Audit a change, and wait until the store has it.

        While the store is unavailable, the change is in effect, and is stored when it is back.
        """
        with change(self.audit, who, action, target, **detail) as detail_of_change:
            yield detail_of_change
        await self.kept()

    async def kept(self) -> bool:
        """Wait until the store has all changes so far, if it is available.

        Returns whether it has them.
        """
        store, kept = self.life.state.store, asyncio.Event()
        if not store.is_available:
            return False
        store.after(kept.set)
        with suppress(TimeoutError):
            await asyncio.wait_for(kept.wait(), _TIMEOUT_S)
        return kept.is_set()


@contextmanager
def change(
    audit: Audit, who: str, action: str, target: str, **detail: object
) -> Iterator[dict[str, Any]]:
    """Audit a change, with its outcome. The block may add to the detail."""
    outcome = _INTERRUPTED
    try:
        yield detail
        outcome = "ok"
    except CommandRefused as refused:
        outcome = refused.code
        raise
    except StoreUnavailable as error:
        outcome = STORE_UNAVAILABLE
        raise RequestFailed(outcome, str(error)) from error
    except Exception:
        outcome = OUR_FAULT
        raise
    finally:
        audit.note(who, action, target, outcome=outcome, detail=detail)


def check_cursor(form: re.Pattern[str], cursor: str | None) -> None:
    """Refuse a cursor that this server did not issue."""
    if cursor is not None and form.fullmatch(cursor) is None:
        raise illegal("cursor: this server did not issue this cursor")


def check_sweep(filter: BaseModel, *, all: bool) -> None:
    """Refuse an empty filter, unless the request has `all`."""
    if not all and not filter.model_dump(exclude_defaults=True, exclude={"begun_before"}):
        raise illegal("the filter is empty: add all: true to select everything")
