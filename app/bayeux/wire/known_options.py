"""Options in `ext.delivery`. An unknown option refuses the message."""

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.delivery.messages.verdicts import QUOTABLE

# A receiver's message may always carry verdicts.
SAID_BY_RECEIVERS = frozenset({"verdicts", "pending"})
# The longest time that an option may set.
LONGEST_MS = 10 * 365 * 24 * 3600 * 1000


class QosInvalid(Exception):
    """An option is unknown or has an invalid value. The text names the option."""


def refuse_others(asked: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse unknown options: ignoring one could send a private message to everyone."""
    for name in asked:
        if name not in known:
            raise QosInvalid(name if QUOTABLE.fullmatch(name) else "delivery")
