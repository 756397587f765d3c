"""Messages, their copies, and the possible ends of these."""

from datetime import date

from holdfast.journal.schema import SETTLED, STEPS, Kind, Stage

MESSAGE = ("msg", "origin")
# The length of a day in the unit of messages' ids.
DAY_NS = 86_400_000_000_000
COPY = (*MESSAGE, "receiver")
# After these, a copy is not in its queue any more; a copy that moved goes on in another one.
ENDS = sorted(SETTLED)
LAST_ENDS = sorted(SETTLED - {Kind.MOVED})
HAND_OVERS = [step.kind for step in STEPS if step.stage is Stage.HANDED]
# The beginning of reply channels, and what all of them are called together.
REPLIES, REPLY_CHANNELS = "/ret/", "/ret/*"
# The copy was only in the memory of a process that ended.
LOST = "lost_with_process"
_FIRST_DAY = date(1970, 1, 1)


def first_id(day: date) -> int:
    """Return the least id that a message of this day can have."""
    return (day - _FIRST_DAY).days * DAY_NS
