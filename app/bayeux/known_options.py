"""The options in `ext.delivery` of a message: each is known, or refuses the message."""

import re
from collections.abc import Collection, Mapping
from typing import Any

# Verdicts may come with any message of a receiver.
SAID_BY_RECEIVERS = frozenset({"verdicts", "pending"})
# Only names of this form are repeated in errors.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class QosInvalid(Exception):
    """An option is unknown or has a value that makes no sense; the text names the option."""


def refuse_others(asked: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse unknown options: ignoring one could send a private message to everybody."""
    for name in asked:
        if name not in known:
            raise QosInvalid(name if _NAME.fullmatch(name) else "delivery")
