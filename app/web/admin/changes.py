"""What every change has in common: it is written down, whatever becomes of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.bayeux.grammar import CommandRefused
from app.store.audit import Audit
from app.store.connection import StoreUnavailable
from app.web.admin.operations import ILLEGAL, STORE_AWAY, OperationFailed

_INTERRUPTED = "internal.interrupted"
_OUR_FAULT = "internal.unknown"


@contextmanager
def asking() -> Iterator[None]:
    """The store is asked for something, and may be away."""
    try:
        yield
    except StoreUnavailable as error:
        raise OperationFailed(STORE_AWAY, str(error)) from error


@contextmanager
def change(
    audit: Audit, who: str, action: str, target: str, **detail: object
) -> Iterator[dict[str, Any]]:
    """Something is changed; what is added to the detail stands in the audit too."""
    outcome = _INTERRUPTED
    try:
        with asking():
            yield detail
        outcome = "ok"
    except (OperationFailed, CommandRefused) as error:
        outcome = error.code
        raise
    except Exception:
        outcome = _OUR_FAULT
        raise
    finally:
        audit.note(who, action, target, outcome=outcome, detail=detail)


def check_cursor(form: re.Pattern[str], cursor: str | None) -> None:
    """Cursors are ours alone to make."""
    if cursor is not None and form.fullmatch(cursor) is None:
        raise OperationFailed(ILLEGAL, "cursor: this is none of ours")
