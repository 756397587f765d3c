"""The options in `ext.delivery` of a message: each is known, or refuses the message."""

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.delivery.messages.verdicts import QUOTABLE

# Verdicts may come with any message of a receiver.
SAID_BY_RECEIVERS = frozenset({"verdicts", "pending"})
# The longest time that an option may state.
LONGEST_MS = 10 * 365 * 24 * 3600 * 1000


class QosInvalid(Exception):
    """An option is unknown or has a value that makes no sense; the text names the option."""


def refuse_others(asked: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse unknown options: ignoring one could send a private message to everybody."""
    for name in asked:
        if name not in known:
            raise QosInvalid(name if QUOTABLE.fullmatch(name) else "delivery")
