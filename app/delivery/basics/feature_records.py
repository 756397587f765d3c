"""Records of features: what one feature knows of a message or of a session.

A message or a session carries such records without opening them. Each feature defines the class of
its record in its own room, so every reader of a record imports that feature. A carrier has at most
one record of each class. The ordinary carrier has none: it pays one slot, and each reader one test
for None.

The tuple never changes, so carriers may share it.
"""

from typing import TypeVar

K = TypeVar("K")
R = TypeVar("R")

# What a carrier has in its slot `records`.
Records = tuple[object, ...]


def record_of(records: Records | None, kind: type[K]) -> K | None:
    """Return the record of exactly this class, if the carrier has one."""
    if records is not None:
        for each in records:
            if type(each) is kind:
                return each
    return None


def with_record(records: tuple[R, ...] | None, record: R) -> tuple[R, ...]:
    """Return the records with this one, which replaces another of its class."""
    others = without_record(records, type(record))
    return (record,) if others is None else (*others, record)


def without_record(records: tuple[R, ...] | None, kind: type[object]) -> tuple[R, ...] | None:
    """Return the records without the record of this class; None if no other is left."""
    if records is None:
        return None
    if len(records) == 1:
        # The usual case: some features add a record and remove it for each reply.
        return None if type(records[0]) is kind else records
    return tuple([each for each in records if type(each) is not kind]) or None
