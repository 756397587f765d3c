"""Incidents: faults of a journal, each recorded as a row and counted."""

from enum import StrEnum


class Incident(StrEnum):
    """The kind of an incident; its `number` is the number of frames, or of events."""

    # The oldest existing frame is not the first that was written.
    BEGINNING = "frame.beginning"
    # Frames are missing.
    GAP = "frame.gap"
    # A frame was repeated, and was not read again.
    REPEAT = "frame.repeat"
    # The store forgot frames that were read: their numbers were used again for other events.
    REWIND = "frame.rewind"
    # The store was emptied: numbers started again.
    RESTART = "frame.restart"
    # A frame was changed after it was written.
    ALTERED = "frame.altered"
    # The frame is damaged.
    UNREADABLE = "frame.unreadable"
    # Only a newer holdfast can read the frame.
    NEWER = "frame.newer"
    # Files of the tables were lost, and an operator gave up their events.
    GIVEN_UP = "events.given_up"


INCIDENTS = tuple(incident.value for incident in Incident)
# Events are missing, or may be.
LOSSES = (
    Incident.GAP,
    Incident.REWIND,
    Incident.ALTERED,
    Incident.UNREADABLE,
    Incident.NEWER,
    Incident.RESTART,
    Incident.GIVEN_UP,
)
