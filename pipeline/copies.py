"""Copies and their possible ends."""

from holdfast.journal.schema import SETTLED

MESSAGE = ("msg", "origin")
COPY = (*MESSAGE, "receiver")
ENDS = sorted(SETTLED)
# The beginning of reply channels, and what all of them are called together.
REPLIES, REPLY_CHANNELS = "/ret/", "/ret/*"
# The copy was only in the memory of a process that ended.
LOST = "lost_with_process"
