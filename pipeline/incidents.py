"""What can be wrong with a journal; each is a row that says so, and is counted."""

from enum import StrEnum


class Incident(StrEnum):
    """The kind of such a row; `number` says how many frames it is about."""

    # The oldest frame that is there is not the first that was.
    BEGINNING = "frame.beginning"
    # Frames that must have been there are not.
    GAP = "frame.gap"
    # A frame that was read before, and was not read again.
    REPEAT = "frame.repeat"
    # The store forgot frames that were read: their numbers came once more, with other events.
    REWIND = "frame.rewind"
    # The store was emptied: numbers began anew.
    RESTART = "frame.restart"
    # Nobody can read it.
    UNREADABLE = "frame.unreadable"
    # Whoever has a newer holdfast can read it.
    NEWER = "frame.newer"


INCIDENTS = tuple(incident.value for incident in Incident)
# Events are missing, or there is no telling.
LOSSES = (Incident.GAP, Incident.REWIND, Incident.UNREADABLE, Incident.NEWER, Incident.RESTART)
