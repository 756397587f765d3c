"""Sessions that are spread: what scripts publish is divided among all shards.

Any shard may have such a session, while its subject has all others at its home. So the limits of
the subject are divided for them, as an address divides its limits.
"""

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.feature_records import record_of, with_record


class _Spread:
    """The record of such a session."""

    __slots__ = ()


def spread(session: Session) -> None:
    """Count the session, which is new, as one whose subject may have its home elsewhere."""
    session.records = with_record(session.records, _Spread())


def is_spread(session: Session) -> bool:
    """Return whether the home of the session's subject may be another shard."""
    return record_of(session.records, _Spread) is not None
