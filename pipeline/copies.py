"""Copies and their possible ends."""

from holdfast.journal.schema import SETTLED

MESSAGE = ("msg", "origin")
COPY = (*MESSAGE, "receiver")
ENDS = sorted(SETTLED)
# The copy was only in the memory of a process that ended.
LOST = "lost_with_process"
